#include "proto/limits.h"
#include "proto/test_wrong.h"

namespace leeway::proto {

std::vector<Wrong> WrongReplicas() {
  return {
      {"Unsorted",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[0].shard = 3; })},
       "malformed ClusterMap: replica's shard is 0, may be 3"},
      {"ShardAbove",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[2].shard = 4; })},
       "malformed ClusterMap: replica's shard is 4, may be 0 to 3"},
      {"OfALostShard",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[2].shard = 3; })},
       "malformed ClusterMap: shard 3 has a replica but no owner"},
      {"WithoutServer",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[1].place.server_rank = 3; })},
       "malformed ClusterMap: replica of shard 0 is server 3, there are 3 servers"},
      {"OnNobody",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[1].place.server_rank = kNoServer; })},
       "malformed ClusterMap: replica of shard 0 is server 4294967295, there are 3 servers"},
      {"WithoutThread",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas[1].place.thread = 1; })},
       "malformed ClusterMap: replica of shard 0 is thread 1 of server 2, which has 1 threads"},
      {"WithItsHead",
       {Changed<ClusterMap>([](ClusterMap& m) {
         m.replicas[1].place = {1, 0};
       })},
       "malformed ClusterMap: shard 0 is on server 1 twice"},
      {"Twice",
       {Changed<ClusterMap>([](ClusterMap& m) {
         m.replicas[1].place = {0, 0};
       })},
       "malformed ClusterMap: shard 0 is on server 0 twice"},
      {"FillingFirst",
       {Changed<ClusterMap>(
           [](ClusterMap& m) { m.replicas[0].filling = true, m.replicas[1].filling = false; })},
       "malformed ClusterMap: shard 0 has a filling replica before one that is filled"},
      {"LongChain",
       {Changed<ClusterMap>([](ClusterMap& m) {
         m.replicas.assign(kChainMax, {0, {2, 0}, false});
       })},
       "malformed ClusterMap: length of a chain is 17, may be 1 to 16"},
      {"ManyReplicas",
       {Changed<ClusterMap>([](ClusterMap& m) { m.replicas.resize(4 * (kChainMax - 1) + 1); })},
       "malformed ClusterMap: number of replicas is 61, may be 0 to 60"},
      {"SwitchOfNoTable",
       {Changed<ClusterMap>([](ClusterMap& m) { m.codecs[0].table = 0; })},
       "malformed ClusterMap: switch's table is 0, may be at least 1"},
      {"SwitchWithoutNumber",
       {Changed<ClusterMap>([](ClusterMap& m) { m.codecs[0].number = 0; })},
       "malformed ClusterMap: switch's number is 0, may be at least 1"},
      {"SwitchToNoCodec",
       {Changed<ClusterMap>([](ClusterMap& m) { m.codecs[1].choice = 17; })},
       "malformed ClusterMap: switch's codec is 17, may be 0 to 16"},
      {"SwitchesOutOfOrder",
       {Changed<ClusterMap>([](ClusterMap& m) { m.codecs[1].number = 2; })},
       "malformed ClusterMap: codec switches of table 1 are not in order"},
      {"TwoAnnouncedSwitches",
       {Changed<ClusterMap>([](ClusterMap& m) { m.codecs[0].decided = false; })},
       "malformed ClusterMap: codec switches of table 1 are not in order"},
      {"BeforeComplete",
       {Changed<ClusterMap>([](ClusterMap& m) { m.epoch = 0, m.owners.clear(); })},
       "malformed ClusterMap: number of replicas is 3, may be 0"},
  };
}

