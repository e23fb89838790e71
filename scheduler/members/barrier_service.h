// The scheduler's barriers: Barriers (barriers.h) joined to the members, the sender and a timer
// that fails those whose time is up. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_BARRIER_SERVICE_H_
#define LEEWAY_SCHEDULER_MEMBERS_BARRIER_SERVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/members/barriers.h"
#include "scheduler/members/liveness.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"

namespace leeway::scheduler {

class BarrierService final : private Barriers::Workers {
 public:
  // All outlive it.
  BarrierService(runtime::Loop* loop, const MembershipTable* members, const Liveness* liveness,
                 NodeSender* sender);

  void Enter(const Node& worker, const proto::BarrierEnter& enter);
  // The worker has gone: barriers no longer wait for it.
  void Gone(const Node& worker);
  // To be called when any member has gone.
  void Arm();

  void Restore(Barriers::State state) { barriers_.Restore(std::move(state)); }
  const Barriers& barriers() const { return barriers_; }

 private:
  std::vector<std::uint32_t> Needed() const override;
  std::string Describe(std::uint32_t rank, absl::Time now) const override;

  runtime::Loop* const loop_;
  const MembershipTable* const members_;
  const Liveness* const liveness_;
  Barriers barriers_;
  runtime::Timer timer_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_BARRIER_SERVICE_H_
