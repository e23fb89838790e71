// Histories of two workers with one fault each, and the judge's verdict.
#include "tests/storm/history_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/sim_table.h"
#include "tests/storm/history_record.h"
#include "tests/storm/traced_tables.h"

namespace leeway::storm::history_judge_test {

using ::testing::HasSubstr;

constexpr std::uint32_t kSparse = 1;  // the table of the training's mode
constexpr std::uint32_t kPlace = 2;
constexpr std::uint64_t kSteps = 20;  // with the spare ones six elements of digits a worker

// The number of times that each push is seen, by worker and number.
using Seen = std::map<std::pair<std::uint32_t, std::uint64_t>, int>;

class History {
 public:
  explicit History(Consistency mode) : tables_(TracedTables(2, kSteps, mode)) {}

  // Times are in microseconds. A process is one of rank 0 or 1, or a later one of rank 1.
  static constexpr std::size_t kLater = 2;

  void Push(std::size_t process, std::uint64_t clock, int made, int told = 0,
            absl::StatusCode code = absl::StatusCode::kOk) {
    const std::uint64_t number = numbered_[RankOf(process)]++;
    Write(process, PushMade{kSparse, number, clock, 1u << kPlace, At(made)});
    if (told > 0) Write(process, PushTold{kSparse, number, static_cast<int>(code), At(told)});
  }
  std::uint64_t Ask(std::size_t process, std::uint64_t clock, int asked,
                    std::uint64_t places = 1u << kPlace) {
    const std::uint64_t own = numbered_[RankOf(process)];
    Write(process, ReadAsked{++reads_, kSparse, clock, clock, own, places, At(asked)});
    return reads_;
  }
  void Answer(std::size_t process, std::uint64_t id, std::uint64_t clock, int answered,
              const Seen& seen) {
    const simulation::SimTable& table = tables_[kSparse];
    std::vector<std::int64_t> counts(table.width);
    for (const auto& [push, times] : seen) {
      for (int i = 0; i < times; ++i) {
        simulation::AddPush(table, counts, push.first, push.second);
      }
    }
    ReadSeen read{id, clock, At(answered), {}};
    for (std::size_t element = 0; element < counts.size(); ++element) {
      std::int64_t& told = told_[{process, element}];
      if (told != counts[element]) read.changes.push_back({kPlace, element, counts[element]});
      told = counts[element];
    }
    Write(process, read);
  }
  // At one moment and the next.
  void Read(std::size_t process, std::uint64_t clock, int asked, const Seen& seen) {
    Answer(process, Ask(process, clock, asked), clock, asked + 1, seen);
  }
  void Write(std::size_t process, const HistoryRecord& record) {
    lines_[process] += ToHistoryLine(record) + "\n";
  }
  void Append(std::size_t process, const std::string& text) { lines_[process] += text; }
  // The first process of rank 1.
  void Kill(int at) { killed_ = At(at); }

  absl::StatusOr<HistoryVerdict> Judge() const {
    HistoryJudge judge(tables_, 2);
    const auto lines = [&](std::size_t process) {
      return std::make_unique<std::istringstream>(lines_[process]);
    };
    judge.AddProcess(0, lines(0));
    judge.AddProcess(1, lines(1), killed_);
    if (!lines_[kLater].empty()) judge.AddProcess(1, lines(kLater));
    return judge.Judge();
  }
  // "INVARIANT: WHAT", or nothing.
  std::string Violation() const {
    const absl::StatusOr<HistoryVerdict> verdict = Judge();
    if (!verdict.ok()) return std::string(verdict.status().message());
    if (!verdict->violation.has_value()) return "";
    return verdict->violation->invariant + ": " + verdict->violation->what;
  }

 private:
  static absl::Time At(int microseconds) {
    return absl::UnixEpoch() + absl::Microseconds(microseconds);
  }
  static std::uint32_t RankOf(std::size_t process) { return process == 0 ? 0 : 1; }

