#include "scheduler/tables/table_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "scheduler/tables/table_changes.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Servers are nodes 2 and 3, workers 10 and 11.
class TableCatalogueTest : public ::testing::Test {
 protected:
  TableCatalogueTest() {
    for (const std::uint64_t incarnation : {2, 3}) {
      proto::Join join;
      join.role = Role::kServer;
      join.num_servers = 2;
      join.endpoints = {"sim://server/0"};
      van::Identity identity;
      identity.role = Role::kServer;
      identity.incarnation = incarnation;
      EXPECT_TRUE(members_.Admit(join, identity).ok());
    }
  }
  void Die(std::uint32_t server) {
    members_.Retire(members_.Find(server), Node::State::kDead, "");
    catalogue_.ServersChanged();
  }
  void Create(std::uint32_t node, std::uint64_t request, const TableSpec& spec) {
    catalogue_.Create(node, {.request = request, .spec = spec}, now_);
  }
  void Open(std::uint32_t node, std::uint64_t request, const std::string& name) {
    catalogue_.Open(node, {.request = request, .name = name});
  }
  void Installed(std::uint32_t server, std::uint32_t table, absl::Status result = absl::OkStatus(),
                 Updater::Combine combine = Updater::Combine::kSum) {
    catalogue_.OnInstalled(server,
                           {.table = table, .result = std::move(result), .combine = combine});
  }
  void CreateInstalled(const TableSpec& spec, std::uint32_t id) {
    Create(10, 1000 + id, spec);
    for (const std::uint32_t server : {2, 3}) Installed(server, id);
    Sent();
  }
  // "node:install:id", "node:forget:id" and "node:request:code:id" of what was sent since the last
  // call.
  std::vector<std::string> Sent() { return std::exchange(sent_, {}); }
  std::string LastReason() const { return std::string(last_.result.message()); }

  MembershipTable members_{2, 0};
  std::vector<std::string> sent_;
  proto::TableReply last_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Status> prepared_;  // late servers
  const TableChanges changes_{&members_, absl::Seconds(1), absl::Seconds(60), nullptr, nullptr};
  TableCatalogue catalogue_{
      &members_,
      &changes_,
      absl::Seconds(1),
      absl::Seconds(60),
      [this](std::uint32_t node, const proto::AnyMessage& message) { Record(node, message); },
      [this](std::uint32_t, const absl::Status& fit) { prepared_.push_back(fit); }};
  const TableSpec w_ = TableSpec::Dense("w", {4, 5});
  const TableSpec other_w_ = TableSpec::Dense("w", {4, 6});

 private:
  void Record(std::uint32_t node, const proto::AnyMessage& message) {
    if (const auto* install = std::get_if<proto::InstallTable>(&message)) {
      sent_.push_back(absl::StrCat(node, ":install:", install->table));
    } else if (const auto* word = std::get_if<proto::InstallTableReply>(&message)) {
      sent_.push_back(absl::StrCat(node, ":forget:", word->table));
    } else {
      last_ = std::get<proto::TableReply>(message);
      sent_.push_back(absl::StrCat(node, ":", last_.request, ":",
                                   absl::StatusCodeToString(last_.result.code()), ":",
                                   last_.table));
    }
  }
};

TEST_F(TableCatalogueTest, ATableWhoseCodecANodeLacksIsRefusedBeforeAnyServerIsAsked) {
  TableSpec mine = w_;
  mine.codec = "mine";
  members_.Find(2)->codecs = {{"mine", 1}};
  members_.Find(3)->codecs = {{"onebit", 1}};
  Create(10, 1, mine);
  EXPECT_THAT(Sent(), ElementsAre("10:1:FAILED_PRECONDITION:0"));
  EXPECT_THAT(LastReason(), HasSubstr("no codec 'mine'"));
  EXPECT_THAT(catalogue_.tables(), IsEmpty());
  members_.Find(3)->codecs = {{"mine", 1}};
  CreateInstalled(mine, 1);
  members_.Find(3)->codecs = {{"onebit", 1}};
  Create(11, 1, mine);  // it is there: this opens it
  EXPECT_THAT(Sent(), ElementsAre("11:1:OK:1"));
}

TEST_F(TableCatalogueTest, ATableIsThereOnceEveryServerHasIt) {
  Create(10, 1, w_);
  EXPECT_THAT(Sent(), ElementsAre("2:install:1", "3:install:1"));
  Installed(2, 1);
  Installed(2, 1);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_FALSE(catalogue_.tables()[0].installed);
  Installed(3, 1);
  EXPECT_THAT(Sent(), ElementsAre("10:1:OK:1"));
  EXPECT_EQ(last_.spec, w_);
  EXPECT_TRUE(catalogue_.tables()[0].installed);
}

