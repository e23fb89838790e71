#include "scheduler/chains/link_reports.h"

#include <algorithm>

#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "scheduler/chains/chain_controller.h"

namespace leeway::scheduler {
namespace {

// How long a pair of servers is kept apart, in failure timeouts.
constexpr int kApartFirst = 4, kApartLongest = 64;

}  // namespace

LinkReports::LinkReports(const Parts& parts)
    : parts_(parts),
      apart_(kApartFirst * parts.config->failure_timeout,
             kApartLongest * parts.config->failure_timeout) {}

void LinkReports::OnReport(const Node& server, const proto::LinkReport& report) {
  if (!parts_.life->running() || parts_.life->loading()) return;
  const Node* const other = OtherEnd(server, report);
  if (other == nullptr) return;
  if (report.handover && !HeardBetweenReports(report.shard, *other)) return;
  // The old head knows the map in which it is no longer the head, since it hands over by it.
  if (report.handover) {
    parts_.sender->SendTo(
        *other, proto::LeadNow{.epoch = report.epoch, .shard = report.shard, .from = server.rank});
  }
  const bool separated = report.handover
                             ? parts_.planner->Separate(report.shard, other->rank, server.rank)
                             : parts_.planner->Separate(report.shard, server.rank, other->rank);
  if (!separated && !report.handover) return;
  SeparatePair(server, *other, report);
  if (separated) parts_.chains->TakenOffChains("servers could not reach each other");
}

// Null: the report is of a chain that is not like that, or not any more, or of a server that is
// gone.
const Node* LinkReports::OtherEnd(const Node& server, const proto::LinkReport& report) const {
  const std::uint64_t since = parts_.maps->Since(report.shard);
  if (since == 0 || report.server >= parts_.members->servers().size()) return nullptr;
  if (report.epoch < since) return nullptr;
  const Node* const other = parts_.members->servers()[report.server];
  if (other == nullptr || !other->alive() || other == &server) return nullptr;
  const proto::Chain& chain = parts_.planner->chains()[report.shard];
  const bool to_head = !chain.members.empty() && chain.members[0].server_rank == other->rank;
  return report.handover == to_head ? other : nullptr;
}

// True if the new head `other` of a shard was heard between the last report of its handover and
// this one. A dead server counts as alive until its deadline, which a restart of the scheduler puts
// off, and the old head may be the only living server that has the shard: it is not taken off the
// chain before the new head has been heard.
bool LinkReports::HeardBetweenReports(std::uint32_t shard, const Node& other) {
  const absl::Time now = Now();
  HandoverReport& last = handover_reports_[shard];
  const absl::Duration since = now - std::exchange(last.at, now);
  const bool of_the_same = std::exchange(last.new_head, other.id) == other.id;
  // A server repeats its report with each heartbeat: one that came long before is of another
  // handover.
  if (!of_the_same || since > parts_.config->failure_timeout / 2) return false;
  return other.SilentFor(now) < since;
}

void LinkReports::SeparatePair(const Node& server, const Node& other,
                               const proto::LinkReport& report) {
  const absl::Duration kept = apart_.Note(server.rank, other.rank, Now());
  if (kept == absl::ZeroDuration()) return;  // it has been logged
  parts_.planner->SetApart(apart_.apart());
  runtime::LogWarning(server.FullName(), " cannot reach server ", other.rank, " at ",
                      other.endpoints.front(), ": what it sends it of shard ", report.shard,
                      " has not been acknowledged for more than ",
                      runtime::FormatDuration(2 * parts_.config->failure_timeout),
                      ". Both reach the scheduler: is a firewall between them? Shards are no "
                      "longer replicated from "
                      "one to the other; that is tried again in ",
                      runtime::FormatDuration(kept));
}

void LinkReports::ServerGone(std::uint32_t rank) {
  apart_.Forget(rank);
  parts_.planner->SetApart(apart_.apart());
}

void LinkReports::Expire() {
  if (!apart_.Expire(Now())) return;
  parts_.planner->SetApart(apart_.apart());
  parts_.chains->PlanSoon();
}

// ---- pairs that are kept apart ----

absl::Duration ApartPairs::Note(std::uint32_t one, std::uint32_t other, absl::Time now) {
  const Pair pair = Of(one, other);
  if (apart_.contains(pair)) return absl::ZeroDuration();
  if (!entries_.contains(pair) && entries_.size() >= kApartPairsMax) {
    const auto first = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
    apart_.erase(first->first);
    entries_.erase(first);
  }
  const auto [entry, is_new] = entries_.try_emplace(pair, Entry{.span = first_, .until = now});
  if (!is_new) entry->second.span = std::min(2 * entry->second.span, longest_);
  entry->second.until = now + entry->second.span;
  apart_.insert(pair);
  return entry->second.span;
}

void ApartPairs::Forget(std::uint32_t rank) {
  const auto of_it = [rank](const Pair& pair) { return pair.first == rank || pair.second == rank; };
  std::erase_if(entries_, [&](const auto& entry) { return of_it(entry.first); });
  std::erase_if(apart_, of_it);
}

// A pair that was apart is remembered for as long again, to be kept longer the next time.
bool ApartPairs::Expire(absl::Time now) {
  const std::size_t before = apart_.size();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (now >= entry.until) apart_.erase(it->first);
    it = now >= entry.until + entry.span ? entries_.erase(it) : std::next(it);
  }
  return apart_.size() < before;
}

}  // namespace leeway::scheduler
