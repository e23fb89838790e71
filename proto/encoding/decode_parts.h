// Helpers and declarations of the decode_*.cc files. Private to them: it includes the generated
// header.
#ifndef LEEWAY_PROTO_ENCODING_DECODE_PARTS_H_
#define LEEWAY_PROTO_ENCODING_DECODE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "leeway_generated.h"
#include "proto/messages/messages.h"
#include "proto/tables/text.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto::decode {

inline constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// The parts of a message that its decoder consumes.
struct Input {
  std::span<runtime::Buffer> payload;
  // A bound on the texts still to be read. FlatBuffers let many offsets share one text, so that a
  // small header could unfold into gigabytes. An honest header shares nothing: its texts together
  // are no longer than itself.
  std::size_t text_bytes_left = 0;
};

template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// "rank is 70000, may be 0 to 65535".
inline absl::Status CheckRange(absl::string_view field, std::uint64_t value, std::uint64_t min,
                               std::uint64_t max) {
  if (value >= min && value <= max) [[likely]]
    return absl::OkStatus();
  if (max == kAny) return Wrong(field, " is ", value, ", may be at least ", min);
  if (max == min) return Wrong(field, " is ", value, ", may be ", min);
  return Wrong(field, " is ", value, ", may be ", min, " to ", max);
}

template <class Enum>
absl::Status ReadEnum(absl::string_view field, std::uint8_t value, Enum first, Enum last,
                      Enum* to) {
  *to = static_cast<Enum>(value);
  return CheckRange(field, value, static_cast<std::uint8_t>(first),
                    static_cast<std::uint8_t>(last));
}

