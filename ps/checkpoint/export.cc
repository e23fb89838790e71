#include "ps/checkpoint/export.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/export_tables.h"
#include "ps/checkpoint/shard_file.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct Model {
  std::map<std::uint32_t, std::unique_ptr<ExportTable>> tables;  // by id
  std::deque<std::string> files;                                 // that they may point to
};

// A path where nothing exists can be created without a loss.
absl::Status CheckFree(runtime::FileSystem* files, const std::string& path) {
  const absl::Status there = files->KindOf(path).status();
  if (absl::IsNotFound(there)) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(there);
  return absl::AlreadyExistsError(absl::StrCat("cannot export by way of ", path,
                                               ": it is there already; remove it or move it away"));
}

// Neither the one that is read nor what that may add to.
absl::Status CheckOutside(runtime::FileSystem* files, const std::string& to) {
  const std::string folder = checkpoint::SplitPath(to).first;
  if (!checkpoint::ReadManifest(files, folder).ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot export to ", to, ": its folder is a checkpoint"));
}

// Nothing but a file is written to or replaced.
absl::Status CheckTarget(runtime::FileSystem* files, const std::string& path) {
  const absl::StatusOr<runtime::FileKind> kind = files->KindOf(path);
  if (absl::IsNotFound(kind.status())) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(kind.status());
  if (*kind == runtime::FileKind::kFile) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot export to ", path, ": something else than a file has that name"));
}

absl::StatusOr<Model> ReadModel(runtime::FileSystem* files, const std::string& path,
                                const std::vector<checkpoint::Manifest>& chain,
                                VerifyProgress progress) {
  Model model;
  for (const checkpoint::TableEntry& table : chain.front().tables) {
    model.tables[table.id] = NewExportTable(table.spec, chain.front().block_bytes);
  }
  std::uint64_t done = 0, all = 0;
  for (const checkpoint::Manifest& manifest : chain) all += manifest.bytes();
  const std::string directory = checkpoint::SplitPath(path).first;
  for (std::uint32_t shard = 0; shard < chain.front().num_shards; ++shard) {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<ShardContent> contents,
                            ReadShard(files, directory, chain, shard,
                                      [&](std::uint64_t bytes) { progress(done += bytes, all); }));
    for (const ShardContent& content : contents) {
      const std::string& file = model.files.emplace_back(checkpoint::JoinPath(
          checkpoint::JoinPath(directory, content.checkpoint), checkpoint::ShardFileName(shard)));
      for (const ShardContent::Table& table : content.tables) {
        // The newest manifest has the tables of all that it builds on.
        ExportTable& exported = *model.tables[table.id];
        for (std::size_t i = 0; i < table.pieces.size(); ++i) {
          exported.Take(table.pieces[i], file, table.values_at[i]);
        }
      }
    }
  }
  return model;
}

absl::Status CheckRoom(runtime::FileSystem* files, const std::string& to,
                       const checkpoint::TensorHeader& header) {
  const std::string folder = checkpoint::SplitPath(to).first;
  LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t room, files->BytesFree(folder));
  std::uint64_t needed = 0;
  for (const checkpoint::TensorInfo& tensor : header.tensors) {
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                            checkpoint::BytesOf(tensor.type, tensor.shape));
    needed += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - needed);
  }
  if (needed <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot export to ", to, ": it takes ", needed,
                                                   " bytes, and the disk has room for ", room));
}

absl::StatusOr<checkpoint::WrittenFile> WriteModel(runtime::FileSystem* files,
                                                   const std::string& to, const Model& model,
                                                   const checkpoint::Manifest& manifest) {
  checkpoint::TensorHeader header;
  header.metadata = {{"format", "leeway-export"},
                     {"checkpoint", manifest.name},
                     {"clock", absl::StrCat(manifest.clock)}};
  for (const auto& [id, table] : model.tables) {
    for (checkpoint::TensorInfo& tensor : table->Tensors()) {
      header.tensors.push_back(std::move(tensor));
    }
  }
  LEEWAY_RETURN_IF_ERROR(CheckRoom(files, to, header));
  LEEWAY_ASSIGN_OR_RETURN(const auto writer,
                          checkpoint::SafetensorsWriter::Create(files, to, std::move(header)));
  for (const auto& [id, table] : model.tables) {
    LEEWAY_RETURN_IF_ERROR(table->Write(files, writer.get()));
  }
  return writer->Finish();
}

}  // namespace

absl::StatusOr<checkpoint::WrittenFile> Export(runtime::FileSystem* files, const std::string& path,
                                               const std::string& to, VerifyProgress progress) {
  const std::string unfinished = to + ".unfinished";
  // Before anything is read: that may take long.
  LEEWAY_RETURN_IF_ERROR(CheckTarget(files, to));
  LEEWAY_RETURN_IF_ERROR(CheckFree(files, unfinished));
  LEEWAY_RETURN_IF_ERROR(CheckOutside(files, to));
  LEEWAY_RETURN_IF_ERROR(files->BytesFree(checkpoint::SplitPath(to).first).status());
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<checkpoint::Manifest> chain,
                          ReadModelChain(files, path));
  LEEWAY_ASSIGN_OR_RETURN(const Model model, ReadModel(files, path, chain, progress));
  absl::StatusOr<checkpoint::WrittenFile> written =
      WriteModel(files, unfinished, model, chain.front());
  absl::Status status = written.status();
  if (status.ok()) status = files->Rename(unfinished, to);
  if (status.ok()) status = files->SyncDirectory(checkpoint::SplitPath(to).first);
  if (status.ok()) return written;
  if (files->Exists(unfinished)) files->Remove(unfinished).IgnoreError();
  return status;
}

}  // namespace leeway::ps
