// What a shard knows for its policies, over changes of its head and of its workers: what is
// collected, which clocks have closed, what workers have pulled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ps/testing/one_replica.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {
namespace {

class ShardPolicies : public testing::Test {
 protected:
  std::unique_ptr<OneReplica> New(const char* consistency, Aggregate aggregate = Aggregate::kSum,
                                  std::uint64_t blocks = 1) {
    TableSpec spec = TableSpec::Dense("w", {(blocks - 1) * OneReplica::kBlockElements + 1});
    spec.aggregate = aggregate;
    spec.updater.name = "add";
    spec.consistency = Consistency::Parse(consistency).value();
    return std::make_unique<OneReplica>(loop_->loop(), spec);
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("loop");
};

// The head before has logged the push that is enough, and died before it told of the update. It had
// taken over from the one that takes over now, whose number of workers is the same as then.
TEST_F(ShardPolicies, AHeadThatLeadsAgainAppliesWhatIsEnough) {
  const auto first = New("fedbuff:2"), between = New("fedbuff:2");
  first->shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(first->shard->StepDown(absl::UnavailableError("another leads")).size() > 0);
  between->shard->BecomeHead(/*inherited=*/true);
  EXPECT_TRUE(between->Push(0, 0, 1).ok());
  EXPECT_TRUE(between->Push(1, 0, 2).ok());
  ASSERT_EQ(between->log.size(), 3u);
  ASSERT_EQ(between->log[2].header.kind, proto::LogEntryKind::kCollected);
  for (int entry = 0; entry < 2; ++entry) {
    ASSERT_TRUE(first->shard->Follow({}, between->log[static_cast<std::size_t>(entry)]).ok());
  }
  EXPECT_EQ(first->counters.pushes_applied, 0u);
  first->shard->BecomeHead(/*inherited=*/true);
  EXPECT_EQ(first->counters.pushes_applied, 2u);
  EXPECT_EQ(first->value(), 3);
}

// Before any worker has told the new head how far it is.
TEST_F(ShardPolicies, ANewHeadKnowsThatClocksHaveClosed) {
  const auto first = New("backup:1/2,drop"), second = New("backup:1/2,drop");
  first->shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(first->Push(0, 0, 1).ok());
  first->shard->TakeTick(0, 100, 3, 0, {});
  for (const LogEntry& entry : first->log) ASSERT_TRUE(second->shard->Follow({}, entry).ok());
  second->shard->BecomeHead(/*inherited=*/true);
  EXPECT_EQ(second->Push(1, 2, 10).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(second->value(), 1);
}

// By the rates of the clock of the pushes, though the new head knows of no clock that has ended.
TEST_F(ShardPolicies, ANewHeadAppliesWhatIsEnoughByItsRates) {
  const auto first = New("fedbuff:2"), second = New("fedbuff:2");
  for (OneReplica* const replica : {first.get(), second.get()}) {
    proto::TableSettings settings;
    settings.table = settings.number = 1;
    settings.since = 3;
    settings.decided = true;
    settings.consistency = Consistency::FedBuff(2);
    ASSERT_TRUE(replica->context.tables.Follow({settings}).ok());
  }
  first->shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(first->Push(0, 5, 1).ok());
  EXPECT_TRUE(first->Push(1, 5, 2).ok());
  ASSERT_EQ(first->log.size(), 3u);
  for (std::size_t entry = 0; entry < 2; ++entry) {
    ASSERT_TRUE(second->shard->Follow({}, first->log[entry]).ok());
  }
  second->shard->BecomeHead(/*inherited=*/true);
  ASSERT_EQ(second->log.size(), 1u);
  EXPECT_EQ(second->log[0].header.table_settings, first->log[2].header.table_settings);
}

// The head has closed a clock and dies before it has told all of it. No worker has been told a
// thing of it either.
TEST_F(ShardPolicies, ANewHeadAppliesTheRestOfAClosedClock) {
  for (const std::size_t told : {3u, 4u, 5u}) {
    SCOPED_TRACE(told);
    const auto first = New("backup:1/2", Aggregate::kSum, /*blocks=*/2);
    const auto second = New("backup:1/2", Aggregate::kSum, /*blocks=*/2);
    first->shard->BecomeHead(/*inherited=*/false);
    EXPECT_TRUE(first->Push(0, 0, 1, /*block=*/0).ok());
    EXPECT_TRUE(first->Push(0, 0, 2, /*block=*/1).ok());
    first->shard->TakeTick(0, 100, 1, 0, {});
    ASSERT_EQ(first->log.size(), 5u);
    for (std::size_t entry = 0; entry < told; ++entry) {
      ASSERT_TRUE(second->shard->Follow({}, first->log[entry]).ok());
    }
    second->shard->BecomeHead(/*inherited=*/true);
    EXPECT_EQ(second->value(0), 1);
    EXPECT_EQ(second->value(1), 2);
    // What is collected from now on is of the next clock.
    second->sequences[0] = first->sequences[0];
    EXPECT_TRUE(second->Push(0, 1, 4, /*block=*/1).ok());
    EXPECT_EQ(second->counters.pushes_collected, 1u);
    EXPECT_EQ(second->value(1), 2);
  }
}

// All that is collected takes effect as the last worker goes, and the clock stays open.
TEST_F(ShardPolicies, AnOpenClockStaysOpenWhenNobodyIsLeft) {
  const auto first = New("backup:1/2,drop"), second = New("backup:1/2,drop");
  first->shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(first->Push(0, 0, 1).ok());
  for (const std::uint32_t rank : {0u, 1u}) {
    for (OneReplica* const replica : {first.get(), second.get()}) {
      replica->SetWorker(
          {.rank = rank, .incarnation = 100 + rank, .state = proto::WorkerState::kDead});
    }
  }
  first->shard->CloseClocks();
  EXPECT_EQ(first->value(), 1);
  for (const LogEntry& entry : first->log) ASSERT_TRUE(second->shard->Follow({}, entry).ok());
  second->shard->BecomeHead(/*inherited=*/true);
  for (OneReplica* const replica : {first.get(), second.get()}) {
    SCOPED_TRACE(replica == first.get() ? "the head" : "the next head");
    replica->SetWorker({.rank = 1, .incarnation = 101});  // heard again
    EXPECT_TRUE(replica->Push(1, 0, 10).ok());
  }
}

// The clocks that wait for another worker close as one enters: nothing else need happen, as all
// others wait, and their ticks with them.
TEST_F(ShardPolicies, AClockClosesAsAnotherWorkerEnters) {
  const auto head = New("backup:2/2,wait");
  head->shard->BecomeHead(/*inherited=*/false);
  head->SetWorker({.rank = 1, .incarnation = 201, .late = true});
  head->shard->TakeTick(0, 100, 1, 0, {});
  const float value = 5;
  head->Ask(0, proto::Op::kPush, 1, {runtime::Buffer::CopyOf(&value, sizeof(value))});
  EXPECT_TRUE(head->answers.empty());
  head->shard->Enter(1, 201);
  ASSERT_EQ(head->answers.size(), 1u);
  EXPECT_TRUE(head->answers[0].ok()) << head->answers[0];
}

// Of a checkpoint, before a worker has opened the table: what is collected goes on being collected,
// or is applied at once, and never twice.
TEST_F(ShardPolicies, CollectedPushesOutliveAnotherConsistency) {
  struct Case {
    const char* before;
    const char* after;
    std::uint64_t applied;     // at once, of 2 pushes
    std::uint64_t with_third;  // and with another push
  };
  for (const Case& one :
       {Case{"fedbuff:3", "fedbuff:4", 0, 0}, Case{"fedbuff:3", "fedbuff:2", 2, 2},
        Case{"fedbuff:4", "fedbuff:3", 0, 3}, Case{"fedbuff:3", "asp", 2, 3},
        Case{"fedbuff:3", "ssp:2,weight=1/tau", 2, 3}, Case{"backup:2/2", "fedbuff:3", 0, 3},
        Case{"backup:2/2", "asp", 2, 3}, Case{"fedbuff:3", "backup:1/2", 0, 0},
        Case{"softsync:1", "fedbuff:9", 2, 2}, Case{"backup:2/2", "backup:1/2", 0, 0}}) {
    SCOPED_TRACE(std::string(one.before) + " to " + one.after);
    const auto head = New(one.before), follower = New(one.before);
    head->shard->BecomeHead(/*inherited=*/false);
    EXPECT_TRUE(head->Push(0, 0, 1).ok());
    EXPECT_TRUE(head->Push(0, 0, 2).ok());
    proto::TableSettings settings;
    settings.table = settings.number = 1;
    settings.decided = true;
    settings.consistency = Consistency::Parse(one.after).value();
    for (OneReplica* const replica : {head.get(), follower.get()}) {
      ASSERT_TRUE(replica->context.tables.Follow({settings}).ok());
    }
    head->shard->CloseClocks();
    EXPECT_EQ(head->counters.pushes_applied, one.applied);
    head->shard->CloseClocks();
    EXPECT_TRUE(head->Push(0, 0, 4).ok());
    EXPECT_EQ(head->counters.pushes_applied, one.with_third);
    for (const LogEntry& entry : head->log) {
      ASSERT_TRUE(follower->shard->Follow({}, entry).ok());
    }
    EXPECT_EQ(follower->shard->Digest(), head->shard->Digest());
    for (const std::uint32_t rank : {0u, 1u}) {  // what still waits is applied when nobody is left
      head->SetWorker(
          {.rank = rank, .incarnation = 100 + rank, .state = proto::WorkerState::kLeft});
    }
    head->shard->CloseClocks();
    EXPECT_EQ(head->value(), 7);
  }
}

TEST_F(ShardPolicies, CollectedPushesOfAMeanAreDividedByTheirNumber) {
  const auto head = New("fedbuff:4", Aggregate::kMean);
  head->shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(head->Push(0, 0, 8).ok());
  EXPECT_TRUE(head->Push(1, 0, 4).ok());
  proto::TableSettings settings;
  settings.table = settings.number = 1;
  settings.decided = true;
  ASSERT_TRUE(head->context.tables.Follow({settings}).ok());  // bsp
  head->shard->CloseClocks();
  EXPECT_EQ(head->value(), 6);
}

// Held and collected pushes would let the values wait for others, or make a mean of them.
TEST_F(ShardPolicies, ValuesThatATableBeginsWithTakeEffectAtOnce) {
  for (const char* const consistency :
       {"ssp:3", "asp,weight=1/tau", "asp,dc=0.04", "softsync:1", "fedbuff:4", "backup:2/2"}) {
    TableSpec spec = TableSpec::Dense("w", {1});
    spec.initializer = Initializer::Pushed();
    spec.consistency = Consistency::Parse(consistency).value();
    if (!spec.consistency.is_weighted()) spec.updater = {"sgd", {{"learning_rate", 1}}};
    OneReplica head(loop_->loop(), spec), follower(loop_->loop(), spec);
    head.shard->BecomeHead(/*inherited=*/false);
    EXPECT_TRUE(head.Push(0, 0, 8).ok()) << consistency;
    EXPECT_EQ(head.value(), 8) << consistency;
    for (const LogEntry& entry : head.log) ASSERT_TRUE(follower.shard->Follow({}, entry).ok());
    EXPECT_EQ(follower.value(), 8) << consistency;
  }
}

// They are in the order of what is held: a push of an earlier clock, which only the head has, is
// sent again to the next one and counts.
TEST_F(ShardPolicies, InBspTheFirstWorkersValuesBeginATableWhenTheClockCloses) {
  TableSpec spec = TableSpec::Dense("w", {1});
  spec.initializer = Initializer::Pushed();
  spec.consistency = Consistency::Bsp();
  spec.aggregate = Aggregate::kMean;
  spec.updater = {"sgd", {{"learning_rate", 1}}};
  OneReplica head(loop_->loop(), spec), follower(loop_->loop(), spec);
  head.shard->BecomeHead(/*inherited=*/false);
  EXPECT_TRUE(head.Push(1, 0, 5).ok());
  EXPECT_TRUE(head.Push(0, 0, 8).ok());
  EXPECT_TRUE(head.log.empty() || head.log.back().header.kind != proto::LogEntryKind::kPush);
  for (std::uint32_t rank : {0u, 1u}) {
    head.shard->TakeTick(rank, 100 + rank, 1, 0, {.by_class = {0, 1}});
  }
  EXPECT_EQ(head.value(), 8);
  EXPECT_TRUE(head.Push(1, 1, 2).ok());
  std::vector<LogEntry> updates;
  for (const LogEntry& entry : head.log) {
    if (entry.header.kind == proto::LogEntryKind::kUpdate) {
      updates.push_back(entry);
      continue;
    }
    ASSERT_TRUE(follower.shard->Follow(updates, entry).ok());
    updates.clear();
  }
  EXPECT_EQ(follower.value(), 8);
  follower.shard->BecomeHead(/*inherited=*/true);
  follower.sequences[1] = 1;
  EXPECT_TRUE(follower.Push(1, 1, 2).ok());
  for (std::uint32_t rank : {0u, 1u}) {
    follower.shard->TakeTick(rank, 100 + rank, 2, 0, {.by_class = {0, 1 + rank}});
  }
  EXPECT_EQ(follower.value(), 7) << "a gradient of 2, the mean of two workers, at a rate of 1";
}

// A bit an element would not carry them.
TEST_F(ShardPolicies, ValuesThatATableBeginsWithAreGivenWhole) {
  constexpr std::uint64_t kElements = OneReplica::kBlockElements;
  TableSpec spec = TableSpec::Dense("w", {kElements});
  spec.initializer = Initializer::Pushed();
  spec.consistency = Consistency::Asp();
  spec.updater = {"sgd", {{"learning_rate", 1}}};
  spec.codec = "onebit";
  OneReplica head(loop_->loop(), spec);
  head.shard->BecomeHead(/*inherited=*/false);
  std::vector<float> values(kElements);
  for (std::uint64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i);
  head.Ask(0, proto::Op::kPush, 0,
           {runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float))});
  ASSERT_TRUE(head.answers.back().ok()) << head.answers.back();
  for (const std::uint64_t have : {0, 1}) {
    PullView view;
    view.elements = kElements;
    view.have = have;
    const auto pulled = head.shard->stores().at(1)->Pull(view);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const auto given = pulled->payload[0].as<float>();
    EXPECT_EQ(std::vector<float>(given.begin(), given.end()), values) << have;
  }
}

TEST_F(ShardPolicies, PulledValuesAreForgottenWithTheirWorker) {
  const proto::WorkerEntry gone[] = {
      {.rank = 0, .incarnation = 100, .state = proto::WorkerState::kDead},
      {.rank = 0, .incarnation = 100, .state = proto::WorkerState::kLeft},
      {.rank = 0, .incarnation = 500}};  // another process has its rank
  for (const proto::WorkerEntry& entry : gone) {
    const auto one = New("asp,dc=1");
    one->Pull(0);
    one->Pull(1);
    EXPECT_EQ(one->context.pulled.bytes, 8u);
    one->SetWorker(entry);
    EXPECT_EQ(one->context.pulled.bytes, 4u);
  }
}

// Meanwhile another head has answered it.
TEST_F(ShardPolicies, AHeadThatStepsDownForgetsPulledValues) {
  const auto one = New("asp,dc=1");
  one->Pull(0);
  EXPECT_EQ(one->context.pulled.bytes, 4u);
  one->shard->StepDown(absl::UnavailableError("another leads"));
  EXPECT_EQ(one->context.pulled.bytes, 0u);
  one->shard->BecomeHead(/*inherited=*/true);
  EXPECT_TRUE(one->Push(0, 0, 1).ok());
  EXPECT_EQ(one->counters.uncompensated, 1u);
}

}  // namespace
}  // namespace leeway::ps
