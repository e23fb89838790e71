// What the replicas of a shard freeze for publications, and when.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "ps/testing/one_replica.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {
namespace {

class ShardPublications : public testing::Test {
 protected:
  std::unique_ptr<OneReplica> New(const char* consistency) {
    TableSpec spec = TableSpec::Dense("w", {1});
    spec.updater.name = "add";
    spec.consistency = Consistency::Parse(consistency).value();
    return std::make_unique<OneReplica>(loop_->loop(), spec);
  }
  std::unique_ptr<OneReplica> NewHead(const char* consistency) {
    std::unique_ptr<OneReplica> head = New(consistency);
    head->shard->BecomeHead(/*inherited=*/false);
    return head;
  }
  // The result is set once it is known.
  absl::Status Begin(OneReplica* head, std::uint64_t publication, std::uint64_t clock) {
    made_.reset();
    return head->shard->BeginPublication(
        {.publication = publication, .clock = clock, .tables = {{1}}},
        [this](const absl::Status& made) { made_ = made; });
  }
  static void Tick(OneReplica* head, std::uint32_t rank, std::uint64_t clock,
                   std::uint64_t pushes) {
    head->shard->TakeTick(rank, 100 + rank, clock, 0, {.by_class = {0, pushes}});
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("loop");
  std::optional<absl::Status> made_;
};

TEST_F(ShardPublications, AreFrozenAlikeByAllReplicas) {
  const auto head = NewHead("asp"), follower = New("asp");
  EXPECT_TRUE(head->Push(0, 0, 1).ok());
  EXPECT_TRUE(Begin(head.get(), 7, 0).ok());
  EXPECT_TRUE(made_.has_value() && made_->ok());
  EXPECT_TRUE(head->Push(1, 0, 2).ok());
  follower->Follow(*head);
  follower->shard->BecomeHead(/*inherited=*/true);
  for (OneReplica* const replica : {head.get(), follower.get()}) {
    EXPECT_EQ(replica->Published(7).value_or(0), 1);
    EXPECT_EQ(replica->value(), 3);
    EXPECT_TRUE(absl::IsNotFound(replica->Published(8).status()));
  }
}

TEST_F(ShardPublications, OfATableWithoutContentHaveItsInitialValues) {
  const auto head = NewHead("asp");
  EXPECT_TRUE(Begin(head.get(), 7, 0).ok());
  EXPECT_TRUE(head->Push(0, 0, 2).ok());
  EXPECT_EQ(head->Published(7).value_or(-1), 0);
}

// Both workers have gone on by two clocks when the first of them closes.
TEST_F(ShardPublications, OfBspHaveAllClocksBelowTheirsAndNoLaterOne) {
  const auto head = NewHead("bsp"), follower = New("bsp");
  for (const std::uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(head->Push(rank, 0, 1).ok());
    EXPECT_TRUE(head->Push(rank, 1, 10).ok());
  }
  EXPECT_TRUE(Begin(head.get(), 7, 1).ok());
  Tick(head.get(), 0, 2, 2);
  EXPECT_FALSE(made_.has_value());
  Tick(head.get(), 1, 2, 2);
  EXPECT_TRUE(made_.has_value() && made_->ok());
  EXPECT_EQ(head->Published(7).value_or(0), 2);
  EXPECT_EQ(head->value(), 22);
  follower->Follow(*head);
  follower->shard->BecomeHead(/*inherited=*/true);
  EXPECT_EQ(follower->Published(7).value_or(0), 2);
  EXPECT_TRUE(absl::IsOutOfRange(Begin(head.get(), 8, 1)));
}

TEST_F(ShardPublications, AreGivenToAReplicaThatJoins) {
  const auto head = NewHead("asp"), joining = New("asp");
  EXPECT_TRUE(Begin(head.get(), 5, 0).ok());
  EXPECT_TRUE(head->Push(0, 0, 1).ok());
  EXPECT_TRUE(Begin(head.get(), 7, 0).ok());
  EXPECT_TRUE(head->Push(1, 0, 2).ok());
  EXPECT_TRUE(Begin(head.get(), 9, 0).ok());
  joining->shard->ImportBegin(head->shard->ExportBegin());
  std::size_t values = 0;
  for (const LogEntry& piece : head->shard->Freeze()) {
    const absl::Status loaded = joining->shard->LoadPiece(piece);
    EXPECT_TRUE(loaded.ok()) << loaded;
    values += piece.header.kind == proto::LogEntryKind::kPublishedBlock && piece.header.elements;
  }
  EXPECT_EQ(values, 1u) << "publication 9 has the block of the state, 5 has none";
  joining->shard->BecomeHead(/*inherited=*/true);
  EXPECT_EQ(joining->Published(5).value_or(-1), 0);
  EXPECT_EQ(joining->Published(7).value_or(-1), 1);
  EXPECT_EQ(joining->Published(9).value_or(-1), 3);
  EXPECT_TRUE(joining->Push(0, 0, 4).ok());
  EXPECT_EQ(joining->Published(9).value_or(-1), 3);
}

TEST_F(ShardPublications, FailWhenAnotherReplicaBecomesTheHead) {
  const auto head = NewHead("bsp");
  EXPECT_TRUE(Begin(head.get(), 7, 1).ok());
  (void)head->shard->StepDown(absl::UnavailableError("another leads"));
  EXPECT_TRUE(made_.has_value() && absl::IsUnavailable(*made_));
}

TEST_F(ShardPublications, AreForgottenButForThoseThatAreKeptOrNewer) {
  const auto head = NewHead("asp");
  for (const std::uint64_t publication : {3, 5, 7, 9}) {
    EXPECT_TRUE(Begin(head.get(), publication, 0).ok());
  }
  head->shard->KeepPublications({5, 7});
  EXPECT_TRUE(absl::IsNotFound(head->Published(3).status()));
  for (const std::uint64_t publication : {5, 7, 9}) EXPECT_TRUE(head->Published(publication).ok());
}

}  // namespace
}  // namespace leeway::ps
