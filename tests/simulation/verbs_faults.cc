#include "tests/simulation/verbs_faults.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

// Short enough for a node to be back before it is taken for dead (Config::suspicion).
constexpr absl::Duration kLostMax = absl::Milliseconds(500);

// Without failures, but with delays of requests, completions and events.
van::verbs::FakeFaults Delays(std::uint64_t seed) {
  van::verbs::FakeFaults faults;
  faults.seed = seed;
  faults.delay_rate = 0.3;
  faults.delayed_completion_rate = 0.2;
  faults.delayed_event_rate = 0.2;
  faults.delay_max = absl::Microseconds(400);
  return faults;
}

}  // namespace

// Registrations of sent memory are not refused: their number depends on the pages that blocks lie
// in, which do not follow from a seed.
VerbsFaults::VerbsFaults(SimCluster* cluster, std::uint64_t seed)
    : cluster_(cluster),
      seed_(seed),
      random_(runtime::RandomAt(seed, runtime::StableHash("lost devices"), 0)) {
  runtime::Random random(runtime::RandomAt(seed, runtime::StableHash("verbs faults"), 0));
  van::verbs::FakeFaults faults = Delays(runtime::RandomAt(seed, runtime::StableHash("verbs"), 0));
  faults.fail_rate = 1.0 / static_cast<double>(200 << random.Below(6));
  faults.disconnect_rate = faults.fail_post_rate = faults.fail_rate / 4;
  faults.purge_rate = 0.5;
  faults.fail_dial_rate = faults.fail_resolve_rate = faults.fail_accept_rate = 0.05;
  faults.refuse_dial_rate = faults.lose_dial_rate = 0.02;
  faults.refuse_remote_rate = 0.1 * static_cast<double>(random.Below(4));
  // Some devices have short queues, which are soon full.
  if (random.Below(2) == 0) faults.send_depth_max = 40;
  if (random.Below(2) == 0) faults.receive_depth_max = 48;
  cluster_->rdma()->fabric().SetFaults(faults);
}

void VerbsFaults::Start(absl::Duration window) {
  to_come_ = static_cast<int>(random_.Below(4));
  for (int i = 0; i < to_come_; ++i) {
    const absl::Duration length = kLostMax * random_.Uniform();
    cluster_->world().Schedule(window * random_.Uniform(), [this, length] { LoseOne(length); });
  }
}

void VerbsFaults::LoseOne(absl::Duration length) {
  const std::vector<std::string> hosts = cluster_->HostNames();
  const std::string host = hosts[random_.Below(hosts.size())];
  cluster_->Note(absl::StrCat("device lost: ", host));
  cluster_->rdma()->fabric().LoseDevicesOf(host);
  cluster_->world().Schedule(length, [this, host] {
    cluster_->Note(absl::StrCat("device is back: ", host));
    cluster_->rdma()->fabric().RestoreDevicesOf(host);
    --to_come_;
  });
}

void VerbsFaults::Stop() {
  cluster_->rdma()->fabric().SetFaults(
      Delays(runtime::RandomAt(seed_, runtime::StableHash("verbs"), 1)));
}

std::optional<Violation> JudgeDevices(const van::verbs::FakeCounters& counters) {
  if (counters.connections + counters.regions + counters.registered_bytes + counters.receives > 0) {
    return Violation{
        "devices are left clean",
        absl::StrCat(counters.connections, " connections, ", counters.regions, " regions of ",
                     counters.registered_bytes, " bytes and ", counters.receives,
                     " receives are left when all processes have gone")};
  }
  if (counters.changed_early + counters.deregistered_early + counters.overposted > 0) {
    return Violation{
        "a device's memory is left alone",
        absl::StrCat(counters.changed_early, " sends were changed and ",
                     counters.deregistered_early, " deregistered before they were done; ",
                     counters.overposted, " requests were posted to full queues")};
  }
  return std::nullopt;
}

}  // namespace leeway::simulation
