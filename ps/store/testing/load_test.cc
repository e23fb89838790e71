// What a store refuses to load, what it passes over, and what outlives it.
#include <functional>
#include <thread>

#include "ps/store/testing/random_pushes.h"

namespace leeway::ps {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::uint64_t KeyOf(std::uint32_t shard, std::uint64_t from = 0) {
  while (proto::ShardOfKey(from, kTestContext.num_shards) != shard) ++from;
  return from;
}

// Momentum: one state value an element.
FrozenPiece SparsePiece(std::uint64_t key) {
  return {.kind = TableKind::kSparse,
          .dtype = DType::kFloat32,
          .elements = 4,
          .state_slots = 1,
          .keys = BufferOf<std::uint64_t>({key, KeyOf(1, key + 1)}),
          .values = BufferOf<float>({1, 2, 3, 4}),
          .state = BufferOf<float>({5, 6, 7, 8}),
          .steps = BufferOf<std::uint64_t>({9, 1})};
}

// Each change of a good piece is refused, and nothing of it loaded.
void ExpectRefused(
    const TableSpec& spec, const FrozenPiece& good,
    const std::vector<std::pair<std::function<void(FrozenPiece&)>, std::string>>& changes) {
  const Shard shard(spec, kTestContext);
  for (const auto& [change, message] : changes) {
    FrozenPiece piece = good;
    change(piece);
    ExpectError(shard->Load(piece), kInvalid, message);
    EXPECT_TRUE(shard->Freeze().pieces.empty());
  }
  EXPECT_TRUE(shard->Load(good).ok());
  EXPECT_FALSE(shard->Freeze().pieces.empty());
}

TEST(Load, RefusesWhatIsNotAWholePiece) {
  const TableSpec spec = WithUpdater(TableSpec::Sparse("e", 2), "momentum");
  ExpectRefused(
      spec, SparsePiece(KeyOf(1)),
      {{[](FrozenPiece& p) { p.kind = TableKind::kRagged; }, "another kind"},
       {[](FrozenPiece& p) { p.dtype = DType::kInt32; },
        "table 'e': a piece of int32, but it holds"},
       {[](FrozenPiece& p) { p.state_slots = 2; },
        "2 state values an element, but its updater momentum has 1"},
       {[](FrozenPiece& p) { p.elements = 5; }, "a piece of 5 elements with 4 values"},
       {[](FrozenPiece& p) { p.state = {}; }, "with 4 values and 0 state values"},
       {[](FrozenPiece& p) { p.values = runtime::Buffer::CopyOf("123"); }, "3 bytes of values"},
       {[](FrozenPiece& p) { p.state = runtime::Buffer::CopyOf("123"); }, "3 bytes of state"},
       {[](FrozenPiece& p) { p.keys = runtime::Buffer::CopyOf("123"); }, "3 bytes of keys"},
       {[](FrozenPiece& p) { p.steps = runtime::Buffer::CopyOf("123"); }, "3 bytes of steps"},
       {[](FrozenPiece& p) { p.keys = BufferOf<std::uint64_t>({KeyOf(1)}); }, "2 rows with 1 key"},
       {[](FrozenPiece& p) {
          p.widths = BufferOf<std::uint32_t>({2, 2});
        },
        "the piece has widths"},
       {[](FrozenPiece& p) { p.keys = p.steps = BufferOf<std::uint64_t>({KeyOf(1)}); },
        "a piece of 4 elements for 1 row of 2"},
       {[](FrozenPiece& p) {
          const auto shifted = BufferOf<std::uint32_t>({0, 0, 0, 0, 0});
          p.keys = runtime::Buffer(shifted.data() + 4, 16, nullptr);
          static runtime::Buffer kept;
          kept = shifted;
        },
        "keys do not lie at a multiple of 8 bytes"},
       {[](FrozenPiece& p) {
          p.keys = BufferOf<std::uint64_t>({KeyOf(1), KeyOf(2)});
        },
        "for shard 1 of 3, but it belongs to shard 2"}});
}

TEST(Load, RefusesWidthsThatDoNotFit) {
  FrozenPiece good = SparsePiece(KeyOf(1));
  good.kind = TableKind::kRagged;
  good.widths = BufferOf<std::uint32_t>({1, 3});
  ExpectRefused(WithUpdater(TableSpec::Ragged("r"), "momentum"), good,
                {{[](FrozenPiece& p) { p.widths = {}; }, "2 rows with 0 widths"},
                 {[](FrozenPiece& p) {
                    p.widths = BufferOf<std::uint32_t>({1, 1});
                  },
                  "4 elements, but its widths add up to 2"},
                 {[](FrozenPiece& p) {
                    p.widths = BufferOf<std::uint32_t>({1, 1u << 25});
                  },
                  "a row of 33554432 elements"}});
}

TEST(Load, RefusesBlocksThatDoNotFit) {
  const TableSpec spec = WithUpdater(TableSpec::Dense("w", {400}), "momentum");
  std::uint64_t mine = 0;
  while (proto::ShardOfBlock(kTestContext.table, mine, 3) != 1) ++mine;
  ASSERT_LT(mine, proto::NumBlocks(spec, kTestContext.block_bytes));
  const std::uint64_t elements = proto::ElementsInBlock(spec, kTestContext.block_bytes, mine);
  const FrozenPiece good = {.kind = TableKind::kDense,
                            .dtype = DType::kFloat32,
                            .block = mine,
                            .elements = elements,
                            .state_slots = 1,
                            .values = BufferOf(std::vector<float>(elements, 1)),
                            .state = BufferOf(std::vector<float>(elements, 2)),
                            .steps = BufferOf<std::uint64_t>({3})};
  ExpectRefused(spec, good,
                {{[](FrozenPiece& p) { ++p.block; }, "belongs to shard 2"},
                 {[](FrozenPiece& p) {
                    p.steps = BufferOf<std::uint64_t>({3, 3});
                  },
                  "one block with 2 numbers of steps"},
                 {[](FrozenPiece& p) { p.keys = p.steps; }, "the piece has keys or widths"},
                 {[](FrozenPiece& p) {
                    p.elements = 1;
                    p.values = p.state = BufferOf<float>({1});
                  },
                  "a piece of 1 element for block"}});
  const Shard shard(spec, kTestContext);
  FrozenPiece far = good;
  far.block = 1000;
  ExpectError(shard->Load(far), absl::StatusCode::kOutOfRange, "block 1000 was asked for");
  ExpectError(shard->LoadElsewhere(far, 200).status(), absl::StatusCode::kOutOfRange, "block 1000");
  ExpectError(shard->LoadElsewhere(good, 100).status(), kInvalid,
              "its blocks have 200 bytes here, but what is loaded was made with blocks of 100; "
              "start the cluster with LEEWAY_BLOCK_BYTES=100");
  EXPECT_EQ(*shard->LoadElsewhere(good, 200), 1u);
}

TEST(Load, PassesOverRowsWithoutSteps) {
  const Shard shard(WithUpdater(TableSpec::Sparse("e", 2), "momentum"), kTestContext);
  FrozenPiece piece = SparsePiece(KeyOf(2));  // of another shard, but not there
  piece.steps = BufferOf<std::uint64_t>({0, 4});
  EXPECT_TRUE(shard->Load(piece).ok());
  EXPECT_EQ(shard->stats().rows, 1u);
  EXPECT_EQ(*shard->LoadElsewhere(piece, 0), 1u);
  EXPECT_EQ(ContentOf(shard).size(), 1u);
}

TEST(Load, ReplacesWhatWasThere) {
  for (const char* updater : {"adam", "assign"}) {
    for (const TableKind kind : {TableKind::kDense, TableKind::kSparse, TableKind::kRagged}) {
      const TableSpec spec = SpecOf({kind, updater}, DType::kFloat32);
      const Shard from(spec, kTestContext);
      const Shard to(spec, kTestContext);
      RandomPushes<float> pushes(spec, LastWins(spec), 1, 60);
      RandomPushes<float> others(spec, LastWins(spec), 2, 60);
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(from->Apply(pushes.Next()).ok());
        ASSERT_TRUE(to->Apply(others.Next()).ok());
      }
      const StoreSnapshot before = to->Freeze();
      const Content content = ContentOf(before.pieces);
      for (const FrozenPiece& piece : from->Freeze().pieces) ASSERT_TRUE(to->Load(piece).ok());
      EXPECT_EQ(ContentOf(to), ContentOf(from->Freeze().pieces, content));
      EXPECT_EQ(ContentOf(before.pieces), content);
    }
  }
}

