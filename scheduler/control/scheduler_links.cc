// What the scheduler does where two servers reach it, but not each other.
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {

// A server speaks for what it sends itself: to the one behind it in a chain, to one that it fills,
// or, as the head before, to the new head. Nobody else's links are broken up at its word.
void Scheduler::Impl::On(const Sender& sender, const proto::LinkReport& report) {
  if (!IsMember(sender, Role::kServer) || !running() || restoration_.loading()) return;
  const Node* const other = OtherEnd(sender, report);
  if (other == nullptr) return;
  const Node& server = *sender.node;
  if (report.handover && !HeardBetweenReports(report.shard, *other)) return;
  // The old head has acted by the map in which it is no head any more, or it could not hand over.
  if (report.handover && !runtime::Planted<"nobody-told-to-lead">()) {
    SendTo(*other,
           proto::LeadNow{.epoch = report.epoch, .shard = report.shard, .from = server.rank});
  }
  const bool separated = report.handover
                             ? planner_.Separate(report.shard, other->rank, server.rank)
                             : planner_.Separate(report.shard, server.rank, other->rank);
  if (!separated && !report.handover) return;
  NoteApart(server, *other, report);
  if (!separated) return;
  NextMap();
  HurryChains();
  LacksReplicas("servers could not reach each other");
  PublishSoon();
}

// Null: the report is of a chain that is not like that (any more), or of a server that is gone.
const Node* Scheduler::Impl::OtherEnd(const Sender& sender, const proto::LinkReport& report) const {
  const std::uint64_t since = maps_.Since(report.shard);
  if (since == 0 || report.server >= members_.servers().size()) return nullptr;
  if (report.epoch < since && !runtime::Planted<"late-link-report-obeyed">()) return nullptr;
  const Node* const other = members_.servers()[report.server];
  if (other == nullptr || !other->alive() || other == sender.node) return nullptr;
  const proto::Chain& chain = planner_.chains()[report.shard];
  const bool to_head = !chain.members.empty() && chain.members[0].server_rank == other->rank;
  return report.handover == to_head || runtime::Planted<"link-word-of-anybody">() ? other : nullptr;
}

// True if the new head `other` of a shard was heard between the last report of its handover and
// this one. A dead server counts as alive until its deadline, which a restart of the scheduler puts
// off, and the old head may be the only living server that has the shard: it is not taken off the
// chain before the new head has been heard.
bool Scheduler::Impl::HeardBetweenReports(std::uint32_t shard, const Node& other) {
  const absl::Time now = Now();
  HandoverReport& last = handover_reports_[shard];
  const absl::Duration since = now - std::exchange(last.at, now);
  const bool of_the_same = std::exchange(last.new_head, other.id) == other.id;
  if (runtime::Planted<"unheard-head-leads">()) return true;
  // A server says it again with each heartbeat: what came long before is of another handover.
  if (!of_the_same || since > config_.failure_timeout / 2) return false;
  return detector_.SilentFor(other.id, now) < since;
}

void Scheduler::Impl::NoteApart(const Node& server, const Node& other,
                                const proto::LinkReport& report) {
  const absl::Duration kept = apart_.Note(server.rank, other.rank, Now());
  if (kept == absl::ZeroDuration()) return;  // it has been said
  if (!runtime::Planted<"apart-not-kept">()) planner_.SetApart(apart_.apart());
  runtime::LogWarning(server.FullName(), " cannot reach server ", other.rank, " at ",
                      other.endpoints.front(), ": what it sends it of shard ", report.shard,
                      " has not been acknowledged for more than ",
                      absl::FormatDuration(2 * config_.failure_timeout),
                      ". Both reach the scheduler: is a firewall between them? Shards are no "
                      "longer replicated from "
                      "one to the other; that is tried again in ",
                      absl::FormatDuration(kept));
}

void Scheduler::Impl::ExpireApart() {
  if (!apart_.Expire(Now())) return;
  planner_.SetApart(apart_.apart());
  PlanSoon();
}

}  // namespace leeway::scheduler
