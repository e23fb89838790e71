#include "runtime/sim/sim_world.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/files/file_system.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::runtime {
namespace {

// Runs three hosts that post to each other after random times; one of them is killed on the way.
struct Outcome {
  std::uint64_t hash;
  std::string trace;
};
Outcome RunCluster(std::uint64_t seed) {
  SimWorld world(seed);
  world.KeepTrace(true);
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::unique_ptr<LoopRunner>> runners;
  for (int i = 0; i < 3; ++i) {
    hosts.push_back(world.NewHost(absl::StrCat("host-", i)));
    runners.push_back(hosts.back()->Spawn("main"));
  }
  std::function<void(int)> visit = [&](int at) {
    Loop* loop = runners[at]->loop();
    world.Trace(absl::StrCat("visit ", at));
    const int next = static_cast<int>(loop->Random() % 3);
    loop->After(absl::Microseconds(loop->Random() % 1000),
                [&, next] { runners[next]->loop()->Post([&, next] { visit(next); }); });
  };
  for (int i = 0; i < 3; ++i) runners[i]->loop()->Post([&, i] { visit(i); });
  world.Schedule(absl::Milliseconds(20), [&] { world.Kill("host-1"); });
  world.RunFor(absl::Milliseconds(40));
  return {world.trace_hash(), world.trace()};
}

TEST(SimWorldTest, TheSameSeedGivesTheSameTrace) {
  const Outcome first = RunCluster(7);
  const Outcome again = RunCluster(7);
  EXPECT_GT(first.trace.size(), 500u);
  EXPECT_EQ(first.trace, again.trace);
  EXPECT_EQ(first.hash, again.hash);
}

TEST(SimWorldTest, AnotherSeedGivesAnotherTrace) {
  EXPECT_NE(RunCluster(7).trace, RunCluster(8).trace);
  EXPECT_NE(RunCluster(7).hash, RunCluster(8).hash);
}

TEST(SimWorldTest, ATraceLineHasItsTime) {
  SimWorld world(1);
  world.KeepTrace(true);
  world.Schedule(absl::Microseconds(5), [&] { world.Trace("hello"); });
  world.RunFor(absl::Seconds(1));
  EXPECT_EQ(world.trace(), "5000 hello\n");
}

TEST(SimWorldTest, TheHashDoesNotDependOnKeepingTheText) {
  SimWorld kept(1), dropped(1);
  kept.KeepTrace(true);
  const std::uint64_t before = kept.trace_hash();
  for (SimWorld* world : {&kept, &dropped}) world->Trace("hello");
  EXPECT_EQ(kept.trace_hash(), dropped.trace_hash());
  EXPECT_NE(kept.trace_hash(), before);
  EXPECT_EQ(dropped.trace(), "");
}

TEST(SimWorldTest, EventsOfOneMomentHappenInTheOrderAskedFor) {
  SimWorld world(1);
  std::string order;
  const auto host = world.NewHost("host");
  const auto runner = host->Spawn("main");
  world.Schedule(absl::Milliseconds(1), [&] { order += 'a'; });
  runner->loop()->After(absl::Milliseconds(1), [&] { order += 'b'; });
  world.Schedule(absl::ZeroDuration(), [&] { order += '0'; });
  world.Schedule(absl::Milliseconds(1), [&] { order += 'c'; });
  while (world.Step()) {
  }
  EXPECT_EQ(order, "0abc");
}

TEST(SimWorldTest, TimePassesOnlyFromEventToEvent) {
  SimWorld world(1);
  const absl::Time start = world.Now();
  EXPECT_GT(start, absl::UnixEpoch());
  world.Schedule(absl::Hours(1000), [] {});
  EXPECT_TRUE(world.Step());
  EXPECT_EQ(world.Now() - start, absl::Hours(1000));
  EXPECT_FALSE(world.Step());
}

TEST(SimWorldTest, RunForEndsWhenItSays) {
  SimWorld world(1);
  const absl::Time start = world.Now();
  int ran = 0;
  world.Schedule(absl::Milliseconds(10), [&] { ++ran; });
  world.Schedule(absl::Milliseconds(11), [&] { ++ran; });
  world.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(world.Now() - start, absl::Milliseconds(10));
}

TEST(SimWorldTest, RunUntilStopsAsSoonAsItHolds) {
  SimWorld world(1);
  const absl::Time start = world.Now();
  bool done = false;
  world.Schedule(absl::Milliseconds(3), [&] { done = true; });
  world.Schedule(absl::Milliseconds(4), [&] { FAIL() << "one event too many"; });
  EXPECT_TRUE(world.RunUntil([&] { return done; }, absl::Seconds(1)).ok());
  EXPECT_EQ(world.Now() - start, absl::Milliseconds(3));
}

TEST(SimWorldTest, RunUntilGivesUpAtItsLimit) {
  SimWorld world(1);
  const absl::Time start = world.Now();
  world.Schedule(absl::Seconds(3), [&] { FAIL() << "beyond the limit"; });
  EXPECT_EQ(world.RunUntil([] { return false; }, absl::Seconds(2)),
            absl::DeadlineExceededError("not done within 2s of virtual time"));
  EXPECT_EQ(world.Now() - start, absl::Seconds(2));
}

TEST(SimWorldTest, RunUntilGivesUpWhenNothingIsLeft) {
  SimWorld world(1);
  world.Schedule(absl::Seconds(1), [] {});
  EXPECT_EQ(world.RunUntil([] { return false; }, absl::Seconds(2)),
            absl::DeadlineExceededError("nothing is left to happen after 1s"));
}

TEST(SimWorldTest, RunUntilGivesUpWhenTimeStandsStill) {
  SimWorld world(1);
  const auto host = world.NewHost("host");
  const auto runner = host->Spawn("main");
  std::function<void()> again = [&] { runner->loop()->Post([&] { again(); }); };
  again();
  EXPECT_EQ(world.RunUntil([] { return false; }, absl::Seconds(2)),
            absl::DeadlineExceededError("virtual time stands still at 0"));
}

TEST(SimWorldTest, NothingOfAKilledHostRuns) {
  SimWorld world(1);
  const auto victim = world.NewHost("victim");
  const auto survivor = world.NewHost("survivor");
  const auto victims = victim->Spawn("main");
  const auto survivors = survivor->Spawn("main");
  std::string ran;
  const auto held = std::make_shared<int>();
  victims->loop()->Post([&, held] { ran += "posted"; });
  victims->loop()->After(absl::Seconds(1), [&, held] { ran += "timer"; });
  survivors->loop()->After(absl::Seconds(1), [&] { ran += "survivor"; });
  world.Kill("victim");
  EXPECT_EQ(held.use_count(), 1) << "its tasks are dropped at once";
  EXPECT_EQ(victims->loop()->After(absl::Seconds(1), [&] { ran += "late"; }), TimerId::kNone);
  victims->loop()->Post([&] { ran += "late"; });
  const auto another = victim->Spawn("another");
  another->loop()->Post([&] { ran += "another"; });
  world.RunFor(absl::Seconds(2));
  EXPECT_EQ(ran, "survivor");
}

TEST(SimWorldTest, AHostMayKillItself) {
  SimWorld world(1);
  const auto host = world.NewHost("host");
  const auto runner = host->Spawn("main");
  std::string ran;
  runner->loop()->Post([&] {
    world.Kill("host");
    ran += "to its end";
    runner->loop()->Post([&] { ran += ", and further"; });
  });
  world.RunFor(absl::Seconds(1));
  EXPECT_EQ(ran, "to its end");
}

TEST(SimWorldTest, ARestartedHostIsAnotherProcessOnTheSameDisk) {
  SimWorld world(1);
  auto host = world.NewHost("host");
  const std::uint64_t incarnation = host->Random();
  ASSERT_TRUE(WriteFileAtomically(host->files(), "checkpoint", "kept").ok());
  world.Kill("host");
  host = world.NewHost("host");
  EXPECT_NE(host->Random(), incarnation);
  const auto checkpoint = host->files()->Read("checkpoint");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(*checkpoint, "kept");
  EXPECT_EQ(host->files(), world.files("host"));
  const auto runner = host->Spawn("main");
  bool ran = false;
  runner->loop()->Post([&] { ran = true; });
  world.RunFor(absl::ZeroDuration());
  EXPECT_TRUE(ran);
}

TEST(SimWorldTest, KillLosesWhatWasNotSynced) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimWorld world(seed);
    const auto host = world.NewHost("host");
    auto file = host->files()->Create("log");
    ASSERT_TRUE(file.ok() && (*file)->Append("entry").ok());
    world.Kill("host");
    lost += !host->files()->Exists("log");
    EXPECT_FALSE((*file)->Append("from the grave").ok());
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 20);
}

