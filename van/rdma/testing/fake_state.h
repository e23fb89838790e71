// The inside of a FakeFabric: ends of connections, and what one of the Verbs looks like to it.
#ifndef LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_
#define LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "van/rdma/testing/fake_verbs.h"

namespace leeway::van::verbs {

// A Verbs with its only device, as the fabric sees it; under the fabric's mutex.
class FakeOwner {
 public:
  virtual ~FakeOwner() = default;
  virtual void Wake() = 0;
  virtual void Complete(const Completion& completion) = 0;
  virtual void Tell(Event event) = 0;
  virtual Device* AsDevice() = 0;
  virtual bool in_use() const = 0;
  virtual std::unique_ptr<Connection> NewConnection(std::shared_ptr<struct FakePair> pair) = 0;
  // Whether these bytes are registered here; for a remote write, with that right.
  virtual bool Covers(std::uint32_t key, const std::byte* data, std::uint64_t bytes,
                      bool remote_write) const = 0;
  virtual bool TakeReceive(std::pair<std::uint64_t, Segment>* receive) = 0;
};

struct FakeRequest {
  SendRequest request;
  std::vector<Segment> segments;
};

// One end of a connection. Outlives its handle for as long as the other end looks at it.
struct FakePair {
  enum class State { kNew, kConnecting, kUp, kBroken };
  std::uint32_t number = 0;
  FakeOwner* owner = nullptr;    // null: gone
  Connection* handle = nullptr;  // null: destroyed
  State state = State::kNew;
  std::uint16_t port = 0;  // dialled
  std::shared_ptr<FakePair> peer;
  std::deque<FakeRequest> pending;
};

class FakeFabric::State {
 public:
  bool Draw(double rate) { return rate > 0 && Uniform() < rate; }
  double Uniform();
  // Carries out what can be.
  void Progress();
  // Ends one end of a connection: what is pending is flushed, and its owner is told.
  void Break(FakePair& pair);

  std::mutex mutex;
  FakeFaults faults;
  std::optional<Outcome> fail_next;
  FakeCounters counters;
  std::uint64_t draws = 0;
  std::uint32_t next_number = 1;
  std::uint32_t next_key = 1;
  std::uint16_t next_port = 30000;
  std::map<std::uint16_t, FakeOwner*> listeners;
  std::map<std::uint32_t, std::shared_ptr<FakePair>> pairs;
  std::set<FakeOwner*> owners;

 private:
  bool Carry(FakePair& pair, const FakeRequest& request);
  Outcome Try(FakePair& pair, const FakeRequest& request, bool* wait);
  Outcome TakeIn(FakePair& pair, std::uint64_t bytes, std::byte** to, bool* wait);
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_
