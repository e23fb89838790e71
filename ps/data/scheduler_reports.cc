#include "ps/data/scheduler_reports.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/log/log.h"

namespace leeway::ps {

void SchedulerReports::SayReady(const Replica& replica) {
  if (tell_ == nullptr) return;
  tell_(proto::ReplicaReady{.epoch = state_->map->epoch, .shard = replica.shard().id()});
}

void SchedulerReports::ReportLinks() {
  const absl::Time now = state_->loop->Now();
  for (auto& [id, replica] : state_->replicas.all()) {
    const std::optional<proto::LinkReport> report = replica->LookAtLink(now, link_patience_);
    if (report.has_value() && tell_ != nullptr) tell_(*report);
  }
}

void SchedulerReports::ReportLoad() {
  if (tell_ == nullptr) return;
  proto::LoadReport report;
  for (auto& [id, replica] : state_->replicas.all()) {
    if (replica->ready()) SayReady(*replica);
    if (!replica->is_member()) continue;
    std::uint64_t bytes = 0;
    for (const auto& [table, store] : replica->shard().stores()) {
      bytes += store->stats().value_bytes;
    }
    report.shards.push_back({.shard = id, .bytes = bytes, .requests = replica->shard().requests()});
  }
  tell_(std::move(report));  // also an empty one, when no shard is left here
}

void SchedulerReports::LogStragglers() {
  if (state_->replicas.shards().held.bytes == 0) return;  // no pull waits
  const absl::Time now = state_->loop->Now();
  const std::vector<Straggler> stragglers = FindStragglers(state_->replicas.List());
  const auto longest =
      std::min_element(stragglers.begin(), stragglers.end(),
                       [](const Straggler& a, const Straggler& b) { return a.since < b.since; });
  if (longest == stragglers.end() || now - longest->since < kStragglerLoggedAfter) return;
  if (!straggler_lines_->Take(now)) return;
  const Table& table = *state_->replicas.shards().tables.Find(longest->table);
  runtime::LogWarning(Describe(*longest, table.spec().name, now));
}

}  // namespace leeway::ps
