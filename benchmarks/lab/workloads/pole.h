// A small control task: a pole on a cart that is pushed to the left or the right.
//
// The cart and its figures are those of Barto, Sutton and Anderson, "Neuronlike adaptive elements
// that can solve difficult learning control problems" (IEEE SMC 1983): the episode ends when the
// pole leans by more than 12 degrees or the cart is 2.4 m away, after 200 steps of 20 ms at the
// latest. A worker plays episodes with the policy that it has pulled and pushes their policy
// gradient (Williams, "Simple statistical gradient-following algorithms", Machine Learning 1992):
// with stale pulls it acts, and learns, on a policy of some versions before, as actors of
// asynchronous reinforcement learning do.
//
// A sample is an episode; an epoch has 4,096. The score is the mean return of the policy that takes
// the likelier action, divided by 200; the loss is 1 less that of the policy that was trained.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_POLE_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_POLE_H_

#include <cstdint>
#include <memory>

#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

std::unique_ptr<Workload> NewPole(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_POLE_H_
