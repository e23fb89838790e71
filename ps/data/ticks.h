// The clocks of workers as a data thread hears and speaks of them, for all its shards together:
// ticks and their acknowledgements, stable clocks, and workers that join late.
//
// Lives on the thread's loop.
#ifndef LEEWAY_PS_DATA_TICKS_H_
#define LEEWAY_PS_DATA_TICKS_H_

#include <cstdint>

#include "proto/messages/messages.h"
#include "ps/data/state/thread_state.h"
#include "runtime/loop/lifetime.h"
#include "van/van.h"

namespace leeway::ps {

class Ticks {
 public:
  // `state` outlives this.
  explicit Ticks(ThreadState* state) : state_(state) {}

  void OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick);
  // A worker that joins late asks for the clock that it begins at. It is answered when all shards
  // have let it in, on all replicas.
  void OnEnter(van::PeerId peer, const van::Identity& sender, const proto::EnterClock& enter);
  // Acknowledges the worker's newest tick if all shards count it. After a request that may have
  // made one count.
  void AcknowledgeIfDue(WorkerRecord* worker);
  // Some shard's stable clock has grown: workers, which keep their pushes until they hear of it,
  // are told soon, once for all shards that come along.
  void OnStableGrown();
  // An epoch begins: ticks are sent again, and what workers were told is void.
  void OnNewEpoch();

 private:
  void TellShards(const WorkerRecord& worker, proto::ClockTick* tick);
  void SendAck(van::PeerId peer, std::uint64_t clock);
  void TellStable();

  ThreadState* const state_;
  std::uint64_t stable_told_ = 0;
  bool stable_posted_ = false;
  runtime::Lifetime lifetime_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_TICKS_H_
