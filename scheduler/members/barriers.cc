#include "scheduler/members/barriers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_duration.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {
namespace {

// Longer timeouts count as none.
constexpr std::uint64_t kTimeoutMsMax = 1000ull * 3600 * 24 * 365;

absl::Time DeadlineOf(const proto::BarrierEnter& enter, absl::Time now) {
  if (enter.timeout_ms == 0 || enter.timeout_ms > kTimeoutMsMax) return absl::InfiniteFuture();
  return now + absl::Milliseconds(static_cast<std::int64_t>(enter.timeout_ms));
}

std::string Title(const std::string& name, std::uint64_t number) {
  return absl::StrCat("barrier '", name, "' (number ", number, ")");
}

}  // namespace

void Barriers::Enter(const Entrant& who, const proto::BarrierEnter& enter, absl::Time now) {
  const Key said(enter.name, enter.group, enter.number);
  if (enter.group != Group::kWorkers && enter.group != Group::kAll) {
    Answer(who.rank, said, enter.number,
           absl::InvalidArgumentError(
               absl::StrCat("barrier '", enter.name,
                            "': a worker is no member of the group of servers; enter "
                            "Group::kWorkers or Group::kAll")));
    return;
  }
  if (who.late != 0 && shifts_.size() >= kLateNamesMax) {
    Answer(who.rank, said, enter.number,
           absl::ResourceExhaustedError(absl::StrCat("barrier '", enter.name,
                                                     "': late workers have entered ", kLateNamesMax,
                                                     " names of barriers; use fewer names")));
    return;
  }
  const Key key(enter.name, enter.group, Translate(who, enter));
  if (AnswerIfEnded(who.rank, key, enter.number)) return;
  if (!pending_.contains(key) && pending_.size() >= kBarriersWaitingMax) {
    Answer(
        who.rank, key, enter.number,
        absl::ResourceExhaustedError(absl::StrCat(Title(enter.name, enter.number), ": ",
                                                  kBarriersWaitingMax, " barriers wait already")));
    return;
  }
  const auto [pending, first] = pending_.try_emplace(key);
  if (first) pending->second.since = now;
  // Entering again changes nothing, not even the deadline.
  const Entry entry{DeadlineOf(enter, now), enter.number};
  const bool news = pending->second.entered.emplace(who.rank, entry).second;
  if (!news) return;
  pending->second.deadline =
      news ? std::min(pending->second.deadline, entry.deadline) : entry.deadline;
  if (pending->second.awaited.has_value() && pending->second.awaited != who.rank) return;
  if (IsFull(&pending->second)) Finish(pending, absl::OkStatus());
}

// Looks at all workers, which is too slow for every entry: it sets Pending::awaited, the worker
// that must enter (or go) before it need be called again. That is the last one missing, since many
// enter in the order of their ranks.
bool Barriers::IsFull(Pending* pending) const {
  const std::vector<std::uint32_t> missing = Missing(*pending);
  pending->awaited = missing.empty() ? std::nullopt : std::optional(missing.back());
  return missing.size() <= 0;
}

std::uint64_t Barriers::Translate(const Entrant& who, const proto::BarrierEnter& enter) {
  if (who.late == 0) return enter.number;
  const auto [shift, first] = shifts_.try_emplace({who.late, {enter.name, enter.group}});
  if (first) {
    ++changes_;
    shift->second = OpenNumber(enter) - enter.number;
  }
  return enter.number + shift->second;
}

// The number of the barrier in which the others wait; otherwise of the next.
std::uint64_t Barriers::OpenNumber(const proto::BarrierEnter& enter) const {
  const auto pending = pending_.lower_bound({enter.name, enter.group, 0});
  if (pending != pending_.end() && std::get<0>(pending->first) == enter.name &&
      std::get<1>(pending->first) == enter.group) {
    return std::get<2>(pending->first);
  }
  const auto ended = ended_.find({enter.name, enter.group});
  return ended == ended_.end() ? enter.number : ended->second.results.rbegin()->first + 1;
}

