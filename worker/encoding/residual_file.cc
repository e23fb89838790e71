#include "worker/encoding/residual_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors_reader.h"
#include "checkpoint/safetensors_writer.h"
#include "proto/messages/limits.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"

namespace leeway::worker {
namespace {

using checkpoint::TensorInfo;
using checkpoint::TensorType;

constexpr absl::string_view kDense = "dense/";
constexpr absl::string_view kSparse = "sparse/";

// The tensors of the file and their bytes, in the same order.
class Tensors {
 public:
  template <class T>
  void Add(std::string name, TensorType type, std::vector<std::uint64_t> shape,
           std::span<const T> values) {
    TensorInfo info;
    info.name = std::move(name);
    info.type = type;
    info.shape = std::move(shape);
    header.tensors.push_back(std::move(info));
    bytes.push_back(std::as_bytes(values));
  }

  checkpoint::TensorHeader header;
  std::vector<std::span<const std::byte>> bytes;
};

// Of the codec whose state a block has.
std::string CodecKey(const std::string& table, std::uint64_t block) {
  return absl::StrCat("codec/", table, "/", block);
}

void AddTable(const std::string& name, const SavedTable& table,
              std::vector<std::array<double, 2>>* last, Tensors* tensors) {
  for (const auto& [index, block] : table.blocks) {
    const std::string prefix = absl::StrCat(kDense, name, "/", index, "/");
    tensors->Add<float>(prefix + "residual", TensorType::kF32, {block.residual.size()},
                        block.residual);
    if (!block.codec_state.empty()) {
      tensors->Add<float>(prefix + "state", TensorType::kF32, {block.codec_state.size()},
                          block.codec_state);
      tensors->header.metadata[CodecKey(name, index)] = block.codec;
    }
    last->push_back({static_cast<double>(block.step), block.rate});
    tensors->Add<double>(prefix + "last", TensorType::kF64, {2}, last->back());
  }
  if (!table.steps.empty()) {
    tensors->Add<std::uint64_t>(absl::StrCat(kSparse, name, "/steps"), TensorType::kU64,
                                {table.steps.size()}, table.steps);
  }
  if (table.keys.empty()) return;
  tensors->Add<std::uint64_t>(absl::StrCat(kSparse, name, "/keys"), TensorType::kU64,
                              {table.keys.size()}, table.keys);
  tensors->Add<float>(absl::StrCat(kSparse, name, "/rows"), TensorType::kF32,
                      {table.keys.size(), table.rows.size() / table.keys.size()}, table.rows);
}

template <class T>
std::vector<T> ValuesOf(const runtime::Buffer& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Takes the last part of a path off its end.
std::string TakePart(absl::string_view* path) {
  const std::size_t slash = path->rfind('/');
  const std::string part(path->substr(slash == absl::string_view::npos ? 0 : slash + 1));
  *path = path->substr(0, slash == absl::string_view::npos ? 0 : slash);
  return part;
}

absl::Status TakeDense(absl::string_view rest, const TensorInfo& info, const runtime::Buffer& bytes,
                       SavedResiduals* to) {
  const std::string part = TakePart(&rest);
  std::uint64_t index = 0;
  const absl::Status wrong =
      absl::DataLossError(absl::StrCat("tensor '", info.name, "' is none of a worker's residuals"));
  if (!absl::SimpleAtoi(TakePart(&rest), &index) || rest.empty()) return wrong;
  SavedBlock& block = (*to)[std::string(rest)].blocks[index];
  if (part == "last" && info.type == TensorType::kF64 && bytes.size() == 2 * sizeof(double)) {
    const std::vector<double> last = ValuesOf<double>(bytes);
    const bool counts = last[0] >= 0 && last[0] < static_cast<double>(proto::kCountMax);
    if (!counts || !(last[1] > 0) || last[1] > 1e300) return wrong;
    block.step = static_cast<std::uint64_t>(last[0]);
    block.rate = last[1];
    return absl::OkStatus();
  }
  if (info.type != TensorType::kF32) return wrong;
  if (part == "residual") {
    block.residual = ValuesOf<float>(bytes);
  } else if (part == "state") {
    block.codec_state = ValuesOf<float>(bytes);
  } else {
    return wrong;
  }
  return absl::OkStatus();
}

absl::Status TakeSparse(absl::string_view rest, const TensorInfo& info,
                        const runtime::Buffer& bytes, SavedResiduals* to) {
  const std::string part = TakePart(&rest);
  const auto counts = [](std::uint64_t step) { return step < proto::kCountMax; };
  if (!rest.empty() && part == "keys" && info.type == TensorType::kU64) {
    (*to)[std::string(rest)].keys = ValuesOf<std::uint64_t>(bytes);
  } else if (!rest.empty() && part == "rows" && info.type == TensorType::kF32) {
    (*to)[std::string(rest)].rows = ValuesOf<float>(bytes);
  } else if (std::vector<std::uint64_t> steps = ValuesOf<std::uint64_t>(bytes);
             !rest.empty() && part == "steps" && info.type == TensorType::kU64 &&
             std::ranges::all_of(steps, counts)) {
    (*to)[std::string(rest)].steps = std::move(steps);
  } else {
    return absl::DataLossError(
        absl::StrCat("tensor '", info.name, "' is none of a worker's residuals"));
  }
  return absl::OkStatus();
}

absl::Status TakeTensor(const TensorInfo& info, const runtime::Buffer& bytes, SavedResiduals* to) {
  absl::string_view rest = info.name;
  if (absl::ConsumePrefix(&rest, kDense)) return TakeDense(rest, info, bytes, to);
  if (absl::ConsumePrefix(&rest, kSparse)) return TakeSparse(rest, info, bytes, to);
  return absl::DataLossError(
      absl::StrCat("tensor '", info.name, "' is none of a worker's residuals"));
}

}  // namespace

absl::Status WriteResiduals(runtime::FileSystem* files, const std::string& folder,
                            std::uint32_t rank, const SavedResiduals& residuals) {
  std::size_t blocks = 0;
  for (const auto& [name, table] : residuals) blocks += table.blocks.size();
  std::vector<std::array<double, 2>> last;
  last.reserve(blocks);  // tensors point into it
  Tensors tensors;
  tensors.header.metadata["worker"] = absl::StrCat(rank);
  for (const auto& [name, table] : residuals) AddTable(name, table, &last, &tensors);
  const std::string path = checkpoint::JoinPath(folder, checkpoint::ResidualFileName(rank));
  const std::string temporary = runtime::TemporaryName(path);
  LEEWAY_ASSIGN_OR_RETURN(const auto writer, checkpoint::SafetensorsWriter::Create(
                                                 files, temporary, std::move(tensors.header)));
  for (const std::span<const std::byte> bytes : tensors.bytes) {
    LEEWAY_RETURN_IF_ERROR(writer->Append(bytes));
  }
  LEEWAY_RETURN_IF_ERROR(writer->Finish().status());
  LEEWAY_RETURN_IF_ERROR(files->Rename(temporary, path));
  return files->SyncDirectory(folder);
}

absl::StatusOr<SavedResiduals> ReadResiduals(runtime::FileSystem* files, const std::string& folder,
                                             std::uint32_t rank) {
  const std::string path = checkpoint::JoinPath(folder, checkpoint::ResidualFileName(rank));
  if (!files->Exists(path)) {
    return absl::NotFoundError(absl::StrCat("there are no residuals of worker ", rank, " in '",
                                            folder, "': no file ",
                                            checkpoint::ResidualFileName(rank)));
  }
  LEEWAY_ASSIGN_OR_RETURN(const auto reader, checkpoint::SafetensorsReader::Open(files, path));
  SavedResiduals residuals;
  for (const TensorInfo& info : reader->header().tensors) {
    LEEWAY_ASSIGN_OR_RETURN(const runtime::Buffer bytes, reader->ReadNext());
    if (absl::Status taken = TakeTensor(info, bytes, &residuals); !taken.ok()) {
      return runtime::Prefixed(path, taken);
    }
  }
  for (auto& [name, table] : residuals) {
    for (auto& [index, block] : table.blocks) {
      const auto codec = reader->header().metadata.find(CodecKey(name, index));
      if (codec != reader->header().metadata.end()) block.codec = codec->second;
    }
    const std::size_t keys = table.keys.size();
    if (keys == 0 ? table.rows.empty() : table.rows.size() % keys == 0) continue;
    return absl::DataLossError(absl::StrCat(path, ": table '", name, "' has ", keys, " keys and ",
                                            table.rows.size(), " values"));
  }
  return residuals;
}

}  // namespace leeway::worker
