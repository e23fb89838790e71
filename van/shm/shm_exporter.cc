#include "van/shm/shm_exporter.h"

#include <algorithm>
#include <utility>

namespace leeway::van {

ShmExporter::ShmExporter(std::shared_ptr<ShmLink> link, DoneList* done)
    : link_(std::move(link)), done_(done) {
  free_slots_.reserve(kShmExportsMax);
  for (std::uint32_t slot = kShmExportsMax; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

// ---- exporting ----

bool ShmExporter::Export(const Buffer& frame, ShmPlace* place, ShmExportList* exports) {
  if (free_slots_.empty()) return false;
  std::optional<runtime::SharedMemory::Location> found =
      runtime::SharedMemory::Find(frame.data(), frame.size());
  if (!found.has_value()) return false;
  const std::optional<std::uint32_t> file = FileOf(found->memory);
  if (!file.has_value()) return false;
  if (++generation_ == 0) ++generation_;
  place->kind = static_cast<std::uint32_t>(ShmPlaceKind::kExported);
  place->at = found->offset;
  place->generation = generation_;
  place->file = *file;
  place->exported = free_slots_.back();
  free_slots_.pop_back();
  exports->push_back({place->exported, generation_, std::move(found->memory)});
  return true;
}

void ShmExporter::Undo(ShmExportList* exports) {
  for (; !exports->empty(); exports->pop_back()) free_slots_.push_back(exports->back().slot);
}

// The file's number on this connection. nullopt: the other side cannot take it (now).
std::optional<std::uint32_t> ShmExporter::FileOf(
    const std::shared_ptr<runtime::SharedMemory>& memory) {
  if (const auto known = by_memory_.find(memory->id()); known != by_memory_.end()) {
    return known->second;
  }
  if (link_->peer->control().declines.load(std::memory_order_relaxed) != 0) return std::nullopt;
  if (files_.size() >= kShmExportedFilesMax) DropToldFiles();
  if (files_.size() >= kShmExportedFilesMax || memory->size() > kShmExportedBytesMax - bytes_ ||
      !link_->socket->HandOver(memory->fd())) {
    return std::nullopt;
  }
  bytes_ += memory->size();
  files_[next_file_] = {.memory = memory, .id = memory->id(), .bytes = memory->size()};
  by_memory_[memory->id()] = next_file_;
  return next_file_++;
}

// ---- getting back ----

void ShmExporter::Follow(Message message, SendDone done, ShmExportList exports) {
  out_.push_back({std::move(message), std::move(done), std::move(exports)});
}

bool ShmExporter::IsBack(const ShmExport& exported) const {
  return link_->peer->given_back(exported.slot) == exported.generation;
}

// Removes exports that are back. True if all of them are.
bool ShmExporter::TakeBack(ShmExportList* exports) {
  while (!exports->empty()) {
    if (!IsBack(exports->back())) return false;
    free_slots_.push_back(exports->back().slot);
    exports->pop_back();
  }
  return true;
}

bool ShmExporter::Collect() {
  bool any = false;
  while (!out_.empty()) {
    const std::uint64_t seen = link_->peer->control().gave_back.load(std::memory_order_acquire);
    const auto back = std::stable_partition(out_.begin(), out_.end(),
                                            [this](Out& out) { return !TakeBack(&out.exports); });
    for (auto out = back; out != out_.end(); ++out) done_->Add(std::move(out->done), {});
    any = any || back != out_.end();
    out_.erase(back, out_.end());
    // Checks once more after asking, because no wake-up tells of what came back before.
    if (out_.empty() || !link_->WaitForExports(seen)) break;
  }
  if (out_.empty()) link_->WaitForNoExports();
  return any;
}

// ---- the end ----

void ShmExporter::End(ShmExportList* exports) {
  for (const ShmExport& exported : *exports) {
    if (!IsBack(exported)) exported.memory->Detach();
  }
  exports->clear();
}

void ShmExporter::EndAll(const absl::Status& why) {
  for (Out& out : std::exchange(out_, {})) {
    End(&out.exports);
    done_->Add(std::move(out.done), why);
  }
}

// ---- files ----

std::optional<std::uint32_t> ShmExporter::TakenBack() const {
  for (const auto& [number, file] : files_) {
    if (file.told_at == 0 && file.memory.expired()) return number;
  }
  return std::nullopt;
}

void ShmExporter::NoteTold(std::uint32_t file, std::uint64_t position) {
  File& told = files_.at(file);
  told.told_at = position;
  by_memory_.erase(told.id);
}

// Files that the other side knows to be gone do not count any more.
void ShmExporter::DropToldFiles() {
  const std::uint64_t head = link_->peer->control().head.load(std::memory_order_acquire);
  std::erase_if(files_, [&](const auto& entry) {
    const bool over = entry.second.told_at != 0 && entry.second.told_at <= head;
    if (over) bytes_ -= entry.second.bytes;
    return over;
  });
}

}  // namespace leeway::van
