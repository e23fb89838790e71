#include "ps/checkpoint/export_tables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "proto/messages/layout.h"
#include "ps/store/elements.h"
#include "ps/store/initial_values.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

using checkpoint::TensorInfo;
using checkpoint::TensorType;

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

class DenseExport final : public ExportTable {
 public:
  DenseExport(const TableSpec& spec, std::uint64_t block_bytes)
      : spec_(spec), block_bytes_(block_bytes), initial_(spec) {}

  void Take(const FrozenPiece& piece, const std::string& file, std::uint64_t values_at) override {
    if (piece.steps.as<std::uint64_t>()[0] != 0) blocks_[piece.block] = {&file, values_at};
  }

  std::vector<TensorInfo> Tensors() override {
    return {Tensor(spec_.name, checkpoint::TensorTypeOf(spec_.dtype), spec_.shape)};
  }

  absl::Status Write(runtime::FileSystem* files,
                     checkpoint::SafetensorsWriter* writer) const override {
    std::vector<std::byte> bytes;
    for (std::uint64_t block = 0; block < proto::NumBlocks(spec_, block_bytes_); ++block) {
      bytes.resize(proto::ElementsInBlock(spec_, block_bytes_, block) * SizeOf(spec_.dtype));
      const auto found = blocks_.find(block);
      if (found == blocks_.end()) {
        FillWithInitial(block, bytes);
      } else {
        LEEWAY_ASSIGN_OR_RETURN(const auto file, files->OpenToRead(*found->second.file));
        LEEWAY_RETURN_IF_ERROR(file->ReadAt(found->second.at, bytes));
      }
      LEEWAY_RETURN_IF_ERROR(writer->Append(bytes));
    }
    return absl::OkStatus();
  }

 private:
  struct Values {
    const std::string* file = nullptr;
    std::uint64_t at = 0;
  };

  void FillWithInitial(std::uint64_t block, std::span<std::byte> bytes) const {
    const std::uint64_t first = block * proto::BlockElements(spec_.dtype, block_bytes_);
    VisitStored(spec_.dtype, [&](auto* stored) {
      using Stored = std::remove_pointer_t<decltype(stored)>;
      initial_.Fill(first, bytes.size() / sizeof(Stored), reinterpret_cast<Stored*>(bytes.data()));
    });
  }

  const TableSpec spec_;
  const std::uint64_t block_bytes_;
  const InitialValues initial_;
  absl::flat_hash_map<std::uint64_t, Values> blocks_;
};

class RowsExport final : public ExportTable {
 public:
  explicit RowsExport(const TableSpec& spec) : spec_(spec) {}

  void Take(const FrozenPiece& piece, const std::string&, std::uint64_t) override {
    ForEachRow(piece, [this](const FrozenRow& row) {
      const auto width = static_cast<std::uint32_t>(row.width);
      const auto [at, is_new] = rows_.try_emplace(row.key, Row{values_.size(), width});
      if (is_new || at->second.width != width) {
        at->second = {values_.size(), width};
        values_.insert(values_.end(), row.values.begin(), row.values.end());
      } else {
        std::copy(row.values.begin(), row.values.end(),
                  values_.begin() + static_cast<std::ptrdiff_t>(at->second.begin));
      }
    });
  }

  std::vector<TensorInfo> Tensors() override {
    Sort();
    const TensorType type = checkpoint::TensorTypeOf(spec_.dtype);
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

  absl::Status Write(runtime::FileSystem*, checkpoint::SafetensorsWriter* writer) const override {
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

  void Sort() {
    keys_.reserve(rows_.size());
    for (const auto& [key, row] : rows_) keys_.push_back(key);
    std::sort(keys_.begin(), keys_.end());
    for (const std::uint64_t key : keys_) widths_.push_back(rows_.at(key).width);
  }

  const TableSpec spec_;
  std::vector<std::byte> values_;
  absl::flat_hash_map<std::uint64_t, Row> rows_;  // by key
  std::vector<std::uint64_t> keys_;               // sorted
  std::vector<std::uint32_t> widths_;             // of these
};

}  // namespace

std::unique_ptr<ExportTable> NewExportTable(const TableSpec& spec, std::uint64_t block_bytes) {
  if (spec.kind == TableKind::kDense) return std::make_unique<DenseExport>(spec, block_bytes);
  return std::make_unique<RowsExport>(spec);
}

}  // namespace leeway::ps
