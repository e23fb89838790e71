#include "worker/slicing/slice.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/layout.h"
#include "runtime/base/random.h"
#include "worker/slicing/combine_rows.h"
#include "worker/slicing/group_keys.h"

namespace leeway::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::shared_ptr<TableInfo> Info(TableSpec spec, std::uint32_t shards = 3) {
  auto info = std::make_shared<TableInfo>();
  info->id = 5;
  info->spec = std::move(spec);
  info->num_shards = shards;
  info->block_bytes = 4096;
  return info;
}

Access Dense(const std::shared_ptr<TableInfo>& info, proto::Op op, std::vector<float>* values) {
  Access access;
  access.table = info;
  access.op = op;
  access.values = access.result = values->data();
  access.size = access.result_size = values->size();
  return access;
}

Access Sparse(const std::shared_ptr<TableInfo>& info, proto::Op op,
              const std::vector<std::uint64_t>& keys, std::vector<float>* values) {
  Access access = Dense(info, op, values);
  access.kind = TableKind::kSparse;
  access.keys = keys;
  return access;
}

template <class T>
std::vector<T> As(const runtime::Buffer& frame) {
  const std::span<const T> values = frame.as<T>();
  return {values.begin(), values.end()};
}

std::string Error(const Access& access) {
  const absl::StatusOr<Sliced> sliced = Slice(access, nullptr);
  EXPECT_EQ(sliced.status().code(), absl::StatusCode::kInvalidArgument) << sliced.status();
  return std::string(sliced.status().message());
}

class SliceTest : public ::testing::Test {
 protected:
  std::shared_ptr<Poster> poster_ = std::make_shared<Poster>(nullptr);
};

TEST_F(SliceTest, CutsATensorIntoBlocksThatPointIntoIt) {
  const auto info = Info(TableSpec::Dense("w", {50, 50}));
  std::vector<float> values(2500);
  std::iota(values.begin(), values.end(), 0.0f);
  const absl::StatusOr<Sliced> sliced = Slice(Dense(info, proto::Op::kPush, &values), poster_);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  ASSERT_EQ(sliced->pieces.size(), 3u);  // 1024 + 1024 + 452 elements
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Piece& piece = sliced->pieces[i];
    EXPECT_EQ(piece.block, i);
    EXPECT_EQ(piece.shard, proto::ShardOfBlock(5, i, 3));
    EXPECT_EQ(piece.elements, i < 2 ? 1024u : 452u);
    ASSERT_EQ(piece.payload.size(), 1u);
    EXPECT_EQ(static_cast<const void*>(piece.payload[0].data()), values.data() + i * 1024);
    EXPECT_EQ(piece.payload[0].size(), piece.elements * sizeof(float));
  }
}

TEST_F(SliceTest, CopiesIfAsked) {
  const auto info = Info(TableSpec::Dense("w", {2000}));
  std::vector<float> values(2000, 1.5f);
  Access access = Dense(info, proto::Op::kPush, &values);
  access.copy = true;
  const absl::StatusOr<Sliced> sliced = Slice(access, poster_);
  ASSERT_TRUE(sliced.ok());
  std::fill(values.begin(), values.end(), 0.0f);
  EXPECT_FALSE(static_cast<bool>(sliced->memory));
  EXPECT_EQ(As<float>(sliced->pieces[1].payload[0]), std::vector<float>(976, 1.5f));
}

TEST_F(SliceTest, RowsAreGatheredWhenFilledOrAtOnceIfCopied) {
  const auto info = Info(TableSpec::Sparse("e", 1), 1);
  for (const bool copy : {false, true}) {
    const std::vector<std::uint64_t> keys = {4, 5};
    std::vector<float> values = {1, 2};
    Access access = Sparse(info, proto::Op::kPush, keys, &values);
    access.copy = copy;
    absl::StatusOr<Sliced> sliced = Slice(access, poster_);
    ASSERT_TRUE(sliced.ok());
    EXPECT_EQ(sliced->source == nullptr, copy);
    values = {3, 4};
    sliced->Fill();
    EXPECT_EQ(As<float>(sliced->pieces[0].payload[1]),
              copy ? (std::vector<float>{1, 2}) : (std::vector<float>{3, 4}));
  }
}

