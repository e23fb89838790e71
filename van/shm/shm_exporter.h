// The sender's part of what is exported: frames that lie in memory the user allocated for it
// (runtime/memory/shared_memory.h) are not copied into the arena; the other side reads them there.
// The message's `done` waits until it has given them back, or until it cannot see them change any
// more.
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
#include "van/done_list.h"
#include "van/shm/shm_link.h"
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
  // `done` gets the sends whose exports have come back.
  ShmExporter(std::shared_ptr<ShmLink> link, DoneList* done);

  // Turns the place of that frame into an exported one, where that can be; the other side has been
  // given the descriptor then. `exports` gets the export.
  bool Export(const Buffer& frame, ShmPlace* place, ShmExportList* exports);
  // Exports that were never shown to anybody.
  void Undo(ShmExportList* exports);

  // A message that has been written, with the exports it needs.
  void Follow(Message message, SendDone done, ShmExportList exports);
  // Ends those whose exports have come back; true if there were any.
  bool Collect();
  bool idle() const { return out_.empty(); }

  // Nothing will be given back any more: makes exports of no consequence, so that their memory may
  // be written to again.
  void End(ShmExportList* exports);
  void EndAll(const absl::Status& why);

  // A file whose memory is gone, of which the other side is to be told; then that it will have been
  // once it has read up to that position.
  std::optional<std::uint32_t> TakenBack() const;
  void NoteTold(std::uint32_t file, std::uint64_t position);

 private:
  struct File {
    std::weak_ptr<runtime::SharedMemory> memory;
    std::uint64_t id = 0;  // the memory's
    std::uint64_t bytes = 0;
    std::uint64_t told_at = 0;  // that it is taken back; 0: not yet
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
  std::map<std::uint32_t, File> files_;  // by number: those the other side may have mapped
  std::map<std::uint64_t, std::uint32_t> by_memory_;  // its number, by the memory's id
  std::uint64_t bytes_ = 0;                           // of files_
  std::uint32_t next_file_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t generation_ = 0;
  std::deque<Out> out_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_EXPORTER_H_
