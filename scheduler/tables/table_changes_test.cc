#include "scheduler/tables/table_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Servers are nodes 2 and 3, workers 4 and 5.
class TableChangesTest : public testing::Test {
 protected:
  TableChangesTest() {
    for (const std::uint64_t incarnation : {2, 3}) Admit(Role::kServer, incarnation);
    for (const std::uint64_t incarnation : {4, 5}) Admit(Role::kWorker, incarnation);
    Start();
  }
  void Admit(Role role, std::uint64_t incarnation) {
    proto::Join join;
    join.role = role;
    join.elastic = true;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    EXPECT_TRUE(members_.Admit(join, identity).ok());
  }
  void Die(std::uint32_t server) {
    members_.Retire(members_.Find(server), Node::State::kDead, "");
    changes_->ServersChanged();
  }
  void Start() {
    changes_ = std::make_unique<TableChanges>(
        &members_, absl::Seconds(1), absl::Seconds(10),
        [this](std::uint32_t server, const proto::AnyMessage& message) {
          asked_.emplace_back(server, std::get<proto::InstallTable>(message));
        },
        [this] {
          ++version_;
          changes_->Published(version_);
        });
    table_.id = 4;
    table_.spec = TableSpec::Dense("w", {8});
    table_.spec.updater = {"sgd", {{"learning_rate", 0.5}}};
    table_.spec.consistency = Consistency::Ssp(2);
    table_.installed = true;
  }
  void Change(const TableSpec& wanted, std::optional<std::uint64_t> from = std::nullopt) {
    told_.reset();
    changes_->Change(table_, wanted, ++trial_, from, now_,
                     [this](const absl::StatusOr<std::uint64_t>& clock) { told_ = clock; });
  }
  void Agree(std::uint32_t server, absl::Status result = absl::OkStatus()) {
    EXPECT_TRUE(changes_->OnInstalled(server, {.table = trial_, .result = result}));
  }
  TableSpec WithRate(double rate) const {
    TableSpec spec = table_.spec;
    spec.updater.parameters["learning_rate"] = rate;
    return spec;
  }
  void Ack(std::uint32_t worker, std::uint64_t clock) {
    changes_->OnAck(worker, version_, clock, clock);
  }

  MembershipTable members_{2, 2};
  std::uint64_t version_ = 5;
  std::uint32_t trial_ = 100;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::pair<std::uint32_t, proto::InstallTable>> asked_;
  std::optional<absl::StatusOr<std::uint64_t>> told_;
  TableCatalogue::Entry table_;
  std::unique_ptr<TableChanges> changes_;
};

TEST_F(TableChangesTest, HoldsFromAClockThatNobodyHadReachedOnceServersAndWorkersKnow) {
  changes_->OnAck(4, 5, 7, 7);
  Change(WithRate(0.25));
  ASSERT_THAT(asked_, SizeIs(2));
  EXPECT_EQ(asked_[0].second.of, 4u);
  EXPECT_EQ(asked_[0].second.spec, WithRate(0.25));
  EXPECT_THAT(changes_->entries(), IsEmpty());  // not announced before all servers have agreed
  Agree(2);
  EXPECT_THAT(changes_->entries(), IsEmpty());
  Agree(3);
  ASSERT_THAT(changes_->entries(), SizeIs(1));
  EXPECT_FALSE(changes_->entries()[0].decided);
  EXPECT_EQ(changes_->entries()[0].since, 7 + kMarginMin);
  EXPECT_EQ(changes_->SpecOf(table_), table_.spec);
  Ack(4, 7);
  EXPECT_FALSE(told_.has_value());
  Ack(5, 6);
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->value(), 7 + kMarginMin);
  EXPECT_TRUE(changes_->entries()[0].decided);
  EXPECT_EQ(changes_->SpecOf(table_), WithRate(0.25));
}

TEST_F(TableChangesTest, AWorkerThatWasThereAlreadyPutsItOff) {
  Change(WithRate(0.25));
  Agree(2);
  Agree(3);
  const std::uint64_t clock = changes_->entries()[0].since;
  Ack(4, 0);
  Ack(5, clock + 20);
  EXPECT_FALSE(told_.has_value());
  EXPECT_GT(changes_->entries()[0].since, clock + 20);
  Ack(4, 0);
  Ack(5, clock + 20);
  EXPECT_TRUE(told_.has_value());
}

