#include "scheduler/members/barriers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_duration.h"

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

Barriers::Barriers(runtime::Loop* loop, const MembershipTable* members, Needed needed, Send send)
    : loop_(loop),
      members_(members),
      needed_(std::move(needed)),
      send_(std::move(send)),
      timer_(loop, [this] { Expire(); }) {}

void Barriers::Enter(const Node& worker, const proto::BarrierEnter& enter) {
  const std::uint32_t rank = worker.rank;
  const Key said(enter.name, enter.group, enter.number);
  if (enter.group != Group::kWorkers && enter.group != Group::kAll) {
    Answer(rank, said, enter.number,
           absl::InvalidArgumentError(
               absl::StrCat("barrier '", enter.name,
                            "': a worker is no member of the group of servers; enter "
                            "Group::kWorkers or Group::kAll")));
    return;
  }
  if (worker.late && shifts_.size() >= kLateNamesMax) {
    Answer(rank, said, enter.number,
           absl::ResourceExhaustedError(absl::StrCat("barrier '", enter.name,
                                                     "': late workers have entered ", kLateNamesMax,
                                                     " names of barriers; use fewer names")));
    return;
  }
  const Key key(enter.name, enter.group, Translate(worker, enter));
  if (AnswerIfEnded(rank, key, enter.number)) return;
  if (!pending_.contains(key) && pending_.size() >= kBarriersWaitingMax) {
    Answer(
        rank, key, enter.number,
        absl::ResourceExhaustedError(absl::StrCat(Title(enter.name, enter.number), ": ",
                                                  kBarriersWaitingMax, " barriers wait already")));
    return;
  }
  const auto [pending, first] = pending_.try_emplace(key);
  const absl::Time now = loop_->Now();
  if (first) pending->second.since = now;
  // Entering again changes nothing, not even the deadline.
  const Entry entry{DeadlineOf(enter, now), enter.number};
  const bool news = pending->second.entered.emplace(rank, entry).second;
  if (!news) return;
  pending->second.deadline = std::min(pending->second.deadline, entry.deadline);
  timer_.SetBy(pending->second.deadline);
  const bool may_be_full = pending->second.awaited.value_or(rank) == rank;
  if (may_be_full && IsFull(&pending->second)) Finish(pending, absl::OkStatus());
}

// Looks at all workers, which is too slow for every entry: it sets Pending::awaited, the worker
// that must enter (or go) before it need be called again. That is the last one missing, since many
// enter in the order of their ranks.
bool Barriers::IsFull(Pending* pending) const {
  const std::vector<std::uint32_t> missing = Missing(*pending);
  pending->awaited = missing.empty() ? std::nullopt : std::optional(missing.back());
  return missing.empty();
}

std::uint64_t Barriers::Translate(const Node& worker, const proto::BarrierEnter& enter) {
  if (!worker.late) return enter.number;
  const auto [shift, first] = shifts_.try_emplace({worker.incarnation, {enter.name, enter.group}});
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

void Barriers::Gone(const Node& worker) {
  if (worker.late) {
    std::erase_if(shifts_,
                  [&](const auto& shift) { return shift.first.first == worker.incarnation; });
  }
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto current = pending++;
    if (current->second.entered.erase(worker.rank) > 0) {
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

// Fails the barriers whose time is up. The timer may have been set for one that is over.
void Barriers::Expire() {
  const absl::Time now = loop_->Now();
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto current = pending++;
    if (current->second.deadline > now) continue;
    const std::vector<std::uint32_t> missing = Missing(current->second);
    std::vector<std::string> names;
    for (std::uint32_t rank : missing) {
      if (names.size() == kNamedMax) break;
      names.push_back(Describe(rank));
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
  for (const auto& [key, pending] : pending_) timer_.SetBy(pending.deadline);
}

std::string Barriers::Describe(std::uint32_t rank) const {
  const Node* const worker = members_->workers()[rank];
  if (worker == nullptr) return absl::StrCat("worker ", rank, ", which has not joined");
  return absl::StrCat(worker->FullName(), ", ", worker->LastHeard(loop_->Now()));
}

std::vector<Barriers::Waiting> Barriers::waiting() const {
  std::vector<Waiting> all;
  for (const auto& [key, pending] : pending_) {
    all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), Missing(pending)});
  }
  return all;
}

std::vector<std::uint32_t> Barriers::Missing(const Pending& pending) const {
  std::vector<std::uint32_t> missing = needed_();
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
  if (const Node* const worker = members_->workers()[rank]) send_(*worker, release);
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
