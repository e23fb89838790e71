#include "proto/encoding/decode_parts.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

// A Reject or Refused without an error would be a contradiction.
absl::Status ReadError(int code, const flatbuffers::String* reason, Input& in, absl::Status* to) {
  LEEWAY_RETURN_IF_ERROR(ReadStatus(code, reason, in, to));
  return to->ok() ? Wrong("code is 0 (OK), may be that of an error") : absl::OkStatus();
}

absl::Status ReadSizes(std::uint32_t servers, std::uint32_t workers) {
  LEEWAY_RETURN_IF_ERROR(CheckRange("num_servers", servers, 0, kServersMax));
  return CheckRange("num_workers", workers, 0, kWorkersMax);
}

// True if the sender speaks a protocol version that this process understands.
bool SpeaksOurs(const Hello& hello) {
  return hello.protocol >= kProtocolVersionMin && hello.protocol_min <= kProtocolVersion;
}

}  // namespace

absl::Status Read(const wire::Hello& from, Input& in, Hello* to) {
  to->protocol = from.protocol();
  to->protocol_min = from.protocol_min();
  LEEWAY_RETURN_IF_ERROR(CheckRange("protocol", to->protocol, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckRange("protocol_min", to->protocol_min, 1, to->protocol));
  to->capabilities = from.capabilities();
  // A role that only another version knows must not hide that the version is the fault.
  if (SpeaksOurs(*to) || from.role() <= static_cast<std::uint8_t>(Role::kReader)) {
    LEEWAY_RETURN_IF_ERROR(ReadEnum("role", from.role(), Role::kUnknown, Role::kReader, &to->role));
  }
  to->node = from.node();
  to->incarnation = from.incarnation();
  to->cluster = from.cluster();
  return ReadText("build", from.build(), 0, kNameBytesMax, in, &to->build);
}

absl::Status Read(const wire::Reject& from, Input& in, Reject* to) {
  return ReadError(from.code(), from.reason(), in, &to->why);
}

absl::Status Read(const wire::Goodbye&, Input&, Goodbye*) { return absl::OkStatus(); }

namespace {

// Sorted by name, none twice, so that two lists can be compared in one pass.
absl::Status ReadCodecs(const wire::Join& from, Input& in, std::vector<CodecVersion>* to) {
  if (from.codecs() == nullptr) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of codecs", from.codecs()->size(), 0, kCodecsMax));
  to->reserve(from.codecs()->size());
  for (const wire::CodecVersion* const codec : *from.codecs()) {
    CodecVersion& one = to->emplace_back();
    LEEWAY_RETURN_IF_ERROR(ReadText("codec", codec->name(), 1, kCodecNameBytesMax, in, &one.name));
    one.version = codec->version();
    LEEWAY_RETURN_IF_ERROR(CheckRange("version of a codec", one.version, 1, kAny));
    if (to->size() > 1 && (*to)[to->size() - 2].name >= one.name) {
      return Wrong("codec ", Quoted(one.name), " is behind ", Quoted((*to)[to->size() - 2].name),
                   ", may be behind a smaller name alone");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const wire::Join& from, Input& in, Join* to) {
  LEEWAY_RETURN_IF_ERROR(ReadEnum("role", from.role(), Role::kScheduler, Role::kReader, &to->role));
  LEEWAY_RETURN_IF_ERROR(ReadText("host", from.host(), 0, kNameBytesMax, in, &to->host));
  to->pid = from.pid();
  const bool server = to->role == Role::kServer;
  LEEWAY_RETURN_IF_ERROR(ReadEndpoints(from.endpoints(), server ? 1 : 0,
                                       server ? kServerThreadsMax : 0, in, &to->endpoints));
  to->rank_wanted = from.rank_wanted();
  const std::int64_t ranks = server ? kServersMax : kWorkersMax;
  if (to->rank_wanted < -1 || to->rank_wanted >= ranks) {
    return Wrong("rank_wanted is ", to->rank_wanted, ", may be -1 (none) to ", ranks - 1);
  }
  to->num_servers = from.num_servers();
  to->num_workers = from.num_workers();
  to->elastic = from.elastic();
  LEEWAY_RETURN_IF_ERROR(ReadCodecs(from, in, &to->codecs));
  return ReadSizes(to->num_servers, to->num_workers);
}

absl::Status Read(const wire::Welcome& from, Input&, Welcome* to) {
  to->node = from.node();
  LEEWAY_RETURN_IF_ERROR(CheckRange("node", to->node, 1, kAny));
  to->rank = from.rank();
  LEEWAY_RETURN_IF_ERROR(CheckRange("rank", to->rank, 0, kWorkersMax - 1));
  to->cluster = from.cluster();
  to->num_servers = from.num_servers();
  to->num_workers = from.num_workers();
  LEEWAY_RETURN_IF_ERROR(ReadSizes(to->num_servers, to->num_workers));
  to->heartbeat_interval_ms = from.heartbeat_interval_ms();
  LEEWAY_RETURN_IF_ERROR(CheckRange("heartbeat_interval_ms", to->heartbeat_interval_ms, 1, kAny));
  to->failure_timeout_ms = from.failure_timeout_ms();
  LEEWAY_RETURN_IF_ERROR(CheckRange("failure_timeout_ms", to->failure_timeout_ms, 1, kAny));
  to->block_bytes = from.block_bytes();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("block_bytes", to->block_bytes, kBlockBytesMin, kBlockBytesMax));
  to->replication = from.replication();
  LEEWAY_RETURN_IF_ERROR(CheckRange("replication", to->replication, 1, kReplicationMax));
  to->clock = from.clock();
  return CheckRange("clock", to->clock, 0, kStartClockMax);
}

absl::Status Read(const wire::Refused& from, Input& in, Refused* to) {
  return ReadError(from.code(), from.reason(), in, &to->why);
}

absl::Status Read(const wire::MapAck& from, Input&, MapAck* to) {
  to->version = from.version();
  to->clock = from.clock();
  to->oldest = from.oldest();
  return absl::OkStatus();
}

absl::Status Read(const wire::Heartbeat& from, Input&, Heartbeat* to) {
  to->node = from.node();
  to->incarnation = from.incarnation();
  to->number = from.number();
  to->uptime_ms = from.uptime_ms();
  to->resident_bytes = from.resident_bytes();
  return absl::OkStatus();
}

absl::Status Read(const wire::HeartbeatAck& from, Input&, HeartbeatAck* to) {
  to->number = from.number();
  return absl::OkStatus();
}

absl::Status Read(const wire::NodeDown& from, Input& in, NodeDown* to) {
  to->node = from.node();
  LEEWAY_RETURN_IF_ERROR(ReadEnum("role", from.role(), Role::kScheduler, Role::kReader, &to->role));
  to->rank = from.rank();
  LEEWAY_RETURN_IF_ERROR(CheckRange("rank", to->rank, 0, kWorkersMax - 1));
  to->incarnation = from.incarnation();
  to->left = from.left();
  LEEWAY_RETURN_IF_ERROR(ReadReason(from.reason(), in, &to->reason));
  to->epoch = from.epoch();
  return absl::OkStatus();
}

absl::Status Read(const wire::Leave& from, Input& in, Leave* to) {
  to->clock = from.clock();
  return ReadReason(from.reason(), in, &to->reason);
}

absl::Status Read(const wire::LeaveAck&, Input&, LeaveAck*) { return absl::OkStatus(); }

absl::Status Read(const wire::Shutdown& from, Input& in, Shutdown* to) {
  return ReadStatus(from.code(), from.reason(), in, &to->why);
}

// A barrier may have an empty name: it is the default of Worker::Barrier().
absl::Status Read(const wire::BarrierEnter& from, Input& in, BarrierEnter* to) {
  LEEWAY_RETURN_IF_ERROR(ReadText("name", from.name(), 0, kNameBytesMax, in, &to->name));
  LEEWAY_RETURN_IF_ERROR(ReadEnum("group", from.group(), Group::kWorkers, Group::kAll, &to->group));
  to->number = from.number();
  LEEWAY_RETURN_IF_ERROR(CheckRange("number", to->number, 1, kAny));
  to->timeout_ms = from.timeout_ms();
  return CheckRange("timeout_ms", to->timeout_ms, 0, kTimeoutMsMax);
}

absl::Status Read(const wire::BarrierRelease& from, Input& in, BarrierRelease* to) {
  LEEWAY_RETURN_IF_ERROR(ReadText("name", from.name(), 0, kNameBytesMax, in, &to->name));
  LEEWAY_RETURN_IF_ERROR(ReadEnum("group", from.group(), Group::kWorkers, Group::kAll, &to->group));
  to->number = from.number();
  LEEWAY_RETURN_IF_ERROR(CheckRange("number", to->number, 1, kAny));
  return ReadStatus(from.code(), from.reason(), in, &to->result);
}

}  // namespace leeway::proto::decode