  const std::vector<simulation::SimTable> tables_;
  std::string lines_[3];
  std::uint64_t numbered_[2] = {};
  std::uint64_t reads_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> told_;
  absl::Time killed_ = absl::InfiniteFuture();
};

// Both push in clocks 0 and 1, and read in clock 2 and later what all workers have pushed.
History Healthy(Consistency mode) {
  History history(mode);
  history.Push(0, 0, 10, 15);
  history.Push(1, 0, 11, 16);
  history.Push(0, 1, 20, 25);
  history.Push(1, 1, 21, 26);
  history.Read(0, 2, 30, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
  history.Read(1, 2, 32, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
  return history;
}

std::vector<Consistency> AllModes() {
  return {Consistency::Bsp(), Consistency::Ssp(3), Consistency::Asp()};
}

TEST(HistoryJudgeTest, HealthyHistoriesBreakNothing) {
  for (const Consistency& mode : AllModes()) {
    const absl::StatusOr<HistoryVerdict> verdict = Healthy(mode).Judge();
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_FALSE(verdict->violation.has_value()) << verdict->violation->what;
    EXPECT_EQ(verdict->pushes, 4u);
    EXPECT_EQ(verdict->acknowledged, 4u);
    EXPECT_EQ(verdict->reads, 2u);
  }
}

TEST(HistoryJudgeTest, AnAcknowledgedPushIsLost) {
  for (const Consistency& mode : AllModes()) {
    History history = Healthy(mode);
    history.Push(1, 2, 40, 41);
    history.Read(0, 3, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
    EXPECT_THAT(history.Violation(),
                HasSubstr("push 2 of worker 1 (clock 2, acknowledged) in row 2 of "
                          "'traced.mode.sparse' (" +
                          mode.ToString() +
                          ") is not seen by worker 0, asking at clock 3: digit 2 of element 6 is "
                          "0 and not 1"));
  }
}

TEST(HistoryJudgeTest, OfWhatOverlapsNothingIsConcluded) {
  for (const Consistency& mode : {Consistency::Ssp(3), Consistency::Asp()}) {
    History history = Healthy(mode);
    const std::uint64_t read = history.Ask(0, 3, 50);
    history.Push(1, 2, 40, 51);  // acknowledged when the read had been asked for
    history.Answer(0, read, 3, 60, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
    EXPECT_EQ(history.Violation(), "");
  }
}

TEST(HistoryJudgeTest, AMomentIsNotBeforeItself) {
  History history = Healthy(Consistency::Asp());
  history.Push(1, 2, 40, 50);
  history.Read(0, 3, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
  // The push comes before the read that sees it, though both have one time.
  history.Push(1, 3, 61);
  history.Read(0, 3, 60,
               {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}, {{1, 2}, 1}, {{1, 3}, 1}});
  EXPECT_EQ(history.Violation(), "");
}

TEST(HistoryJudgeTest, APushIsAppliedTwice) {
  for (const Consistency& mode : AllModes()) {
    History history = Healthy(mode);
    history.Read(0, 2, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 2}, {{1, 1}, 1}});
    EXPECT_THAT(history.Violation(), HasSubstr("applied once: push 0 of worker 1"));
    EXPECT_THAT(history.Violation(),
                HasSubstr("is applied 2 times: digit 0 of element 6 is 2 for worker 0"));
  }
}

TEST(HistoryJudgeTest, ValuesThatNobodyHasPushedAreThere) {
  History history = Healthy(Consistency::Asp());
  history.Read(0, 2, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}, {{1, 2}, 1}});
  EXPECT_THAT(history.Violation(), HasSubstr("but was never made"));
}

// The push was not acknowledged, so that the only fault is that a value goes back.
TEST(HistoryJudgeTest, AReadGoesBack) {
  for (const Consistency& mode : {Consistency::Ssp(3), Consistency::Asp()}) {
    History history(mode);
    history.Push(1, 0, 10);
    history.Read(0, 0, 20, {{{1, 0}, 1}});
    history.Read(0, 0, 30, {});
    EXPECT_THAT(history.Violation(), HasSubstr("monotonic reads: element 6 of row 2"));
  }
}

TEST(HistoryJudgeTest, AReadThatWasAskedForBeforeMayBeOlder) {
  History history(Consistency::Asp());
  history.Push(1, 0, 10);
  const std::uint64_t early = history.Ask(0, 0, 20);
  history.Read(0, 0, 21, {{{1, 0}, 1}});
  history.Answer(0, early, 0, 30, {});
  EXPECT_EQ(history.Violation(), "");
}

TEST(HistoryJudgeTest, AReadIsStalerThanAllowed) {
  for (const std::uint64_t staleness : {1, 3}) {
    for (const std::uint64_t clock : {staleness, staleness + 1}) {
      History history(Consistency::Ssp(staleness));
      history.Push(1, 0, 10);  // not acknowledged
      history.Read(0, clock, 20, {});
      EXPECT_THAT(history.Violation(),
                  HasSubstr(clock > staleness ? "the staleness bound: push 0 of worker 1" : ""));
      EXPECT_EQ(history.Violation().empty(), clock <= staleness);
    }
  }
  History history(Consistency::Bsp());
  history.Push(1, 0, 10);
  history.Read(0, 1, 20, {});
  EXPECT_THAT(history.Violation(), HasSubstr("the staleness bound: push 0 of worker 1"));
}

TEST(HistoryJudgeTest, APushOfAnOpenClockIsVisible) {
  for (const bool ended : {false, true}) {
    History history = Healthy(Consistency::Bsp());
    history.Push(1, 2, 40);
    const std::uint64_t read = history.Ask(0, 2, 50);
    history.Answer(0, read, ended ? 3 : 2, 51,
                   {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}, {{1, 2}, 1}});
    // A reader that has ended the clock meanwhile may see it.
    EXPECT_EQ(history.Violation().empty(), ended);
    if (!ended) {
      EXPECT_THAT(history.Violation(), HasSubstr("open clocks are hidden: push 2 of worker 1"));
    }
  }
}

