// The checks of a manifest's contents.
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "proto/messages/limits.h"
#include "proto/tables/table_difference.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

constexpr std::size_t kTimeBytesMax = 64;
// Of all files: so that sums of sizes cannot wrap.
constexpr std::uint64_t kBytesMax = 1ull << 56;

template <class... Parts>
absl::Status WrongManifest(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

// It is shown to people: nothing in it may do anything to their terminals.
bool IsTime(absl::string_view text) {
  return text.size() <= kTimeBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == ':' || c == '-' ||
                  c == '+' || c == '.';
         });
}

absl::Status CheckTables(const Manifest& manifest) {
  if (manifest.tables.size() > proto::kTablesMax) {
    return WrongManifest("it has ", manifest.tables.size(), " tables");
  }
  std::set<absl::string_view> names;
  std::uint32_t before = 0;  // no table has that id
  for (const TableEntry& table : manifest.tables) {
    if (table.id <= before) return WrongManifest("its tables are mixed up");
    if (table.id > proto::kTableIdMax)
      return WrongManifest("it has a table with the id ", table.id);
    if (!names.insert(table.spec.name).second) {
      return WrongManifest("it has two tables '", table.spec.name, "'");
    }
    LEEWAY_RETURN_IF_ERROR(table.spec.Validate());
    before = table.id;
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const Manifest& manifest) {
  if (manifest.files.size() != manifest.num_shards) {
    return WrongManifest("it has ", manifest.files.size(), " files for ", manifest.num_shards,
                         " shards");
  }
  std::uint64_t left = kBytesMax;
  for (std::uint32_t shard = 0; shard < manifest.num_shards; ++shard) {
    const FileEntry& file = manifest.files[shard];
    if (file.shard != shard || file.name != ShardFileName(shard)) {
      return WrongManifest("it has no file for shard ", shard);
    }
    if (file.bytes > left) return WrongManifest("its files have more bytes than can be");
    left -= file.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckManifest(const Manifest& manifest) {
  const std::optional<std::uint64_t> number = CheckpointNumber(manifest.name);
  if (!number.has_value()) return WrongManifest("its name is none of a checkpoint");
  if (!IsTime(manifest.time)) return WrongManifest("its time is none");
  if (manifest.clock > proto::kStartClockMax)
    return WrongManifest("it is of clock ", manifest.clock);
  if (manifest.num_shards == 0 || manifest.num_shards > proto::kShardsMax ||
      manifest.block_bytes < proto::kBlockBytesMin ||
      manifest.block_bytes > proto::kBlockBytesMax) {
    return WrongManifest("its shards or blocks are out of range");
  }
  // A base is older: so no chain of bases comes back to where it began.
  if (manifest.base.has_value()) {
    const std::optional<std::uint64_t> base = CheckpointNumber(manifest.base->name);
    if (!base.has_value() || *base >= *number)
      return WrongManifest("its base is no earlier checkpoint");
  }
  LEEWAY_RETURN_IF_ERROR(CheckTables(manifest));
  return CheckFiles(manifest);
}

namespace {

bool IsSameTable(const TableEntry& a, const TableEntry& b) {
  return a.id == b.id && a.combine == b.combine && proto::CheckShapedAlike(a.spec, b.spec).ok();
}

}  // namespace

absl::Status CheckBase(const Manifest& manifest, const Manifest& base) {
  if (base.name != manifest.base->name || base.checksum != manifest.base->checksum) {
    return WrongManifest("it is not the checkpoint that ", manifest.name, " adds to");
  }
  if (base.cluster != manifest.cluster || base.num_shards != manifest.num_shards ||
      base.block_bytes != manifest.block_bytes) {
    return WrongManifest("it is of another cluster, or cut otherwise, than ", manifest.name,
                         ", which adds to it");
  }
  // Tables come, but none goes or becomes another. What does not shape its data may have changed.
  for (const TableEntry& table : base.tables) {
    const auto same =
        std::lower_bound(manifest.tables.begin(), manifest.tables.end(), table.id,
                         [](const TableEntry& entry, std::uint32_t id) { return entry.id < id; });
    if (same != manifest.tables.end() && IsSameTable(*same, table)) continue;
    return WrongManifest("its table '", table.spec.name, "' is not there, or is another one, in ",
                         manifest.name, ", which adds to it");
  }
  return absl::OkStatus();
}

}  // namespace leeway::checkpoint
