// FakeFabric provides Verbs in memory, between the Verbs objects of one process: reliable
// connections that behave like queue pairs of a device, and fail as the test asks.
//
// The Verbs of a fabric may be on different threads; one mutex guards them. A request is carried
// out when one of the Verbs is polled, in order within a connection, and never within Post: until
// then the bytes stay in the sender's memory, as with a device. Nothing runs in the background.
//
// Where devices differ or the interface leaves something open, this one does what is hardest for a
// transport:
//   - A request takes a place of the send queue until a completion of it or of a later one was
//     polled. A receive takes a place of the receive queue until its completion was polled.
//   - Memory is read late also for sends that a device would copy into the request (inline).
//   - A completion that came before Arm makes no descriptor readable.
//   - A request that fails puts its own queue pair in error without an event: the other side
//     learns of it when this side disconnects or destroys the connection, or when its own sends
//     fail.
//   - kDeviceLost comes without kDisconnected for the connections of the device.
// Destroying a Verbs before its connections or memory regions ends the process with a message.
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

// The faults, drawn from `seed`. Rates are probabilities from 0 to 1 for each request, registration
// and so on. With all loops on one thread the same seed and the same calls give the same faults.
struct FakeFaults {
  std::uint64_t seed = 1;

  // Requests. Faults that stand for a lost answer (kRetriesExceeded, kOther, a disconnect) have
  // arrived in half of the cases: a send as a whole, a write perhaps in part.
  double fail_rate = 0;                  // a request ends with an outcome drawn at random
  double disconnect_rate = 0;            // the connection ends instead
  double delay_rate = 0;                 // a request is carried out by a later poll; less than 1
  double delayed_completion_rate = 0;    // a completion is found by a later poll; less than 1
  double fail_post_rate = 0;             // Post returns UNAVAILABLE, having posted some
  std::uint32_t receiver_waits_max = 0;  // tries before kReceiverNotReady; 0: no limit
  // A destroyed connection drops its completions that were not polled, and their receives are lost
  // (as with mlx5). Otherwise they may still be polled.
  double purge_rate = 0;

  // Memory.
  double refuse_register_rate = 0;             // RESOURCE_EXHAUSTED
  double refuse_remote_rate = 0;               // the same for memory that a peer may write to
  double refuse_receive_rate = 0;              // PostReceive: RESOURCE_EXHAUSTED
  std::uint64_t registered_bytes_max = ~0ull;  // of one Verbs; more is RESOURCE_EXHAUSTED

  // Connecting.
  double fail_dial_rate = 0;          // Dial returns UNAVAILABLE
  double fail_resolve_rate = 0;       // kFailed instead of kResolved
  double refuse_dial_rate = 0;        // kFailed, without a connect request at the listener
  double lose_dial_rate = 0;          // the same, after lost_dial_polls polls
  std::uint32_t lost_dial_polls = 8;  // see lose_dial_rate
  double fail_accept_rate = 0;        // kFailed on both sides after Accept
  double delayed_event_rate = 0;      // an event is found by a later NextEvent; less than 1

  // With FakeHooks::after: the longest time of each delay.
  absl::Duration delay_max = absl::Milliseconds(1);

  // Limits of Verbs that are opened from now on, if smaller than what they ask for.
  std::uint32_t send_depth_max = ~0u, receive_depth_max = ~0u;
  std::uint32_t devices = 1;  // devices, which their connections use in turn
};

struct FakeCounters {
  std::uint64_t posted = 0;     // requests posted
  std::uint64_t requests = 0;   // carried out, failed or flushed
  std::uint64_t signalled = 0;  // requests that were signalled
  std::uint64_t sent_bytes = 0, written_bytes = 0;
  std::uint64_t writes_refused = 0;  // to memory that is not granted (any more)
  std::uint64_t failed = 0;          // requests with a fault
  std::uint64_t receiver_waits = 0;  // tries of sends that found no receive
  std::uint64_t lost_receives = 0;   // lost with destroyed connections
  std::uint64_t registrations = 0;   // registrations of memory so far
  std::uint64_t refused_registrations = 0;
  std::uint64_t lost_devices = 0;  // devices lost that a connection had used

  // Offences of the user, all of which should stay 0. The first two are of requests that were
  // carried out without a completion so far: a device may send their bytes once more.
  std::uint64_t changed_early = 0;       // their bytes were changed
  std::uint64_t deregistered_early = 0;  // their memory was deregistered
  std::uint64_t overposted = 0;          // Post and PostReceive beyond the depth

  // Numbers of what exists now.
  std::uint64_t connections = 0, regions = 0, registered_bytes = 0;
  std::uint64_t remote_regions = 0, remote_bytes = 0;  // regions that a peer may write to
  std::uint64_t receives = 0;  // receives posted, and not polled or lost since
};

// Hooks for loops without file descriptors and with virtual time, all on one thread; one set for
// each provider. They are called under the fabric's mutex, from calls to any Verbs of the fabric,
// and must not call back.
struct FakeHooks {
  // The simulated host that it runs on, for FakeFabric::Kill and LoseDevicesOf.
  std::string host;
  // While this is true, nothing of this provider is delayed. May be null.
  std::shared_ptr<const bool> hurry;
  // Called when the descriptor of a Verbs of this provider becomes readable.
  std::function<void()> news;
  // Runs the function after that time; null: delayed events wait for some polls instead.
  std::function<void(absl::Duration, std::function<void()>)> after;
};

// FakeFabric connects Verbs and controls the faults. Any thread.
class FakeFabric {
 public:
  FakeFabric();
  ~FakeFabric();  // before or after the objects made on it

  void SetFaults(const FakeFaults& faults);
  // The next request that is carried out, on any connection, ends with that outcome. `arrived`: the
  // other side gets it all the same.
  void FailNext(Outcome outcome, bool arrived = false) { FailNth(0, outcome, arrived); }
  // The same for the request after `skipped` others.
  void FailNth(std::uint64_t skipped, Outcome outcome, bool arrived = false);
  // The same for the request with that index, from 0, on that connection.
  void FailRequest(std::uint32_t queue_pair, std::uint64_t index, Outcome outcome);
  // Called for each write that is carried out, with the addresses that the sender's device read and
  // the receiver's wrote. Called under the fabric's mutex.
  void OnWrite(std::function<void(std::span<const std::byte> from, const std::byte* to)> told);
  // Carries out nothing until Resume.
  void Pause();
  void Resume();
  // Ends every established connection.
  void DisconnectAll();
  // Loses every device. Connections made from now on work again, unless devices `stay_lost` until
  // RestoreDevices.
  void LoseDevices(bool stay_lost = false);
  // The same for one device.
  void LoseDevice(const Device* device, bool stay_lost = false);
  void RestoreDevices();
  // The same for the devices of one host, until RestoreDevicesOf.
  void LoseDevicesOf(const std::string& host);
  void RestoreDevicesOf(const std::string& host);
  // Kills every process of that host: it listens no more, its devices stop, and the other ends of
  // its connections are told that they have ended.
  void Kill(const std::string& host);
  FakeCounters counters() const;

  class State;
  std::shared_ptr<State> state() const { return state_; }

 private:
  const std::shared_ptr<State> state_;
};

// A provider of Verbs on that fabric. Every address belongs to the fabric; only its port counts.
// Each Open stands for a process with `devices` devices, "fake0" and so on.
std::unique_ptr<Provider> NewFakeProvider(const FakeFabric& fabric, FakeHooks hooks = {});

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_
