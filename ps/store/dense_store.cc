#include "ps/store/dense_store.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/layout.h"
#include "ps/store/block_values.h"
#include "ps/store/checks.h"
#include "ps/store/initial_values.h"
#include "ps/store/update_run.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

template <class Stored>
class DenseStore final : public ShardStore {
 public:
  DenseStore(const TableSpec& spec, const StorePlace& place, const Updater* updater)
      : spec_(spec),
        place_(place),
        updater_(updater),
        initial_(spec),
        num_blocks_(proto::NumBlocks(spec, place.block_bytes)) {}

  absl::Status Check(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(push.block));
    if (!push.keys.empty() || !push.widths.empty()) {
      return Invalid(spec_, "it is dense, but the push has keys or widths");
    }
    const std::uint64_t bytes = ElementsIn(push.block) * sizeof(Stored);
    if (push.values.size() != bytes) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes to block ", push.block,
                     ", which has ", Count(ElementsIn(push.block), "element"), " of ",
                     sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  absl::Status Apply(const PushView& push) override { return ApplyCombined({&push, 1}, 1); }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    if (pushes.empty()) return absl::OkStatus();
    std::vector<const Stored*> values;
    for (const PushView& push : pushes) {
      LEEWAY_RETURN_IF_ERROR(Check(push));
      if (push.block != pushes.front().block) {
        return Invalid(spec_, "pushes to blocks ", pushes.front().block, " and ", push.block,
                       " cannot be combined");
      }
      values.push_back(push.values.template as<Stored>().data());
    }
    Update(pushes.front().block, values, TermsOf(spec_, pushes, contributors));
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(pull.block));
    if (!pull.keys.empty()) return Invalid(spec_, "it is dense, but the pull has keys");
    const std::uint64_t elements = ElementsIn(pull.block);
    if (pull.elements != elements) {
      return Invalid(spec_, "a pull of ", Count(pull.elements, "element"), " from block ",
                     pull.block, ", which has ", elements);
    }
    PullResult result;
    result.payload.push_back(Touch(pull.block).values.View());
    result.elements = elements;
    return result;
  }

  StoreStats stats() const override { return stats_; }

 private:
  using Compute = ComputeOf<Stored>;

  struct Block {
    BlockValues values;
    std::vector<Compute> state;  // slot after slot; empty before the first push
    std::uint64_t steps = 0;
  };

  std::uint64_t ElementsIn(std::uint64_t block) const {
    return proto::ElementsInBlock(spec_, place_.block_bytes, block);
  }

  absl::Status CheckBlock(std::uint64_t block) const {
    if (block >= num_blocks_) {
      return absl::OutOfRangeError(absl::StrCat("table '", spec_.name, "': block ", block,
                                                " was asked for, but it has ",
                                                Count(num_blocks_, "block")));
    }
    const std::uint32_t shard = proto::ShardOfBlock(place_.table, block, place_.num_shards);
    if (shard == place_.shard) return absl::OkStatus();
    return Invalid(spec_, "block ", block, " was asked for in shard ", place_.shard, " of ",
                   place_.num_shards, ", but belongs to shard ", shard);
  }

  Block& Touch(std::uint64_t index) {
    Block& block = blocks_[index];
    if (block.values.empty()) {
      const std::uint64_t elements = ElementsIn(index);
      block.values = BlockValues(elements * sizeof(Stored));
      initial_.Fill(index * proto::BlockElements(spec_.dtype, place_.block_bytes), elements,
                    reinterpret_cast<Stored*>(block.values.data()));
      ++stats_.blocks;
      stats_.value_bytes += elements * sizeof(Stored);
    }
    return block;
  }

  void MakeState(Block& block, std::uint64_t elements) {
    block.state.reserve(static_cast<std::size_t>(updater_->state_slots()) * elements);
    for (int slot = 0; slot < updater_->state_slots(); ++slot) {
      block.state.insert(block.state.end(), elements,
                         static_cast<Compute>(updater_->initial_state(slot)));
    }
    stats_.value_bytes += block.state.size() * sizeof(Compute);
  }

  void Update(std::uint64_t index, std::span<const Stored* const> pushes,
              const UpdateTerms& terms) {
    Block& block = Touch(index);
    const std::uint64_t elements = ElementsIn(index);
    if (block.steps == 0) MakeState(block, elements);
    absl::InlinedVector<Compute*, 4> state;
    for (int slot = 0; slot < updater_->state_slots(); ++slot) {
      state.push_back(block.state.data() + static_cast<std::size_t>(slot) * elements);
    }

    const auto* before = reinterpret_cast<const Stored*>(block.values.data());
    BlockValues frozen;  // goes when the copy is complete
    if (!block.values.Writable()) {
      frozen = std::exchange(block.values, BlockValues(elements * sizeof(Stored)));
      ++stats_.copies_on_write;
    }
    ApplyToRun(*updater_,
               StoredRun<Stored>{before, reinterpret_cast<Stored*>(block.values.data()),
                                 state.data(), elements, ++block.steps},
               pushes, terms);
  }

  const TableSpec spec_;
  const StorePlace place_;
  const Updater* const updater_;
  const InitialValues initial_;
  const std::uint64_t num_blocks_;
  absl::flat_hash_map<std::uint64_t, Block> blocks_;
  StoreStats stats_;
};

}  // namespace

std::unique_ptr<ShardStore> NewDenseStore(const TableSpec& spec, const StorePlace& place,
                                          const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<DenseStore<Stored>>(spec, place, updater);
  });
}

}  // namespace leeway::ps