TEST_F(TableChangesTest, AServerThatRefusesLeavesTheTableAsItIs) {
  Change(WithRate(-1));
  Agree(2, absl::InvalidArgumentError("learning_rate is -1"));
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(told_->status().message()), HasSubstr("server 0"));
  EXPECT_THAT(changes_->entries(), IsEmpty());
  EXPECT_FALSE(changes_->changing(4));
}

TEST_F(TableChangesTest, AServerThatIsBeingGivenTheTableIsAskedAgain) {
  Change(WithRate(0.25));
  Agree(2);
  Agree(3, absl::UnavailableError("table 4 is not installed on this server yet"));
  EXPECT_FALSE(told_.has_value());
  EXPECT_THAT(changes_->entries(), IsEmpty());
  asked_.clear();
  changes_->Tick(now_ + absl::Seconds(2));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(asked_[0].first, 3u);
  Agree(3);
  EXPECT_THAT(changes_->entries(), SizeIs(1));
}

TEST_F(TableChangesTest, AnotherShapeIsRefusedWithTheDifferenceAlone) {
  TableSpec other = WithRate(0.25);
  other.shape = {9};
  Change(other);
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(told_->status().message()), HasSubstr("shape is [8], wanted [9]"));
  other = table_.spec;
  other.consistency = Consistency::Bsp();
  Change(other);
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(told_->status().message()), HasSubstr("LEEWAY_RESTORE"));
  for (const char* const text : {"softsync:1", "fedbuff:3", "backup:1/2", "asp,weight=1/tau"}) {
    other.consistency = Consistency::Parse(text).value();
    Change(other);
    EXPECT_EQ(told_->status().code(), absl::StatusCode::kFailedPrecondition) << text;
  }
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(TableChangesTest, OfATableThatNobodyUsesItHoldsAtOnceAndMayBecomeAny) {
  for (const char* const text :
       {"bsp", "fedbuff:3", "fedbuff:4", "backup:1/2,drop", "asp,weight=1/tau", "psp:1/1,dc=0.5"}) {
    TableSpec other = table_.spec;
    other.consistency = Consistency::Parse(text).value();
    Change(other, /*from=*/40);
    Agree(2);
    Agree(3);
    EXPECT_EQ(told_->value(), 40u);
    EXPECT_EQ(changes_->SpecOf(table_), other);
    EXPECT_TRUE(changes_->IsEverBounded(table_));
  }
}

// Pushes of before are there however often it was changed since, and after a restart as well.
TEST_F(TableChangesTest, WhetherItEverWasBoundedIsNotForgotten) {
  table_.spec.consistency = Consistency::Asp();
  TableSpec wanted = table_.spec;
  const auto change = [&](const Consistency& consistency, double rate) {
    wanted.consistency = consistency;
    wanted.updater.parameters["learning_rate"] = rate;
    Change(wanted, /*from=*/0);
    for (const std::uint32_t server : {2, 3}) Agree(server);
    ASSERT_TRUE(told_.has_value() && told_->ok());
  };
  change(Consistency::Asp(), 1);
  EXPECT_FALSE(changes_->IsEverBounded(table_));
  change(Consistency::Ssp(2), 1);
  EXPECT_TRUE(changes_->IsEverBounded(table_));
  for (int i = 2; i < 20; ++i) change(Consistency::Asp(), i);
  for (const proto::TableSettings& told : changes_->entries()) {
    EXPECT_EQ(told.consistency, Consistency::Asp());
  }
  EXPECT_TRUE(changes_->IsEverBounded(table_));
  const std::vector<proto::TableSettings> kept = changes_->entries();
  const std::set<std::uint32_t> bounded = changes_->ever_bounded();
  Start();
  table_.spec.consistency = Consistency::Asp();
  changes_->Restore(kept, bounded);
  EXPECT_TRUE(changes_->IsEverBounded(table_));
  TableCatalogue::Entry other = table_;
  other.id = 5;
  EXPECT_FALSE(changes_->IsEverBounded(other));
}

TEST_F(TableChangesTest, OneAtATime) {
  Change(WithRate(0.25));
  Change(WithRate(0.125));
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kAborted);
}

