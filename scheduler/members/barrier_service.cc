#include "scheduler/members/barrier_service.h"

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {
namespace {

Barriers::Entrant EntrantOf(const Node& worker) {
  return {.rank = worker.rank, .late = worker.late ? worker.incarnation : 0};
}

}  // namespace

BarrierService::BarrierService(runtime::Loop* loop, const MembershipTable* members,
                               const Liveness* liveness, NodeSender* sender)
    : loop_(loop),
      members_(members),
      liveness_(liveness),
      barriers_(this,
                [members, sender](std::uint32_t rank, const proto::BarrierRelease& release) {
                  if (const Node* worker = members->workers()[rank]) {
                    sender->SendTo(*worker, release);
                  }
                }),
      timer_(loop, [this] {
        barriers_.Expire(loop_->Now());
        Arm();
      }) {}

void BarrierService::Enter(const Node& worker, const proto::BarrierEnter& enter) {
  barriers_.Enter(EntrantOf(worker), enter, loop_->Now());
  Arm();
}

void BarrierService::Gone(const Node& worker) { barriers_.Gone(EntrantOf(worker)); }

void BarrierService::Arm() {
  timer_.Clear();
  timer_.SetBy(barriers_.NextDeadline());
}

std::vector<std::uint32_t> BarrierService::Needed() const {
  std::vector<std::uint32_t> ranks;
  const std::vector<Node*>& workers = members_->workers();
  for (std::uint32_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank] == nullptr || workers[rank]->alive()) ranks.push_back(rank);
  }
  return ranks;
}

std::string BarrierService::Describe(std::uint32_t rank, absl::Time /*now*/) const {
  const Node* worker = members_->workers()[rank];
  if (worker == nullptr) return absl::StrCat("worker ", rank, ", which has not joined");
  return absl::StrCat(worker->FullName(), ", ", liveness_->LastHeard(worker->id));
}

}  // namespace leeway::scheduler