TEST(Snapshot, OutlivesTheStore) {
  for (const TableKind kind : {TableKind::kDense, TableKind::kSparse, TableKind::kRagged}) {
    const TableSpec spec = SpecOf({kind, "adam"}, DType::kFloat32);
    StoreSnapshot snapshot;
    Content content;
    {
      const Shard shard(spec, kTestContext);
      RandomPushes<float> pushes(spec, false, 1, 60);
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      snapshot = shard->Freeze();
      content = ContentOf(shard);
    }
    EXPECT_EQ(ContentOf(snapshot.pieces), content);
    EXPECT_FALSE(content.empty());
  }
}

// The writer of a checkpoint reads while pushes go on.
TEST(Snapshot, IsReadOnAnotherThread) {
  for (const TableKind kind : {TableKind::kDense, TableKind::kSparse, TableKind::kRagged}) {
    const TableSpec spec = SpecOf({kind, "adam"}, DType::kFloat32);
    const Shard shard(spec, kTestContext);
    RandomPushes<float> pushes(spec, false, 1, 300);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      const std::uint64_t expected = shard->Digest();
      std::uint64_t read = 0;
      std::thread reader([&read, snapshot = shard->Freeze()]() mutable {
        read = Digest(snapshot.pieces);
        snapshot = {};  // from here on its bytes may be written again
      });
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      reader.join();
      ASSERT_EQ(read, expected);
    }
  }
}

