// Verbs in memory, between the Verbs objects of one process: reliable connections that behave as
// queue pairs of a device do, and fail as the test asks.
//
// All Verbs of a fabric may be on different threads; one mutex guards them. A request is carried
// out when one of the Verbs is polled, in order within a connection, and never within Post: what is
// sent lies in the sender's memory until then, as with a device. Nothing runs in the background.
//
// Where devices differ or the interface leaves it open, this one does what a transport finds
// hardest:
//   - A request takes a place of the send queue until a completion of it or of a later one was
//     polled. A receive takes a place of the receive queue until its completion was polled.
//   - Memory is read late also for sends that a device would copy into the request (inline).
//   - A completion that came before Arm makes no descriptor readable.
//   - A request that fails puts its own queue pair in error and tells nobody: the other side hears
//     of it when this side disconnects or destroys the connection, or sends in vain itself.
//   - kDeviceLost comes without kDisconnected for the connections of the device.
// To destroy a Verbs before its connections or memory regions ends the process with a message.
#ifndef LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_
#define LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

// What goes wrong, drawn from `seed`; rates are of each request, registration and so on, from 0
// to 1. With all loops on one thread the same seed and the same calls give the same faults.
struct FakeFaults {
  std::uint64_t seed = 1;

  // Requests. Those that stand for a lost answer (kRetriesExceeded, kOther, a disconnect) have
  // arrived in half of the cases: a send as a whole, a write perhaps in part.
  double fail_rate = 0;                  // a request ends with an outcome drawn at random
  double disconnect_rate = 0;            // the connection ends instead
  double delay_rate = 0;                 // a request is carried out by a later poll; less than 1
  double late_completion_rate = 0;       // a completion is found by a later poll; less than 1
  double fail_post_rate = 0;             // Post returns UNAVAILABLE, having posted some
  std::uint32_t receiver_waits_max = 0;  // tries before kReceiverNotReady; 0: no limit
  // A destroyed connection takes its completions along that were not polled, and the receives of
  // these are lost (as with mlx5). Otherwise they may still be polled.
  double purge_rate = 0;

  // Memory.
  double refuse_register_rate = 0;             // RESOURCE_EXHAUSTED
  double refuse_remote_rate = 0;               // likewise, of memory that a peer may write to
  double refuse_receive_rate = 0;              // PostReceive: RESOURCE_EXHAUSTED
  std::uint64_t registered_bytes_max = ~0ull;  // of a Verbs; more is RESOURCE_EXHAUSTED

  // Connecting.
  double fail_dial_rate = 0;          // Dial returns UNAVAILABLE
  double fail_resolve_rate = 0;       // kFailed instead of kResolved
  double refuse_dial_rate = 0;        // kFailed, and the listener hears nothing
  double lose_dial_rate = 0;          // likewise, after a while
  std::uint32_t lost_dial_polls = 8;  // the while
  double fail_accept_rate = 0;        // kFailed on both sides after Accept
  double late_event_rate = 0;         // an event is found by a later NextEvent; less than 1

  // With FakeHooks::after: how long what is delayed is delayed at most, each time.
  absl::Duration delay_max = absl::Milliseconds(1);

  // Of Verbs that are opened from now on; less than what they ask for.
  std::uint32_t send_depth_max = ~0u, receive_depth_max = ~0u;
  std::uint32_t devices = 1;  // which their connections use in turn
};

struct FakeCounters {
  std::uint64_t posted = 0;     // requests
  std::uint64_t requests = 0;   // carried out, failed or flushed
  std::uint64_t signalled = 0;  // of them
  std::uint64_t sent_bytes = 0, written_bytes = 0;
  std::uint64_t writes_refused = 0;  // to memory that was not granted, or no longer
  std::uint64_t failed = 0;          // requests that a fault was drawn for
  std::uint64_t receiver_waits = 0;  // tries of a send for which no receive was posted
  std::uint64_t lost_receives = 0;   // taken along by destroyed connections
  std::uint64_t registrations = 0;   // of memory, ever
  std::uint64_t refused_registrations = 0;
  std::uint64_t lost_devices = 0;  // that a connection had used

  // Offences of the user, all of which should stay 0. The first two are of requests that were
  // carried out and whose completion has not come: a device may send them once more.
  std::uint64_t changed_early = 0;       // their bytes were changed
  std::uint64_t deregistered_early = 0;  // their memory was
  std::uint64_t overposted = 0;          // Post and PostReceive beyond the depth

  // What there is now.
  std::uint64_t connections = 0, regions = 0, registered_bytes = 0;
  std::uint64_t remote_regions = 0, remote_bytes = 0;  // of them, those that a peer may write to
  std::uint64_t receives = 0;                          // posted, and not polled or lost since
};

// For loops without file descriptors and with virtual time, all on one thread; one for each
// provider. They are called under the fabric's mutex, out of calls to any Verbs of the fabric, and
// must not call back.
struct FakeHooks {
  // The simulated host it runs on, for FakeFabric::Kill and LoseDevicesOf.
  std::string host;
  // While it holds true nothing of this provider's is delayed. May be null.
  std::shared_ptr<const bool> hurry;
  // The descriptor of a Verbs of this provider becomes readable.
  std::function<void()> news;
  // Runs the function after that time; null: what is delayed waits for some polls instead.
  std::function<void(absl::Duration, std::function<void()>)> after;
};

// The wires between Verbs, and the control of what fails. Any thread.
class FakeFabric {
 public:
  FakeFabric();
  ~FakeFabric();  // before or after what was made on it

  void SetFaults(const FakeFaults& faults);
  // The next request that is carried out, of whatever connection, ends so; `arrived`: the other
  // side gets it all the same.
  void FailNext(Outcome outcome, bool arrived = false) { FailNth(0, outcome, arrived); }
  // The one after `skipped` others.
  void FailNth(std::uint64_t skipped, Outcome outcome, bool arrived = false);
  // The request with that index, counted from 0 on that connection.
  void FailRequest(std::uint32_t queue_pair, std::uint64_t index, Outcome outcome);
  // Is told of each write that is carried out: from where the sender's device read it, and to where
  // the receiver's wrote it. Called under the fabric's mutex.
  void OnWrite(std::function<void(std::span<const std::byte> from, const std::byte* to)> told);
  // Nothing is carried out until Resume.
  void Pause();
  void Resume();
  // Every established connection ends.
  void DisconnectAll();
  // Every device is lost; connections made from now on work again, unless they are to `stay_lost`
  // until RestoreDevices.
  void LoseDevices(bool stay_lost = false);
  // Likewise, one.
  void LoseDevice(const Device* device, bool stay_lost = false);
  void RestoreDevices();
  // Likewise, those of one host until RestoreDevicesOf.
  void LoseDevicesOf(const std::string& host);
  void RestoreDevicesOf(const std::string& host);
  // Every process of that host dies: it listens no more, its devices do nothing any more, and the
  // other ends of its connections are told that they have ended.
  void Kill(const std::string& host);
  FakeCounters counters() const;

  class State;
  std::shared_ptr<State> state() const { return state_; }

 private:
  const std::shared_ptr<State> state_;
};

// Any address is one of this fabric's; only its port counts. Each Open makes what stands for a
// process with `devices` devices, "fake0" and so on.
std::unique_ptr<Provider> NewFakeProvider(const FakeFabric& fabric, FakeHooks hooks = {});

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_
