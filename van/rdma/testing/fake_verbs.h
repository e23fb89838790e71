// Verbs in memory, between the Verbs objects of one process: reliable connections that behave as
// queue pairs of a device do, and fail as the test asks.
//
// All Verbs of a fabric may be on different threads; one mutex guards them. Work is carried out
// when one of the Verbs is polled, in order within a connection, and never within Post: what is
// sent lies in the sender's memory until then, as with a device.
#ifndef LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_
#define LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_

#include <cstdint>
#include <memory>

#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

// What goes wrong, drawn from `seed`; rates are per request (or per registration, or dial).
struct FakeFaults {
  std::uint64_t seed = 1;
  double fail_rate = 0;                        // a request ends with an outcome drawn at random
  double delay_rate = 0;                       // a request is carried out by a later poll
  double disconnect_rate = 0;                  // the connection ends instead
  double refuse_register_rate = 0;             // RESOURCE_EXHAUSTED
  double refuse_dial_rate = 0;                 // kFailed
  std::uint64_t registered_bytes_max = ~0ull;  // of a Verbs; more is RESOURCE_EXHAUSTED
};

struct FakeCounters {
  std::uint64_t requests = 0;   // carried out
  std::uint64_t signalled = 0;  // of them
  std::uint64_t sent_bytes = 0, written_bytes = 0;
  std::uint64_t writes_refused = 0;  // to memory that was not granted, or no longer
  std::uint64_t failed = 0;          // requests that a fault was drawn for
  std::uint64_t connections = 0, regions = 0, registered_bytes = 0;  // that there are now
};

class FakeFabric {
 public:
  FakeFabric();
  ~FakeFabric();  // before or after what was made on it

  void SetFaults(const FakeFaults& faults);
  // The next request that is carried out, of whatever connection, ends so.
  void FailNext(Outcome outcome);
  // Every device is lost; connections made from now on work again.
  void LoseDevices();
  FakeCounters counters() const;

  class State;
  std::shared_ptr<State> state() const { return state_; }

 private:
  const std::shared_ptr<State> state_;
};

// Any address is one of this fabric's.
std::unique_ptr<Provider> NewFakeProvider(const FakeFabric& fabric);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_VERBS_H_
