// ShmExporter is the sender's side of zero-copy exports. Frames in memory that the user allocated
// for that (runtime/memory/shared_memory.h) are not copied into the arena; the other side reads
// them in place. The message's `done` waits until the other side has given the frames back, or
// cannot see them change any more. Lives on the transport's loop.
#ifndef LEEWAY_VAN_SHM_SHM_EXPORTER_H_
#define LEEWAY_VAN_SHM_SHM_EXPORTER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "runtime/memory/shared_memory.h"
#include "van/shm/shm_link.h"
#include "van/transport.h"
#include "van/van.h"

namespace leeway::van {

struct ShmExport {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::shared_ptr<runtime::SharedMemory> memory;
};
using ShmExportList = absl::InlinedVector<ShmExport, 1>;

class ShmExporter {
 public:
  // `done` gets the callbacks of sends whose exports have come back.
  ShmExporter(std::shared_ptr<ShmLink> link, DoneList* done);

  // Makes the frame's place an exported one, if possible; the other side then has the file's
  // descriptor. The export is added to `exports`. False: the frame has to be copied.
  bool Export(const Buffer& frame, ShmPlace* place, ShmExportList* exports);
  // Takes back exports that were never published.
  void Undo(ShmExportList* exports);

  // Keeps a message that has been written until its exports have come back.
  void Follow(Message message, SendDone done, ShmExportList exports);
  // Ends the sends whose exports have come back; true if there were any.
  bool Collect();
  bool idle() const { return out_.empty(); }

  // The other side will give nothing back any more: detaches the memory of exports that are not
  // back, so that its user may write to it again.
  void End(ShmExportList* exports);
  void EndAll(const absl::Status& why);

  // TakenBack returns a file whose memory was freed and which the other side has to be told to
  // unmap. NoteTold: a record says so, and the other side has seen it when it has read up to
  // `position`.
  std::optional<std::uint32_t> TakenBack() const;
  void NoteTold(std::uint32_t file, std::uint64_t position);

 private:
  struct File {
    std::weak_ptr<runtime::SharedMemory> memory;
    std::uint64_t id = 0;  // id of the memory
    std::uint64_t bytes = 0;
    std::uint64_t told_at = 0;  // position of the record that takes it back; 0: none yet
  };
  struct Out {
    Message message;
    SendDone done;
    ShmExportList exports;
  };

  std::optional<std::uint32_t> FileOf(const std::shared_ptr<runtime::SharedMemory>& memory);
  void DropToldFiles();
  bool IsBack(const ShmExport& exported) const;
  bool TakeBack(ShmExportList* exports);

  const std::shared_ptr<ShmLink> link_;
  DoneList* const done_;
  std::map<std::uint32_t, File> files_;  // by number: files that the other side may have mapped
  std::map<std::uint64_t, std::uint32_t> by_memory_;  // file number by the memory's id
  std::uint64_t bytes_ = 0;                           // sum over files_
  std::uint32_t next_file_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t generation_ = 0;
  std::deque<Out> out_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_EXPORTER_H_
