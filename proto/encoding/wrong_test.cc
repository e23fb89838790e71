// Decode refuses a message with each kind of wrong meaning, and the error names the field.
#include "proto/testing/wrong.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/limits.h"

namespace leeway::proto {
namespace {

using ::testing::StartsWith;

std::vector<Wrong> WrongMembership() {
  return {
      {"HelloProtocol0",
       {Changed<Hello>([](Hello& m) { m.protocol = 0; })},
       "malformed Hello: protocol is 0, may be at least 1"},
      {"HelloMinAboveProtocol",
       {Changed<Hello>([](Hello& m) { m.protocol_min = 10; })},
       "malformed Hello: protocol_min is 10, may be 1 to 9"},
      {"HelloRole",
       {Hello{.role = static_cast<Role>(6)}},
       "malformed Hello: role is 6, may be 0 to 5"},
      {"HelloBuild",
       {Hello{.build = "a\nb"}},
       "malformed Hello: build is \"a\\nb\", may be UTF-8 without control characters"},
      {"RejectOk", {Reject{}}, "malformed Reject: code is 0 (OK), may be that of an error"},
      {"RefusedOk", {Refused{}}, "malformed Refused: code is 0 (OK), may be that of an error"},
      {"JoinRole",
       {Changed<Join>([](Join& m) { m.role = Role::kUnknown; })},
       "malformed Join: role is 0, may be 1 to 5"},
      {"JoinHost",
       {Changed<Join>([](Join& m) { m.host = "\xc2\x85"; })},
       "malformed Join: host is \"\\302\\205\", may be UTF-8"},
      {"JoinServerWithoutEndpoints",
       {Changed<Join>([](Join& m) { m.endpoints.clear(); })},
       "malformed Join: number of endpoints is 0, may be 1 to 256"},
      {"JoinManyEndpoints",
       {Changed<Join>([](Join& m) { m.endpoints.resize(kServerThreadsMax + 1, "a"); })},
       "malformed Join: number of endpoints is 257, may be 1 to 256"},
      {"JoinWorkerWithEndpoints",
       {Changed<Join>([](Join& m) { m.role = Role::kWorker; })},
       "malformed Join: number of endpoints is 2, may be 0"},
      {"JoinEmptyEndpoint",
       {Changed<Join>([](Join& m) { m.endpoints[1] = ""; })},
       "malformed Join: endpoint is 0 bytes long, may be 1 to 512"},
      {"JoinEndpointNotText",
       {Changed<Join>([](Join& m) { m.endpoints[1] = "tcp://\xff"; })},
       "malformed Join: endpoint is \"tcp://\\377\", may be UTF-8 without control characters"},
      {"JoinRankBelow",
       {Changed<Join>([](Join& m) { m.rank_wanted = -2; })},
       "malformed Join: rank_wanted is -2, may be -1 (none) to 4095"},
      {"JoinRankAbove",
       {Changed<Join>([](Join& m) { m.rank_wanted = kServersMax; })},
       "malformed Join: rank_wanted is 4096, may be -1 (none) to 4095"},
      {"JoinServers",
       {Changed<Join>([](Join& m) { m.num_servers = kServersMax + 1; })},
       "malformed Join: num_servers is 4097, may be 0 to 4096"},
      {"JoinWorkers",
       {Changed<Join>([](Join& m) { m.num_workers = kWorkersMax + 1; })},
       "malformed Join: num_workers is 65537, may be 0 to 65536"},
      {"WelcomeNode",
       {Changed<Welcome>([](Welcome& m) { m.node = 0; })},
       "malformed Welcome: node is 0, may be at least 1"},
      {"WelcomeRank",
       {Changed<Welcome>([](Welcome& m) { m.rank = kWorkersMax; })},
       "malformed Welcome: rank is 65536, may be 0 to 65535"},
      {"WelcomeServers",
       {Changed<Welcome>([](Welcome& m) { m.num_servers = ~0u; })},
       "malformed Welcome: num_servers is 4294967295, may be 0 to 4096"},
      {"WelcomeInterval",
       {Changed<Welcome>([](Welcome& m) { m.heartbeat_interval_ms = 0; })},
       "malformed Welcome: heartbeat_interval_ms is 0, may be at least 1"},
      {"WelcomeTimeout",
       {Changed<Welcome>([](Welcome& m) { m.failure_timeout_ms = 0; })},
       "malformed Welcome: failure_timeout_ms is 0, may be at least 1"},
      {"WelcomeBlock",
       {Changed<Welcome>([](Welcome& m) { m.block_bytes = 4095; })},
       "malformed Welcome: block_bytes is 4095, may be 4096 to 268435456"},
      {"WelcomeReplication0",
       {Changed<Welcome>([](Welcome& m) { m.replication = 0; })},
       "malformed Welcome: replication is 0, may be 1 to 8"},
      {"WelcomeReplicationAbove",
       {Changed<Welcome>([](Welcome& m) { m.replication = 9; })},
       "malformed Welcome: replication is 9, may be 1 to 8"},
      {"WelcomeClock",
       {Changed<Welcome>([](Welcome& m) { m.clock = ~0ull; })},
       "malformed Welcome: clock is 18446744073709551615, may be 0 to 2305843009213693952"},
      {"WelcomeBlockAbove",
       {Changed<Welcome>([](Welcome& m) { m.block_bytes = ~0ull; })},
       "malformed Welcome: block_bytes is 18446744073709551615, may be 4096 to 268435456"},
      {"NodeDownRole",
       {Changed<NodeDown>([](NodeDown& m) { m.role = Role::kUnknown; })},
       "malformed NodeDown: role is 0, may be 1 to 5"},
      {"NodeDownRank",
       {Changed<NodeDown>([](NodeDown& m) { m.rank = kWorkersMax; })},
       "malformed NodeDown: rank is 65536, may be 0 to 65535"},
      {"BarrierName",
       {Changed<BarrierEnter>([](BarrierEnter& m) { m.name = "a\x7f"; })},
       "malformed BarrierEnter: name is \"a\\177\", may be UTF-8"},
      {"BarrierGroup",
       {Changed<BarrierEnter>([](BarrierEnter& m) { m.group = static_cast<Group>(4); })},
       "malformed BarrierEnter: group is 4, may be 1 to 3"},
      {"BarrierNumber",
       {Changed<BarrierEnter>([](BarrierEnter& m) { m.number = 0; })},
       "malformed BarrierEnter: number is 0, may be at least 1"},
      {"BarrierTimeout",
       {Changed<BarrierEnter>([](BarrierEnter& m) { m.timeout_ms = ~0ull; })},
       "malformed BarrierEnter: timeout_ms is 18446744073709551615, may be 0 to "},
      {"ReleaseGroup",
       {Changed<BarrierRelease>([](BarrierRelease& m) { m.group = static_cast<Group>(0); })},
       "malformed BarrierRelease: group is 0, may be 1 to 3"},
      {"ReleaseNumber",
       {Changed<BarrierRelease>([](BarrierRelease& m) { m.number = 0; })},
       "malformed BarrierRelease: number is 0, may be at least 1"},
      {"PayloadWhereNone",
       {Heartbeat{}, {FrameOf<char>({'x'})}},
       "malformed Heartbeat: number of payload frames is 1, may be 0"},
  };
}

std::vector<Wrong> WrongMaps() {
  return {
      {"ServerRankNotItsPlace",
       {Changed<ClusterMap>([](ClusterMap& m) { m.servers[1].rank = 2; })},
       "malformed ClusterMap: server's rank is 2, may be 1"},
      {"ServerRankTwice",
       {Changed<ClusterMap>([](ClusterMap& m) {
         m.epoch = 0;
         m.owners.clear();
         m.servers[1].rank = 0;
       })},
       "malformed ClusterMap: server's rank is 0, may be 1 to 4095"},
      {"ServerRankAbove",
       {Changed<ClusterMap>([](ClusterMap& m) {
         m.epoch = 0;
         m.owners.clear();
         m.servers[1].rank = kServersMax;
       })},
       "malformed ClusterMap: server's rank is 4096, may be 1 to 4095"},
      {"ServerWithoutEndpoints",
       {Changed<ClusterMap>([](ClusterMap& m) { m.servers[0].endpoints.clear(); })},
       "malformed ClusterMap: number of endpoints is 0, may be 1 to 256"},
      {"ManyServers",
       {Changed<ClusterMap>(
           [](ClusterMap& m) { m.servers.resize(kServersMax + 1, {.endpoints = {"a"}}); })},
       "malformed ClusterMap: number of servers is 4097, may be 0 to 4096"},
      {"WorkerRankNotItsPlace",
       {Changed<ClusterMap>([](ClusterMap& m) { m.workers[0].rank = 1; })},
       "malformed ClusterMap: worker's rank is 1, may be 0"},
      {"ManyWorkers",
       {Changed<ClusterMap>([](ClusterMap& m) { m.workers.resize(kWorkersMax + 1); })},
       "malformed ClusterMap: number of workers is 65537, may be 0 to 65536"},
      {"WorkerState",
       {Changed<ClusterMap>([](ClusterMap& m) { m.workers[1].state = WorkerState{3}; })},
       "malformed ClusterMap: worker's state is 3, may be 0 to 2"},
      {"OwnerWithoutServer",
       {Changed<ClusterMap>([](ClusterMap& m) { m.owners[2].server_rank = 3; })},
       "malformed ClusterMap: owner of shard 2 is server 3, there are 3 servers"},
      {"OwnerWithoutThread",
       {Changed<ClusterMap>([](ClusterMap& m) { m.owners[0].thread = 1; })},
       "malformed ClusterMap: owner of shard 0 is thread 1 of server 1, which has 1 threads"},
      {"NobodysThread",
       {Changed<ClusterMap>([](ClusterMap& m) { m.owners[3].thread = 1; })},
       "malformed ClusterMap: owner of shard 3 is server 4294967295, there are 3 servers"},
      {"CompleteWithoutOwners",
       {Changed<ClusterMap>([](ClusterMap& m) { m.owners.clear(); })},
       "malformed ClusterMap: number of owners is 0, may be 1 to 1048576"},
      {"ManyOwners",
       {Changed<ClusterMap>([](ClusterMap& m) { m.owners.resize(kShardsMax + 1); })},
       "malformed ClusterMap: number of owners is 1048577, may be 1 to 1048576"},
      {"OwnersBeforeComplete",
       {Changed<ClusterMap>([](ClusterMap& m) { m.epoch = 0; })},
       "malformed ClusterMap: number of owners is 4, may be 0"},
  };
}

std::vector<Wrong> WrongTables() {
  return {
      {"CreateNoName",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.name = ""; })},
       "malformed CreateTable: spec.name is 0 bytes long, may be 1 to 255"},
      {"CreateName",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.name = "a\tb"; })},
       "malformed CreateTable: spec.name is \"a\\tb\", may be UTF-8"},
      {"CreateSpec",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.shape[1] = 0; })},
       "malformed CreateTable: spec of table \"Gewichte/\xc3\xb6\": shape is [784, 0], no "},
      {"CreateKind",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.kind = static_cast<TableKind>(3); })},
       "malformed CreateTable: spec of table \"Gewichte/\xc3\xb6\": kind is 3, may be 0 to 2"},
      {"CreateDimensions",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.shape.resize(9, 1); })},
       "malformed CreateTable: number of dimensions is 9, may be 0 to 8"},
      {"CreateParameterNaN",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.updater.parameters["decay"] = NAN; })},
       "malformed CreateTable: spec of table \"Gewichte/\xc3\xb6\": updater.parameters[\"decay\"] "
       "is nan, may be finite"},
      {"CreateParameterName",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.updater.parameters[""] = 1; })},
       "malformed CreateTable: a parameter's name is 0 bytes long, may be 1 to 255"},
      {"CreateManyParameters",
       {Changed<CreateTable>([](CreateTable& m) {
         for (int i = 0; i < 65; ++i) m.spec.updater.parameters[absl::StrCat("p", i)] = 1;
       })},
       "malformed CreateTable: number of parameters is 67, may be 0 to 64"},
      {"CreateUpdater",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.updater.name = ""; })},
       "malformed CreateTable: updater.name is 0 bytes long, may be 1 to 255"},
      {"CreateCodec",
       {Changed<CreateTable>([](CreateTable& m) { m.spec.codec = ""; })},
       "malformed CreateTable: spec.codec is 0 bytes long, may be 1 to 255"},
      {"OpenNoName", {OpenTable{}}, "malformed OpenTable: name is 0 bytes long, may be 1 to 255"},
      {"ReplyTable0",
       {Changed<TableReply>([](TableReply& m) { m.table = 0; })},
       "malformed TableReply: table is 0, may be at least 1"},
      {"ReplyCombine",
       {Changed<TableReply>([](TableReply& m) { m.combine = static_cast<Updater::Combine>(2); })},
       "malformed TableReply: combine is 2, may be 0 to 1"},
      {"InstallTable0",
       {Changed<InstallTable>([](InstallTable& m) { m.table = 0; })},
       "malformed InstallTable: table is 0, may be at least 1"},
      {"InstallReplyTable0",
       {Changed<InstallTableReply>([](InstallTableReply& m) { m.table = 0; })},
       "malformed InstallTableReply: table is 0, may be at least 1"},
      {"InstallReplyCombine",
       {Changed<InstallTableReply>(
           [](InstallTableReply& m) { m.combine = static_cast<Updater::Combine>(2); })},
       "malformed InstallTableReply: combine is 2, may be 0 to 1"},
  };
}

