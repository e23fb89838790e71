#include "van/shm/shm_lender.h"

#include <algorithm>
#include <utility>

#include "runtime/base/mutants.h"

namespace leeway::van {

ShmLender::ShmLender(std::shared_ptr<ShmLink> link, DoneList* done)
    : link_(std::move(link)), done_(done) {
  free_slots_.reserve(kShmLoansMax);
  for (std::uint32_t slot = kShmLoansMax; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

// ---- lending ----

bool ShmLender::Lend(const Buffer& frame, ShmPlace* place, ShmLoanList* loans) {
  if (free_slots_.empty()) return false;
  std::optional<runtime::SharedMemory::Place> found =
      runtime::SharedMemory::Find(frame.data(), frame.size());
  if (!found.has_value()) return false;
  const std::optional<std::uint32_t> file = FileOf(found->memory);
  if (!file.has_value()) return false;
  if (++generation_ == 0) ++generation_;
  place->kind = static_cast<std::uint32_t>(ShmPlaceKind::kLent);
  place->at = found->offset;
  place->generation = generation_;
  place->file = *file;
  place->loan = free_slots_.back();
  free_slots_.pop_back();
  loans->push_back({place->loan, generation_, std::move(found->memory)});
  return true;
}

void ShmLender::Undo(ShmLoanList* loans) {
  for (; !loans->empty(); loans->pop_back()) free_slots_.push_back(loans->back().slot);
}

// Its number on this connection. None where the other side cannot take it (now).
std::optional<std::uint32_t> ShmLender::FileOf(
    const std::shared_ptr<runtime::SharedMemory>& memory) {
  if (const auto known = by_memory_.find(memory->id()); known != by_memory_.end()) {
    return known->second;
  }
  if (link_->peer->control().declines.load(std::memory_order_relaxed) != 0) return std::nullopt;
  if (files_.size() >= kShmLentFilesMax) DropToldFiles();
  if (files_.size() >= kShmLentFilesMax || memory->size() > kShmLentBytesMax - bytes_ ||
      !link_->socket->HandOver(memory->fd())) {
    return std::nullopt;
  }
  bytes_ += memory->size();
  files_[next_file_] = {.memory = memory, .id = memory->id(), .bytes = memory->size()};
  by_memory_[memory->id()] = next_file_;
  return next_file_++;
}

// ---- getting back ----

void ShmLender::Follow(Message message, SendDone done, ShmLoanList loans) {
  out_.push_back({std::move(message), std::move(done), std::move(loans)});
}

bool ShmLender::IsBack(const ShmLoan& loan) const {
  const bool any = runtime::Planted<"loan-of-before-counts">();
  if (any && link_->peer->given_back(loan.slot) != 0) return true;
  return link_->peer->given_back(loan.slot) == loan.generation ||
         runtime::Planted<"loan-back-unasked">();
}

// Whether all of them are back.
bool ShmLender::TakeBack(ShmLoanList* loans) {
  while (!loans->empty()) {
    if (!IsBack(loans->back())) return false;
    free_slots_.push_back(loans->back().slot);
    loans->pop_back();
  }
  return true;
}

bool ShmLender::Collect() {
  bool any = false;
  while (!out_.empty()) {
    const std::uint64_t seen = link_->peer->control().gave_back.load(std::memory_order_acquire);
    const auto back = std::stable_partition(out_.begin(), out_.end(),
                                            [this](Out& out) { return !TakeBack(&out.loans); });
    for (auto out = back; out != out_.end(); ++out) done_->Add(std::move(out->done), {});
    any = any || back != out_.end();
    out_.erase(back, out_.end());
    // Once more after having said so: what came back before that is not told.
    if (out_.empty() || !link_->WaitForLoans(seen)) break;
  }
  if (out_.empty()) link_->WaitForNoLoans();
  return any;
}

// ---- the end ----

void ShmLender::End(ShmLoanList* loans) {
  for (const ShmLoan& loan : *loans) {
    if (!IsBack(loan) && !runtime::Planted<"lent-memory-changes">()) loan.memory->Separate();
  }
  loans->clear();
}

void ShmLender::EndAll(const absl::Status& why) {
  for (Out& out : std::exchange(out_, {})) {
    End(&out.loans);
    done_->Add(std::move(out.done), why);
  }
}

// ---- files ----

std::optional<std::uint32_t> ShmLender::TakenBack() const {
  for (const auto& [number, file] : files_) {
    if (file.told_at == 0 && file.memory.expired()) return number;
  }
  return std::nullopt;
}

void ShmLender::NoteTold(std::uint32_t file, std::uint64_t position) {
  File& told = files_.at(file);
  told.told_at = position;
  by_memory_.erase(told.id);
}

// Those that the other side knows to be gone no longer count.
void ShmLender::DropToldFiles() {
  const std::uint64_t head = link_->peer->control().head.load(std::memory_order_acquire);
  std::erase_if(files_, [&](const auto& entry) {
    const bool over = entry.second.told_at != 0 && entry.second.told_at <= head;
    if (over && !runtime::Planted<"lent-files-not-given-back">()) bytes_ -= entry.second.bytes;
    return over;
  });
}

}  // namespace leeway::van
