#include "ps/checkpoint/export.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/layout.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/store/elements.h"
#include "ps/store/frozen_piece.h"
#include "ps/store/initial_values.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

using checkpoint::TensorInfo;
using checkpoint::TensorType;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TensorInfo Tensor(std::string name, TensorType type, std::vector<std::uint64_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.type = type;
  info.shape = std::move(shape);
  return info;
}

// What has been read of one table. Later pieces take the place of earlier ones.
class TableValues {
 public:
  TableValues(const TableSpec& spec, std::uint64_t block_bytes)
      : spec_(spec), block_bytes_(block_bytes) {
    if (spec.kind != TableKind::kDense) return;
    values_.resize(spec.NumElements() * SizeOf(spec.dtype));
    VisitStored(spec.dtype, [&](auto* stored) {
      using Stored = std::remove_pointer_t<decltype(stored)>;
      InitialValues(spec).Fill(0, spec.NumElements(), reinterpret_cast<Stored*>(values_.data()));
    });
  }

  void Take(const FrozenPiece& piece) {
    ForEachRow(piece, [this](const FrozenRow& row) {
      if (spec_.kind == TableKind::kDense) {
        const std::uint64_t begin =
            row.key * proto::BlockElements(spec_.dtype, block_bytes_) * SizeOf(spec_.dtype);
        std::memcpy(values_.data() + begin, row.values.data(), row.values.size());
        return;
      }
      const auto width = static_cast<std::uint32_t>(row.width);
      const auto [at, is_new] = rows_.try_emplace(row.key, Row{values_.size(), width});
      if (is_new || at->second.width != width) {
        at->second = {values_.size(), width};
        values_.append(reinterpret_cast<const char*>(row.values.data()), row.values.size());
      } else {
        std::memcpy(values_.data() + at->second.begin, row.values.data(), row.values.size());
      }
    });
  }

  void Sort() {
    keys_.reserve(rows_.size());
    for (const auto& [key, row] : rows_) keys_.push_back(key);
    std::sort(keys_.begin(), keys_.end());
    for (const std::uint64_t key : keys_) widths_.push_back(rows_.at(key).width);
  }

  std::vector<TensorInfo> Tensors() const {
    const TensorType type = checkpoint::TensorTypeOf(spec_.dtype);
    if (spec_.kind == TableKind::kDense) return {Tensor(spec_.name, type, spec_.shape)};
    std::vector<TensorInfo> tensors = {
        Tensor(spec_.name + ".keys", TensorType::kU64, {keys_.size()})};
    if (spec_.kind == TableKind::kSparse) {
      tensors.push_back(Tensor(spec_.name + ".values", type, {keys_.size(), spec_.row_width}));
      return tensors;
    }
    std::uint64_t elements = 0;
    for (const std::uint32_t width : widths_) elements += width;
    tensors.push_back(Tensor(spec_.name + ".widths", TensorType::kU32, {keys_.size()}));
    tensors.push_back(Tensor(spec_.name + ".values", type, {elements}));
    return tensors;
  }

  absl::Status Write(checkpoint::SafetensorsWriter* writer) const {
    if (spec_.kind == TableKind::kDense) return writer->Append(BytesOf(values_));
    LEEWAY_RETURN_IF_ERROR(writer->Append(BytesOf(keys_)));
    if (spec_.kind == TableKind::kRagged) LEEWAY_RETURN_IF_ERROR(writer->Append(BytesOf(widths_)));
    for (const std::uint64_t key : keys_) {
      const Row& row = rows_.at(key);
      LEEWAY_RETURN_IF_ERROR(
          writer->Append(BytesOf(values_).subspan(row.begin, row.width * SizeOf(spec_.dtype))));
    }
    return absl::OkStatus();
  }

 private:
  struct Row {
    std::uint64_t begin = 0;  // in values_
    std::uint32_t width = 0;
  };

  const TableSpec spec_;
  const std::uint64_t block_bytes_;
  std::string values_;
  absl::flat_hash_map<std::uint64_t, Row> rows_;  // by key
  std::vector<std::uint64_t> keys_;               // sorted
  std::vector<std::uint32_t> widths_;             // of these
};

using Model = std::map<std::uint32_t, TableValues>;  // by table

absl::StatusOr<Model> ReadModel(runtime::FileSystem* files, const std::string& path,
                                const std::vector<checkpoint::Manifest>& chain,
                                VerifyProgress progress) {
  Model model;
  for (const checkpoint::TableEntry& table : chain.front().tables) {
    model.try_emplace(table.id, table.spec, chain.front().block_bytes);
  }
  std::uint64_t done = 0, all = 0;
  for (const checkpoint::Manifest& manifest : chain) all += manifest.bytes();
  const std::string directory = checkpoint::SplitPath(path).first;
  for (std::uint32_t shard = 0; shard < chain.front().num_shards; ++shard) {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<ShardContent> contents,
                            ReadShard(files, directory, chain, shard,
                                      [&](std::uint64_t bytes) { progress(done += bytes, all); }));
    for (const ShardContent& content : contents) {
      for (const ShardContent::Table& table : content.tables) {
        for (const FrozenPiece& piece : table.pieces) model.at(table.id).Take(piece);
      }
    }
  }
  for (auto& [id, table] : model) table.Sort();
  return model;
}

absl::StatusOr<checkpoint::WrittenFile> WriteModel(runtime::FileSystem* files,
                                                   const std::string& to, const Model& model,
                                                   const checkpoint::Manifest& manifest) {
  checkpoint::TensorHeader header;
  header.metadata = {{"format", "leeway-export"},
                     {"checkpoint", manifest.name},
                     {"clock", absl::StrCat(manifest.clock)}};
  for (const auto& [id, table] : model) {
    for (TensorInfo& tensor : table.Tensors()) header.tensors.push_back(std::move(tensor));
  }
  LEEWAY_ASSIGN_OR_RETURN(const auto writer,
                          checkpoint::SafetensorsWriter::Create(files, to, std::move(header)));
  for (const auto& [id, table] : model) LEEWAY_RETURN_IF_ERROR(table.Write(writer.get()));
  return writer->Finish();
}

}  // namespace

absl::StatusOr<checkpoint::WrittenFile> Export(runtime::FileSystem* files, const std::string& path,
                                               const std::string& to, VerifyProgress progress) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<checkpoint::Manifest> chain,
                          checkpoint::ReadChain(files, path));
  LEEWAY_ASSIGN_OR_RETURN(const Model model, ReadModel(files, path, chain, progress));
  const std::string unfinished = to + ".unfinished";
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