std::vector<Wrong> WrongOthers() {
  return {
      {"TickWorker",
       {Changed<ClockTick>([](ClockTick& m) { m.worker = kWorkersMax; })},
       "malformed ClockTick: worker is 65536, may be 0 to 65535"},
      {"TickShard",
       {Changed<ClockTick>([](ClockTick& m) { m.watermarks[1].shard = kShardsMax; })},
       "malformed ClockTick: watermark's shard is 1048576, may be 0 to 1048575"},
      {"TickLength",
       {Changed<ClockTick>([](ClockTick& m) { m.watermarks.resize(kShardsMax + 1); })},
       "malformed header: it is 16777"},  // so many do not fit into a header either
      {"EnterWorker",
       {Changed<EnterClock>([](EnterClock& m) { m.worker = kWorkersMax; })},
       "malformed EnterClock: worker is 65536, may be 0 to 65535"},
      {"CallWithoutHandler",
       {Call{}, {runtime::Buffer()}},
       "malformed Call: handler is 0 bytes long, may be 1 to 255"},
      {"CallWithoutPayload",
       {Call{.handler = "h"}},
       "malformed Call: number of payload frames is 0, may be 1"},
      {"CallTwoFrames",
       {Call{.handler = "h"}, {runtime::Buffer(), runtime::Buffer()}},
       "malformed Call: number of payload frames is 2, may be 1"},
      {"CallReplyWithoutPayload",
       {CallReply{}},
       "malformed CallReply: number of payload frames is 0, may be 1"},
      {"StatusReplyWithoutPayload",
       {StatusReply{}},
       "malformed StatusReply: number of payload frames is 0, may be 1"},
      {"StatusRequestWithPayload",
       {StatusRequest{}, {runtime::Buffer()}},
       "malformed StatusRequest: number of payload frames is 1, may be 0"},
  };
}

class WrongTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongTest, IsRefusedAndSaysWhy) {
  const absl::Status status = Arrive(GetParam().sent).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().says));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

std::string NameOfCase(const ::testing::TestParamInfo<Wrong>& info) { return info.param.name; }

using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(Membership, WrongTest, ValuesIn(WrongMembership()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Map, WrongTest, ValuesIn(WrongMaps()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Table, WrongTest, ValuesIn(WrongTables()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Request, WrongTest, ValuesIn(WrongRequests()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Reply, WrongTest, ValuesIn(WrongReplies()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Batch, WrongTest, ValuesIn(WrongBatches()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Replicas, WrongTest, ValuesIn(WrongReplicas()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Replication, WrongTest, ValuesIn(WrongReplication()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Administration, WrongTest, ValuesIn(WrongAdministration()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Other, WrongTest, ValuesIn(WrongOthers()), NameOfCase);

}  // namespace
}  // namespace leeway::proto
