#include "tests/simulation/fault_injector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/random.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::simulation {
namespace {

// The pause before a refused kill is tried again.
constexpr absl::Duration kStrikeAgain = absl::Milliseconds(300);

bool IsStrike(FaultKind kind) {
  return kind == FaultKind::kKillWorker || kind == FaultKind::kRestartWorker ||
         kind == FaultKind::kKillServer || kind == FaultKind::kKillTransferSource ||
         kind == FaultKind::kKillScheduler || kind == FaultKind::kMoveScheduler ||
         kind == FaultKind::kAddServer || kind == FaultKind::kDrain ||
         kind == FaultKind::kRebalance || kind == FaultKind::kCheckpoint ||
         kind == FaultKind::kSwitchCodec || kind == FaultKind::kChangeTable ||
         kind == FaultKind::kLeaveWorker || kind == FaultKind::kPublish;
}
bool CutsBothWays(FaultKind kind) {
  return kind == FaultKind::kPartition || kind == FaultKind::kLongPartition;
}

bool Matches(const std::string& pattern, const std::string& host) {
  return pattern.empty() || pattern == host;
}

std::string WhereIs(const Episode& it) {
  return it.host.empty() ? absl::StrCat(it.from, ">", it.to) : it.host;
}

van::LinkFaults Quiet() {
  van::LinkFaults link;
  link.delay_min = absl::Microseconds(50);
  link.delay_max = absl::Microseconds(400);
  return link;
}

// 50 us to 65 ms, one of five with the same chance.
absl::Duration PriorityDelay(std::uint64_t choice, const std::string& from, const std::string& to) {
  const std::uint64_t link = runtime::StableHash(absl::StrCat(from, ">", to));
  return absl::Microseconds(50) * std::pow(6, runtime::StableHash(choice ^ link) % 5);
}

// Takes the worse of both for each fault.
void Worsen(const van::LinkFaults& with, van::LinkFaults* link) {
  link->delay_max = std::max(link->delay_max, with.delay_max);
  link->drop_probability = std::max(link->drop_probability, with.drop_probability);
  link->duplicate_probability = std::max(link->duplicate_probability, with.duplicate_probability);
  if (with.reorder_probability > link->reorder_probability) {
    link->reorder_probability = with.reorder_probability;
    link->reorder_delay = with.reorder_delay;
  }
  if (with.bytes_per_second > 0 &&
      (link->bytes_per_second == 0 || with.bytes_per_second < link->bytes_per_second)) {
    link->bytes_per_second = with.bytes_per_second;
  }
}

}  // namespace

FaultInjector::FaultInjector(SimCluster* cluster, FaultPlan plan, Strike strike)
    : cluster_(cluster), plan_(std::move(plan)), strike_(std::move(strike)) {
  for (std::size_t i = 0; i < plan_.episodes.size(); ++i) to_come_.insert(i);
  cluster_->network().SetFaults(Quiet());  // for hosts outside the cluster
  Apply();
}

void FaultInjector::Start() {
  for (std::size_t i = 0; i < plan_.episodes.size(); ++i) {
    cluster_->world().Schedule(plan_.episodes[i].start, [this, i] { Begin(i); });
  }
}

void FaultInjector::Begin(std::size_t index) {
  const Episode& it = plan_.episodes[index];
  if (IsStrike(it.kind) || it.kind == FaultKind::kLongPartition) {
    const Struck struck = strike_(it);
    if (struck == Struck::kAskAgain) {
      cluster_->world().Schedule(kStrikeAgain, [this, index] { Begin(index); });
      return;
    }
    if (struck == Struck::kNo) {
      to_come_.erase(index);
      return;
    }
  }
  to_come_.erase(index);
  if (IsStrike(it.kind)) {
    ++episodes_[static_cast<std::size_t>(it.kind)];
    return;
  }
  cluster_->Note(absl::StrCat("fault begins: ", NameOf(it.kind), " ", WhereIs(it)));
  ++episodes_[static_cast<std::size_t>(it.kind)];
  active_.push_back(index);
  Apply();
  cluster_->world().Schedule(it.length, [this, index] { End(index); });
}

