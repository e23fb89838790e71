// Reads a safetensors file that may hold anything: no length in it is believed.
#ifndef LEEWAY_CHECKPOINT_SAFETENSORS_READER_H_
#define LEEWAY_CHECKPOINT_SAFETENSORS_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors.h"
#include "runtime/files/file_system.h"
#include "runtime/memory/buffer.h"

namespace leeway::checkpoint {

class SafetensorsReader {
 public:
  // DATA_LOSS names the file and says what is wrong with it.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(runtime::FileSystem* files,
                                                                 const std::string& path);

  const TensorHeader& header() const { return header_; }
  std::uint64_t bytes() const { return file_->size(); }
  // Where in the file the tensors' bytes begin, which their places count from.
  std::uint64_t data_begin() const { return data_begin_; }

  // The bytes of the next tensor, in the order of header().tensors.
  absl::StatusOr<runtime::Buffer> ReadNext();
  // Passes over the rest, for its checksum.
  absl::Status SkipRest();
  // Of the whole file, once all tensors have been read or skipped.
  std::uint64_t checksum() const { return checksum_.value(); }

 private:
  SafetensorsReader(std::unique_ptr<runtime::ReadableFile> file, std::string path);

  absl::Status ReadHeader();
  absl::StatusOr<runtime::Buffer> ReadBytes(std::uint64_t size);

  const std::unique_ptr<runtime::ReadableFile> file_;
  const std::string path_;
  TensorHeader header_;
  std::size_t next_ = 0;  // tensor
  std::uint64_t data_begin_ = 0;
  std::uint64_t offset_ = 0;  // read so far
  Checksum checksum_;
};

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_SAFETENSORS_READER_H_
