// Writes a safetensors file as its bytes come, without ever having it whole.
#ifndef LEEWAY_CHECKPOINT_SAFETENSORS_WRITER_H_
#define LEEWAY_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors.h"
#include "runtime/files/file_system.h"

namespace leeway::checkpoint {

struct WrittenFile {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // of all of it, header included
};

class SafetensorsWriter {
 public:
  // The tensors in the order in which their bytes will come; places are given to them here.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(runtime::FileSystem* files,
                                                                   const std::string& path,
                                                                   TensorHeader header);

  // The next bytes, of one tensor or of several.
  absl::Status Append(std::span<const std::byte> bytes);
  // All bytes have come: syncs and closes. What the file is called is certain once its folder has
  // been synced.
  absl::StatusOr<WrittenFile> Finish();

 private:
  SafetensorsWriter(std::unique_ptr<runtime::WritableFile> file, std::string path,
                    std::uint64_t bytes_expected);

  absl::Status Flush();

  const std::unique_ptr<runtime::WritableFile> file_;
  const std::string path_;
  const std::uint64_t bytes_expected_;
  std::string gathered_;  // small pieces, to be written together
  std::uint64_t bytes_ = 0;
  Checksum checksum_;
};

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_SAFETENSORS_WRITER_H_
