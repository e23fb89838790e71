// The limits of every size that comes from the wire, by name.
#ifndef LEEWAY_PROTO_MESSAGES_LIMITS_H_
#define LEEWAY_PROTO_MESSAGES_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::proto {

inline constexpr std::size_t kHeaderBytesMax = 16 << 20;  // a cluster map of thousands of nodes
// Small messages that travel together (van/session/envelope.h).
inline constexpr std::size_t kEnvelopeBytesMax = 64 << 10;
inline constexpr std::size_t kEnvelopeMessagesMax = 256;
// Small pushes in one message, and acknowledgements in one.
inline constexpr std::size_t kPushesPerBatchMax = 256;
// Bytes of the values of one push of a batch, and of all together: to keep one of them may keep the
// memory of all. (Larger pushes gain nothing from a batch.)
inline constexpr std::uint64_t kBatchedPushBytesMax = 2 << 10;
inline constexpr std::uint64_t kBatchBytesMax = 64 << 10;
// Parts of a reply to a pull: a block as it was, and its changes since.
inline constexpr std::size_t kReplyPartsMax = 64;
// Payload frames of a call of a user's handler, and of its answer (leeway/call.h).
inline constexpr std::size_t kCallFramesMax = 8;
// Of a shard handler: bytes of an answer; and of one worker and shard, the answers that are kept
// until their worker has them.
inline constexpr std::size_t kAnswerBytesMax = 1 << 20;
inline constexpr std::size_t kAnswersKeptMax = 1024;
inline constexpr std::size_t kAnswersKeptBytesMax = 16 << 20;
// Targets (dense blocks, or tables of rows) that one call of a shard handler updates.
inline constexpr std::size_t kCallUpdatesMax = 1024;
inline constexpr std::size_t kConsistencyBytesMax = 4096;  // with a table of weights
inline constexpr std::size_t kNameBytesMax = 255;          // tables, barriers, handlers, updaters
inline constexpr std::size_t kReasonBytesMax = 4096;       // longer reasons are cut when encoded
// Bytes of the reason of a refusal, as replicas get it; and refusals in the state of a shard.
inline constexpr std::size_t kRefusalReasonBytesMax = 512;
inline constexpr std::size_t kRefusalsMax = 16384;
inline constexpr std::size_t kAddressBytesMax = 512;
inline constexpr std::size_t kPathBytesMax = 4095;      // directories of checkpoints
inline constexpr std::size_t kArgumentBytesMax = 4095;  // of an Admin; as long as a path
inline constexpr std::size_t kArgumentsMax = 64;
// All of them together; a tool is a guest, whose frames are small (van::kGuestFrameBytesMax).
inline constexpr std::size_t kArgumentsBytesMax = 60 << 10;
inline constexpr std::uint32_t kServersMax = 4096;
inline constexpr std::uint32_t kWorkersMax = 65536;
inline constexpr std::uint32_t kServerThreadsMax = 256;
inline constexpr std::uint32_t kShardsMax = 1 << 20;
inline constexpr std::uint32_t kReplicationMax = 8;
// Head, members and joining replicas of a shard: twice as many while it moves.
inline constexpr std::uint32_t kChainMax = 2 * kReplicationMax;
inline constexpr std::size_t kDimensionsMax = 8;
inline constexpr std::uint64_t kTableElementsMax = 1ull << 48;
inline constexpr std::size_t kTableCodecsMax = 16;  // of one table
inline constexpr std::uint32_t kTablesMax = 1 << 16;
inline constexpr std::size_t kVersionsKeptMax = 64;  // of one published model
// Decided changes of one table in a map. The next one waits until one of them is needed no more.
inline constexpr std::size_t kTableSettingsToldMax = 64;
inline constexpr std::uint32_t kTableSettingsMax = 1 << 16;  // changes of one table
inline constexpr std::size_t kCodecsMax = 1024;              // of one node
inline constexpr std::size_t kCodecNameBytesMax = 64;
// The largest id in a message. Each new table gets the next one, so there have to be more above.
inline constexpr std::uint32_t kTableIdMax = 1u << 31;
inline constexpr std::uint64_t kRowWidthMax = 1ull << 24;
inline constexpr std::uint64_t kKeysPerRequestMax = 1ull << 26;
inline constexpr std::uint64_t kParametersMax = 64;
inline constexpr std::uint32_t kStateSlotsMax = 16;         // an updater's state values an element
inline constexpr std::size_t kCheckpointFilesMax = 65536;   // written by one server
inline constexpr std::uint64_t kTimeoutMsMax = ~0ull >> 1;  // fits a signed number
// The clock that a cluster starts at from a checkpoint.
inline constexpr std::uint64_t kStartClockMax = 1ull << 61;
// Counters (clocks, updates, pushes) that are read from a file: far from wrapping.
inline constexpr std::uint64_t kCountMax = 1ull << 61;
inline constexpr std::uint64_t kBlockBytesMin = 4096;
inline constexpr std::uint64_t kBlockBytesMax = 256 << 20;

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_LIMITS_H_
