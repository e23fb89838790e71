#include "van/shm/shm_imported.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "van/shm/memory/shm_format.h"

namespace leeway::van {
// A frame in an imported file. Any thread; may outlive the connection.
class ShmImported::Export final : public runtime::BufferOwner {
 public:
  Export(std::shared_ptr<ShmLink> link, std::shared_ptr<const ShmMapping> file,
         const ShmPlace& place)
      : link_(std::move(link)), file_(std::move(file)), place_(place) {}
  bool may_change() const override { return true; }
  bool exported() const override { return true; }
  ~Export() override {
    link_->own->given_back(place_.exported).store(place_.generation, std::memory_order_release);
    link_->WakeForExports();
  }

 private:
  const std::shared_ptr<ShmLink> link_;
  const std::shared_ptr<const ShmMapping> file_;
  const ShmPlace place_;
};

absl::StatusOr<Buffer> ShmImported::Take(const ShmPlace& place) {
  // The exporting side sends the descriptor before the record, so it has come.
  for (bool nothing = false; place.file >= next_file_ && !nothing;) {
    LEEWAY_RETURN_IF_ERROR(ReadSocketOnce(&nothing));
  }
  const auto file = files_.find(place.file);
  if (file == files_.end())
    return BrokenMemory("a frame in memory file ", place.file, ", which does not exist");
  const std::uint64_t bytes = file->second->size();
  const bool outside = place.at >= bytes || place.size > bytes - place.at;
  if (place.exported >= kShmExportsMax || place.size == 0 || outside) {
    return BrokenMemory("export ", place.exported, ": a frame of ", place.size, " bytes at ",
                        place.at, " of ", bytes);
  }
  return Buffer(file->second->data() + place.at, place.size,
                new Export(link_, file->second, place));
}

absl::Status ShmImported::Drop(std::uint32_t file) {
  const auto found = files_.find(file);
  if (found == files_.end())
    return BrokenMemory("memory file ", file, " is taken back, which does not exist");
  bytes_ -= found->second->size();
  files_.erase(found);
  return absl::OkStatus();
}

absl::Status ShmImported::ReadSocket() {
  bool nothing = false;
  return ReadSocketOnce(&nothing);
}

absl::Status ShmImported::ReadSocketOnce(bool* nothing) {
  std::vector<UniqueFd> descriptors;
  const ShmSocket::Drained drained = link_->socket->Drain(&descriptors);
  if (drained == ShmSocket::Drained::kClosed) return absl::UnavailableError("the connection broke");
  *nothing = drained == ShmSocket::Drained::kNothing;
  for (UniqueFd& descriptor : descriptors) LEEWAY_RETURN_IF_ERROR(Add(std::move(descriptor)));
  return absl::OkStatus();
}

absl::Status ShmImported::Add(UniqueFd descriptor) {
  if (!descriptor) return runtime::Prefixed("it exports memory", runtime::OutOfDescriptors());
  LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, runtime::SealedSize(descriptor.get()));
  const bool many = files_.size() >= kShmExportedFilesMax || bytes > kShmExportedBytesMax - bytes_;
  if (bytes == 0 || many) {
    return BrokenMemory("it exports ", bytes, " bytes more, having exported ", bytes_, " in ",
                        files_.size(), " files");
  }
  absl::StatusOr<ShmMapping> mapping = runtime::MapToRead(descriptor.get(), bytes);
  if (!mapping.ok()) return absl::ResourceExhaustedError(mapping.status().message());
  files_[next_file_++] = std::make_shared<const ShmMapping>(*std::move(mapping));
  bytes_ += bytes;
  return absl::OkStatus();
}

}  // namespace leeway::van