template <class T>
std::size_t SizeOrZero(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// FlatBuffers' verifier checks the alignment of a vector's length, not of its elements.
template <class T>
absl::Status CheckAligned(absl::string_view field, const flatbuffers::Vector<T>* vector,
                          std::size_t alignment) {
  if (SizeOrZero(vector) == 0) return absl::OkStatus();
  if (reinterpret_cast<std::uintptr_t>(vector->Data()) % alignment == 0) return absl::OkStatus();
  return Wrong(field, " are not aligned to ", alignment, " bytes");
}

// A text that is left out of the header is read as empty.
absl::Status ReadText(absl::string_view field, const flatbuffers::String* text, std::size_t min,
                      std::size_t max, Input& in, std::string* to, Lines lines = Lines::kOne);
absl::Status ReadName(absl::string_view field, const flatbuffers::String* text, Input& in,
                      std::string* to);  // not empty
// An updater's hyper-parameters, by name.
absl::Status ReadParameters(
    const flatbuffers::Vector<flatbuffers::Offset<wire::Parameter>>* parameters, Input& in,
    std::map<std::string, double>* to);
absl::Status ReadTableSettings(
    const flatbuffers::Vector<flatbuffers::Offset<wire::TableSettings>>* from, Input& in,
    std::vector<TableSettings>* to);
absl::Status ReadReason(const flatbuffers::String* text, Input& in, std::string* to);
absl::Status ReadStatus(int code, const flatbuffers::String* reason, Input& in, absl::Status* to);

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
absl::Status ReadEndpoints(const Texts* endpoints, std::size_t min, std::size_t max, Input& in,
                           std::vector<std::string>* to);

// One for each message: makes a header whose structure has been verified into a value whose meaning
// has been checked. `*to` is default-constructed; after an error it holds anything.
// decode_membership.cc:
absl::Status Read(const wire::Hello& from, Input& in, Hello* to);
absl::Status Read(const wire::Reject& from, Input& in, Reject* to);
absl::Status Read(const wire::Goodbye& from, Input& in, Goodbye* to);
absl::Status Read(const wire::Join& from, Input& in, Join* to);
absl::Status Read(const wire::Welcome& from, Input& in, Welcome* to);
absl::Status Read(const wire::Refused& from, Input& in, Refused* to);
absl::Status Read(const wire::MapAck& from, Input& in, MapAck* to);
absl::Status Read(const wire::Heartbeat& from, Input& in, Heartbeat* to);
absl::Status Read(const wire::HeartbeatAck& from, Input& in, HeartbeatAck* to);
absl::Status Read(const wire::NodeDown& from, Input& in, NodeDown* to);
absl::Status Read(const wire::Leave& from, Input& in, Leave* to);
absl::Status Read(const wire::LeaveAck& from, Input& in, LeaveAck* to);
absl::Status Read(const wire::Shutdown& from, Input& in, Shutdown* to);
absl::Status Read(const wire::BarrierEnter& from, Input& in, BarrierEnter* to);
absl::Status Read(const wire::BarrierRelease& from, Input& in, BarrierRelease* to);
// decode_map.cc:
absl::Status Read(const wire::ClusterMap& from, Input& in, ClusterMap* to);
// decode_tables.cc:
absl::Status Read(const wire::CreateTable& from, Input& in, CreateTable* to);
absl::Status Read(const wire::OpenTable& from, Input& in, OpenTable* to);
absl::Status Read(const wire::TableReply& from, Input& in, TableReply* to);
absl::Status Read(const wire::InstallTable& from, Input& in, InstallTable* to);
absl::Status Read(const wire::InstallTableReply& from, Input& in, InstallTableReply* to);
// decode_data.cc:
absl::Status Read(const wire::Request& from, Input& in, Request* to);
absl::Status Read(const wire::Reply& from, Input& in, Reply* to);
absl::Status Read(const wire::ClockTick& from, Input& in, ClockTick* to);
absl::Status Read(const wire::ClockAck& from, Input& in, ClockAck* to);
absl::Status Read(const wire::Call& from, Input& in, Call* to);
absl::Status Read(const wire::CallReply& from, Input& in, CallReply* to);
absl::Status Read(const wire::StatusRequest& from, Input& in, StatusRequest* to);
absl::Status Read(const wire::StatusReply& from, Input& in, StatusReply* to);
absl::Status Read(const wire::EnterClock& from, Input& in, EnterClock* to);
absl::Status Read(const wire::EnterClockReply& from, Input& in, EnterClockReply* to);
// decode_replication.cc:
absl::Status Read(const wire::Replicate& from, Input& in, Replicate* to);
absl::Status Read(const wire::ReplicateAck& from, Input& in, ReplicateAck* to);
absl::Status Read(const wire::ReplicaReady& from, Input& in, ReplicaReady* to);
absl::Status Read(const wire::LoadReport& from, Input& in, LoadReport* to);
absl::Status Read(const wire::LinkReport& from, Input& in, LinkReport* to);
absl::Status Read(const wire::LeadNow& from, Input& in, LeadNow* to);
// decode_admin.cc:
absl::Status Read(const wire::Admin& from, Input& in, Admin* to);
absl::Status Read(const wire::AdminReply& from, Input& in, AdminReply* to);
absl::Status Read(const wire::CodecReport& from, Input& in, CodecReport* to);
absl::Status Read(const wire::CheckpointPrepare& from, Input& in, CheckpointPrepare* to);
absl::Status Read(const wire::CheckpointPrepared& from, Input& in, CheckpointPrepared* to);
absl::Status Read(const wire::CheckpointCut& from, Input& in, CheckpointCut* to);
absl::Status Read(const wire::CheckpointWritten& from, Input& in, CheckpointWritten* to);
absl::Status Read(const wire::RestoreShards& from, Input& in, RestoreShards* to);
absl::Status Read(const wire::RestoreShardsReply& from, Input& in, RestoreShardsReply* to);
absl::Status Read(const wire::SchedulerMoved& from, Input& in, SchedulerMoved* to);
// decode_batches.cc:
absl::Status Read(const wire::PushBatch& from, Input& in, PushBatch* to);
absl::Status Read(const wire::PushAcks& from, Input& in, PushAcks* to);

}  // namespace leeway::proto::decode

#endif  // LEEWAY_PROTO_ENCODING_DECODE_PARTS_H_