TEST_F(SliceTest, GroupsSortsAndSumsKeys) {
  const auto info = Info(TableSpec::Sparse("e", 2));
  const std::vector<std::uint64_t> keys = {9, 4, 9, 7, 4, 9, 1};
  std::vector<float> values = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70};
  absl::StatusOr<Sliced> sliced = Slice(Sparse(info, proto::Op::kPush, keys, &values), poster_);
  ASSERT_TRUE(sliced.ok());
  sliced->Fill();
  std::map<std::uint64_t, std::vector<float>> rows;
  std::uint32_t last_shard = 0;
  for (const Piece& piece : sliced->pieces) {
    EXPECT_GE(piece.shard, last_shard);
    last_shard = piece.shard + 1;  // one request a shard
    const auto piece_keys = As<std::uint64_t>(piece.payload[0]);
    const auto piece_values = As<float>(piece.payload[1]);
    EXPECT_EQ(piece.keys, piece_keys.size());
    EXPECT_EQ(piece.elements, piece_values.size());
    EXPECT_TRUE(std::is_sorted(piece_keys.begin(), piece_keys.end()));
    for (std::size_t i = 0; i < piece_keys.size(); ++i) {
      EXPECT_EQ(proto::ShardOfKey(piece_keys[i], 3), piece.shard);
      EXPECT_EQ(rows.count(piece_keys[i]), 0u);
      rows[piece_keys[i]] = {piece_values[2 * i], piece_values[2 * i + 1]};
    }
  }
  EXPECT_THAT(rows[9], ElementsAre(10, 100));
  EXPECT_THAT(rows[4], ElementsAre(7, 70));
  EXPECT_THAT(rows[7], ElementsAre(4, 40));
  EXPECT_THAT(rows[1], ElementsAre(7, 70));
}

TEST_F(SliceTest, SaysWhereTheSumOfAKeysRowsWrapsAround) {
  const auto info = Info(TableSpec::Sparse("e", 2, DType::kInt64), 1);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::uint64_t> keys = {9, 4, 9, 4, 4};
  std::vector<std::int64_t> values = {1, kMax, 1, kMax, 1, -1, 1, 1, 1, -1};
  Access access;
  access.table = info;
  access.kind = TableKind::kSparse;
  access.dtype = DType::kInt64;
  access.keys = keys;
  access.values = values.data();
  access.size = values.size();
  absl::StatusOr<Sliced> sliced = Slice(access, poster_);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  EXPECT_EQ(sliced->wrapped_key, std::nullopt);  // the sums fit
  EXPECT_FALSE(sliced->pieces[0].rows_wrapped);
  values[5] = 1;
  sliced = Slice(access, poster_);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  EXPECT_EQ(sliced->wrapped_key, 9u);
  EXPECT_TRUE(sliced->pieces[0].rows_wrapped);
  info->combine = Updater::Combine::kLast;
  EXPECT_EQ(Slice(access, poster_)->wrapped_key, std::nullopt);
}

TEST_F(SliceTest, TheLastRowOfAKeyCountsIfTheUpdaterStores) {
  auto info = Info(TableSpec::Sparse("e", 1), 1);
  info->combine = Updater::Combine::kLast;
  std::vector<float> values = {1, 2, 3};
  absl::StatusOr<Sliced> sliced =
      Slice(Sparse(info, proto::Op::kPush, {8, 8, 3}, &values), poster_);
  ASSERT_TRUE(sliced.ok());
  sliced->Fill();
  EXPECT_THAT(As<std::uint64_t>(sliced->pieces[0].payload[0]), ElementsAre(3, 8));
  EXPECT_THAT(As<float>(sliced->pieces[0].payload[1]), ElementsAre(3, 2));
}

