// Samples for tests: messages of every type, and their fields as tuples.
#ifndef LEEWAY_PROTO_TESTING_SAMPLES_H_
#define LEEWAY_PROTO_TESTING_SAMPLES_H_

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto {

struct Sample {
  AnyMessage message;
  std::vector<runtime::Buffer> payload = {};
};

// At least one of every type. Every field of a type differs from its default in one of them.
std::vector<Sample> AllSamples();

// The part of AllSamples in samples_cluster.cc: replication, late join, administration.
void AddClusterSamples(std::vector<Sample>* all);

// A frame of these entries.
template <class T>
runtime::Buffer FrameOf(const std::vector<T>& entries) {
  return runtime::Buffer::CopyOf(entries.data(), entries.size() * sizeof(T));
}

// `sample` as it arrives: encoded, then decoded.
inline absl::StatusOr<AnyMessage> Arrive(const Sample& sample) {
  std::vector<runtime::Buffer> payload = sample.payload;
  return Decode(Encode(sample.message), payload);
}

// ---- all fields of a message: a field more or less does not compile ----

inline auto Fields(const Hello& m) {
  const auto& [a, b, c, d, e, f, g, h] = m;
  return std::tie(a, b, c, d, e, f, g, h);
}
inline auto Fields(const Reject& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const Goodbye&) { return std::tuple<>(); }
inline auto Fields(const Join& m) {
  const auto& [a, b, c, d, e, f, g, h, i] = m;
  return std::tie(a, b, c, d, e, f, g, h, i);
}
inline auto Fields(const Welcome& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j);
}
inline auto Fields(const Refused& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const ClusterMap& m) {
  const auto& [a, b, c, d, e, f, g, h] = m;
  return std::tie(a, b, c, d, e, f, g, h);
}
inline auto Fields(const MapAck& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const Heartbeat& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const HeartbeatAck& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const NodeDown& m) {
  const auto& [a, b, c, d, e, f, g] = m;
  return std::tie(a, b, c, d, e, f, g);
}
inline auto Fields(const Leave& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const LeaveAck&) { return std::tuple<>(); }
inline auto Fields(const Shutdown& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const BarrierEnter& m) {
  const auto& [a, b, c, d] = m;
  return std::tie(a, b, c, d);
}
inline auto Fields(const BarrierRelease& m) {
  const auto& [a, b, c, d] = m;
  return std::tie(a, b, c, d);
}
inline auto Fields(const CreateTable& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const OpenTable& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const TableReply& m) {
  const auto& [a, b, c, d, e, f] = m;
  return std::tie(a, b, c, d, e, f);
}
inline auto Fields(const InstallTable& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const InstallTableReply& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const Request& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s);
}
inline auto Fields(const Reply& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, unsaid] = m;  // its priority stays here
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p);
}
inline auto Fields(const PushBatch& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j);
}
inline auto Fields(const PushAcks& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const ClockTick& m) {
  const auto& [a, b, c, d, e, f] = m;
  return std::tie(a, b, c, d, e, f);
}
inline auto Fields(const ClockAck& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const Call& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const CallReply& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const StatusRequest& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const StatusReply& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const EnterClock& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const EnterClockReply& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const Replicate& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb,
               cc, dd, ee, ff] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb,
                  cc, dd, ee, ff);
}
inline auto Fields(const ReplicateAck& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const ReplicaReady& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const LinkReport& m) {
  const auto& [a, b, c, d] = m;
  return std::tie(a, b, c, d);
}
inline auto Fields(const LeadNow& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const CodecReport& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const LoadReport& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const Admin& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const AdminReply& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const CheckpointPrepare& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const CheckpointPrepared& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const CheckpointCut& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const CheckpointWritten& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const RestoreShards& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const RestoreShardsReply& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const SchedulerMoved& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TESTING_SAMPLES_H_
