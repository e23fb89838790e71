#include "ps/store/memory/table_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"

namespace leeway::ps::table_memory_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kBlockElements = 16;
constexpr std::uint64_t kBlockBytes = kBlockElements * sizeof(float);

// A table's only shard, of a server with a limit.
class Bounded {
 public:
  Bounded(TableSpec spec, std::uint64_t bytes_max) : memory_(bytes_max), spec_(std::move(spec)) {
    updater_ = *MakeUpdater(spec_);
    store_ = NewShardStore(spec_, {.table = 1, .block_bytes = kBlockBytes, .memory = &memory_},
                           updater_.get());
  }

  // As a head does: asks first.
  absl::Status Push(const PushView& push) {
    const absl::Status room = store_->CheckMemory(push);
    return room.ok() ? store_->Apply(push) : room;
  }
  absl::Status PushBlock(std::uint64_t block) {
    PushView push;
    push.block = block;
    push.values = FloatsOf(kBlockElements);
    return Push(push);
  }
  absl::Status PushRows(std::uint64_t first, std::uint64_t rows, std::uint32_t ragged_width = 0) {
    std::vector<std::uint64_t> keys(rows);
    std::iota(keys.begin(), keys.end(), first);
    PushView push;
    push.keys = runtime::Buffer::CopyOf(keys.data(), rows * sizeof(std::uint64_t));
    if (ragged_width > 0) {
      const std::vector<std::uint32_t> widths(rows, ragged_width);
      push.widths = runtime::Buffer::CopyOf(widths.data(), rows * sizeof(std::uint32_t));
    }
    push.values = FloatsOf(rows * (ragged_width > 0 ? ragged_width : spec_.row_width));
    return Push(push);
  }
  absl::Status PullBlock(std::uint64_t block) {
    PullView pull;
    pull.block = block;
    pull.elements = kBlockElements;
    return store_->Pull(pull).status();
  }
  void Drop() { store_.reset(); }
  const TableMemory& memory() const { return memory_; }
  ShardStore& store() { return *store_; }

 private:
  static runtime::Buffer FloatsOf(std::uint64_t elements) {
    const std::vector<float> values(elements, 1);
    return runtime::Buffer::CopyOf(values.data(), elements * sizeof(float));
  }

  TableMemory memory_;
  const TableSpec spec_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ShardStore> store_;
};

TableSpec With(TableSpec spec, const std::string& updater) {
  spec.updater.name = updater;
  return spec;
}

TEST(TableMemory, ADenseTableTakesWhatItsBlocksAndTheirStateTake) {
  Bounded table(With(TableSpec::Dense("w", {64}), "adam"), 6 * kBlockBytes);
  EXPECT_TRUE(table.PushBlock(0).ok());
  EXPECT_EQ(table.memory().bytes(), 3 * kBlockBytes);  // values and two slots
  EXPECT_TRUE(table.PushBlock(1).ok());
  const absl::Status full = table.PushBlock(2);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("table 'w'"), HasSubstr("LEEWAY_TABLE_BYTES_MAX=384")));
  EXPECT_EQ(table.PullBlock(2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(table.store().stats().blocks, 2u);
  EXPECT_TRUE(table.PushBlock(1).ok()) << "what is there is updated";
  EXPECT_TRUE(table.PullBlock(0).ok());
  table.Drop();
  EXPECT_EQ(table.memory().bytes(), 0u);
}

TEST(TableMemory, ASparseTableMayUpdateRowsWhenThereIsNoRoomForNewOnes) {
  Bounded table(TableSpec::Sparse("e", 16), 1 << 20);
  std::uint64_t rows = 0;
  absl::Status full;
  while (full.ok() && rows < 100'000) {
    full = table.PushRows(rows, 100);
    if (full.ok()) rows += 100;
  }
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(table.store().stats().rows, rows);
  EXPECT_GT(rows, 8'000u);
  EXPECT_LE(table.memory().bytes(), (1u << 20) + (256u << 10)) << "a slab at most beyond it";
  EXPECT_TRUE(table.PushRows(rows - 100, 100).ok());
  EXPECT_FALSE(table.PushRows(rows - 50, 100).ok());
  EXPECT_EQ(table.store().stats().rows, rows) << "all of a push or nothing";
  table.Drop();
  EXPECT_EQ(table.memory().bytes(), 0u);
}

TEST(TableMemory, ARaggedTableToo) {
  Bounded table(With(TableSpec::Ragged("r"), "assign"), 1 << 20);
  std::uint64_t rows = 0;
  absl::Status full;
  while (full.ok() && rows < 100'000) {
    full = table.PushRows(rows, 100, 16);
    if (full.ok()) rows += 100;
  }
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_TRUE(table.PushRows(0, 100, 16).ok());
  EXPECT_FALSE(table.PushRows(0, 100, 4096).ok()) << "wider";
}

// Rows that change their widths leave gaps, and slabs that are mostly gaps are given up.
TEST(TableMemory, SlabsThatWereGivenUpTakeNothing) {
  Bounded table(With(TableSpec::Ragged("r"), "assign"), 1 << 20);
  for (std::uint32_t round = 0; round < 500; ++round) {
    const absl::Status pushed = table.PushRows(0, 100, 16 + 16 * (round % 2));
    ASSERT_TRUE(pushed.ok()) << round << ": " << pushed;
  }
}

TEST(TableMemory, WithoutALimitThereIsRoom) {
  const TableMemory memory(0);
  EXPECT_TRUE(memory.HasRoom(~std::uint64_t{0}));
}

}  // namespace
}  // namespace leeway::ps::table_memory_test
