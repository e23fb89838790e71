#include <utility>
#include <variant>
#include <vector>

#include "proto/encoding/encode_parts.h"
#include "proto/encoding/encoding.h"
#include "runtime/memory/thread_object.h"

namespace leeway::proto {
namespace encode {
namespace {

using encode::Write;  // the overloads of the other files

// ---- the van ----

Offset<wire::Hello> Write(Builder& out, const Hello& m) {
  const Text build = WriteName(out, m.build);
  return wire::CreateHello(out, m.protocol, m.protocol_min, m.capabilities, Byte(m.role), m.node,
                           m.incarnation, m.cluster, build);
}

Offset<wire::Reject> Write(Builder& out, const Reject& m) {
  return wire::CreateReject(out, Code(m.why), WriteReason(out, m.why));
}

Offset<wire::Goodbye> Write(Builder& out, const Goodbye&) { return wire::CreateGoodbye(out); }

// ---- membership ----

Offset<wire::Join> Write(Builder& out, const Join& m) {
  const Text host = WriteName(out, m.host);
  const auto endpoints = WriteAddresses(out, m.endpoints);
  std::vector<Offset<wire::CodecVersion>> codecs;
  codecs.reserve(m.codecs.size());
  for (const CodecVersion& codec : m.codecs) {
    codecs.push_back(wire::CreateCodecVersion(out, WriteName(out, codec.name), codec.version));
  }
  const auto codecs_at = out.CreateVector(codecs);
  return wire::CreateJoin(out, Byte(m.role), host, m.pid, endpoints, m.rank_wanted, m.num_servers,
                          m.num_workers, m.elastic, codecs_at);
}

Offset<wire::Welcome> Write(Builder& out, const Welcome& m) {
  return wire::CreateWelcome(out, m.node, m.rank, m.cluster, m.num_servers, m.num_workers,
                             m.heartbeat_interval_ms, m.failure_timeout_ms, m.block_bytes,
                             m.replication, m.clock);
}

Offset<wire::Refused> Write(Builder& out, const Refused& m) {
  return wire::CreateRefused(out, Code(m.why), WriteReason(out, m.why));
}

Offset<flatbuffers::Vector<Offset<wire::TableSettings>>> WriteTableSettings(
    Builder& out, const std::vector<TableSettings>& all) {
  std::vector<Offset<wire::TableSettings>> settings;
  settings.reserve(all.size());
  for (const TableSettings& one : all) {
    const auto parameters = WriteParameters(out, one.parameters);
    settings.push_back(wire::CreateTableSettings(out, one.table, one.number, one.since, one.decided,
                                                 parameters, one.staleness, Byte(one.nonfinite)));
  }
  return out.CreateVector(settings);
}

Offset<wire::ClusterMap> Write(Builder& out, const ClusterMap& m) {
  std::vector<wire::ShardOwner> owners;
  owners.reserve(m.owners.size());
  for (const ShardOwner& owner : m.owners) owners.emplace_back(owner.server_rank, owner.thread);
  const auto owners_at = out.CreateVectorOfStructs(owners);

  std::vector<Offset<wire::ServerEntry>> servers;
  servers.reserve(m.servers.size());
  for (const ServerEntry& server : m.servers) {
    const auto endpoints = WriteAddresses(out, server.endpoints);
    servers.push_back(wire::CreateServerEntry(out, server.node, server.rank, server.alive,
                                              endpoints, server.incarnation));
  }
  const auto servers_at = out.CreateVector(servers);

  std::vector<Offset<wire::WorkerEntry>> workers;
  workers.reserve(m.workers.size());
  for (const WorkerEntry& worker : m.workers) {
    workers.push_back(wire::CreateWorkerEntry(out, worker.node, worker.rank, worker.incarnation,
                                              Byte(worker.state), worker.late));
  }
  const auto workers_at = out.CreateVector(workers);

  std::vector<wire::ShardReplica> replicas;
  replicas.reserve(m.replicas.size());
  for (const ShardReplica& replica : m.replicas) {
    replicas.emplace_back(replica.shard, replica.place.server_rank, replica.place.thread,
                          replica.joining);
  }
  const auto replicas_at = out.CreateVectorOfStructs(replicas);

  std::vector<wire::CodecSwitch> codecs;
  codecs.reserve(m.codecs.size());
  for (const CodecSwitch& change : m.codecs) {
    codecs.emplace_back(change.number, change.clock, change.table,
                        static_cast<std::uint16_t>(change.before),
                        static_cast<std::uint16_t>(change.choice), change.decided);
  }
  const auto codecs_at = out.CreateVectorOfStructs(codecs);

  const auto table_settings_at = WriteTableSettings(out, m.table_settings);
  return wire::CreateClusterMap(out, m.version, m.epoch, owners_at, servers_at, workers_at,
                                replicas_at, codecs_at, table_settings_at);
}

Offset<wire::MapAck> Write(Builder& out, const MapAck& m) {
  return wire::CreateMapAck(out, m.version, m.clock, m.oldest);
}

Offset<wire::Heartbeat> Write(Builder& out, const Heartbeat& m) {
  return wire::CreateHeartbeat(out, m.node, m.incarnation, m.number, m.uptime_ms, m.resident_bytes);
}

Offset<wire::HeartbeatAck> Write(Builder& out, const HeartbeatAck& m) {
  return wire::CreateHeartbeatAck(out, m.number);
}

Offset<wire::NodeDown> Write(Builder& out, const NodeDown& m) {
  const Text reason = WriteReason(out, m.reason);
  return wire::CreateNodeDown(out, m.node, Byte(m.role), m.rank, m.incarnation, m.left, reason,
                              m.epoch);
}

Offset<wire::Leave> Write(Builder& out, const Leave& m) {
  return wire::CreateLeave(out, WriteReason(out, m.reason), m.clock);
}

Offset<wire::LeaveAck> Write(Builder& out, const LeaveAck&) { return wire::CreateLeaveAck(out); }

Offset<wire::Shutdown> Write(Builder& out, const Shutdown& m) {
  return wire::CreateShutdown(out, Code(m.why), WriteReason(out, m.why));
}

Offset<wire::BarrierEnter> Write(Builder& out, const BarrierEnter& m) {
  const Text name = WriteName(out, m.name);
  return wire::CreateBarrierEnter(out, name, Byte(m.group), m.number, m.timeout_ms);
}

Offset<wire::BarrierRelease> Write(Builder& out, const BarrierRelease& m) {
  const Text name = WriteName(out, m.name);
  const Text reason = WriteReason(out, m.result);
  return wire::CreateBarrierRelease(out, name, Byte(m.group), m.number, Code(m.result), reason);
}

// ---- tables ----

Offset<wire::TableSpec> Write(Builder& out, const TableSpec& spec) {
  const auto parameters_at = WriteParameters(out, spec.updater.parameters);
  const Text name = WriteName(out, spec.name);
  const auto shape = out.CreateVector(spec.shape);
  const Text updater = WriteName(out, spec.updater.name);
  const Text codec = WriteName(out, spec.codec);
  std::vector<Text> choices;
  for (const std::string& choice : spec.codecs) choices.push_back(WriteName(out, choice));
  const auto codecs = out.CreateVector(choices);

  const Text consistency = out.CreateString(spec.consistency.ToString());
  wire::TableSpecBuilder table(out);
  table.add_name(name);
  table.add_kind(Byte(spec.kind));
  table.add_dtype(Byte(spec.dtype));
  table.add_shape(shape);
  table.add_row_width(spec.row_width);
  table.add_updater(updater);
  table.add_parameters(parameters_at);
  table.add_init_kind(Byte(spec.initializer.kind));
  table.add_init_a(spec.initializer.a);
  table.add_init_b(spec.initializer.b);
  table.add_init_seed(spec.initializer.seed);
  table.add_consistency(consistency);
  table.add_aggregate(Byte(spec.aggregate));
  table.add_nonfinite(Byte(spec.nonfinite));
  table.add_codec(codec);
  table.add_error_feedback(Byte(spec.error_feedback));
  table.add_codecs(codecs);
  return table.Finish();
}

Offset<wire::CreateTable> Write(Builder& out, const CreateTable& m) {
  const auto spec = Write(out, m.spec);
  return wire::CreateCreateTable(out, m.request, spec);
}

Offset<wire::OpenTable> Write(Builder& out, const OpenTable& m) {
  return wire::CreateOpenTable(out, m.request, WriteName(out, m.name));
}

Offset<wire::TableReply> Write(Builder& out, const TableReply& m) {
  const Text reason = WriteReason(out, m.result);
  const auto spec = m.result.ok() ? Write(out, m.spec) : Offset<wire::TableSpec>();
  const auto settings = WriteTableSettings(out, m.table_settings);
  return wire::CreateTableReply(out, m.request, Code(m.result), reason, m.table, spec,
                                Byte(m.combine), settings);
}

Offset<wire::InstallTable> Write(Builder& out, const InstallTable& m) {
  const auto spec = Write(out, m.spec);
  return wire::CreateInstallTable(out, m.table, spec, m.of);
}

Offset<wire::InstallTableReply> Write(Builder& out, const InstallTableReply& m) {
  const Text reason = WriteReason(out, m.result);
  return wire::CreateInstallTableReply(out, m.table, Code(m.result), reason, Byte(m.combine));
}

// ---- the data path ----

wire::RequestId Wire(const RequestId& id) {
  return {id.incarnation, id.sequence, id.worker, id.shard};
}

Offset<wire::Request> Write(Builder& out, const Request& m) {
  const wire::RequestId id = Wire(m.id);
  return wire::CreateRequest(out, &id, m.epoch, m.table, Byte(m.kind), static_cast<wire::Op>(m.op),
                             Byte(m.dtype), m.clock, m.block, m.keys, m.elements, m.timeout_ms,
                             m.has_learning_rate ? m.learning_rate : 0, m.has_learning_rate,
                             m.after, m.priority, m.codec, m.have, m.read_updates);
}

Offset<wire::Reply> Write(Builder& out, const Reply& m) {
  const wire::RequestId id = Wire(m.id);
  const Text reason = WriteReason(out, m.result);
  Offset<flatbuffers::Vector<const wire::ReplyPart*>> parts_at;
  if (!m.parts.empty()) {
    std::vector<wire::ReplyPart> parts;
    parts.reserve(m.parts.size());
    for (const ReplyPart& part : m.parts) {
      parts.emplace_back(part.version, part.bytes, part.codec, part.whole);
    }
    parts_at = out.CreateVectorOfStructs(parts);
  }
  return wire::CreateReply(out, &id, Code(m.result), reason, static_cast<wire::Op>(m.op),
                           Byte(m.kind), m.clock, m.slowest_clock, m.staleness, Byte(m.dtype),
                           m.keys, m.elements, m.provisional, m.coded, parts_at, m.version,
                           m.updates);
}

Offset<wire::ClockTick> Write(Builder& out, const ClockTick& m) {
  std::vector<wire::ShardWatermark> watermarks;
  watermarks.reserve(m.watermarks.size());
  for (const ShardWatermark& mark : m.watermarks)
    watermarks.emplace_back(mark.sequence, mark.shard, mark.held);
  const auto watermarks_at = out.CreateVectorOfStructs(watermarks);
  return wire::CreateClockTick(out, m.worker, m.incarnation, m.epoch, m.clock, watermarks_at,
                               m.since);
}

Offset<wire::ClockAck> Write(Builder& out, const ClockAck& m) {
  return wire::CreateClockAck(out, m.clock, m.stable, m.epoch);
}

Offset<wire::EnterClock> Write(Builder& out, const EnterClock& m) {
  return wire::CreateEnterClock(out, m.worker, m.incarnation, m.epoch);
}

Offset<wire::EnterClockReply> Write(Builder& out, const EnterClockReply& m) {
  return wire::CreateEnterClockReply(out, m.clock, m.epoch);
}

Offset<wire::Call> Write(Builder& out, const Call& m) {
  return wire::CreateCall(out, m.request, WriteName(out, m.handler));
}

Offset<wire::CallReply> Write(Builder& out, const CallReply& m) {
  return wire::CreateCallReply(out, m.request, Code(m.result), WriteReason(out, m.result));
}

Offset<wire::StatusRequest> Write(Builder& out, const StatusRequest& m) {
  return wire::CreateStatusRequest(out, m.request);
}

Offset<wire::StatusReply> Write(Builder& out, const StatusReply& m) {
  return wire::CreateStatusReply(out, m.request);
}

// ---- the whole ----

template <class Wire>
void Finish(Builder& out, Offset<Wire> body) {
  wire::FinishHeaderBuffer(
      out, wire::CreateHeader(out, wire::BodyTraits<Wire>::enum_value, body.Union()));
}

struct Writer {
  Builder& out;
  template <class Message>
  void operator()(const Message& message) const {
    Finish(out, Write(out, message));
  }
  void operator()(std::monostate) const { wire::FinishHeaderBuffer(out, wire::CreateHeader(out)); }
};

struct ThreadBuilder : Builder {
  ThreadBuilder() : Builder(1024) {}
};

// A builder larger than this frees its memory: one large map should not occupy it for the thread's
// life.
constexpr std::size_t kKeptBytes = 64 << 10;

}  // namespace
}  // namespace encode

runtime::Buffer Encode(const AnyMessage& message) {
  // One builder a thread: after the first few messages only the result is allocated.
  const runtime::ThreadObject<encode::ThreadBuilder> kept;
  encode::Builder& builder = *kept;
  std::visit(encode::Writer{builder}, message);
  runtime::Buffer result = runtime::Buffer::CopyOf(builder.GetBufferPointer(), builder.GetSize());
  if (builder.GetSize() > encode::kKeptBytes) {
    builder.Reset();
  } else {
    builder.Clear();
  }
  return result;
}

}  // namespace leeway::proto
