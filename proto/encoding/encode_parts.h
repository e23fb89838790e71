// Helpers and declarations of the encode*.cc files. Private to them: it includes the generated
// header.
#ifndef LEEWAY_PROTO_ENCODING_ENCODE_PARTS_H_
#define LEEWAY_PROTO_ENCODING_ENCODE_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway_generated.h"
#include "proto/messages/limits.h"
#include "proto/messages/messages.h"
#include "proto/tables/text.h"

namespace leeway::proto::encode {

using Builder = flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Text = Offset<flatbuffers::String>;
using Texts = Offset<flatbuffers::Vector<Text>>;

template <class Enum>
std::uint8_t Byte(Enum value) {
  return static_cast<std::uint8_t>(value);
}

// An empty text is left out; it is read as empty.
inline Text Write(Builder& out, absl::string_view text) {
  return text.empty() ? Text() : out.CreateString(text.data(), text.size());
}

inline Text WriteName(Builder& out, absl::string_view name) {
  return Write(out, Cut(name, kNameBytesMax));
}

inline flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::Parameter>>>
WriteParameters(Builder& out, const std::map<std::string, double>& all) {
  std::vector<flatbuffers::Offset<wire::Parameter>> parameters;
  parameters.reserve(all.size());
  for (const auto& [name, value] : all) {
    const Text name_at = WriteName(out, name);
    parameters.push_back(wire::CreateParameter(out, name_at, value));
  }
  return out.CreateVector(parameters);
}

// A reason may hold anything (an error text of the system or of a user). Bytes that Decode would
// refuse are replaced, since that is better than to lose the whole message.
inline Text WriteReason(Builder& out, absl::string_view reason,
                        std::size_t bytes_max = kReasonBytesMax) {
  if (IsClean(reason, Lines::kMany)) return Write(out, Cut(reason, bytes_max));
  return Write(out, Cut(Cleaned(Cut(reason, bytes_max), Lines::kMany), bytes_max));
}

inline Text WriteReason(Builder& out, const absl::Status& status) {
  return status.ok() ? Text() : WriteReason(out, status.message());
}

inline int Code(const absl::Status& status) { return static_cast<int>(status.code()); }

inline Texts WriteTexts(Builder& out, const std::vector<std::string>& texts, std::size_t max) {
  std::vector<Text> at;
  at.reserve(texts.size());
  for (const std::string& text : texts) {
    const absl::string_view cut = Cut(text, max);
    at.push_back(out.CreateString(cut.data(), cut.size()));
  }
  return out.CreateVector(at);
}

inline Texts WriteAddresses(Builder& out, const std::vector<std::string>& addresses) {
  return WriteTexts(out, addresses, kAddressBytesMax);
}

// encode_replication.cc:
Offset<wire::Replicate> Write(Builder& out, const Replicate& m);
Offset<wire::ReplicateAck> Write(Builder& out, const ReplicateAck& m);
Offset<wire::ReplicaReady> Write(Builder& out, const ReplicaReady& m);
Offset<wire::LoadReport> Write(Builder& out, const LoadReport& m);
Offset<wire::LinkReport> Write(Builder& out, const LinkReport& m);
Offset<wire::LeadNow> Write(Builder& out, const LeadNow& m);
// encode_admin.cc:
Offset<wire::Admin> Write(Builder& out, const Admin& m);
Offset<wire::AdminReply> Write(Builder& out, const AdminReply& m);
Offset<wire::CodecReport> Write(Builder& out, const CodecReport& m);
Offset<wire::CheckpointPrepare> Write(Builder& out, const CheckpointPrepare& m);
Offset<wire::CheckpointPrepared> Write(Builder& out, const CheckpointPrepared& m);
Offset<wire::CheckpointCut> Write(Builder& out, const CheckpointCut& m);
Offset<wire::CheckpointWritten> Write(Builder& out, const CheckpointWritten& m);
Offset<wire::RestoreShards> Write(Builder& out, const RestoreShards& m);
Offset<wire::RestoreShardsReply> Write(Builder& out, const RestoreShardsReply& m);
Offset<wire::SchedulerMoved> Write(Builder& out, const SchedulerMoved& m);
// encode_batches.cc:
Offset<wire::PushBatch> Write(Builder& out, const PushBatch& m);
Offset<wire::PushAcks> Write(Builder& out, const PushAcks& m);

}  // namespace leeway::proto::encode

#endif  // LEEWAY_PROTO_ENCODING_ENCODE_PARTS_H_
