// These structs and functions define the bytes of an rdma connection, little-endian (docs/rdma.md,
// "Protocol"). Put and Get (van/little_endian.h) write and read heads, places, arenas and grants.
//
// While they connect, each side sends the other a greeting (in rdma_cm's private data):
//   0   8  magic "LWYrdma", 10
//   8   4  version of this format
//   12  4  bytes of each of the receives that this side posts
//   16  4  packets that the other side may send beyond those it knows to have been taken
//   20  4  0
//
// A packet is the content of one SEND:
//   0   4  packets of the other side that this one has taken so far, modulo 2^32
//   4   1  type
//   5   1  number of units released
//   6   2  kMessage: number of frames; else 0
//   8   4  bytes of the packet
//   12  1  number of grants that follow
//   13  3  0
//   16     the first unit of each released extent of the other side's, 4 bytes each, padded with
//          zeros to a multiple of 8; then the grants, 32 bytes each; then
//          kMessage: a place for each frame (the first is prefix and header), then the bytes of
//                    those that are inline, each padded with zeros to a multiple of 8
//          kPiece:   one place, kInline or kArena, then its bytes if inline: the next bytes of the
//                    first incomplete frame
//          kArena:   8 address, 4 key, 4 units of memory that the other side may write to; no
//                    units: there is none
//   The other types have no body.
//
// A place: 8 length of the frame (or piece) in bytes, 4 its first unit or (kGranted) the number of
// the grant, 4 its kind.
//
// A grant of memory that the payload of an answer may be written to: 8 the answer's receive token
// (van/posted_receive.h), 8 address, 8 length in bytes, 4 key, 4 its number, which each connection
// uses once. Length 0: the grant of that number has ended.
#ifndef LEEWAY_VAN_RDMA_RDMA_FORMAT_H_
#define LEEWAY_VAN_RDMA_RDMA_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace leeway::van {

inline constexpr std::uint32_t kRdmaVersion = 2;
inline constexpr std::size_t kRdmaGreetingBytes = 24;

struct RdmaGreeting {
  std::uint32_t slot_bytes = 0;
  std::uint32_t packets = 0;
};
inline constexpr std::uint32_t kRdmaSlotBytesMin = 4096;
inline constexpr std::uint32_t kRdmaSlotBytesMax = 1 << 20;
inline constexpr std::uint32_t kRdmaPacketsMin = 8;
inline constexpr std::uint32_t kRdmaPacketsMax = 1 << 16;

std::array<std::byte, kRdmaGreetingBytes> PutRdmaGreeting(const RdmaGreeting& greeting);
// FAILED_PRECONDITION: another protocol or version; INVALID_ARGUMENT: sizes out of bounds.
absl::StatusOr<RdmaGreeting> GetRdmaGreeting(std::span<const std::byte> bytes);

enum class RdmaPacketType : std::uint8_t {
  kMessage = 1,
  kPiece = 2,
  kCredit = 3,       // has no body; its head reports
  kArenaWanted = 4,  // answered by kArena
  kArena = 5,
  kRoomWanted = 6,  // in the arena: releases have to be reported at once
  kEnd = 7,         // nothing follows
};

inline constexpr std::uint32_t kRdmaUnitBytes = 4096;  // unit of an arena
inline constexpr std::uint32_t kRdmaUnitsMax = 1 << 18;
inline constexpr std::size_t kRdmaReleasesMax = 32;    // in a packet
inline constexpr std::size_t kRdmaGrantsMax = 8;       // in a packet
inline constexpr std::size_t kRdmaGrantsOpenMax = 64;  // of a connection, in each direction

struct RdmaHead {
  std::uint32_t taken = 0;
  RdmaPacketType type = RdmaPacketType::kCredit;
  std::uint8_t releases = 0;
  std::uint16_t frames = 0;
  std::uint32_t bytes = 0;
  std::uint32_t grants = 0;
};
inline constexpr std::size_t kRdmaHeadBytes = sizeof(RdmaHead);
// Decodes the head of a packet. INVALID_ARGUMENT unless its length is that of the packet, and the
// packet has the releases and grants that it announces.
absl::StatusOr<RdmaHead> GetRdmaHead(std::span<const std::byte> packet);

enum class RdmaPlaceKind : std::uint32_t { kInline = 1, kArena = 2, kPieces = 3, kGranted = 4 };
struct RdmaPlace {
  std::uint64_t bytes = 0;
  std::uint32_t unit = 0;  // kArena: first unit; kGranted: number of the grant
  RdmaPlaceKind kind = RdmaPlaceKind::kInline;
};
inline constexpr std::size_t kRdmaPlaceBytes = sizeof(RdmaPlace);

// The body of kArena.
struct RdmaArena {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t units = 0;  // 0: there is none
};

struct RdmaGrant {
  std::uint64_t token = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // 0: the grant has ended
  std::uint32_t key = 0;
  std::uint32_t number = 0;
};
inline constexpr std::size_t kRdmaGrantBytes = sizeof(RdmaGrant);

constexpr std::size_t RdmaPadded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
constexpr std::size_t RdmaReleaseBytes(std::size_t releases) { return RdmaPadded(4 * releases); }
// The bytes that a packet has room for after its head, with any number of releases and grants.
constexpr std::size_t RdmaBodyBytes(std::uint32_t slot_bytes) {
  return slot_bytes - kRdmaHeadBytes - RdmaReleaseBytes(kRdmaReleasesMax) -
         kRdmaGrantsMax * kRdmaGrantBytes;
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_FORMAT_H_