TEST(HistoryJudgeTest, OwnWritesAreNotRead) {
  History history(Consistency::Ssp(3));
  history.Push(0, 0, 10);
  history.Push(1, 0, 11);
  history.Read(0, 0, 20, {});
  EXPECT_THAT(history.Violation(), HasSubstr("own writes are read: push 0 of worker 0"));
}

TEST(HistoryJudgeTest, OfAPushThatFailedNothingIsPromised) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnknown, absl::StatusCode::kResourceExhausted}) {
    for (const int times : {0, 1, 2}) {
      History history(Consistency::Asp());
      history.Push(0, 0, 10, 15, code);
      history.Push(1, 0, 10);
      history.Read(0, 9, 20, {{{0, 0}, times}});
      EXPECT_EQ(history.Violation().empty(), times < 2);
    }
  }
}

TEST(HistoryJudgeTest, PushesOfAKilledWorkerMayBeDiscardedInBsp) {
  for (const bool alive : {false, true}) {
    History history = Healthy(Consistency::Bsp());
    history.Push(1, 2, 40, 41);
    history.Kill(alive ? 60 : 45);
    history.Read(0, 3, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}});
    EXPECT_EQ(history.Violation().empty(), !alive) << history.Violation();
  }
}

TEST(HistoryJudgeTest, PushesInClocksThatItHadEndedAreThere) {
  for (const bool proven : {false, true}) {
    History history(Consistency::Bsp());
    history.Push(1, 0, 10, 11);
    const std::uint64_t all =
        proven ? ~std::uint64_t{0} >> 16 : 1u << kPlace;  // all places, or one
    history.Answer(1, history.Ask(1, 1, 20, all), 1, 21, {{{1, 0}, 1}});
    history.Kill(22);
    history.Read(0, 1, 30, {});
    EXPECT_EQ(history.Violation().empty(), !proven) << history.Violation();
  }
}

TEST(HistoryJudgeTest, AnotherProcessOfItsRankGoesOn) {
  for (const bool back : {false, true}) {
    History history = Healthy(Consistency::Asp());
    history.Kill(36);
    history.Push(History::kLater, 3, 40, 41);
    const Seen others = {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}};
    Seen all = others;
    all[{1, 2}] = 1;
    history.Read(0, 3, 50, all);
    history.Read(History::kLater, 3, 60, back ? Seen{{{1, 2}, 1}} : all);
    EXPECT_EQ(history.Violation().empty(), !back) << history.Violation();
  }
}

TEST(HistoryJudgeTest, NumbersThatWereLeftOverAreNobodys) {
  for (const int times : {0, 1}) {
    History history = Healthy(Consistency::Asp());
    history.Kill(36);
    history.Write(History::kLater, PushMade{kSparse, 4, 3, 1u << kPlace,
                                            absl::UnixEpoch() + absl::Microseconds(40)});
    history.Read(0, 3, 50, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}, {{1, 2}, times}});
    EXPECT_EQ(history.Violation().empty(), times == 0);
  }
}

TEST(HistoryJudgeTest, SaysWhichHistoryMakesNoSense) {
  const auto with = [](std::size_t process, const std::string& line) {
    History history = Healthy(Consistency::Asp());
    history.Append(process, line + "\n");
    return history.Violation();
  };
  EXPECT_EQ(with(1, "push 1 0 5 1 99"),  // a number that it has used
            "the history of worker 1 makes no sense at \"push 1 0 5 1 99\"");
  EXPECT_THAT(with(0, "push 4 0 5 1 99"), HasSubstr("worker 0 makes no sense"));
  EXPECT_THAT(with(0, "told 1 9 0 99"), HasSubstr("worker 0 makes no sense"));
  EXPECT_THAT(with(0, "ask 9 1 0 0 0 0 99"), HasSubstr("worker 0 makes no sense"));
  EXPECT_THAT(with(0, "seen 9 0 99"), HasSubstr("worker 0 makes no sense"));
  EXPECT_THAT(with(0, "told 1"), HasSubstr("line 7 of a history"));
}

TEST(HistoryJudgeTest, WorkersThatWereNotKilledHaveWritten) {
  History history(Consistency::Asp());
  history.Push(0, 0, 10);
  EXPECT_EQ(history.Violation(), "worker 1 has written no history");
  history.Kill(5);
  EXPECT_EQ(history.Violation(), "");
}

}  // namespace leeway::storm::history_judge_test
