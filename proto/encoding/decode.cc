#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "proto/encoding/decode_parts.h"
#include "proto/encoding/encoding.h"
#include "proto/encoding/verify_header.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto {
namespace {

using decode::Input;
using decode::Wrong;

// Puts the header's bytes at an address that FlatBuffers may read from: a frame may lie anywhere.
class AlignedHeader {
 public:
  explicit AlignedHeader(const runtime::Buffer& header) {
    if (header.aligned_to(kAlignment)) {
      data_ = reinterpret_cast<const std::uint8_t*>(header.data());
      return;
    }
    void* copy = small_;
    if (header.size() > sizeof(small_)) {
      large_.resize(header.size() / kAlignment + 1);
      copy = large_.data();
    }
    std::memcpy(copy, header.data(), header.size());
    data_ = static_cast<const std::uint8_t*>(copy);
  }
  AlignedHeader(const AlignedHeader&) = delete;
  AlignedHeader& operator=(const AlignedHeader&) = delete;

  const std::uint8_t* data() const { return data_; }

 private:
  static constexpr std::size_t kAlignment = 8;
  const std::uint8_t* data_ = nullptr;
  alignas(kAlignment) std::byte small_[512];  // requests and replies fit
  std::vector<std::uint64_t> large_;
};

// Messages with a payload that their Read checks; the others have none.
template <class Message>
constexpr bool kHasPayload =
    std::is_same_v<Message, Request> || std::is_same_v<Message, Reply> ||
    std::is_same_v<Message, Call> || std::is_same_v<Message, CallReply> ||
    std::is_same_v<Message, StatusReply> || std::is_same_v<Message, Replicate> ||
    std::is_same_v<Message, AdminReply> || std::is_same_v<Message, PushBatch>;

template <class Message, class Wire>
absl::Status ReadBody(const Wire* from, Input& in, AnyMessage* to) {
  Message& message = to->emplace<Message>();
  absl::Status status = decode::Read(*from, in, &message);
  if (status.ok() && !kHasPayload<Message> && !in.payload.empty()) {
    status = Wrong("number of payload frames is ", in.payload.size(), ", may be 0");
  }
  if (status.ok()) [[likely]]
    return status;
  return Wrong("malformed ", NameOf(*to), ": ", status.message());
}

absl::Status ReadHeader(const wire::Header& header, Input& in, AnyMessage* to) {
  if (header.body() == nullptr) return Wrong("malformed header: it has no body");
  switch (header.body_type()) {
#define LEEWAY_BODY(Type) \
  case wire::Body::Type:  \
    return ReadBody<Type>(header.body_as_##Type(), in, to)
    LEEWAY_BODY(Hello);
    LEEWAY_BODY(Reject);
    LEEWAY_BODY(Goodbye);
    LEEWAY_BODY(Join);
    LEEWAY_BODY(Welcome);
    LEEWAY_BODY(Refused);
    LEEWAY_BODY(ClusterMap);
    LEEWAY_BODY(MapAck);
    LEEWAY_BODY(Heartbeat);
    LEEWAY_BODY(HeartbeatAck);
    LEEWAY_BODY(NodeDown);
    LEEWAY_BODY(Leave);
    LEEWAY_BODY(LeaveAck);
    LEEWAY_BODY(Shutdown);
    LEEWAY_BODY(BarrierEnter);
    LEEWAY_BODY(BarrierRelease);
    LEEWAY_BODY(CreateTable);
    LEEWAY_BODY(OpenTable);
    LEEWAY_BODY(TableReply);
    LEEWAY_BODY(InstallTable);
    LEEWAY_BODY(InstallTableReply);
    LEEWAY_BODY(Request);
    LEEWAY_BODY(Reply);
    LEEWAY_BODY(ClockTick);
    LEEWAY_BODY(ClockAck);
    LEEWAY_BODY(Call);
    LEEWAY_BODY(CallReply);
    LEEWAY_BODY(StatusRequest);
    LEEWAY_BODY(StatusReply);
    LEEWAY_BODY(EnterClock);
    LEEWAY_BODY(EnterClockReply);
    LEEWAY_BODY(Replicate);
    LEEWAY_BODY(ReplicateAck);
    LEEWAY_BODY(ReplicaReady);
    LEEWAY_BODY(LoadReport);
    LEEWAY_BODY(Admin);
    LEEWAY_BODY(AdminReply);
    LEEWAY_BODY(CheckpointPrepare);
    LEEWAY_BODY(CheckpointPrepared);
    LEEWAY_BODY(CheckpointCut);
    LEEWAY_BODY(CheckpointWritten);
    LEEWAY_BODY(RestoreShards);
    LEEWAY_BODY(RestoreShardsReply);
    LEEWAY_BODY(SchedulerMoved);
    LEEWAY_BODY(PushBatch);
    LEEWAY_BODY(PushAcks);
    LEEWAY_BODY(CodecReport);
    LEEWAY_BODY(LinkReport);
    LEEWAY_BODY(LeadNow);
#undef LEEWAY_BODY
    case wire::Body::NONE:
      break;
  }
  return Wrong("malformed header: body's type is ", static_cast<int>(header.body_type()),
               ", may be 1 to ", static_cast<int>(wire::Body::MAX));
}

}  // namespace

absl::StatusOr<AnyMessage> Decode(const runtime::Buffer& header,
                                  std::span<runtime::Buffer> payload) {
  LEEWAY_RETURN_IF_ERROR(CheckHeaderLength(header.size()));
  const AlignedHeader aligned(header);
  LEEWAY_RETURN_IF_ERROR(VerifyHeader(aligned.data(), header.size()));
  Input in{.payload = payload, .text_bytes_left = header.size()};
  absl::StatusOr<AnyMessage> message{AnyMessage()};
  LEEWAY_RETURN_IF_ERROR(ReadHeader(*wire::GetHeader(aligned.data()), in, &*message));
  return message;
}

}  // namespace leeway::proto
