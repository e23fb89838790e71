#include <vector>

#include "proto/encoding/encode_parts.h"

namespace leeway::proto::encode {

Offset<wire::Replicate> Write(Builder& out, const Replicate& m) {
  std::vector<wire::ClientSession> workers;
  workers.reserve(m.workers.size());
  for (const ClientSession& w : m.workers) {
    workers.emplace_back(w.incarnation, w.clock, w.since, w.admitted, w.admitted_held, w.rank);
  }
  const auto workers_at = out.CreateVectorOfStructs(workers);
  std::vector<Offset<wire::Refusal>> refusals;
  refusals.reserve(m.refusals.size());
  for (const Refusal& r : m.refusals) {
    const Text reason = WriteReason(out, r.status.message(), kRefusalReasonBytesMax);
    refusals.push_back(wire::CreateRefusal(out, r.incarnation, r.sequence, r.worker, r.held,
                                           r.with_earlier, Code(r.status), reason));
  }
  const auto refusals_at = refusals.empty() ? Offset<flatbuffers::Vector<Offset<wire::Refusal>>>()
                                            : out.CreateVector(refusals);
  wire::ReplicateBuilder entry(out);
  entry.add_shard(m.shard);
  entry.add_epoch(m.epoch);
  entry.add_stream(m.stream);
  entry.add_entry(m.entry);
  entry.add_kind(Byte(m.kind));
  entry.add_index(m.index);
  entry.add_worker(m.worker);
  entry.add_incarnation(m.incarnation);
  entry.add_sequence(m.sequence);
  entry.add_table(m.table);
  entry.add_table_kind(Byte(m.table_kind));
  entry.add_dtype(Byte(m.dtype));
  entry.add_clock(m.clock);
  entry.add_block(m.block);
  entry.add_keys(m.keys);
  entry.add_elements(m.elements);
  entry.add_state_slots(m.state_slots);
  entry.add_has_learning_rate(m.has_learning_rate);
  entry.add_learning_rate(m.has_learning_rate ? m.learning_rate : 0);
  entry.add_workers(workers_at);
  entry.add_pushed_until(m.pushed_until);
  entry.add_codec(m.codec);
  entry.add_version(m.version);
  entry.add_whole(m.whole);
  entry.add_table_settings(m.table_settings);
  entry.add_refusals(refusals_at);
  entry.add_map_version(m.map_version);
  entry.add_weight(m.weight);
  entry.add_collected(m.collected);
  entry.add_mean_of(m.mean_of);
  entry.add_pushes(m.pushes);
  return entry.Finish();
}

Offset<wire::ReplicateAck> Write(Builder& out, const ReplicateAck& m) {
  return wire::CreateReplicateAck(out, m.shard, m.stream, m.entry, m.committed, m.since);
}

Offset<wire::ReplicaReady> Write(Builder& out, const ReplicaReady& m) {
  return wire::CreateReplicaReady(out, m.epoch, m.shard);
}

Offset<wire::LinkReport> Write(Builder& out, const LinkReport& m) {
  return wire::CreateLinkReport(out, m.epoch, m.shard, m.server, m.handover);
}

Offset<wire::LeadNow> Write(Builder& out, const LeadNow& m) {
  return wire::CreateLeadNow(out, m.epoch, m.shard, m.from);
}

Offset<wire::LoadReport> Write(Builder& out, const LoadReport& m) {
  std::vector<wire::ShardLoad> shards;
  shards.reserve(m.shards.size());
  for (const ShardLoad& load : m.shards) {
    shards.emplace_back(load.bytes, load.requests, load.shard);
  }
  return wire::CreateLoadReport(out, out.CreateVectorOfStructs(shards));
}

}  // namespace leeway::proto::encode
