// TestWorld provides loops and networks for the van's tests: the same test runs over every
// transport, on real loops that the test's own thread runs, or in the simulator.
#ifndef LEEWAY_VAN_TESTING_TEST_WORLD_H_
#define LEEWAY_VAN_TESTING_TEST_WORLD_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"
#include "van/transport.h"
#include "van/van.h"

namespace leeway::van {

enum class NetKind { kTcp, kZmqTcp, kIpc, kInproc, kShm, kMixed, kRdma, kSim };
// The transports over which the same tests run.
inline constexpr NetKind kAllNets[] = {NetKind::kTcp,    NetKind::kZmqTcp, NetKind::kIpc,
                                       NetKind::kInproc, NetKind::kShm,    NetKind::kMixed,
                                       NetKind::kRdma,   NetKind::kSim};
std::string NameOf(NetKind kind);

class TestWorld {
 public:
  static std::unique_ptr<TestWorld> New(NetKind kind);
  virtual ~TestWorld() = default;

  NetKind kind() const { return kind_; }
  // Adds a process, with a loop and a host of its own, and returns its number.
  virtual int NewProcess() = 0;
  virtual runtime::Loop* loop(int process) = 0;
  virtual Factory* factory(int process) = 0;
  virtual std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) = 0;
  // An address that `process` can listen on.
  virtual std::string AnyAddress(int process) = 0;
  // Runs until `done` is true; false if `limit` passed first.
  virtual bool RunUntil(const std::function<bool()>& done,
                        absl::Duration limit = absl::Seconds(60)) = 0;
  // Runs everything that happens within that time.
  virtual void RunFor(absl::Duration duration) = 0;
  // Until Thaw, messages to that process are not delivered: its loop does not run (on virtual time
  // they are under way for long instead).
  virtual void Freeze(int process) = 0;
  virtual void Thaw(int process) = 0;
  // Of the simulator; else null.
  virtual runtime::SimWorld* sim() { return nullptr; }
  virtual SimNetwork* network() { return nullptr; }

 protected:
  explicit TestWorld(NetKind kind) : kind_(kind) {}

 private:
  NetKind kind_;
};

// A handler that records its events, and checks their order.
class Recorder : public Handler {
 public:
  struct Up {
    PeerId peer;
    Identity identity;
  };
  struct Down {
    PeerId peer;
    absl::Status why;
  };
  struct Got {
    PeerId peer;
    Message message;
  };

  void OnPeerUp(PeerId peer, const Identity& identity) override;
  void OnPeerDown(PeerId peer, const absl::Status& why) override;
  void OnMessage(PeerId peer, Message message) override;
  bool IsUp(PeerId peer) const;
  bool IsDown(PeerId peer) const;
  absl::Status WhyDown(PeerId peer) const;

  std::vector<Up> ups;
  std::vector<Down> downs;
  std::vector<Got> messages;
  std::function<void(PeerId, Message)> on_message;  // if set, called instead of recording
  std::function<void()> on_up, on_down;             // called as well
  bool in_van_call = false;                         // set around calls to the van
  // If set, admits peers that say kTestCluster, as an owner that knows its members.
  Van* admits = nullptr;
};

// A SendDone that must be called exactly once.
class DoneProbe {
 public:
  struct State {
    int called = 0;
    int dropped = 0;  // destroyed without a call
    std::vector<absl::Status> results;
  };
  SendDone New();
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A buffer that counts in `live` until it is released.
Buffer TrackedBuffer(std::size_t size, char fill, std::shared_ptr<std::atomic<int>> live);

// A peer with a transport and no session, which sends what the test wants.
class RawPeer : public TransportEvents {
 public:
  explicit RawPeer(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {
    transport_->Start(this);
  }
  Transport& transport() { return *transport_; }
  void SendSession(ConnId conn, const proto::AnyMessage& message);
  void SendData(ConnId conn, absl::string_view header, const std::vector<Buffer>& payload = {});
  // Connects, waits until the connection is established and sends `hello`.
  ConnId Greet(TestWorld* world, const std::string& address, const proto::Hello& hello);

  void OnAccepted(ConnId conn) override { accepted.push_back(conn); }
  void OnOpened(ConnId conn) override { opened.push_back(conn); }
  void OnArrival(ConnId conn, Arrival arrival) override;
  void OnClosed(ConnId conn, const absl::Status& why) override { closed.push_back(conn); }
  void OnHandshakeFailed(const std::string&, const absl::Status&) override {}
  // The status in the first Reject that came.
  absl::Status Rejection() const;
  bool Heard(const std::function<bool(const proto::AnyMessage&)>& what) const;

  std::vector<ConnId> accepted, opened, closed;
  std::vector<proto::AnyMessage> heard;  // messages that could be decoded

 private:
  std::unique_ptr<Transport> transport_;
};

// A process with a van.
struct Node {
  Node(TestWorld* world, const Identity& identity, const Limits& limits = {});
  // With a given van and recorder.
  Node(TestWorld* world, int process, std::unique_ptr<Van> van_on,
       std::unique_ptr<Recorder> recorder_of);

  std::string Listen();
  // Connects, and waits until both sides are up. Returns the other side's id here.
  PeerId ConnectTo(Node* other, const std::string& address);

  TestWorld* world;
  int process;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Van> van;
};

inline constexpr std::uint64_t kTestCluster = 0xc1;
// The identity of a member of kTestCluster.
Identity IdentityOf(Role role, std::uint32_t node);
Message TextMessage(absl::string_view header, const std::vector<std::string>& payload = {});

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_TEST_WORLD_H_