void FaultInjector::End(std::size_t index) {
  const Episode& it = plan_.episodes[index];
  cluster_->Note(absl::StrCat("fault ends: ", NameOf(it.kind), " ", WhereIs(it)));
  std::erase(active_, index);
  Apply();
}

van::LinkFaults FaultInjector::Conditions(const std::string& from, const std::string& to,
                                          bool* cut) const {
  van::LinkFaults link = Quiet();
  for (const std::size_t index : active_) {
    const Episode& it = plan_.episodes[index];
    const bool there = Matches(it.from, from) && Matches(it.to, to);
    const bool back = Matches(it.from, to) && Matches(it.to, from);
    if (it.kind == FaultKind::kPriorities) {
      link.delay_min = std::max(link.delay_min, PriorityDelay(it.choice, from, to));
      link.delay_max = std::max(link.delay_max, 1.01 * link.delay_min);
    } else if (CutsBothWays(it.kind)) {
      *cut = *cut || there || back;
    } else if (it.kind == FaultKind::kOneWayPartition) {
      *cut = *cut || there;
    } else if (there && it.host.empty()) {
      Worsen(it.link, &link);
    }
  }
  return link;
}

void FaultInjector::Apply() {
  ApplyToLinks();
  ApplyToHosts();
}

// Each host gets the clock and the disk of its newest fault, or those without faults.
void FaultInjector::ApplyToHosts() {
  std::map<std::string, double> rates;
  std::map<std::string, runtime::SimDiskFaults> disks;
  for (const std::size_t index : active_) {
    const Episode& it = plan_.episodes[index];
    if (it.kind == FaultKind::kClockSkew) rates[it.host] = it.amount;
    if (it.kind == FaultKind::kDiskFull) {
      disks[it.host].bytes_max = cluster_->world().files(it.host)->bytes_used();
    }
    if (it.kind != FaultKind::kDiskErrors) continue;
    disks[it.host].error_probability = it.amount;
    disks[it.host].torn_writes = true;
  }
  std::vector<std::string> hosts = cluster_->HostNames();
  hosts.emplace_back(kSharedFolder);  // a disk without a host
  for (const std::string& host : hosts) {
    const auto rate = rates.find(host);
    cluster_->world().SetClockRate(host, rate == rates.end() ? 1 : rate->second);
    cluster_->world().files(host)->SetFaults(disks[host]);
  }
}

void FaultInjector::ApplyToLinks() {
  const std::vector<std::string> hosts = cluster_->HostNames();
  cluster_->network().HealAll();
  for (const std::string& from : hosts) {
    for (const std::string& to : hosts) {
      if (from == to) continue;
      bool cut = false;
      cluster_->network().SetFaults(from, to, Conditions(from, to, &cut));
      if (cut) cluster_->network().Cut(from, to);
    }
  }
}

bool FaultInjector::cuts() const {
  return std::ranges::any_of(active_, [this](std::size_t index) {
    const FaultKind kind = plan_.episodes[index].kind;
    return CutsBothWays(kind) || kind == FaultKind::kOneWayPartition;
  });
}

std::string FaultInjector::ToCome() const {
  return absl::StrJoin(to_come_, ", ", [this](std::string* text, std::size_t index) {
    const Episode& it = plan_.episodes[index];
    absl::StrAppend(text, NameOf(it.kind), " ", WhereIs(it));
  });
}

FaultCounts FaultInjector::counts() const {
  FaultCounts counts = episodes_;
  const van::SimNetwork::Faulted struck = cluster_->network().faulted();
  counts[static_cast<std::size_t>(FaultKind::kDrop)] = struck.dropped;
  counts[static_cast<std::size_t>(FaultKind::kDuplicate)] = struck.duplicated;
  counts[static_cast<std::size_t>(FaultKind::kReorder)] = struck.reordered;
  return counts;
}

}  // namespace leeway::simulation