TEST_F(TableCatalogueTest, AnEqualOneExistsAlready) {
  CreateInstalled(w_, 1);
  Create(11, 1, w_);
  Create(11, 2, w_);
  EXPECT_THAT(Sent(), ElementsAre("11:1:OK:1", "11:2:OK:1"));
}

TEST_F(TableCatalogueTest, ADifferentOneIsAnErrorThatShowsTheDifference) {
  CreateInstalled(w_, 1);
  Create(11, 1, other_w_);
  EXPECT_THAT(Sent(), ElementsAre("11:1:ALREADY_EXISTS:0"));
  EXPECT_EQ(LastReason(), "table 'w' exists, and differs: shape is [4, 5], wanted [4, 6]");
}

TEST_F(TableCatalogueTest, CreatedAtOnceByTwoItIsInstalledOnce) {
  Create(10, 1, w_);
  Create(11, 7, w_);
  Create(11, 8, other_w_);
  Open(11, 9, "w");
  EXPECT_THAT(Sent(), ElementsAre("2:install:1", "3:install:1", "11:8:ALREADY_EXISTS:0"));
  Installed(2, 1);
  Installed(3, 1);
  EXPECT_THAT(Sent(), ElementsAre("10:1:OK:1", "11:7:OK:1", "11:9:OK:1"));
}

TEST_F(TableCatalogueTest, RepeatedRequestsGetOneAnswerEachTime) {
  Create(10, 1, w_);
  Create(10, 1, w_);
  Sent();
  Installed(2, 1);
  Installed(3, 1, absl::NotFoundError("no updater of that name"));
  EXPECT_THAT(Sent(), ElementsAre("2:forget:1", "3:forget:1", "10:1:NOT_FOUND:0"));
  // The same answer, though a new attempt might succeed.
  Create(10, 1, w_);
  EXPECT_THAT(Sent(), ElementsAre("10:1:NOT_FOUND:0"));
  Create(10, 2, w_);
  EXPECT_THAT(Sent(), ElementsAre("2:install:2", "3:install:2"));
}

