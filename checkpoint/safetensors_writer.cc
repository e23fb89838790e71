#include "checkpoint/safetensors_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

constexpr std::size_t kGatheredBytesMax = 256 << 10;
constexpr std::size_t kSmallBytes = 64 << 10;  // smaller pieces are gathered

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<runtime::WritableFile> file, std::string path,
                                     std::uint64_t bytes_expected)
    : file_(std::move(file)), path_(std::move(path)), bytes_expected_(bytes_expected) {}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    runtime::FileSystem* files, const std::string& path, TensorHeader header) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string start, EncodeTensorHeader(&header));
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<runtime::WritableFile> file, files->CreateLarge(path));
  const std::uint64_t data = header.tensors.empty() ? 0 : header.tensors.back().end;
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(std::move(file), path, start.size() + data));
  LEEWAY_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(start.data(), start.size()))));
  return writer;
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (bytes.size() > bytes_expected_ - bytes_) {
    return absl::InternalError(absl::StrCat("more bytes for ", path_, " than its header says"));
  }
  bytes_ += bytes.size();
  checksum_.Add(bytes);
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() >= kSmallBytes) {
    LEEWAY_RETURN_IF_ERROR(Flush());
    return file_->Append(text);
  }
  gathered_.append(text.data(), text.size());
  return gathered_.size() < kGatheredBytesMax ? absl::OkStatus() : Flush();
}

absl::Status SafetensorsWriter::Flush() {
  if (gathered_.empty()) return absl::OkStatus();
  const absl::Status written = file_->Append(gathered_);
  gathered_.clear();
  return written;
}

absl::StatusOr<WrittenFile> SafetensorsWriter::Finish() {
  if (bytes_ != bytes_expected_) {
    return absl::InternalError(absl::StrCat(path_, " got ", bytes_, " of ", bytes_expected_,
                                            " bytes that its header says"));
  }
  LEEWAY_RETURN_IF_ERROR(Flush());
  LEEWAY_RETURN_IF_ERROR(file_->Sync());
  LEEWAY_RETURN_IF_ERROR(file_->Close());
  return WrittenFile{.bytes = bytes_, .checksum = checksum_.value()};
}

}  // namespace leeway::checkpoint