TEST(SimWorldTest, KeepsItsLastLines) {
  SimWorld world(1);
  world.Trace("none kept yet");
  EXPECT_TRUE(world.last_lines().empty());
  world.KeepLastLines(2);
  for (const char* line : {"first", "second", "third"}) world.Trace(line);
  EXPECT_EQ(world.last_lines(), (std::deque<std::string>{"0 second", "0 third"}));
  world.KeepLastLines(1);
  EXPECT_EQ(world.last_lines(), (std::deque<std::string>{"0 third"}));
}

TEST(SimWorldTest, HostsDrawTheirOwnNumbers) {
  SimWorld world(1), other_world(2);
  const auto a = world.NewHost("a"), b = world.NewHost("b"), other_a = other_world.NewHost("a");
  const std::uint64_t draw = a->Random();
  EXPECT_NE(draw, b->Random());
  EXPECT_NE(draw, other_a->Random());
}

TEST(SimWorldTest, AHostsRandomNumbersDoNotDependOnOtherHosts) {
  SimWorld alone(1), crowded(1);
  const auto others = crowded.NewHost("other");
  others->Random();
  crowded.Random();
  const auto a = alone.NewHost("a"), same = crowded.NewHost("a");
  EXPECT_EQ(a->Random(), same->Random());
  EXPECT_EQ(a->Spawn("x")->loop()->Random(), same->Spawn("x")->loop()->Random());
}