void Barriers::Gone(const Entrant& who) {
  if (who.late != 0) {
    std::erase_if(shifts_, [&](const auto& shift) { return shift.first.first == who.late; });
  }
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto current = pending++;
    if (current->second.entered.erase(who.rank) > 0) {
      current->second.deadline = absl::InfiniteFuture();
      for (const auto& [rank, entry] : current->second.entered) {
        current->second.deadline = std::min(current->second.deadline, entry.deadline);
      }
    }
    if (current->second.entered.empty()) {
      pending_.erase(current);
    } else if (IsFull(&current->second)) {
      Finish(current, absl::OkStatus());
    }
  }
}

Barriers::State Barriers::state() const {
  State state{.ended = {}, .shifts = shifts_};
  for (const auto& [name, ended] : ended_) state.ended[name] = ended.results;
  return state;
}

void Barriers::Restore(State state) {
  shifts_ = std::move(state.shifts);
  for (auto& [name, results] : state.ended) ended_[name].results = std::move(results);
}

void Barriers::Expire(absl::Time now) {
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto current = pending++;
    if (current->second.deadline > now) continue;
    const std::vector<std::uint32_t> missing = Missing(current->second);
    std::vector<std::string> names;
    for (std::uint32_t rank : missing) {
      if (names.size() == kNamedMax) break;
      names.push_back(workers_->Describe(rank, now));
    }
    // Workers that enter later read this as well, among them those that it names.
    std::string text =
        absl::StrCat(Title(std::get<0>(current->first), std::get<2>(current->first)),
                     " ended after ", runtime::FormatDuration(now - current->second.since),
                     " without ", absl::StrJoin(names, "; "));
    if (missing.size() > names.size()) {
      absl::StrAppend(&text, "; and ", missing.size() - names.size(), " more");
    }
    Finish(current, absl::DeadlineExceededError(text));
  }
}

absl::Time Barriers::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [key, pending] : pending_) next = std::min(next, pending.deadline);
  return next;
}

std::vector<Barriers::Waiting> Barriers::waiting() const {
  std::vector<Waiting> all;
  for (const auto& [key, pending] : pending_) {
    all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), Missing(pending)});
  }
  return all;
}

std::vector<std::uint32_t> Barriers::Missing(const Pending& pending) const {
  std::vector<std::uint32_t> missing = workers_->Needed();
  std::erase_if(missing, [&](std::uint32_t rank) { return pending.entered.contains(rank); });
  return missing;
}

bool Barriers::AnswerIfEnded(std::uint32_t rank, const Key& key, std::uint64_t said) {
  const auto& [name, group, number] = key;
  const auto ended = ended_.find({name, group});
  if (ended == ended_.end()) return false;
  const auto& results = ended->second.results;
  if (const auto result = results.find(number); result != results.end()) {
    ended->second.used = ++uses_;
    Answer(rank, key, said, result->second);
    return true;
  }
  if (results.size() < kBarrierEndsRememberedMax || number > results.begin()->first) return false;
  Answer(
      rank, key, said,
      absl::FailedPreconditionError(absl::StrCat(
          Title(name, number), " ended long ago; the newest to end is ", results.rbegin()->first)));
  return true;
}

void Barriers::Answer(std::uint32_t rank, const Key& key, std::uint64_t said,
                      const absl::Status& result) {
  proto::BarrierRelease release;
  std::tie(release.name, release.group, std::ignore) = key;
  release.number = said;
  release.result = result;
  send_(rank, release);
}

void Barriers::Finish(std::map<Key, Pending>::iterator pending, const absl::Status& result) {
  const auto node = pending_.extract(pending);
  Remember(node.key(), result);
  for (const auto& [rank, entry] : node.mapped().entered) {
    Answer(rank, node.key(), entry.number, result);
  }
}

void Barriers::Remember(const Key& key, const absl::Status& result) {
  ++changes_;
  const auto& [name, group, number] = key;
  Ended& ended = ended_[{name, group}];
  ended.used = ++uses_;
  ended.results[number] = result;
  if (ended.results.size() > kBarrierEndsRememberedMax) {
    ended.results.erase(ended.results.begin());
  }
  if (ended_.size() <= kBarrierNamesRememberedMax) return;
  ended_.erase(std::min_element(ended_.begin(), ended_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

}  // namespace leeway::scheduler