std::vector<Wrong> WrongAdministration() {
  return {
      {"AckShard", Sample{ReplicateAck{.shard = kShardsMax}},
       "malformed ReplicateAck: shard is 1048576, may be 0 to 1048575"},
      {"ReadyEpoch0", Sample{ReplicaReady{}},
       "malformed ReplicaReady: epoch is 0, may be at least 1"},
      {"ReadyShard", Sample{ReplicaReady{.epoch = 1, .shard = kShardsMax}},
       "malformed ReplicaReady: shard is 1048576, may be 0 to 1048575"},
      {"LoadShard", Sample{LoadReport{{{.shard = kShardsMax}}}},
       "malformed LoadReport: shard is 1048576, may be 0 to 1048575"},
      {"LoadShardTwice", Sample{LoadReport{{{.shard = 4}, {.shard = 4}}}},
       "malformed LoadReport: shard is 4, may be 5 to 1048575"},
      {"LoadTooLong", Sample{LoadReport{std::vector<ShardLoad>(kShardsMax + 1)}},
       "malformed header: it is 25165"},
      {"AdminCommand", Sample{Admin{}},
       "malformed Admin: command is 0 bytes long, may be 1 to 255"},
      {"AdminLongCommand", Sample{Admin{.command = std::string(256, 'c')}},
       "malformed Admin: command is 256 bytes long, may be 1 to 255"},
      {"AdminArguments", Sample{Admin{.command = "c", .arguments = std::vector<std::string>(65)}},
       "malformed Admin: number of arguments is 65, may be 0 to 64"},
      {"AdminArgument", Sample{Admin{.command = "c", .arguments = {std::string(4096, 'a')}}},
       "malformed Admin: argument is 4096 bytes long, may be 0 to 4095"},
      {"AdminArgumentNotText", Sample{Admin{.command = "c", .arguments = {"a\nb"}}},
       "malformed Admin: argument is \"a\\nb\", may be UTF-8 without control characters"},
      {"AdminWithPayload", Sample{Admin{.command = "c"}, {runtime::Buffer()}},
       "malformed Admin: number of payload frames is 1, may be 0"},
      {"AdminReplyWithoutPayload", Sample{AdminReply{}},
       "malformed AdminReply: number of payload frames is 0, may be 1"},
      {"CutNowhere", Sample{CheckpointCut{}},
       "malformed CheckpointCut: directory is 0 bytes long, may be 1 to 4095"},
      {"CutDirectory", Sample{CheckpointCut{.directory = std::string(4096, 'd')}},
       "malformed CheckpointCut: directory is 4096 bytes long, may be 1 to 4095"},
      {"CutBase", Sample{CheckpointCut{.directory = "d", .base = std::string(4096, 'd')}},
       "malformed CheckpointCut: base is 4096 bytes long, may be 0 to 4095"},
      {"WrittenNameless", Sample{CheckpointWritten{.files = {{}}}},
       "malformed CheckpointWritten: file's name is 0 bytes long, may be 1 to 255"},
      {"WrittenElsewhere", Sample{CheckpointWritten{.files = {{.name = "../x"}}}},
       "malformed CheckpointWritten: file's name is \"../x\", may be without directories"},
      {"WrittenAbove", Sample{CheckpointWritten{.files = {{.name = ".."}}}},
       "malformed CheckpointWritten: file's name is \"..\", may be without directories"},
      {"WrittenMany",
       Sample{CheckpointWritten{
           .files = std::vector<CheckpointFile>(kCheckpointFilesMax + 1, {.name = "f"})}},
       "malformed CheckpointWritten: number of files is 65537, may be 0 to 65536"},
      {"RestoreNowhere", Sample{RestoreShards{}},
       "malformed RestoreShards: directory is 0 bytes long, may be 1 to 4095"},
      {"RestoreDirectory", Sample{RestoreShards{.directory = std::string(4096, 'd')}},
       "malformed RestoreShards: directory is 4096 bytes long, may be 1 to 4095"},
      {"MovedNowhere", Sample{SchedulerMoved{}},
       "malformed SchedulerMoved: address is 0 bytes long, may be 1 to 512"},
      {"MovedAddress", Sample{SchedulerMoved{.address = std::string(513, 'a')}},
       "malformed SchedulerMoved: address is 513 bytes long, may be 1 to 512"},
  };
}

}  // namespace leeway::proto
