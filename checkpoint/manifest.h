// The manifest of a checkpoint: what makes a folder of files one. It is written last, when all
// that it speaks of is on the disk, and holds its own checksum and that of every file.
#ifndef LEEWAY_CHECKPOINT_MANIFEST_H_
#define LEEWAY_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"

namespace leeway::checkpoint {

inline constexpr std::uint64_t kFormatVersion = 1;
inline constexpr char kManifestName[] = "manifest.json";
inline constexpr std::uint64_t kManifestBytesMax = 1ull << 30;

struct TableEntry {
  std::uint32_t id = 0;
  TableSpec spec;
  Updater::Combine combine = Updater::Combine::kSum;
  // The table's codec has been changed while it was trained: what its blocks say that workers hold
  // may be of an earlier time.
  bool codec_changed = false;
  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

struct FileEntry {
  std::string name;
  std::uint32_t shard = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

// The checkpoint that an incremental one adds to, in the same folder.
struct Base {
  std::string name;
  std::uint64_t checksum = 0;  // of its manifest
  friend bool operator==(const Base&, const Base&) = default;
};

struct Manifest {
  std::string name;  // "ckpt-00000007"
  std::string time;  // RFC 3339, by the scheduler's calendar
  std::uint64_t cluster = 0;
  std::uint64_t clock = 0;  // it has exactly the pushes of the clocks below
  std::uint32_t num_shards = 0;
  std::uint64_t block_bytes = 0;
  std::optional<Base> base;
  std::vector<TableEntry> tables;  // by id
  std::vector<FileEntry> files;    // by shard: one for each
  std::uint64_t checksum = 0;      // of the manifest's own text; set by encoding and parsing it

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const FileEntry& file : files) sum += file.bytes;
    return sum;
  }
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Whether it is one that a cluster can have written, as far as it alone says: what is shown, read,
// exported or started from has passed this, and so has what is written. DATA_LOSS.
absl::Status CheckManifest(const Manifest& manifest);
// The same for one that adds to `base`: as far as the two have to agree.
absl::Status CheckBase(const Manifest& manifest, const Manifest& base);

std::string EncodeManifest(Manifest* manifest);
// DATA_LOSS for anything that EncodeManifest has not written; UNIMPLEMENTED for one of a later
// version of the format.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_MANIFEST_H_