TEST(SimWorldTest, AHostsClockMayGoFasterOrSlowerThanOthers) {
  SimWorld world(1);
  const auto fast = world.NewHost("fast"), right = world.NewHost("right");
  const auto fast_runner = fast->Spawn("x"), right_runner = right->Spawn("x");
  Loop* const loop = fast_runner->loop();
  const absl::Time begun = world.Now();
  world.SetClockRate("fast", 2);
  absl::Time rang;
  loop->After(absl::Seconds(3), [&] { rang = world.Now(); });
  world.RunFor(absl::Seconds(2));
  EXPECT_GE(rang - begun, absl::Milliseconds(1500));
  EXPECT_LT(rang - begun, absl::Milliseconds(1501));
  EXPECT_EQ(loop->Now() - begun, absl::Seconds(4));
  EXPECT_EQ(right_runner->loop()->Now() - begun, absl::Seconds(2));
  world.SetClockRate("fast", 1);
  world.RunFor(absl::Seconds(1));
  EXPECT_EQ(loop->Now() - begun, absl::Seconds(5));  // the clock does not go back
}

TEST(SimWorldTest, HostsMayOutliveTheirWorld) {
  std::unique_ptr<Host> host;
  std::unique_ptr<LoopRunner> runner;
  const auto held = std::make_shared<int>();
  {
    SimWorld world(1);
    host = world.NewHost("host");
    runner = host->Spawn("main");
    runner->loop()->After(absl::Seconds(1), [held] {});
  }
  EXPECT_EQ(held.use_count(), 1);
  runner->loop()->Post([held] {});
  EXPECT_EQ(held.use_count(), 1);
}

TEST(SimWorldTest, ASharedFolderIsTheSameToAllAndOutlivesEach) {
  SimWorld world(1);
  world.ShareFolder("/shared");
  auto a = world.NewHost("a");
  auto b = world.NewHost("b");
  ASSERT_TRUE(a->files()->CreateDirectories("/shared/x").ok());
  ASSERT_TRUE(a->files()->CreateDirectories("/own").ok());
  auto file = a->files()->Create("/shared/x/f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("kept").ok());
  ASSERT_TRUE(WriteFileAtomically(a->files(), "/own/f", "mine").ok());
  EXPECT_FALSE(a->files()->Rename("/own/f", "/shared/f").ok());
  world.Kill("a");
  EXPECT_EQ(b->files()->Read("/shared/x/f").value(), "kept");
  EXPECT_FALSE(b->files()->Exists("/own/f"));
  EXPECT_EQ(world.files("/shared")->bytes_used(), 4u);
}

}  // namespace
}  // namespace leeway::runtime