TEST_F(TableCatalogueTest, AServersRefusalIsNamedAndLeavesNothingBehind) {
  Create(10, 1, w_);
  Installed(2, 1);
  Sent();
  Installed(3, 1, absl::InvalidArgumentError("no updater 'sdg'"));
  EXPECT_THAT(Sent(), ElementsAre("2:forget:1", "3:forget:1", "10:1:INVALID_ARGUMENT:0"));
  EXPECT_THAT(LastReason(), AllOf(HasSubstr("server 1"), HasSubstr("no updater 'sdg'")));
  EXPECT_THAT(catalogue_.tables(), IsEmpty());
  Create(11, 1, other_w_);
  EXPECT_THAT(Sent(), ElementsAre("2:install:2", "3:install:2"));  // ids are not reused
  Installed(2, 1);                                                 // of the first one: late
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(TableCatalogueTest, ServersThatDisagreeAboutTheUpdaterAreNamed) {
  Create(10, 1, w_);
  Installed(2, 1, absl::OkStatus(), Updater::Combine::kSum);
  Installed(3, 1, absl::OkStatus(), Updater::Combine::kLast);
  EXPECT_EQ(last_.result.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(LastReason(), AllOf(HasSubstr("server 0 and server 1"), HasSubstr("LEEWAY_PLUGINS")));
}

TEST_F(TableCatalogueTest, OpeningWhatIsNotThereListsWhatIs) {
  Open(10, 1, "w");
  EXPECT_EQ(last_.result.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(LastReason(), HasSubstr("none yet"));
  CreateInstalled(w_, 1);
  CreateInstalled(TableSpec::Sparse("embedding", 8), 2);
  Open(10, 2, "v");
  EXPECT_THAT(LastReason(), AllOf(HasSubstr("'v'"), HasSubstr("'embedding', 'w'")));
  Open(10, 3, "w");
  EXPECT_THAT(Sent().back(), "10:3:OK:1");
}

TEST_F(TableCatalogueTest, ServersThatDoNotAnswerAreAskedAgainAndThenNamed) {
  Create(10, 1, w_);
  Installed(2, 1);
  Sent();
  now_ += absl::Milliseconds(900);
  catalogue_.Tick(now_);
  EXPECT_THAT(Sent(), IsEmpty());
  now_ += absl::Milliseconds(200);
  catalogue_.Tick(now_);
  EXPECT_THAT(Sent(), ElementsAre("3:install:1"));
  now_ += absl::Seconds(59);
  catalogue_.Tick(now_);
  EXPECT_THAT(Sent(), ElementsAre("2:forget:1", "3:forget:1", "10:1:DEADLINE_EXCEEDED:0"));
  EXPECT_THAT(LastReason(),
              AllOf(HasSubstr("server 1, last heard "), HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS"),
                    Not(HasSubstr("server 0"))));
}

TEST_F(TableCatalogueTest, AServerThatDiesIsNotWaitedFor) {
  Create(10, 1, w_);
  Installed(2, 1);
  Sent();
  Die(3);
  EXPECT_THAT(Sent(), ElementsAre("10:1:OK:1"));
}

TEST_F(TableCatalogueTest, WithoutServersThereAreNoTables) {
  Create(10, 1, w_);
  Sent();
  Die(2);
  Die(3);
  EXPECT_THAT(Sent(), ElementsAre("2:forget:1", "3:forget:1", "10:1:UNAVAILABLE:0"));
  Create(10, 2, w_);
  EXPECT_THAT(Sent(), ElementsAre("10:2:UNAVAILABLE:0"));
}

// The one that had it has died.
TEST_F(TableCatalogueTest, ATableThatOnlyTheDeadHadIsNotThere) {
  Create(10, 1, w_);
  Installed(2, 1);
  Sent();
  Die(2);
  Die(3);
  EXPECT_THAT(Sent(), Contains("10:1:UNAVAILABLE:0"));
}

TEST_F(TableCatalogueTest, TheNumberOfTablesIsLimited) {
  for (std::size_t i = 0; i < kTablesMax; ++i) {
    Create(10, i + 1, TableSpec::Dense(absl::StrCat("t", i), {1}));
  }
  Sent();
  Create(10, kTablesMax + 1, w_);
  EXPECT_THAT(Sent(), ElementsAre(absl::StrCat("10:", kTablesMax + 1, ":RESOURCE_EXHAUSTED:0")));
}

TEST_F(TableCatalogueTest, AWorkerThatIsGoneIsNotAnswered) {
  Create(10, 1, w_);
  Create(11, 1, w_);
  Sent();
  catalogue_.Forget(10);
  Installed(2, 1);
  Installed(3, 1);
  EXPECT_THAT(Sent(), ElementsAre("11:1:OK:1"));
}

TEST_F(TableCatalogueTest, RequestsWaitWithinALimitInWhichNobodyWhoIsGoneCounts) {
  Create(10, 0, w_);
  for (std::uint64_t request = 1; request < kRequestsWaitingMax; ++request) Open(10, request, "w");
  Sent();
  Open(11, 1, "w");
  EXPECT_THAT(Sent(), ElementsAre("11:1:RESOURCE_EXHAUSTED:0"));
  catalogue_.Forget(10);
  Open(11, 2, "w");
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(TableCatalogueTest, NonsenseIsRefused) {
  TableSpec nonsense = w_;
  nonsense.shape = {4, 0};
  Create(10, 1, nonsense);
  EXPECT_THAT(Sent(), ElementsAre("10:1:INVALID_ARGUMENT:0"));
}

TEST_F(TableCatalogueTest, ALateServerThatUpdatesAsTheOthersDoIsPrepared) {
  CreateInstalled(w_, 1);
  catalogue_.Prepare(4, now_);
  EXPECT_THAT(Sent(), ElementsAre("4:install:1"));
  Installed(4, 1);
  EXPECT_THAT(prepared_, ElementsAre(absl::OkStatus()));
}

// Replicas would differ.
TEST_F(TableCatalogueTest, ALateServerWhoseUpdaterCombinesOtherwiseIsOfNoUse) {
  CreateInstalled(w_, 1);
  catalogue_.Prepare(4, now_);
  Installed(4, 1, absl::OkStatus(), Updater::Combine::kLast);
  ASSERT_EQ(prepared_.size(), 1u);
  EXPECT_EQ(prepared_[0].code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ReplyMemoryTest, TheNewestRepliesToANodeAreRemembered) {
  ReplyMemory memory;
  for (std::uint64_t request = 1; request <= kRepliesRememberedMax + 1; ++request) {
    memory.Remember(10, /*create=*/true, {.request = request});
  }
  EXPECT_EQ(memory.Find(10, 1, true), nullptr);
  EXPECT_NE(memory.Find(10, 2, true), nullptr);
  EXPECT_NE(memory.Find(10, kRepliesRememberedMax + 1, true), nullptr);
}

}  // namespace
}  // namespace leeway::scheduler
