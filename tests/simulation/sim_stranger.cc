#include "tests/simulation/sim_stranger.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/random.h"

namespace leeway::simulation {
namespace {

constexpr absl::string_view kHost = "stranger";
constexpr absl::string_view kPromise = "limits and budgets";
constexpr absl::Duration kReachWithin = absl::Seconds(2);
// The answers to all of them take several times what a node keeps for a guest.
constexpr std::uint64_t kRequests = 1500;
// Too slow for the answers while the requests arrive, and fast enough for all of them in kStays.
constexpr double kLinkBytesPerSecond = 4e5;

}  // namespace

SimStranger::SimStranger(SimCluster* cluster, Checker* checker, std::uint64_t seed)
    : cluster_(cluster),
      checker_(checker),
      host_(cluster->world().NewHost(std::string(kHost))),
      factory_(cluster->NewFactory(std::string(kHost))),
      runner_(host_->Spawn("main")),
      seed_(seed) {}

SimStranger::~SimStranger() { van_.reset(); }

void SimStranger::Come(const Nodes& nodes, std::uint64_t id, bool knows_it) {
  id_ = id;
  knows_id_ = knows_it;
  runtime::Random random(seed_);
  van::Identity identity;
  identity.cluster = knows_it ? id : 0;
  identity.incarnation = host_->Random();
  identity.role = !knows_it ? Role::kTool : random.Below(2) == 0 ? Role::kWorker : Role::kServer;
  cluster_->Note(absl::StrCat("a stranger comes ", knows_it ? "with" : "without", " the id"));
  van_ = factory_->New(runner_->loop(), identity, van::LimitsFrom(cluster_->config()), this);
  van::LinkFaults slow;
  slow.bytes_per_second = kLinkBytesPerSecond;
  for (const auto& [host, address] : nodes) {
    cluster_->network().SetFaults(host, std::string(kHost), slow);
    runner_->loop()->Post([this, to = address] { (void)van_->Connect(to, kReachWithin); });
  }
}

void SimStranger::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  if (!knows_id_ && identity.cluster != 0) {
    checker_->Fail(kPromise, absl::StrCat("a stranger is told the cluster's id by ",
                                          Name(identity.role), " ", identity.node));
  }
  for (std::uint64_t i = 0; i < kRequests; ++i, ++asked_) {
    const proto::StatusRequest request{asked_ + 1};
    if (!van_->Send(peer, {.header = proto::Encode(request), .payload = {}}).ok()) return;
  }
}

void SimStranger::OnMessage(van::PeerId peer, van::Message raw) {
  const std::uint64_t before = answered_bytes_[peer];
  answered_bytes_[peer] += raw.TotalBytes();
  for (const runtime::Buffer& json : raw.payload) {
    if (!knows_id_ && absl::StrContains(json.text(), absl::StrCat(absl::Hex(id_)))) {
      checker_->Fail(kPromise, "a stranger is told the cluster's id by a status");
    }
  }
  // A node that keeps no more than its limit drops the guest while that is on its way.
  const std::uint64_t allowed = 2 * van::Limits{}.guest_bytes_max;
  if (before <= allowed && before + raw.TotalBytes() > allowed) {
    checker_->Fail(kPromise, absl::StrCat("a stranger that reads slowly is sent more than ",
                                          allowed, " bytes of answers"));
  }
}

}  // namespace leeway::simulation
