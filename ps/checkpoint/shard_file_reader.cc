// Reading shards' files back, without trust.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors_reader.h"
#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
#include "ps/checkpoint/manifest_updaters.h"
#include "ps/checkpoint/piece_tensors.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/checkpoint/shard_metadata.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

using checkpoint::Manifest;

template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

// Whether the file's own description fits the place where it lies.
absl::Status CheckPlace(const ShardContent& content, const Manifest& manifest,
                        std::uint32_t shard) {
  if (content.checkpoint != manifest.name || content.shard != shard ||
      content.num_shards != manifest.num_shards || content.block_bytes != manifest.block_bytes ||
      content.clock != manifest.clock) {
    return Wrong("it says that it is shard ", content.shard, " of ", content.num_shards, " of ",
                 content.checkpoint, " at clock ", content.clock);
  }
  if (content.base.empty() || (manifest.base.has_value() && content.base == manifest.base->name)) {
    return absl::OkStatus();
  }
  return Wrong("it adds to ", content.base, ", which is not its checkpoint's base");
}

// The descriptions of its tables are the manifest's.
absl::Status TakeSpecs(const Manifest& manifest, ShardContent* content) {
  for (ShardContent::Table& table : content->tables) {
    const auto entry =
        std::find_if(manifest.tables.begin(), manifest.tables.end(),
                     [&](const checkpoint::TableEntry& one) { return one.id == table.id; });
    if (entry == manifest.tables.end()) return Wrong("it has the unknown table ", table.id);
    table.spec = entry->spec;
    const std::optional<std::uint32_t> slots = StateSlotsOf(table.spec);
    if (slots.has_value() && *slots != table.state_slots) {
      return Wrong("it has ", table.state_slots, " state values an element of table '",
                   table.spec.name, "', whose updater has ", *slots);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSessions(const ShardContent& content) {
  for (const proto::ClientSession& session : content.sessions) {
    if (session.rank >= proto::kWorkersMax || session.admitted > proto::kCountMax ||
        session.admitted_held > proto::kCountMax) {
      return Wrong("it has a worker ", session.rank, " with ", session.admitted, " and ",
                   session.admitted_held, " pushes");
    }
  }
  return absl::OkStatus();
}

ShardContent::Table* FindTable(ShardContent* content, const PieceTensorName& name) {
  for (ShardContent::Table& table : content->tables) {
    if (table.spec.name == name.table && name.dense == (table.spec.kind == TableKind::kDense)) {
      return &table;
    }
  }
  return nullptr;
}

absl::Status CheckBlock(const ShardContent& content, const ShardContent::Table& table,
                        const FrozenPiece& piece) {
  if (piece.block >= proto::NumBlocks(table.spec, content.block_bytes) ||
      piece.elements != proto::ElementsInBlock(table.spec, content.block_bytes, piece.block) ||
      piece.rows() != 1) {
    return Wrong("block ", piece.block, " of table '", table.spec.name, "' has another size");
  }
  if (proto::ShardOfBlock(table.id, piece.block, content.num_shards) == content.shard) {
    return absl::OkStatus();
  }
  return Wrong("block ", piece.block, " of table '", table.spec.name, "' is of another shard");
}

absl::Status CheckWidths(const ShardContent::Table& table, const FrozenPiece& piece) {
  if (table.spec.kind != TableKind::kRagged) return absl::OkStatus();
  std::uint64_t elements = 0;
  for (const std::uint32_t width : piece.widths.as<std::uint32_t>()) {
    if (width > proto::kRowWidthMax) {
      return Wrong("a row of table '", table.spec.name, "' has ", width, " elements");
    }
    elements += width;
  }
  if (elements == piece.elements) return absl::OkStatus();
  return Wrong("rows of table '", table.spec.name, "' have other widths than values");
}

absl::Status CheckKeys(const ShardContent& content, const ShardContent::Table& table,
                       const std::vector<FrozenPiece>& pieces) {
  absl::flat_hash_set<std::uint64_t> keys;
  absl::Status status;
  for (const FrozenPiece& piece : pieces) {
    LEEWAY_RETURN_IF_ERROR(CheckWidths(table, piece));
    ForEachRow(piece, [&](const FrozenRow& row) {
      if (proto::ShardOfKey(row.key, content.num_shards) != content.shard) {
        status.Update(
            Wrong("row ", row.key, " of table '", table.spec.name, "' is of another shard"));
      }
      if (!keys.insert(row.key).second) {
        status.Update(Wrong("row ", row.key, " of table '", table.spec.name, "' is there twice"));
      }
    });
  }
  return status;
}

// They are counted on from there. What workers hold of a block is of no version that is to come.
absl::Status CheckSteps(const ShardContent::Table& table) {
  for (const FrozenPiece& piece : table.pieces) {
    if (piece.version != 0 && piece.version - 1 > piece.steps.as<std::uint64_t>()[0]) {
      return Wrong("block ", piece.block, " of table '", table.spec.name, "' was updated ",
                   piece.steps.as<std::uint64_t>()[0], " times, and has version ", piece.version);
    }
    for (const std::uint64_t steps : piece.steps.as<std::uint64_t>()) {
      if (steps <= proto::kCountMax) continue;
      return Wrong("something in table '", table.spec.name, "' was updated ", steps, " times");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckContent(const ShardContent& content) {
  for (const ShardContent::Table& table : content.tables) {
    LEEWAY_RETURN_IF_ERROR(CheckSteps(table));
    if (table.spec.kind != TableKind::kDense) {
      LEEWAY_RETURN_IF_ERROR(CheckKeys(content, table, table.pieces));
      LEEWAY_RETURN_IF_ERROR(CheckKeys(content, table, table.collected));
      continue;
    }
    for (const auto* const pieces : {&table.pieces, &table.collected}) {
      for (const FrozenPiece& piece : *pieces) {
        LEEWAY_RETURN_IF_ERROR(CheckBlock(content, table, piece));
      }
    }
  }
  return absl::OkStatus();
}

// The most that one tensor of it can have, whatever its header says: a row of the largest, with its
// state, or a block. (Where rows are small, so are the pieces that have many.)
std::uint64_t TensorBytesMax(const ShardContent::Table& table) {
  constexpr std::uint64_t kElementBytesMax = 8;
  constexpr std::uint64_t kElementsMax = std::max(proto::kRowWidthMax, proto::kBlockBytesMax);
  return kElementsMax * kElementBytesMax * std::max<std::uint64_t>(1, table.state_slots);
}

// All tensors, put together to pieces.
absl::Status ReadPieces(checkpoint::SafetensorsReader* reader, ShardContent* content,
                        absl::FunctionRef<void(std::uint64_t)> progress) {
  using PieceKey = std::tuple<ShardContent::Table*, std::uint64_t, bool>;  // index, collected
  std::map<PieceKey, std::map<std::string, PieceTensor>> parts;
  for (const checkpoint::TensorInfo& info : reader->header().tensors) {
    LEEWAY_ASSIGN_OR_RETURN(const PieceTensorName name, ParseTensorName(info.name));
    ShardContent::Table* const table = FindTable(content, name);
    if (table == nullptr) return Wrong("'", info.name, "' is of no table that it has");
    if (info.bytes() > TensorBytesMax(*table)) {
      return Wrong("'", info.name, "' has ", info.bytes(), " bytes");
    }
    LEEWAY_ASSIGN_OR_RETURN(runtime::Buffer bytes, reader->ReadNext());
    progress(info.bytes());
    parts[{table, name.index, name.collected}][name.part] = {.info = info,
                                                             .bytes = std::move(bytes)};
  }
  for (auto& [place, tensors] : parts) {
    const auto& [table, index, collected] = place;
    if (collected) {
      LEEWAY_ASSIGN_OR_RETURN(FrozenPiece piece, ToCollectedPiece(table->spec, index, tensors));
      table->collected.push_back(std::move(piece));
      continue;
    }
    LEEWAY_ASSIGN_OR_RETURN(FrozenPiece piece,
                            ToPiece(table->spec, table->state_slots, index, tensors));
    table->pieces.push_back(std::move(piece));
    table->values_at.push_back(reader->data_begin() + tensors.at("values").info.begin);
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardContent> Read(runtime::FileSystem* files, const std::string& path,
                                  const Manifest& manifest, const checkpoint::FileEntry& entry,
                                  absl::FunctionRef<void(std::uint64_t)> progress) {
  LEEWAY_ASSIGN_OR_RETURN(const auto reader, checkpoint::SafetensorsReader::Open(files, path));
  if (reader->bytes() != entry.bytes) {
    return Wrong("it has ", reader->bytes(), " bytes instead of ", entry.bytes);
  }
  LEEWAY_ASSIGN_OR_RETURN(ShardContent content, FromMetadata(reader->header().metadata));
  LEEWAY_RETURN_IF_ERROR(CheckPlace(content, manifest, entry.shard));
  LEEWAY_RETURN_IF_ERROR(TakeSpecs(manifest, &content));
  LEEWAY_RETURN_IF_ERROR(CheckSessions(content));
  LEEWAY_RETURN_IF_ERROR(ReadPieces(reader.get(), &content, progress));
  if (reader->checksum() != entry.checksum) {
    return Wrong("it has the checksum ", checkpoint::ChecksumText(reader->checksum()),
                 " instead of ", checkpoint::ChecksumText(entry.checksum));
  }
  LEEWAY_RETURN_IF_ERROR(CheckContent(content));
  return content;
}

}  // namespace

absl::StatusOr<ShardContent> ReadShardFile(runtime::FileSystem* files, const std::string& folder,
                                           const Manifest& manifest, std::uint32_t shard,
                                           absl::FunctionRef<void(std::uint64_t)> progress) {
  const checkpoint::FileEntry& entry = manifest.files[shard];
  const std::string path = checkpoint::JoinPath(folder, entry.name);
  absl::StatusOr<ShardContent> content = Read(files, path, manifest, entry, progress);
  if (content.ok()) return content;
  // A disk's own errors keep their code; they name the file already.
  const absl::Status& why = content.status();
  const bool named = why.message().find(path) != absl::string_view::npos;
  const bool wrong = absl::IsInvalidArgument(why) || absl::IsOutOfRange(why);
  return absl::Status(wrong ? absl::StatusCode::kDataLoss : why.code(),
                      named ? std::string(why.message()) : absl::StrCat(path, ": ", why.message()));
}

// CheckBase has seen that the newest manifest has the tables of all that it builds on.
void TakeCodecChanges(const Manifest& newest, ShardContent* content) {
  for (ShardContent::Table& table : content->tables) {
    table.codec_changed = std::ranges::any_of(newest.tables, [&](const auto& entry) {
      return entry.id == table.id && entry.codec_changed;
    });
  }
}

absl::StatusOr<std::vector<ShardContent>> ReadShard(
    runtime::FileSystem* files, const std::string& directory, const std::vector<Manifest>& chain,
    std::uint32_t shard, absl::FunctionRef<void(std::uint64_t)> progress) {
  std::vector<ShardContent> contents;
  for (const Manifest& manifest : chain) {
    LEEWAY_ASSIGN_OR_RETURN(ShardContent content,
                            ReadShardFile(files, checkpoint::JoinPath(directory, manifest.name),
                                          manifest, shard, progress));
    TakeCodecChanges(chain.front(), &content);
    const bool whole = content.base.empty();
    // What was collected then has been applied since, or is among what is collected now.
    if (!contents.empty()) {
      for (ShardContent::Table& table : content.tables) table.collected.clear();
    }
    contents.push_back(std::move(content));
    if (whole) break;
  }
  if (!contents.back().base.empty()) {
    return Wrong("shard ", shard, " of ", chain.front().name, " builds on ", contents.back().base,
                 ", which its manifest does not name");
  }
  std::reverse(contents.begin(), contents.end());
  return contents;
}

}  // namespace leeway::ps
