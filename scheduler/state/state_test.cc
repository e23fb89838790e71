#include "scheduler/state/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"
#include "scheduler/state/state_file.h"

namespace leeway::scheduler {
namespace {

using ::testing::HasSubstr;

State Sample() {
  State state;
  state.cluster = ~0ull;
  state.address = "tcp://10.0.0.1:9000";
  state.num_servers = 2;
  state.num_workers = 3;
  state.replication = 2;
  state.block_bytes = Config().block_bytes;
  Node node;
  node.id = 2;
  node.role = Role::kServer;
  node.rank = 1;
  node.incarnation = ~0ull - 1;
  node.state = Node::State::kDead;
  node.gone_because = "not heard \xff\n";
  node.address = "here";
  node.endpoints = {"tcp://a:1", "tcp://a:2"};
  state.nodes = {node, node};
  state.nodes[1].id = 3;
  state.nodes[1].late = true;
  state.nodes[1].codecs = {{"mine", 3}, {"onebit", 1}};
  state.next_node = 4;
  state.complete = true;
  state.version = 17;
  state.epoch = 5;
  state.chains.chains = {{.members = {{1, 0}, {0, 1}}, .joining = {}},
                         {.members = {}, .joining = {}},
                         {.members = {{0, 1}}, .joining = {{1, 1}}}};
  state.chains.servers = {{0, {2, true}}, {1, {2, false}}};
  state.chains.moves = {{2, 0}};
  state.chains.balancing = true;
  TableSpec spec = TableSpec::Dense("w", {8, 3});
  state.tables = {{.id = 4, .spec = spec, .combine = Updater::Combine::kLast, .installed = true}};
  state.next_table = 9;
  state.ever_bounded = {4, 5};
  state.pinned = {4, 7};
  state.models = {{.model = "policy",
                   .tables = {{4}},
                   .versions = {{.version = 3, .publication = 1ull << 32, .clock = 2}}}};
  state.barriers.ended[{"b", Group::kAll}] = {{3, absl::OkStatus()},
                                              {4, absl::DeadlineExceededError("who \xfe")}};
  state.restoration = {
      .path = "/data/\xff/ckpt-00000007", .checksum = ~0ull, .clock = 1ull << 60, .loaded = true};
  state.barriers.shifts[{77, {"b", Group::kWorkers}}] = ~0ull;
  return state;
}

TEST(State, IsReadAsItWasWritten) {
  const State state = Sample();
  const std::string bytes = EncodeState(state);
  const absl::StatusOr<State> read = DecodeState(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(EncodeState(*read), bytes);
  EXPECT_EQ(read->cluster, state.cluster);
  EXPECT_EQ(read->restoration, state.restoration);
  EXPECT_EQ(read->nodes[0].gone_because, state.nodes[0].gone_because);
  EXPECT_EQ(read->nodes[1].incarnation, state.nodes[1].incarnation);
  EXPECT_EQ(read->nodes[1].endpoints, state.nodes[1].endpoints);
  EXPECT_TRUE(read->nodes[1].late);
  EXPECT_EQ(read->chains, state.chains);
  EXPECT_EQ(read->tables[0].spec, state.tables[0].spec);
  EXPECT_EQ(read->tables[0].combine, state.tables[0].combine);
  EXPECT_EQ(read->barriers, state.barriers);
  EXPECT_EQ(read->nodes[1].codecs, state.nodes[1].codecs);
  EXPECT_EQ(read->ever_bounded, state.ever_bounded);
  EXPECT_EQ(read->pinned, state.pinned);
  EXPECT_EQ(read->models, state.models);
  EXPECT_EQ(read->epoch, 5u);
  EXPECT_EQ(read->next_table, 9u);
}

TEST(State, TornAndDamagedFilesAreNeverBelieved) {
  const std::string bytes = EncodeState(Sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(DecodeState(bytes.substr(0, length)).status().code(), absl::StatusCode::kDataLoss);
  }
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    std::string damaged = bytes;
    damaged[place] ^= 1;
    EXPECT_FALSE(DecodeState(damaged).ok()) << place;
  }
}

TEST(State, ANewerFormatIsNamed) {
  EXPECT_THAT(std::string(DecodeState("leeway-scheduler-state 4 00000000 0\n").status().message()),
              HasSubstr("format 4, and this scheduler reads format 3"));
}

constexpr char kPath[] = "/state/file";
constexpr int kWrites = runtime::kSanitized ? 40 : 200;

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() { EXPECT_TRUE(disk_.CreateDirectories("/state").ok()); }
  std::string Bytes() { return *disk_.Read(kPath); }
  // As EncodeState has it, so that states can be compared.
  std::string Kept() {
    const absl::StatusOr<State> state = DecodeState(Bytes());
    return state.ok() ? EncodeState(*state) : std::string(state.status().message());
  }
  // Of each part of the state, something.
  void Change() {
    State& state = state_;
    ++state.version;
    Node& node = state.nodes[random_.Below(state.nodes.size())];
    switch (random_.Below(7)) {
      case 0:
        node.state = Node::State::kLeft;
        node.endpoints.clear();
        break;
      case 1:
        state.nodes.push_back(node);
        state.nodes.back().id = state.next_node++;
        break;
      case 2:
        if (state.nodes.size() > 1) state.nodes.erase(state.nodes.begin());
        break;
      case 3:
        state.tables.push_back(state.tables.front());
        state.tables.back().id = state.next_table++;
        state.tables.back().spec.name = absl::StrCat("t", state.next_table);
        break;
      case 4:
        state.tables.back().untouched = !state.tables.back().untouched;
        state.tables.front().given = state.tables.back().spec;
        break;
      case 5:
        ++state.epoch;
        state.chains.chains[1].members = {{static_cast<std::uint32_t>(state.epoch), 0}};
        break;
      default:
        state.barriers.ended[{"b", Group::kAll}].erase(3);
        state.barriers.ended[{absl::StrCat(state.version), Group::kServers}];
        state.pinned.clear();
        state.restoration.loaded = !state.restoration.loaded;
    }
  }