TEST_F(SliceTest, PulledRowsReachEveryOccurrenceOfTheirKey) {
  runtime::Random random(7);
  const auto info = Info(TableSpec::Sparse("e", 2), 5);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint64_t> keys(random.Below(40));
    for (std::uint64_t& key : keys) key = random.Below(round % 2 == 0 ? 20 : ~0ull);
    std::vector<float> values(keys.size() * 2, -1);
    const absl::StatusOr<Sliced> sliced =
        Slice(Sparse(info, proto::Op::kPull, keys, &values), poster_);
    ASSERT_TRUE(sliced.ok());
    for (std::size_t p = sliced->pieces.size(); p-- > 0;) {
      std::vector<float> reply;
      for (const std::uint64_t key : As<std::uint64_t>(sliced->pieces[p].payload[0])) {
        reply.push_back(static_cast<float>(key % 1000));
        reply.push_back(static_cast<float>(key % 77));
      }
      EXPECT_EQ(sliced->pieces[p].reply_elements, reply.size());
      const runtime::Buffer frame =
          runtime::Buffer::CopyOf(reply.data(), reply.size() * sizeof(float));
      ASSERT_TRUE(sliced->sink->Take(p, {}, {&frame, 1}).ok());
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(values[2 * i], static_cast<float>(keys[i] % 1000));
      EXPECT_EQ(values[2 * i + 1], static_cast<float>(keys[i] % 77));
    }
  }
}

TEST_F(SliceTest, CutsARequestThatWouldBeTooLarge) {
  auto info = Info(TableSpec::Sparse("e", 4), 1);
  info->message_bytes_max = 64;  // four rows
  std::vector<std::uint64_t> keys(10);
  std::iota(keys.begin(), keys.end(), 0);
  std::vector<float> values(40);
  std::iota(values.begin(), values.end(), 0.0f);
  absl::StatusOr<Sliced> sliced = Slice(Sparse(info, proto::Op::kPush, keys, &values), poster_);
  ASSERT_TRUE(sliced.ok());
  sliced->Fill();
  ASSERT_EQ(sliced->pieces.size(), 3u);
  std::vector<float> all;
  for (const Piece& piece : sliced->pieces) {
    const auto part = As<float>(piece.payload[1]);
    EXPECT_LE(part.size(), 16u);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, values);
}

TEST_F(SliceTest, CutsARaggedPushThatWouldBeTooLarge) {
  auto info = Info(TableSpec::Ragged("r"), 1);
  info->message_bytes_max = 64;  // four rows
  std::vector<std::uint64_t> keys(10);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<std::uint32_t> widths(10, 4);
  std::vector<float> values(40);
  Access push = Dense(info, proto::Op::kPush, &values);
  push.kind = TableKind::kRagged;
  push.keys = keys;
  push.widths = widths;
  const absl::StatusOr<Sliced> sliced = Slice(push, poster_);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  ASSERT_EQ(sliced->pieces.size(), 3u);
  for (const Piece& piece : sliced->pieces) EXPECT_LE(piece.payload[2].size(), 64u);
}

TEST_F(SliceTest, RaggedRowsComeBackInTheOrderAsked) {
  const auto info = Info(TableSpec::Ragged("r"), 3);
  const std::vector<std::uint64_t> keys = {40, 3, 17, 8};
  const std::vector<std::uint32_t> widths = {2, 0, 3, 1};
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Access push;
  push.table = info;
  push.kind = TableKind::kRagged;
  push.keys = keys;
  push.widths = widths;
  push.values = values.data();
  push.size = values.size();
  const absl::StatusOr<Sliced> pushed = Slice(push, poster_);
  ASSERT_TRUE(pushed.ok()) << pushed.status();

  Access pull = push;
  std::vector<std::uint32_t> got_widths;
  std::vector<float> got;
  pull.op = proto::Op::kPull;
  pull.widths = {};
  pull.result_widths = &got_widths;
  pull.resize = [&](std::size_t size) -> void* {
    got.resize(size);
    return got.data();
  };
  const absl::StatusOr<Sliced> pulled = Slice(pull, poster_);
  ASSERT_TRUE(pulled.ok());
  ASSERT_EQ(pulled->pieces.size(), pushed->pieces.size());
  for (std::size_t p = 0; p < pulled->pieces.size(); ++p) {
    EXPECT_EQ(pulled->pieces[p].shard, pushed->pieces[p].shard);
    EXPECT_EQ(As<std::uint64_t>(pulled->pieces[p].payload[0]),
              As<std::uint64_t>(pushed->pieces[p].payload[0]));
    const std::vector<runtime::Buffer> reply = {pushed->pieces[p].payload[1],
                                                pushed->pieces[p].payload[2]};
    ASSERT_TRUE(pulled->sink->Take(p, {}, reply).ok());
  }
  pulled->sink->Finish();
  EXPECT_EQ(got_widths, widths);
  EXPECT_EQ(got, values);
}

