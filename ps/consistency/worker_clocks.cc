#include "ps/consistency/worker_clocks.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "runtime/base/mix.h"

namespace leeway::ps {
namespace {

constexpr std::size_t kNamedMax = 8;  // slow workers named in one error text

}  // namespace

void WorkerClocks::Set(std::uint32_t rank, std::uint64_t incarnation, proto::WorkerState state,
                       bool late) {
  auto [it, is_new] = workers_.try_emplace(rank);
  Worker& worker = it->second;
  if (worker.counts()) Uncount(worker.clock);
  if (is_new || worker.incarnation != incarnation) {
    if (!is_new && worker.clock > 0) replaced_.push_back({.rank = rank, .worker = worker});
    worker = {.incarnation = incarnation, .since = late ? kNotEntered : 0};
  }
  worker.state = state;
  if (worker.counts()) Count(worker.clock);
  UpdateSlowest();
}

void WorkerClocks::Enter(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                         std::uint64_t since) {
  auto it = workers_.find(rank);
  if (it == workers_.end() || it->second.incarnation != incarnation) return;
  Worker& worker = it->second;
  if (worker.counts()) Uncount(worker.clock);
  worker.since = worker.since == kNotEntered ? since : std::max(worker.since, since);
  worker.clock = std::max(worker.clock, clock);
  if (worker.counts()) Count(worker.clock);
  UpdateSlowest();
}

bool WorkerClocks::Advance(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock) {
  auto it = workers_.find(rank);
  if (it == workers_.end()) return false;
  Worker& worker = it->second;
  if (worker.incarnation != incarnation || !worker.counts()) return false;
  if (clock == worker.clock) return false;
  if (clock < worker.clock) return false;
  Uncount(worker.clock);
  worker.clock = clock;
  Count(worker.clock);
  UpdateSlowest();
  return true;
}

void WorkerClocks::ForgetFrom(std::uint64_t clock) {
  for (auto& [rank, worker] : workers_) {
    if (worker.counts()) Uncount(worker.clock);
    const std::uint64_t known = worker.since == kNotEntered ? clock : std::max(clock, worker.since);
    worker.clock = std::min(worker.clock, known);
    worker.ahead = 0;
    if (worker.counts()) Count(worker.clock);
  }
  for (Replaced& replaced : replaced_) {
    replaced.worker.clock = std::min(replaced.worker.clock, clock);
  }
  UpdateSlowest();
}

std::uint64_t WorkerClocks::ReachedBy(std::uint32_t count) const {
  std::vector<std::uint64_t> reached;
  for (const auto& [rank, worker] : workers_) {
    if (worker.counts()) reached.push_back(std::max(worker.clock, worker.ahead));
  }
  if (reached.empty()) return slowest_;
  const std::size_t last = std::min<std::size_t>(std::max(count, 1u), reached.size()) - 1;
  std::ranges::nth_element(reached, reached.begin() + static_cast<std::ptrdiff_t>(last),
                           std::greater<>());
  return reached[last];
}

bool WorkerClocks::RunsAhead(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock) {
  const auto found = workers_.find(rank);
  if (found == workers_.end() || found->second.incarnation != incarnation) return false;
  Worker& worker = found->second;
  if (clock <= std::max(worker.clock, worker.ahead)) return false;
  worker.ahead = clock;
  return true;
}

std::uint64_t WorkerClocks::WaitingAt(std::uint32_t rank, std::uint64_t incarnation) const {
  const auto found = workers_.find(rank);
  if (found == workers_.end() || found->second.incarnation != incarnation) return 0;
  return found->second.ahead;
}

std::uint64_t WorkerClocks::SlowestOfSample(std::uint32_t rank, std::uint64_t clock,
                                            std::uint32_t size) const {
  // Those with the smallest hashes.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> drawn;  // hash, clock
  for (const auto& [other, worker] : workers_) {
    if (other == rank || !worker.counts()) continue;
    drawn.emplace_back(runtime::Mix(runtime::MixKey(clock) ^ (std::uint64_t{rank} << 32 | other)),
                       worker.clock);
  }
  if (drawn.empty()) return ClockOf(rank);
  if (drawn.size() > size) {
    std::ranges::nth_element(drawn, drawn.begin() + size - 1);
    drawn.resize(size);
  }
  return std::ranges::min(drawn, {}, [](const auto& one) { return one.second; }).second;
}

std::uint64_t WorkerClocks::ClockOf(std::uint32_t rank) const {
  auto it = workers_.find(rank);
  return it == workers_.end() ? 0 : it->second.clock;
}

std::uint64_t WorkerClocks::SinceOf(std::uint32_t rank) const {
  auto it = workers_.find(rank);
  return it == workers_.end() ? 0 : it->second.since;
}

bool WorkerClocks::IsAlive(std::uint32_t rank) const {
  auto it = workers_.find(rank);
  return it != workers_.end() && it->second.state == proto::WorkerState::kAlive;
}

std::optional<std::uint64_t> WorkerClocks::IncarnationOf(std::uint32_t rank) const {
  auto it = workers_.find(rank);
  if (it == workers_.end()) return std::nullopt;
  return it->second.incarnation;
}

bool WorkerClocks::IsDead(std::uint32_t rank, std::uint64_t incarnation) const {
  auto it = workers_.find(rank);
  if (it == workers_.end()) return false;
  return it->second.incarnation != incarnation || it->second.state == proto::WorkerState::kDead;
}

bool WorkerClocks::HasLeft(std::uint32_t rank, std::uint64_t incarnation) const {
  auto it = workers_.find(rank);
  return it != workers_.end() && it->second.incarnation == incarnation &&
         it->second.state == proto::WorkerState::kLeft;
}

std::uint32_t WorkerClocks::CountEnded(std::uint64_t clock) const {
  const auto now = std::ranges::count_if(
      workers_, [clock](const auto& entry) { return entry.second.has_ended(clock); });
  const auto before = std::ranges::count_if(
      replaced_, [clock](const Replaced& replaced) { return replaced.worker.has_ended(clock); });
  return static_cast<std::uint32_t>(now + before);
}

std::vector<WorkerClocks::Ended> WorkerClocks::EndedFrom(std::uint64_t clock) const {
  std::vector<Ended> all;
  const auto add = [&](std::uint32_t rank, const Worker& worker) {
    if (worker.clock <= clock || worker.since == kNotEntered) return;
    all.push_back({rank, worker.incarnation, worker.clock, worker.since});
  };
  for (const auto& [rank, worker] : workers_) add(rank, worker);
  for (const Replaced& replaced : replaced_) add(replaced.rank, replaced.worker);
  return all;
}

void WorkerClocks::NoteEnded(const Ended& ended) {
  if (ended.since == kNotEntered) return;
  if (IncarnationOf(ended.rank) == ended.incarnation) {
    return Enter(ended.rank, ended.incarnation, ended.clock, ended.since);
  }
  for (Replaced& replaced : replaced_) {
    if (replaced.rank != ended.rank || replaced.worker.incarnation != ended.incarnation) continue;
    replaced.worker.clock = std::max(replaced.worker.clock, ended.clock);
    return;
  }
  const Worker worker{.incarnation = ended.incarnation, .clock = ended.clock, .since = ended.since};
  replaced_.push_back({.rank = ended.rank, .worker = worker});
}

bool WorkerClocks::HasEnded(std::uint32_t rank, std::uint64_t incarnation,
                            std::uint64_t clock) const {
  const auto found = workers_.find(rank);
  if (found != workers_.end() && found->second.incarnation == incarnation) {
    return found->second.has_ended(clock);
  }
  return std::ranges::any_of(replaced_, [&](const Replaced& replaced) {
    return replaced.rank == rank && replaced.worker.incarnation == incarnation &&
           replaced.worker.has_ended(clock);
  });
}

void WorkerClocks::ForgetEndedBelow(std::uint64_t clock) {
  std::erase_if(replaced_,
                [clock](const Replaced& replaced) { return replaced.worker.clock <= clock; });
}

std::vector<WorkerClocks::WorkerClock> WorkerClocks::Behind(std::uint64_t clock) const {
  std::vector<WorkerClock> behind = Living();
  std::erase_if(behind, [clock](const WorkerClock& worker) { return worker.clock >= clock; });
  std::stable_sort(behind.begin(), behind.end(),
                   [](const WorkerClock& a, const WorkerClock& b) { return a.clock < b.clock; });
  return behind;
}

std::string WorkerClocks::DescribeBehind(std::uint64_t clock) const {
  const std::vector<WorkerClock> behind = Behind(clock);
  const std::size_t named = std::min(behind.size(), kNamedMax);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "worker ", behind[i].rank, i == 0 ? " is" : "",
                    " at clock ", behind[i].clock);
  }
  if (named < behind.size()) absl::StrAppend(&text, " and ", behind.size() - named, " more");
  return text;
}

std::vector<WorkerClocks::WorkerClock> WorkerClocks::Living() const {
  std::vector<WorkerClock> living;
  for (const auto& [rank, worker] : workers_) {
    if (worker.counts()) living.push_back({rank, worker.clock});
  }
  return living;
}

void WorkerClocks::Count(std::uint64_t clock) {
  ++living_at_[clock];
  ++living_;
}

void WorkerClocks::Uncount(std::uint64_t clock) {
  auto it = living_at_.find(clock);
  if (--it->second == 0) living_at_.erase(it);
  --living_;
}

void WorkerClocks::UpdateSlowest() {
  if (!living_at_.empty()) slowest_ = living_at_.begin()->first;
}

}  // namespace leeway::ps
