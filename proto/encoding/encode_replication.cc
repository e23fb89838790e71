#include <vector>

#include "proto/encoding/encode_parts.h"

namespace leeway::proto::encode {

Offset<wire::Replicate> Write(Builder& out, const Replicate& m) {
  std::vector<wire::WorkerWindow> workers;
  workers.reserve(m.workers.size());
  for (const WorkerWindow& w : m.workers) {
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
  wire::ReplicateBuilder item(out);
  item.add_shard(m.shard);
  item.add_epoch(m.epoch);
  item.add_stream(m.stream);
  item.add_item(m.item);
  item.add_kind(Byte(m.kind));
  item.add_index(m.index);
  item.add_worker(m.worker);
  item.add_incarnation(m.incarnation);
  item.add_sequence(m.sequence);
  item.add_table(m.table);
  item.add_table_kind(Byte(m.table_kind));
  item.add_dtype(Byte(m.dtype));
  item.add_clock(m.clock);
  item.add_block(m.block);
  item.add_keys(m.keys);
  item.add_elements(m.elements);
  item.add_state_slots(m.state_slots);
  item.add_has_learning_rate(m.has_learning_rate);
  item.add_learning_rate(m.has_learning_rate ? m.learning_rate : 0);
  item.add_workers(workers_at);
  item.add_pushed_until(m.pushed_until);
  item.add_codec(m.codec);
  item.add_version(m.version);
  item.add_whole(m.whole);
  item.add_settings(m.settings);
  item.add_refusals(refusals_at);
  return item.Finish();
}

Offset<wire::ReplicateAck> Write(Builder& out, const ReplicateAck& m) {
  return wire::CreateReplicateAck(out, m.shard, m.stream, m.item, m.committed, m.since);
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