TEST_F(SliceTest, RefusesWrongArguments) {
  const auto dense = Info(TableSpec::Dense("w", {2, 3}));
  const auto sparse = Info(TableSpec::Sparse("e", 2));
  const auto ragged = Info(TableSpec::Ragged("r"));
  std::vector<float> five(5);
  std::vector<float> six(6);
  EXPECT_THAT(Error(Dense(dense, proto::Op::kPush, &five)),
              HasSubstr("table 'w': the span to push has 5 elements where 6 are needed"));
  EXPECT_THAT(Error(Dense(dense, proto::Op::kPull, &five)), HasSubstr("pull into has 5"));
  Access halves = Dense(dense, proto::Op::kPush, &six);
  halves.dtype = DType::kFloat64;
  EXPECT_THAT(Error(halves), HasSubstr("holds float32, not float64"));
  EXPECT_THAT(Error(Sparse(sparse, proto::Op::kPush, {1, 2}, &six)), HasSubstr("2 keys × 2 a row"));
  EXPECT_THAT(Error(Sparse(dense, proto::Op::kPush, {1, 2, 3}, &six)), HasSubstr("is dense"));
  EXPECT_THAT(Error(Dense(sparse, proto::Op::kPush, &six)), HasSubstr("is sparse"));
  // More keys than 32-bit places can number. They are never read.
  Access endless = Sparse(sparse, proto::Op::kPush, {}, &six);
  endless.keys = {reinterpret_cast<const std::uint64_t*>(six.data()), std::size_t{1} << 32};
  EXPECT_THAT(Error(endless), HasSubstr("4294967296 keys were given at once, at most 4294967295"));

  const std::vector<std::uint64_t> keys = {4, 4};
  const std::vector<std::uint32_t> widths = {1, 4};
  Access rows = Dense(ragged, proto::Op::kPush, &five);
  rows.kind = TableKind::kRagged;
  rows.keys = keys;
  rows.widths = widths;
  EXPECT_THAT(Error(rows), HasSubstr("must not repeat"));
  rows.widths = std::span(widths).subspan(1);
  EXPECT_THAT(Error(rows), HasSubstr("2 keys were given with 1 widths"));
}

TEST(CombineRowsTest, SumsHalvesInFloatAndWrapsIntegers) {
  // 2048 + 1 + 1 is lost in steps of binary16, but not when it is rounded once.
  const std::vector<Float16> halves = {Float16(2048.0f), Float16(1.0f), Float16(1.0f)};
  const std::vector<KeyPlace> all = {0, 1, 2};
  Float16 half;
  CombineRows(Updater::Combine::kSum, DType::kFloat16,
              reinterpret_cast<const std::byte*>(halves.data()), 1, all,
              reinterpret_cast<std::byte*>(&half));
  EXPECT_EQ(static_cast<float>(half), 2050.0f);
  // Servers take it for infinity that was pushed.
  const std::vector<Float16> large = {Float16(60000.0f), Float16(60000.0f)};
  CombineRows(Updater::Combine::kSum, DType::kFloat16,
              reinterpret_cast<const std::byte*>(large.data()), 1, std::span(all).first(2),
              reinterpret_cast<std::byte*>(&half));
  EXPECT_EQ(static_cast<float>(half), std::numeric_limits<float>::infinity());

  const std::vector<std::int32_t> ints = {2147483647, 1, 1};
  std::int32_t sum = 0;
  CombineRows(Updater::Combine::kSum, DType::kInt32,
              reinterpret_cast<const std::byte*>(ints.data()), 1, all,
              reinterpret_cast<std::byte*>(&sum));
  EXPECT_EQ(sum, -2147483647);
}

