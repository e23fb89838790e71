// What lies in the memory that two processes share (docs/wire-format.md, "Shared memory").
//
// Each side of a connection has a segment of its own, which it alone may write: the other side maps
// it read-only, and the kernel holds both to it. So a peer can spoil only what it has sent itself.
// A segment is, in this order:
//
//   control    one page       how far this side has written and read, when it wants to be woken,
//                             and which of the exports of the other side it is done with
//   released   256 KiB        a generation for each unit of the *other* side's arena: what this
//                             side is done with
//   ring       ring_bytes     records, one after the other: the messages, small frames included
//   arena      arena_units    where large frames lie until the other side releases them
//
// Frames may also lie in memory that was exported: a user's arrays, in memory files of their own
// whose descriptors follow over the socket. They are numbered from 0 in the order in which they
// come.
//
// Nothing the other side writes is believed: what is read of it is read once, into memory of one's
// own, and checked there.
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leeway::van {

inline constexpr std::uint32_t kShmUnitBytes = 4096;  // of the arena; a page
inline constexpr std::uint32_t kShmUnitsMax = 65536;
inline constexpr std::uint32_t kShmRingBytesMin = 1 << 17;
inline constexpr std::uint32_t kShmRingBytesMax = 1 << 26;
inline constexpr std::uint32_t kShmRecordAlign = 16;
inline constexpr std::uint32_t kShmRecordBytesMax = 1 << 16;  // half the smallest ring
inline constexpr std::uint32_t kShmInlineBytesMax = 4096;     // larger frames go into the arena
inline constexpr std::uint64_t kShmPieceBytesMax = 1 << 20;
// What one side of a connection may have exported to the other: memory files, their bytes together,
// and frames that it has not been given back.
inline constexpr std::uint64_t kShmExportedFilesMax = 256;
inline constexpr std::uint64_t kShmExportedBytesMax = 1ull << 38;
inline constexpr std::uint32_t kShmExportsMax = 512;
static_assert(2 * kShmRecordBytesMax <= kShmRingBytesMin,
              "a record and what is left of the end fit");

// Positions only ever grow; their place in the ring is the remainder.
struct ShmControl {
  alignas(64) std::atomic<std::uint64_t> tail;  // written up to here
  alignas(64) std::atomic<std::uint64_t> head;  // of the other side's ring, read up to here
  std::atomic<std::uint64_t> freed;             // grows with every head and every release
  // Odd: a byte on the socket, please, when there is a message, or room again. One for each value.
  alignas(64) std::atomic<std::uint32_t> wants_message;
  std::atomic<std::uint32_t> wants_room;
  std::atomic<std::uint32_t> wants_back;             // what it has exported
  std::atomic<std::uint32_t> declines;               // not 0: it can map nothing that is exported
  alignas(64) std::atomic<std::uint64_t> gave_back;  // grows with every export given back
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(ShmControl) == 256 && alignof(ShmControl) == 64);

struct ShmSizes {
  std::uint32_t ring_bytes = 1 << 18;
  std::uint32_t arena_units = 1 << 14;  // 64 MiB; memory is taken only as it is used

  static constexpr std::size_t kGivenBackAt = 2048;
  static constexpr std::size_t kReleasedAt = 4096;
  static_assert(sizeof(ShmControl) <= kGivenBackAt &&
                kGivenBackAt + 4ull * kShmExportsMax <= kReleasedAt);
  static constexpr std::size_t kRingAt = kReleasedAt + 4ull * kShmUnitsMax;
  std::size_t ArenaAt() const { return kRingAt + ring_bytes; }
  std::size_t Total() const { return ArenaAt() + std::size_t{arena_units} * kShmUnitBytes; }
  std::uint64_t ArenaBytes() const { return std::uint64_t{arena_units} * kShmUnitBytes; }
  bool Valid() const {
    return ring_bytes >= kShmRingBytesMin && ring_bytes <= kShmRingBytesMax &&
           (ring_bytes & (ring_bytes - 1)) == 0 && arena_units >= 1 && arena_units <= kShmUnitsMax;
  }
};

enum class ShmRecordType : std::uint32_t {
  kPad = 1,        // nothing: a record never goes over the end of the ring
  kMessage = 2,    // a place for each frame, then the bytes of those that are inline
  kPiece = 3,      // one place: the next bytes of the first frame that still lacks some
  kTakenBack = 4,  // one place: no frame lies in the memory file `file` any more
};

struct ShmRecordHead {
  std::uint32_t bytes;  // all of the record, a multiple of kShmRecordAlign
  std::uint32_t type;
  std::uint32_t frames;  // kMessage: places that follow
  std::uint32_t zero;
};
static_assert(sizeof(ShmRecordHead) == 16);

enum class ShmPlaceKind : std::uint32_t {
  kInline = 1,    // in this record, behind the places, each padded to kShmRecordAlign
  kArena = 2,     // in the sender's arena, from unit `at`
  kPieces = 3,    // follows in records of its own
  kExported = 4,  // in the memory file `file`, from byte `at`
};

// Where the bytes of a frame are.
struct ShmPlace {
  std::uint64_t size;
  std::uint64_t at;
  std::uint32_t kind;
  // kArena: what to write into `released` of unit `at` to release it; kExported: into `given_back`
  // of `export` to give it back.
  std::uint32_t generation;
  std::uint32_t file;
  std::uint32_t exported;
};
static_assert(sizeof(ShmPlace) == 32);

constexpr std::uint64_t ShmAligned(std::uint64_t bytes) {
  return (bytes + kShmRecordAlign - 1) / kShmRecordAlign * kShmRecordAlign;
}

// The first thing either side says on the socket; its segment's descriptor comes with it.
struct ShmGreeting {
  char magic[8];  // kShmMagic
  std::uint32_t version;
  std::uint32_t ring_bytes;
  std::uint32_t arena_units;
  std::uint32_t zero;
};
static_assert(sizeof(ShmGreeting) == 24);
inline constexpr char kShmMagic[8] = {'L', 'W', 'Y', 's', 'h', 'm', '\r', '\n'};
inline constexpr std::uint32_t kShmVersion = 2;

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_
