#include "checkpoint/safetensors_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

constexpr std::uint64_t kSkipBytes = 1 << 20;  // at once

}  // namespace

SafetensorsReader::SafetensorsReader(std::unique_ptr<runtime::ReadableFile> file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(
    runtime::FileSystem* files, const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<runtime::ReadableFile> file, files->OpenToRead(path));
  std::unique_ptr<SafetensorsReader> reader(new SafetensorsReader(std::move(file), path));
  if (const absl::Status header = reader->ReadHeader(); !header.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", header.message()));
  }
  return reader;
}

absl::Status SafetensorsReader::ReadHeader() {
  if (bytes() < kTensorLengthBytes) {
    return absl::DataLossError(absl::StrCat("a file of ", bytes(), " bytes has no header"));
  }
  LEEWAY_ASSIGN_OR_RETURN(const runtime::Buffer start, ReadBytes(kTensorLengthBytes));
  std::uint64_t length = 0;
  for (std::uint64_t i = 0; i < kTensorLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(start.data()[i]) << (8 * i);
  }
  if (length > kTensorHeaderBytesMax || length > bytes() - kTensorLengthBytes) {
    return absl::DataLossError(
        absl::StrCat("it says that its header has ", length, " bytes, of ", bytes(), " in all"));
  }
  LEEWAY_ASSIGN_OR_RETURN(const runtime::Buffer json, ReadBytes(length));
  data_begin_ = offset_;
  LEEWAY_ASSIGN_OR_RETURN(header_, ParseTensorHeader(json.text(), bytes() - offset_));
  return absl::OkStatus();
}

absl::StatusOr<runtime::Buffer> SafetensorsReader::ReadBytes(std::uint64_t size) {
  std::byte* data = nullptr;
  runtime::Buffer buffer = runtime::Buffer::TryAllocate(size, &data);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", size, " bytes of ", path_));
  }
  LEEWAY_RETURN_IF_ERROR(file_->ReadAt(offset_, {data, static_cast<std::size_t>(size)}));
  checksum_.Add(buffer.bytes());
  offset_ += size;
  return buffer;
}

absl::StatusOr<runtime::Buffer> SafetensorsReader::ReadNext() {
  if (next_ >= header_.tensors.size()) {
    return absl::OutOfRangeError(absl::StrCat(path_, " has no more tensors"));
  }
  return ReadBytes(header_.tensors[next_++].bytes());
}

absl::Status SafetensorsReader::SkipRest() {
  while (offset_ < bytes()) {
    LEEWAY_RETURN_IF_ERROR(ReadBytes(std::min(kSkipBytes, bytes() - offset_)).status());
  }
  next_ = header_.tensors.size();
  return absl::OkStatus();
}

}  // namespace leeway::checkpoint