TEST(GroupKeysTest, KeepsTheOrderOfAscendingKeysWithinShards) {
  const std::vector<std::uint64_t> keys = {0, 1, 2, 3, ~0ull};
  const GroupedKeys grouped = GroupKeys(keys, 1);
  EXPECT_THAT(grouped.keys, ElementsAreArray(keys));
  EXPECT_FALSE(grouped.repeats());
  EXPECT_THAT(grouped.shards, ElementsAre(GroupedKeys::Range{0, 5}));
}

// The result of every way of grouping: by shard, ascending, each key with all of its places.
void ExpectGrouped(const std::vector<std::uint64_t>& keys, std::uint32_t shards) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> expected;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    expected[{proto::ShardOfKey(keys[i], shards), keys[i]}].push_back(i);
  }
  const GroupedKeys grouped = GroupKeys(keys, shards);
  EXPECT_EQ(grouped.size, expected.size());
  EXPECT_EQ(grouped.repeats(), expected.size() < keys.size());
  ASSERT_EQ(grouped.shards.size(), shards);
  auto next = expected.begin();
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const GroupedKeys::Range range = grouped.shards[shard];
    EXPECT_EQ(As<std::uint64_t>(grouped.Frame(range)),
              std::vector<std::uint64_t>(grouped.keys.begin() + range.begin,
                                         grouped.keys.begin() + range.end));
    for (std::size_t i = range.begin; i < range.end; ++i, ++next) {
      ASSERT_TRUE(next != expected.end());
      ASSERT_EQ(next->first, std::pair(shard, grouped.keys[i]));
      ASSERT_THAT(grouped.places(i), ElementsAreArray(next->second));
    }
  }
  EXPECT_TRUE(next == expected.end());
}

TEST(GroupKeysTest, GroupsKeysThatAscendOnlyAtFirst) {
  for (const std::uint32_t shards : {1u, 3u, 32u}) {
    for (const std::size_t size : {0u, 1u, 2u, 63u, 64u, 65u, 128u, 300u}) {
      std::vector<std::uint64_t> keys(size);
      for (std::size_t i = 0; i < size; ++i) keys[i] = 7 + i * i * 0x9e3779b97f;
      ExpectGrouped(keys, shards);
      for (const std::size_t at : {1u, 63u, 64u, 65u, 127u, 299u}) {
        if (at >= size) continue;
        std::vector<std::uint64_t> other = keys;
        other[at] = other[at - 1];  // repeats
        ExpectGrouped(other, shards);
        other[at] = 3;  // falls
        ExpectGrouped(other, shards);
      }
    }
  }
}

std::vector<std::uint64_t> AscendingKeys(std::size_t size) {
  runtime::Random random(size);
  std::vector<std::uint64_t> keys(size);
  std::uint64_t last = 0;
  for (std::uint64_t& key : keys) key = last += 1 + random.Below(1000);
  return keys;
}

TEST(GroupKeysTest, GroupsManyKeys) {
  for (const std::uint32_t shards : {1u, 7u, 32u}) {
    for (const std::size_t of_each : {63u, 64u, 500u}) {
      std::vector<std::uint64_t> keys = AscendingKeys(shards * of_each);
      ExpectGrouped(keys, shards);
      keys.back() = keys.front();
      ExpectGrouped(keys, shards);
    }
  }
}

// More keys of one shard than a hash would ever give it.
TEST(GroupKeysTest, GroupsManyKeysOfOneShard) {
  constexpr std::uint32_t kShards = 8;
  for (const std::uint32_t crowded : {0u, 3u, kShards - 1}) {
    std::vector<std::uint64_t> keys = AscendingKeys(40'000);
    std::erase_if(keys, [&](std::uint64_t key) {
      return key % 100 != 0 && proto::ShardOfKey(key, kShards) != crowded;
    });
    ASSERT_GT(keys.size(), 64 * kShards);
    ExpectGrouped(keys, kShards);
  }
}

}  // namespace
}  // namespace leeway::worker
