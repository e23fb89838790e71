// The messages between processes, as plain structs that describe their fields
// (proto/messages/fields.h): those of the van here, the others in the headers that this one
// includes.
#ifndef LEEWAY_PROTO_MESSAGES_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/admin_messages.h"
#include "proto/messages/batch_messages.h"
#include "proto/messages/cluster_messages.h"
#include "proto/messages/data_messages.h"
#include "proto/messages/fields.h"
#include "proto/messages/publication_messages.h"
#include "proto/messages/replication_messages.h"

namespace leeway::proto {

inline constexpr std::uint32_t kProtocolVersion = 9;
inline constexpr std::uint32_t kProtocolVersionMin = 9;

// Bits of Hello::capabilities; unknown ones are ignored.
enum Capability : std::uint64_t {
  kNoCapabilities = 0,
  kEnvelopes = 1,  // accepts several small messages in one frame of the van
};

// ---- the van ----
struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  std::uint32_t protocol_min = kProtocolVersionMin;
  std::uint64_t capabilities = 0;
  Role role = Role::kUnknown;
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t cluster = 0;
  std::string build = {};

  // A role that only another version knows must not hide that the version is the fault.
  Range roles() const {
    Range range = FromTo(Role::kUnknown, Role::kReader);
    range.lenient = protocol < kProtocolVersionMin || protocol_min > kProtocolVersion;
    return range;
  }
  static bool Fields(auto& v, auto& m) {
    return v("protocol", m.protocol, AtLeast(1)) &&
           v("protocol_min", m.protocol_min, Range{1, m.protocol, "1 to `protocol`"}) &&
           v("capabilities", m.capabilities) && v("role", m.role, m.roles()) && v("node", m.node) &&
           v("incarnation", m.incarnation) && v("cluster", m.cluster) &&
           v("build", m.build, kNameOrNone);
  }
};
struct Reject {
  absl::Status why = {};
  static bool Fields(auto& v, auto& m) { return v(m.why, kError); }
};
struct Goodbye {
  static bool Fields(auto&, auto&) { return true; }
};

// Their order is that of their numbers on the wire, which never change: a new one comes last.
using MessageVariant =
    std::variant<std::monostate, Hello, Reject, Goodbye, Join, Welcome, Refused, ClusterMap, MapAck,
                 Heartbeat, HeartbeatAck, NodeDown, Leave, LeaveAck, Shutdown, BarrierEnter,
                 BarrierRelease, CreateTable, OpenTable, TableReply, InstallTable,
                 InstallTableReply, Request, Reply, ClockTick, ClockAck, Call, CallReply,
                 StatusRequest, StatusReply, EnterClock, EnterClockReply, Replicate, ReplicateAck,
                 ReplicaReady, LoadReport, Admin, AdminReply, CheckpointPrepare, CheckpointPrepared,
                 CheckpointCut, CheckpointWritten, RestoreShards, RestoreShardsReply,
                 SchedulerMoved, PushBatch, PushAcks, CodecReport, LinkReport, LeadNow, Publish,
                 PublishReply, Published>;

// Whether M is one of the messages.
template <class M, class Variant = MessageVariant>
inline constexpr bool kIsMessage = false;
template <class M, class... Messages>
inline constexpr bool kIsMessage<M, std::variant<Messages...>> = (std::is_same_v<M, Messages> ||
                                                                  ...);

// One message of any type. Its own members are compiled in messages.cc alone: a variant of 50
// structs that is moved and destroyed in every file took a tenth of the time of a build.
class AnyMessage : public MessageVariant {
 public:
  AnyMessage();
  AnyMessage(const AnyMessage&);
  AnyMessage(AnyMessage&&) noexcept;
  AnyMessage& operator=(const AnyMessage&);
  AnyMessage& operator=(AnyMessage&&) noexcept;
  ~AnyMessage();

  template <class M>
  requires kIsMessage<M> AnyMessage(
      M message);  // NOLINT(google-explicit-constructor): as a variant's
};

inline constexpr std::size_t kMessageTypes = std::variant_size_v<MessageVariant>;
template <std::size_t number>
using MessageOf = std::variant_alternative_t<number, MessageVariant>;

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_MESSAGES_H_
