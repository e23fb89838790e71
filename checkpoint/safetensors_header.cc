// The header of a safetensors file.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/strict_json.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

constexpr char kMetadata[] = "__metadata__";
constexpr int kHeaderDepthMax = 3;  // file, tensor, shape
constexpr std::size_t kAlignment = 8;

template <class... Parts>
absl::Status WrongHeader(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::optional<std::vector<std::uint64_t>> Numbers(const Json& json, std::size_t size_max) {
  if (!json.is_array() || json.size() > size_max) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const Json& number : json) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

absl::StatusOr<TensorInfo> ParseTensor(const std::string& name, const Json& json) {
  const std::string what = absl::StrCat("tensor '", name, "'");
  Members members(json, what);
  TensorInfo info;
  info.name = name;
  const std::string type = members.Text("dtype");
  const auto shape = Numbers(members.Of("shape"), kTensorDimensionsMax);
  const auto offsets = Numbers(members.Of("data_offsets"), 2);
  LEEWAY_RETURN_IF_ERROR(members.End());
  if (!TensorTypeNamed(type).has_value())
    return WrongHeader(what, " has the unknown dtype '", type, "'");
  if (!shape.has_value()) return WrongHeader(what, " has no shape");
  if (!offsets.has_value() || offsets->size() != 2) return WrongHeader(what, " has no place");
  info.type = *TensorTypeNamed(type);
  info.shape = *shape;
  info.begin = (*offsets)[0];
  info.end = (*offsets)[1];
  LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t bytes, BytesOf(info.type, info.shape));
  if (info.begin <= info.end && info.bytes() == bytes) return info;
  return WrongHeader(what, " has bytes ", info.begin, " to ", info.end, ", but its shape takes ",
                     bytes);
}

absl::Status CheckPlaces(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != end) {
      return WrongHeader("tensor '", tensor.name, "' begins at ", tensor.begin,
                         ", but what is before it ends at ", end);
    }
    end = tensor.end;
  }
  if (end == data_bytes) return absl::OkStatus();
  return WrongHeader("the tensors have ", end, " bytes, the file has ", data_bytes);
}

}  // namespace

absl::StatusOr<std::string> EncodeTensorHeader(TensorHeader* header) {
  Json json = Json::object();
  if (!header->metadata.empty()) json[kMetadata] = header->metadata;
  std::uint64_t end = 0;
  for (TensorInfo& tensor : header->tensors) {
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t bytes, BytesOf(tensor.type, tensor.shape));
    tensor.begin = end;
    tensor.end = end += bytes;
    Json& entry = json[tensor.name];
    if (!entry.is_null()) return WrongHeader("two tensors have the name '", tensor.name, "'");
    entry = {{"dtype", std::string(Name(tensor.type))},
             {"shape", tensor.shape},
             {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kTensorHeaderBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the header of a file would have ", text.size(), " bytes, more than the ",
                     kTensorHeaderBytesMax, " that readers take: use a larger LEEWAY_BLOCK_BYTES ",
                     "or LEEWAY_NUM_SHARDS"));
  }
  std::string length;
  for (std::uint64_t i = 0; i < kTensorLengthBytes; ++i) {
    length.push_back(static_cast<char>(text.size() >> (8 * i)));
  }
  return length + text;
}

absl::StatusOr<TensorHeader> ParseTensorHeader(absl::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') return WrongHeader("the header is no JSON object");
  LEEWAY_ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, kHeaderDepthMax));
  TensorHeader header;
  for (const auto& [name, value] : parsed.items()) {
    if (!proto::IsClean(name, proto::Lines::kOne)) {
      return WrongHeader("the name ", proto::Quoted(name), " has control characters");
    }
    if (name != kMetadata) {
      LEEWAY_ASSIGN_OR_RETURN(TensorInfo tensor, ParseTensor(name, value));
      header.tensors.push_back(std::move(tensor));
      continue;
    }
    if (!value.is_object()) return WrongHeader("the metadata are no object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return WrongHeader(proto::Quoted(key), " of the metadata is no text");
      header.metadata[key] = text.get<std::string>();
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  LEEWAY_RETURN_IF_ERROR(CheckPlaces(header.tensors, data_bytes));
  return header;
}

}  // namespace leeway::checkpoint
