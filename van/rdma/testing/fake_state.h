// FakeFabric::State is the inside of a FakeFabric: the ends of connections, and the code that
// carries out their requests. All members are guarded by the fabric's mutex.
#ifndef LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_
#define LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "van/rdma/testing/fake_verbs.h"

namespace leeway::van::verbs {

class FakeDevice;
struct FakePair;

// A FakeOwner is a Verbs as the fabric sees it.
class FakeOwner {
 public:
  virtual ~FakeOwner() = default;
  // There is a request to carry out: makes the descriptor readable until the next Poll or
  // NextEvent.
  virtual void NoteWork() = 0;
  // There may be events: makes the descriptor readable until a NextEvent finds none.
  virtual void NoteEvents() = 0;
  // The news of its devices may have changed.
  virtual void Refresh() = 0;
  // Progress begins: clears NoteWork.
  virtual void BeginProgress() = 0;
  // Adds an event. `pair`: the connection that it is about, or null.
  virtual void Tell(Event event, std::shared_ptr<FakePair> pair) = 0;
  // Makes a connection on one of its devices, each in turn; null: there is none.
  virtual std::unique_ptr<Connection> NewConnection(std::shared_ptr<FakePair> pair) = 0;
  virtual bool HasDevice() const = 0;  // one that is not lost
  virtual bool readable() const = 0;   // whether its descriptor is readable
  virtual const std::vector<std::unique_ptr<FakeDevice>>& all_devices() const = 0;
  virtual const FakeHooks& hooks() const = 0;
};

struct FakeRequest {
  SendRequest request;
  std::vector<Segment> segments;
  std::uint64_t index = 0;   // index on its connection, from 0
  std::uint64_t digest = 0;  // digest of the bytes that were read
};

// A completion that has not been delivered yet.
struct FakeCompletion {
  Completion completion;
  std::shared_ptr<FakePair> pair;
  std::uint64_t index = 0;  // index of the request
};

// True (shut) while its events wait for FakeHooks::after.
using FakeGate = std::shared_ptr<bool>;

// The state of the link between two ends: whether they can learn of each other.
enum class FakeLink { kNew, kConnecting, kUp, kEnded };

// One end of a connection: a queue pair. Outlives its handle for as long as other code refers to
// it.
struct FakePair {
  static FakeGate Open() { return std::make_shared<bool>(false); }

  std::uint32_t number = 0;
  FakeOwner* owner = nullptr;    // null: destroyed
  FakeDevice* device = nullptr;  // null: none was found
  Connection* handle = nullptr;  // null: destroyed
  FakeLink link = FakeLink::kNew;
  bool in_error = false;  // posted requests are flushed
  bool resolved = false;  // it was told that it is resolved
  bool may_post = false;  // it was told that it is established, or has received something
  bool dialled = false;
  std::uint16_t port = 0;           // port that it dialled
  std::uint32_t fails_in = 0;       // polls until the dial fails; 0: it does not
  std::uint32_t waits = 0;          // tries of the first pending request that found no receive
  std::shared_ptr<FakePair> peer;   // null: none, or destroyed
  std::deque<FakeRequest> pending;  // posted
  std::deque<FakeRequest> carried;  // carried out, without a completion so far
  std::deque<FakeCompletion> delayed_sent, delayed_received;
  std::uint64_t posted = 0;
  std::uint64_t retired = 0;  // requests that polled completions cover
  FakeGate request_gate = Open(), sent_gate = Open(), received_gate = Open(), event_gate = Open();
};

class FakeFabric::State : public std::enable_shared_from_this<FakeFabric::State> {
 public:
  using Lock = std::lock_guard<std::mutex>;

  double Uniform();
  bool Draw(double rate) { return rate > 0 && Uniform() < rate; }
  // Whether an event at that gate is held back once more. Its owner is woken when it is free.
  bool Held(const FakePair& pair, const FakeGate& gate, double rate);

  // Carries out what can be carried out, and delivers what was delayed.
  void Progress();
  // Progress has something to do.
  void Activate(const FakePair& pair);
  // Puts a queue pair in error: its pending requests are flushed.
  void Error(FakePair& pair);
  // Ends one end of a connection and reports kDisconnected, or kFailed with that reason.
  void End(FakePair& pair, const absl::Status& why);
  // Its handle has been destroyed.
  void Destroy(FakePair& pair);
  void LoseDevice(FakeOwner& owner, FakeDevice& device, bool stay_lost);

  std::mutex mutex;
  FakeFaults faults;
  FakeCounters counters;
  std::uint64_t draws = 0;
  bool paused = false;
  std::uint32_t next_number = 1;
  std::uint32_t next_key = 1;
  std::uint16_t next_port = 30000;
  std::map<std::uint16_t, FakeOwner*> listeners;
  std::map<std::uint32_t, std::shared_ptr<FakePair>> pairs;
  std::vector<FakeOwner*> owners;  // in the order in which they were opened

  struct Failure {
    std::uint64_t skipped = 0;
    Outcome outcome = Outcome::kOther;
    bool arrived = false;
  };
  std::optional<Failure> fail_next;
  std::function<void(std::span<const std::byte>, const std::byte*)> on_write;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Outcome> fail_requests;

 private:
  struct Tried {
    Outcome outcome = Outcome::kOk;
    bool waits = false;  // for a receive
  };

  void HoldBack(const FakePair& pair, const FakeGate& gate);
  bool ProgressPair(FakePair& pair);
  bool ProgressDial(FakePair& pair);
  bool CarryFirst(FakePair& pair);
  bool InjectDisconnect(FakePair& pair);
  std::optional<Failure> DrawFailure(FakePair& pair, const FakeRequest& request);
  Tried Try(FakePair& pair, const FakeRequest& request, double part);
  Tried TakeIn(FakePair& pair, std::uint64_t bytes, std::byte** to);
  void Finish(FakePair& pair, FakeRequest request, Outcome outcome);
  void CompleteSent(FakePair& pair, const FakeRequest& request, Outcome outcome);
  void HandOver(FakePair& pair, const FakeCompletion& completion);
  void CheckKept(FakePair& pair, const FakeRequest& request);
  void HandOverDelayed(FakePair& pair, bool all);

  std::set<std::uint32_t> active_;  // numbers of queue pairs
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_STATE_H_