  runtime::SimFileSystem disk_{1};
  runtime::Random random_{1};
  State state_ = Sample();
  std::optional<StateFile> file_{std::in_place, &disk_, kPath};
};

TEST_F(StateFileTest, HasTheStateAfterEachWrite) {
  for (int i = 0; i < kWrites; ++i) {
    ASSERT_TRUE(file_->Write(state_).ok());
    ASSERT_EQ(Kept(), EncodeState(state_)) << i;
    Change();
  }
}

TEST_F(StateFileTest, ATornRecordAtTheEndIsIgnored) {
  ASSERT_TRUE(file_->Write(state_).ok());
  std::size_t before = Bytes().size();
  for (int i = 0; i < (runtime::kSanitized ? 1 : 5); ++i) {
    const std::string kept = EncodeState(state_);
    Change();
    ASSERT_TRUE(file_->Write(state_).ok());
    const std::string bytes = Bytes();
    for (std::size_t length = before; length < bytes.size(); ++length) {
      for (const std::string& tail : {std::string(), std::string(64, '\0'), std::string("\n+ ")}) {
        const absl::StatusOr<State> read = DecodeState(bytes.substr(0, length) + tail);
        ASSERT_TRUE(read.ok()) << read.status();
        ASSERT_EQ(EncodeState(*read), kept);
      }
    }
    before = bytes.size();
  }
}

TEST_F(StateFileTest, ADamagedRecordBeforeAnIntactOneIsNotSkipped) {
  ASSERT_TRUE(file_->Write(state_).ok());
  const std::size_t begin = Bytes().size();
  Change();
  ASSERT_TRUE(file_->Write(state_).ok());
  const std::size_t end = Bytes().size();
  Change();
  ASSERT_TRUE(file_->Write(state_).ok());
  for (std::size_t place = begin; place < end; ++place) {
    std::string damaged = Bytes();
    damaged[place] ^= 1;
    EXPECT_EQ(DecodeState(damaged).status().code(), absl::StatusCode::kDataLoss) << place;
  }
}

// After a failed write the file has that state or the one before; after a later one that succeeds,
// its own. A machine that goes down loses nothing that was written.
TEST_F(StateFileTest, OutlivesAFailingDiskAndCrashes) {
  disk_.SetFaults({.error_probability = 0.1, .torn_writes = true});
  std::set<std::string> may_be_kept;
  int failed = 0;
  for (int i = 0; i < 2 * kWrites; ++i) {
    const std::string now = EncodeState(state_);
    if (file_->Write(state_).ok()) {
      may_be_kept = {now};
    } else {
      ++failed;
      may_be_kept.insert(now);
    }
    if (i % 3 == 0) {
      disk_.Crash();
      if (i % 2 == 0) file_.emplace(&disk_, kPath);
    }
    ASSERT_TRUE(!disk_.Exists(kPath) || may_be_kept.contains(Kept())) << i << ": " << Kept();
    Change();
    if (state_.nodes.size() > 10) state_ = Sample();
  }
  EXPECT_GT(failed, kWrites / 10);
}

TEST_F(StateFileTest, AChangeOfOneNodeAmongManyWritesThatNode) {
  const Node node = state_.nodes.front();
  state_.nodes.assign(runtime::kSanitized ? 2'000 : 20'000, node);
  for (std::uint32_t i = 0; i < state_.nodes.size(); ++i) state_.nodes[i].id = i + 2;
  ASSERT_TRUE(file_->Write(state_).ok());
  const std::uint64_t snapshot = Bytes().size();
  state_.nodes[1'000].state = Node::State::kLeft;
  ++state_.version;
  ASSERT_TRUE(file_->Write(state_).ok());
  EXPECT_LT(Bytes().size(), snapshot + 4096);
  EXPECT_EQ(Kept(), EncodeState(state_));
}

TEST_F(StateFileTest, StaysSmallHoweverManyChangesThereAre) {
  for (int i = 0; i < 25 * kWrites; ++i) {
    ++state_.version;
    ASSERT_TRUE(file_->Write(state_).ok());
    if (i % 1000 == 0) {
      ASSERT_LE(Bytes().size(), EncodeState(state_).size() + kStateChangesBytes) << i;
    }
  }
  EXPECT_EQ(Kept(), EncodeState(state_));
}

TEST(State, FitsOnlyTheSettingsThatTheClusterWasStartedWith) {
  Config config;
  config.num_servers = 2;
  config.num_workers = 3;
  config.replication = 2;
  EXPECT_TRUE(CheckStateFits(Sample(), config).ok());
  config.replication = 3;
  EXPECT_THAT(std::string(CheckStateFits(Sample(), config).message()),
              HasSubstr("LEEWAY_REPLICATION=3, but the cluster that is kept there was started "
                        "with 2"));
}

}  // namespace
}  // namespace leeway::scheduler