// However often rows move for the sake of snapshots, or change their width, what they leave
// behind does not pile up.
TEST(Snapshot, GapsDoNotPileUp) {
  for (const TableKind kind : {TableKind::kSparse, TableKind::kRagged}) {
    const TableSpec spec = SpecOf({kind, "assign"}, DType::kFloat32);
    const Shard shard(spec, kTestContext);
    RandomPushes<float> pushes(spec, true, 1, 10'000);
    for (int i = 0; i < 30'000; ++i) {
      ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      if (i % 3'000 == 0) shard->Freeze();
    }
    StoreSnapshot held;
    for (int i = 0; i < 30'000; ++i) {
      ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      if (i % 1'000 == 0) held = shard->Freeze();
    }
    std::uint64_t rows = 0;
    for (const FrozenPiece& piece : shard->Freeze().pieces) rows += piece.rows();
    EXPECT_GT(rows, shard->stats().rows);
    EXPECT_LT(rows, 3 * shard->stats().rows);
    EXPECT_GT(shard->stats().rows, 3'000u);
  }
}

TEST(Snapshot, StepsSurviveAnotherWidth) {
  const Shard shard(WithUpdater(TableSpec::Ragged("r"), "assign"));
  ASSERT_TRUE(shard->Apply(RaggedPush<float>({1}, {2}, {1, 2})).ok());
  ASSERT_TRUE(shard->Apply(RaggedPush<float>({1}, {1}, {3})).ok());
  const Content content = ContentOf(shard);
  ASSERT_EQ(content.size(), 1u);
  EXPECT_EQ(std::get<0>(content.at(1)), 2u);
}

TEST(Snapshot, HasNothingOfWhatWasOnlyRead) {
  const Shard dense(TableSpec::Dense("w", {100}));
  EXPECT_EQ(dense.Block<float>(0, 100).size(), 100u);
  EXPECT_TRUE(dense->Freeze().pieces.empty());
  EXPECT_EQ(dense->Digest(), Shard(TableSpec::Dense("w", {100}))->Digest());
  const Shard sparse(TableSpec::Sparse("e", 2));
  sparse.Rows<float>({1, 2});
  EXPECT_TRUE(sparse->Freeze().pieces.empty());
}

TEST(Digest, TellsContentsApart) {
  const TableSpec spec = WithUpdater(TableSpec::Sparse("e", 1), "momentum", {{"momentum", 0.5}});
  const auto digest = [&](const std::vector<PushView>& pushes) {
    const Shard shard(spec);
    for (const PushView& push : pushes) EXPECT_TRUE(shard->Apply(push).ok());
    return shard->Digest();
  };
  const std::uint64_t one = digest({SparsePush<float>({1, 2}, {1, 2})});
  EXPECT_EQ(one, digest({SparsePush<float>({2}, {2}), SparsePush<float>({1}, {1})}));
  EXPECT_NE(one, digest({SparsePush<float>({2, 1}, {1, 2})}));  // keys
  EXPECT_NE(one, digest({SparsePush<float>({1}, {1})}));        // rows
  EXPECT_NE(digest({SparsePush<float>({1}, {0})}),              // steps alone
            digest({SparsePush<float>({1}, {0}), SparsePush<float>({1}, {0})}));
  // State alone: the same value, reached at another speed.
  EXPECT_NE(digest({SparsePush<float>({1}, {0}, 1), SparsePush<float>({1}, {1}, 0)}),
            digest({SparsePush<float>({1}, {0}, 1), SparsePush<float>({1}, {2}, 0)}));
  EXPECT_NE(one, 0u);
}

TEST(ApplyAggregate, RefusesWhatDoesNotFit) {
  const auto aggregate = [](const Shard& shard, const PushView& push) {
    return shard->ApplyAggregate(
        {push.block, push.keys, push.widths, push.values, push.learning_rate});
  };
  const Shard dense(TableSpec::Dense("w", {4}, DType::kFloat16));
  EXPECT_TRUE(aggregate(dense, DensePush<float>(0, {1, 2, 3, 4})).ok());
  ExpectError(aggregate(dense, DensePush<float>(0, {1, 2})), kInvalid,
              "table 'w': an aggregate of 8 bytes for 4 elements of 4 bytes each");
  ExpectError(aggregate(dense, DensePush<float>(7, {1, 2, 3, 4})), absl::StatusCode::kOutOfRange,
              "block 7");
  ExpectError(aggregate(dense, DensePush<float>(0, {1, 2, 3, 4}, -1)), kInvalid, "learning_rate");
  ExpectError(aggregate(dense, SparsePush<float>({0}, {1, 2, 3, 4})), kInvalid, "keys or widths");
  ExpectError(dense->Combine({}, 1).status(), kInvalid, "no pushes to combine");

  const Shard sparse(TableSpec::Sparse("e", 2), kTestContext);
  const std::uint64_t key = KeyOf(1);
  EXPECT_TRUE(aggregate(sparse, SparsePush<float>({key}, {1, 2})).ok());
  ExpectError(aggregate(sparse, SparsePush<float>({key}, {1})), kInvalid, "4 bytes for 2 elements");
  ExpectError(aggregate(sparse, SparsePush<float>({KeyOf(0)}, {1, 2})), kInvalid, "shard 0");
  ExpectError(aggregate(sparse, RaggedPush<float>({key}, {2}, {1, 2})), kInvalid, "has widths");

  const Shard ragged(TableSpec::Ragged("r"), kTestContext);
  EXPECT_TRUE(aggregate(ragged, RaggedPush<float>({key}, {2}, {1, 2})).ok());
  ExpectError(aggregate(ragged, RaggedPush<float>({key}, {1}, {1})), kInvalid,
              "a push of 1 element to key");
  ExpectError(aggregate(ragged, RaggedPush<float>({key}, {}, {1, 2})), kInvalid, "widths");
  ExpectError(aggregate(ragged, RaggedPush<float>({key}, {3}, {1, 2})), kInvalid, "8 bytes for 3");
}

}  // namespace
}  // namespace leeway::ps