TEST_F(TableChangesTest, AsksAgainAndGivesUpNamingTheServer) {
  Change(WithRate(0.25));
  Agree(2);
  asked_.clear();
  changes_->Tick(now_ + absl::Seconds(2));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(asked_[0].first, 3u);
  changes_->Tick(now_ + absl::Seconds(11));
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(told_->status().message()), HasSubstr("server 1"));
}

TEST_F(TableChangesTest, DoesNotWaitForAServerThatHasGone) {
  Change(WithRate(0.25));
  Agree(2);
  Die(3);
  EXPECT_THAT(changes_->entries(), SizeIs(1));
}

// One that came after the question has not been asked.
TEST_F(TableChangesTest, IsRefusedWhereNoServerThatAcceptedItLives) {
  Change(WithRate(0.25));
  Admit(Role::kServer, 7);
  Die(2);
  Die(3);
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(changes_->entries(), IsEmpty());
  EXPECT_FALSE(changes_->changing(4));
}

TEST_F(TableChangesTest, GoesOnAfterARestart) {
  Change(WithRate(0.25));
  Agree(2);
  Agree(3);
  Ack(4, 0);
  Ack(5, 0);
  Change(WithRate(0.125));
  Agree(2);
  Agree(3);
  const std::vector<proto::TableSettings> kept = changes_->entries();
  ASSERT_THAT(kept, SizeIs(2));
  Start();
  changes_->Restore(kept, changes_->ever_bounded());
  changes_->Published(++version_);
  EXPECT_EQ(changes_->entries(), kept);
  EXPECT_EQ(changes_->SpecOf(table_), WithRate(0.25));
  Ack(4, 0);
  Ack(5, 0);
  EXPECT_EQ(changes_->SpecOf(table_), WithRate(0.125));
  EXPECT_TRUE(changes_->entries()[1].decided);
}

// The scheduler that was asked first has ended before it could answer.
TEST_F(TableChangesTest, AskedForAgainAfterARestartItIsTheSameChange) {
  Change(WithRate(0.25));
  Agree(2);
  Agree(3);
  const std::vector<proto::TableSettings> kept = changes_->entries();
  Start();
  changes_->Restore(kept, changes_->ever_bounded());
  changes_->Published(++version_);
  Change(WithRate(0.125));
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->status().code(), absl::StatusCode::kAborted);
  Change(WithRate(0.25));
  EXPECT_FALSE(told_.has_value());
  EXPECT_EQ(changes_->entries(), kept);
  changes_->ServersChanged();
  changes_->Tick(now_ + absl::Seconds(60));
  Ack(4, 0);
  Ack(5, 0);
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->value(), kept[0].since);
  ASSERT_THAT(changes_->entries(), SizeIs(1));
  EXPECT_TRUE(changes_->entries()[0].decided);
  EXPECT_EQ(changes_->SpecOf(table_), WithRate(0.25));
  EXPECT_FALSE(changes_->changing(4));
}

// Settings stay as long as a worker may push in a clock that they held in.
TEST_F(TableChangesTest, TellsThoseThatAreStillNeeded) {
  std::uint64_t clock = 0;
  for (std::uint32_t i = 1; i <= proto::kTableSettingsToldMax; ++i) {
    Change(WithRate(1.0 / (i + 2)));
    Agree(2);
    Agree(3);
    Ack(4, clock);
    changes_->OnAck(5, version_, clock, 0);  // a push of clock 0 is under way
    ASSERT_TRUE(told_.has_value()) << i;
    clock = told_->value();
  }
  EXPECT_THAT(changes_->entries(), SizeIs(proto::kTableSettingsToldMax));
  EXPECT_EQ(changes_->entries().front().number, 1u);
  Change(WithRate(2));
  Agree(2);
  Agree(3);
  Ack(4, clock);
  changes_->OnAck(5, version_, clock, 0);
  EXPECT_FALSE(told_.has_value());
  changes_->AnnounceAgain();
  Ack(4, clock);
  Ack(5, clock);
  EXPECT_TRUE(told_.has_value());
  EXPECT_EQ(changes_->entries().back().number, proto::kTableSettingsToldMax + 1);
  // The settings before those of the oldest clock, and these.
  EXPECT_LE(changes_->entries().size(), 3u);
}

}  // namespace
}  // namespace leeway::scheduler
