#include <vector>

#include "proto/encoding/encode_parts.h"

namespace leeway::proto::encode {
namespace {

// Names of tables and hosts are cut if they are too long. Paths and arguments are not, since half
// of one means something else. Decode refuses the message instead.
constexpr std::size_t kWhole = absl::string_view::npos;

}  // namespace

Offset<wire::Admin> Write(Builder& out, const Admin& m) {
  const Text command = Write(out, m.command);
  const Texts arguments = WriteTexts(out, m.arguments, kWhole);
  return wire::CreateAdmin(out, m.request, command, arguments);
}

Offset<wire::AdminReply> Write(Builder& out, const AdminReply& m) {
  return wire::CreateAdminReply(out, m.request, Code(m.result), WriteReason(out, m.result));
}

Offset<wire::CodecReport> Write(Builder& out, const CodecReport& m) {
  const auto costs = out.CreateVector(m.costs);
  return wire::CreateCodecReport(out, m.table, m.lossy, costs, m.link_bytes_per_s, m.clock);
}

Offset<wire::CheckpointPrepare> Write(Builder& out, const CheckpointPrepare& m) {
  return wire::CreateCheckpointPrepare(out, m.checkpoint);
}

Offset<wire::CheckpointPrepared> Write(Builder& out, const CheckpointPrepared& m) {
  return wire::CreateCheckpointPrepared(out, m.checkpoint, m.fastest_clock);
}

Offset<wire::CheckpointCut> Write(Builder& out, const CheckpointCut& m) {
  const Text directory = Write(out, m.directory);
  const Text base = Write(out, m.base);
  return wire::CreateCheckpointCut(out, m.checkpoint, m.clock, directory, base, m.bounded);
}

Offset<wire::CheckpointWritten> Write(Builder& out, const CheckpointWritten& m) {
  const Text reason = WriteReason(out, m.result);
  std::vector<Offset<wire::CheckpointFile>> files;
  files.reserve(m.files.size());
  for (const CheckpointFile& file : m.files) {
    const Text name = Write(out, file.name);
    files.push_back(wire::CreateCheckpointFile(out, name, file.bytes, file.checksum));
  }
  return wire::CreateCheckpointWritten(out, m.checkpoint, Code(m.result), reason,
                                       out.CreateVector(files));
}

Offset<wire::RestoreShards> Write(Builder& out, const RestoreShards& m) {
  return wire::CreateRestoreShards(out, m.request, Write(out, m.directory), m.checksum);
}

Offset<wire::RestoreShardsReply> Write(Builder& out, const RestoreShardsReply& m) {
  return wire::CreateRestoreShardsReply(out, m.request, Code(m.result), WriteReason(out, m.result));
}

Offset<wire::SchedulerMoved> Write(Builder& out, const SchedulerMoved& m) {
  return wire::CreateSchedulerMoved(out, Write(out, m.address), m.cluster);
}

}  // namespace leeway::proto::encode
