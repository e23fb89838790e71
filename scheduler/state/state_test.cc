#include "scheduler/state/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  EXPECT_FALSE(DecodeState(bytes + " ").ok());
}

TEST(State, ANewerFormatIsNamed) {
  EXPECT_THAT(std::string(DecodeState("leeway-scheduler-state 3 00000000 0\n").status().message()),
              HasSubstr("format 3, and this scheduler reads format 2"));
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
