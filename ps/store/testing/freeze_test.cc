// Snapshots of every kind of table, with every dtype and updater: they stay as they were while
// pushes go on, and a store loaded from one takes every next push alike.
#include "ps/store/testing/random_pushes.h"

namespace leeway::ps {
namespace {

constexpr std::uint64_t kKeys = 300;

// A snapshot and a copy of what it had in it.
struct Held {
  explicit Held(StoreSnapshot taken)
      : snapshot(std::move(taken)), content(ContentOf(snapshot.pieces)) {}
  StoreSnapshot snapshot;
  Content content;
};

class Freeze : public testing::TestWithParam<TableParameter> {};

// Two stores take the same pushes; snapshots of one come and go.
TEST_P(Freeze, NeitherTheStoreNorItsSnapshotsNotice) {
  ForEachDType(GetParam(), [](auto* stored, const TableSpec& spec) {
    const Shard shard(spec, kTestContext);
    const Shard plain(spec, kTestContext);
    RandomPushes<std::remove_pointer_t<decltype(stored)>> pushes(spec, LastWins(spec), 1, kKeys);
    std::vector<Held> held;
    for (int i = 0; i < 800; ++i) {
      const PushView push = pushes.Next();
      ASSERT_TRUE(shard->Apply(push).ok());
      ASSERT_TRUE(plain->Apply(push).ok());
      if (pushes.random().Below(20) == 0) held.emplace_back(shard->Freeze());
      if (held.size() > pushes.random().Below(60)) {
        const auto dropped =
            held.begin() + static_cast<std::ptrdiff_t>(pushes.random().Below(held.size()));
        ASSERT_EQ(ContentOf(dropped->snapshot.pieces), dropped->content);
        held.erase(dropped);
      }
    }
    EXPECT_GT(shard->stats().copies_on_write, 50u);
    EXPECT_EQ(plain->stats().copies_on_write, 0u);
    EXPECT_EQ(ContentOf(shard), ContentOf(plain));
    EXPECT_EQ(shard->Digest(), plain->Digest());
    EXPECT_EQ(shard->stats().value_bytes, plain->stats().value_bytes);
    EXPECT_EQ(shard->stats().rows, plain->stats().rows);
    for (const Held& one : held) EXPECT_EQ(ContentOf(one.snapshot.pieces), one.content);
  });
}

TEST_P(Freeze, ALoadedStoreGoesOnAlike) {
  ForEachDType(GetParam(), [](auto* stored, const TableSpec& spec) {
    const Shard shard(spec, kTestContext);
    RandomPushes<std::remove_pointer_t<decltype(stored)>> pushes(spec, LastWins(spec), 2, kKeys);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
    const Shard loaded(spec, kTestContext);
    for (const FrozenPiece& piece : shard->Freeze().pieces) {
      const absl::Status status = loaded->Load(piece);
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_EQ(ContentOf(loaded), ContentOf(shard));
    EXPECT_EQ(loaded->stats().value_bytes, shard->stats().value_bytes);
    for (int i = 0; i < 200; ++i) {
      const PushView push = pushes.Next();
      ASSERT_TRUE(shard->Apply(push).ok());
      ASSERT_TRUE(loaded->Apply(push).ok());
    }
    EXPECT_EQ(ContentOf(loaded), ContentOf(shard));
    EXPECT_EQ(loaded->Digest(), shard->Digest());
  });
}

// Each snapshot's pieces, on top of those before, are the content; and they are not all of it.
TEST_P(Freeze, IncrementsAddUpToTheContent) {
  ForEachDType(GetParam(), [](auto* stored, const TableSpec& spec) {
    const Shard shard(spec, kTestContext);
    RandomPushes<std::remove_pointer_t<decltype(stored)>> pushes(spec, LastWins(spec), 3, kKeys);
    const Shard loaded(spec, kTestContext);
    Content content;
    std::vector<StoreSnapshot> kept;
    std::uint64_t generation = 0;
    for (int i = 0; i < 400; ++i) {
      ASSERT_TRUE(shard->Apply(pushes.Next()).ok());
      if (pushes.random().Below(10) != 0) continue;
      StoreSnapshot snapshot = shard->FreezeSince(generation);
      generation = snapshot.generation;
      content = ContentOf(snapshot.pieces, std::move(content));
      for (const FrozenPiece& piece : snapshot.pieces) ASSERT_TRUE(loaded->Load(piece).ok());
      ASSERT_EQ(content, ContentOf(shard));
      ASSERT_EQ(content, ContentOf(loaded));
      EXPECT_TRUE(shard->FreezeSince(generation).pieces.empty());
      if (pushes.random().Below(3) == 0) kept.push_back(std::move(snapshot));
    }
  });
}

// From one shard of three to those of two.
TEST_P(Freeze, AnotherNumberOfShards) {
  ForEachDType(GetParam(), [](auto* stored, const TableSpec& spec) {
    Content all;
    std::vector<StoreSnapshot> snapshots;
    for (std::uint32_t shard = 0; shard < 3; ++shard) {
      StoreContext context = kTestContext;
      context.shard = shard;
      const Shard from(spec, context);
      RandomPushes<std::remove_pointer_t<decltype(stored)>> pushes(spec, LastWins(spec), 4, kKeys,
                                                                   context);
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(from->Apply(pushes.Next()).ok());
      snapshots.push_back(from->Freeze());
      all = ContentOf(snapshots.back().pieces, std::move(all));
    }
    Content loaded;
    std::uint64_t taken = 0;
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      StoreContext context = kTestContext;
      context.shard = shard;
      context.num_shards = 2;
      const Shard to(spec, context);
      for (const StoreSnapshot& snapshot : snapshots) {
        for (const FrozenPiece& piece : snapshot.pieces) {
          const auto rows = to->LoadElsewhere(piece, context.block_bytes);
          ASSERT_TRUE(rows.ok()) << rows.status();
          taken += *rows;
        }
      }
      EXPECT_GT(to->stats().value_bytes, 0u);
      loaded = ContentOf(to->Freeze().pieces, std::move(loaded));
    }
    EXPECT_EQ(loaded, all);
    EXPECT_EQ(taken, all.size());
  });
}

// What was combined elsewhere leaves the bits that the pushes themselves do.
TEST_P(Freeze, AggregatesEqualTheirPushes) {
  ForEachDType(GetParam(), [](auto* stored, TableSpec spec) {
    for (const Aggregate aggregate : {Aggregate::kSum, Aggregate::kMean}) {
      if (aggregate == Aggregate::kMean && IsInteger(spec.dtype)) continue;
      spec.aggregate = aggregate;
      const Shard at_once(spec, kTestContext);
      const Shard head(spec, kTestContext);
      const Shard replica(spec, kTestContext);
      RandomPushes<std::remove_pointer_t<decltype(stored)>> pushes(spec, LastWins(spec), 5, kKeys);
      for (int i = 0; i < 300; ++i) {
        const std::vector<PushView> several = pushes.Several();
        const auto contributors = static_cast<std::uint32_t>(1 + pushes.random().Below(5));
        ASSERT_TRUE(at_once->ApplyCombined(several, contributors).ok());
        const auto combined = head->Combine(several, contributors);
        ASSERT_TRUE(combined.ok()) << combined.status();
        ASSERT_TRUE(head->ApplyAggregate(*combined).ok());
        ASSERT_TRUE(replica->ApplyAggregate(*combined).ok());
      }
      EXPECT_EQ(ContentOf(head), ContentOf(at_once));
      EXPECT_EQ(replica->Digest(), at_once->Digest());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Freeze, kAllTables, NameOf);

}  // namespace
}  // namespace leeway::ps
