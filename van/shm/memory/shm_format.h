// These structures define the layout of the memory that two processes share (docs/wire-format.md,
// "Shared memory").
//
// Each side of a connection has a segment of its own, which it alone may write: the other side maps
// it read-only, and the kernel enforces that. So a peer can corrupt only what it has sent itself. A
// segment is, in this order:
//
//   control    one page       how far this side has written and read, when it wants to be woken,
//                             and which exports of the other side it has finished with
//   released   256 KiB        a generation for each unit of the *other* side's arena: what this
//                             side has released
//   ring       ring_bytes     records, one after the other: the messages, small frames included
//   arena      arena_units    where large frames lie until the other side releases them
//
// Frames may also lie in exported memory: a user's arrays, in memory files of their own whose
// descriptors follow over the socket. The files are numbered from 0 in the order in which they
// come.
//
// Nothing that the other side writes is trusted: each value is read once, into memory of one's own,
// and checked there.
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leeway::van {

inline constexpr std::uint32_t kShmUnitBytes = 4096;  // unit of the arena: a page
inline constexpr std::uint32_t kShmUnitsMax = 65536;
inline constexpr std::uint32_t kShmRingBytesMin = 1 << 17;
inline constexpr std::uint32_t kShmRingBytesMax = 1 << 26;
inline constexpr std::uint32_t kShmRecordAlign = 16;
inline constexpr std::uint32_t kShmRecordBytesMax = 1 << 16;  // half of the smallest ring
inline constexpr std::uint32_t kShmInlineBytesMax = 4096;     // larger frames lie in the arena
inline constexpr std::uint64_t kShmPieceBytesMax = 1 << 20;
// Limits of what one side of a connection may have exported to the other: memory files, the sum of
// their bytes, and frames that have not been given back.
inline constexpr std::uint64_t kShmExportedFilesMax = 256;
inline constexpr std::uint64_t kShmExportedBytesMax = 1ull << 38;
inline constexpr std::uint32_t kShmExportsMax = 512;
static_assert(2 * kShmRecordBytesMax <= kShmRingBytesMin,
              "a record and what is left of the end fit");

// How far a side has written and read. Positions only grow; the offset in the ring is the remainder
// modulo its size.
struct ShmControl {
  alignas(64) std::atomic<std::uint64_t> tail;  // end of what this side has written
  // End of what this side has read of the other side's ring.
  alignas(64) std::atomic<std::uint64_t> head;
  std::atomic<std::uint64_t> freed;  // grows with every change of head and every release
  // Odd: this side wants a byte on the socket when there is a message, or room, or an export given
  // back. One byte for each odd value.
  alignas(64) std::atomic<std::uint32_t> wants_message;
  std::atomic<std::uint32_t> wants_room;
  std::atomic<std::uint32_t> wants_back;             // wants its exports given back
  std::atomic<std::uint32_t> declines;               // not 0: it cannot map exported memory
  alignas(64) std::atomic<std::uint64_t> gave_back;  // grows with every export that it gives back
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(ShmControl) == 256 && alignof(ShmControl) == 64);

struct ShmSizes {
  std::uint32_t ring_bytes = 1 << 18;
  std::uint32_t arena_units = 1 << 14;  // 64 MiB; the system takes memory only as it is used

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
  kPad = 1,        // padding: a record never crosses the end of the ring
  kMessage = 2,    // a place for each frame, then the bytes of the inline frames
  kPiece = 3,      // one place: the next bytes of the first incomplete frame
  kTakenBack = 4,  // one place: no frame lies in the memory file `file` any more
};

struct ShmRecordHead {
  std::uint32_t bytes;  // length of the record, a multiple of kShmRecordAlign
  std::uint32_t type;
  std::uint32_t frames;  // kMessage: number of places that follow
  std::uint32_t zero;
};
static_assert(sizeof(ShmRecordHead) == 16);

enum class ShmPlaceKind : std::uint32_t {
  kInline = 1,    // in this record, after the places, each padded to kShmRecordAlign
  kArena = 2,     // in the sender's arena, from unit `at`
  kPieces = 3,    // follows in records of kind kPiece
  kExported = 4,  // in the memory file `file`, from byte `at`
};

// Where the bytes of a frame are.
struct ShmPlace {
  std::uint64_t size;
  std::uint64_t at;
  std::uint32_t kind;
  // kArena: the value to write into `released` of unit `at` to release the frame. kExported: into
  // `given_back` of `exported` to give it back.
  std::uint32_t generation;
  std::uint32_t file;
  std::uint32_t exported;
};
static_assert(sizeof(ShmPlace) == 32);

constexpr std::uint64_t ShmAligned(std::uint64_t bytes) {
  return (bytes + kShmRecordAlign - 1) / kShmRecordAlign * kShmRecordAlign;
}

// The first message of each side on the socket; the descriptor of its segment comes with it.
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

// The INVALID_ARGUMENT status for a peer whose shared memory is malformed.
template <class... Parts>
absl::Status BrokenMemory(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("its shared memory is malformed: ", parts...));
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_FORMAT_H_
