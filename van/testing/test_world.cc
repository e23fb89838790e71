#include "van/testing/test_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/loop/real_loop.h"
#include "van/mixed/mixed_transport.h"
#include "van/mixed/mixed_van.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/rdma/verbs/verbs.h"
#include "van/session/session_van.h"
#include "van/shm/shm_transport.h"
#include "van/sim/sim_transport.h"
#include "van/tcp/tcp_transport.h"
#include "van/zmq/zmq_transport.h"

namespace leeway::van {
namespace {

class RealWorld : public TestWorld {
 public:
  using TestWorld::TestWorld;

  int NewProcess() override {
    loops_.push_back(std::make_unique<runtime::RealLoop>(loops_.size() + 1));
    return static_cast<int>(loops_.size()) - 1;
  }
  runtime::Loop* loop(int process) override { return loops_[process].get(); }
  std::string AnyAddress(int process) override { return factory(process)->AnyAddress("127.0.0.1"); }

  bool RunUntil(const std::function<bool()>& done, absl::Duration limit) override {
    const absl::Time until = loops_[0]->Now() + limit;
    while (!done()) {
      if (loops_[0]->Now() >= until) return false;
      if (!TurnOnce()) Sleep(until);
    }
    return true;
  }
  void RunFor(absl::Duration duration) override {
    RunUntil([] { return false; }, duration);
  }
  void Freeze(int process) override { frozen_.insert(process); }
  void Thaw(int process) override { frozen_.erase(process); }

 private:
  bool TurnOnce() {
    bool any = false;
    for (int i = 0; i < static_cast<int>(loops_.size()); ++i) {
      if (!frozen_.contains(i) && loops_[i]->RunReady()) any = true;
    }
    return any;
  }
  void Sleep(absl::Time until) {
    std::vector<runtime::RealLoop::WaitSet> sets;
    for (int i = 0; i < static_cast<int>(loops_.size()); ++i) {
      if (!frozen_.contains(i)) sets.push_back(loops_[i]->PrepareWait(until));
    }
    runtime::RealLoop::WaitForAny(sets);
  }

  std::vector<std::unique_ptr<runtime::RealLoop>> loops_;
  std::set<int> frozen_;
};

class ZmqWorld final : public RealWorld {
 public:
  explicit ZmqWorld(NetKind kind)
      : RealWorld(kind),
        context_(std::make_shared<ZmqContext>(1)),
        factory_(NewZmqFactoryOn(context_, kind == NetKind::kZmqTcp ? ZmqScheme::kTcp
                                           : kind == NetKind::kIpc  ? ZmqScheme::kIpc
                                                                    : ZmqScheme::kInproc)) {}
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return std::make_unique<ZmqTransport>(context_, loop(process), limits);
  }

 private:
  std::shared_ptr<ZmqContext> context_;
  std::unique_ptr<Factory> factory_;
};

class TcpWorld final : public RealWorld {
 public:
  TcpWorld() : RealWorld(NetKind::kTcp), factory_(NewTcpFactory()) {}
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return std::make_unique<TcpTransport>(loop(process), limits);
  }

 private:
  std::unique_ptr<Factory> factory_;
};

class ShmWorld final : public RealWorld {
 public:
  ShmWorld() : RealWorld(NetKind::kShm), factory_(NewShmFactory()) {}
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return std::make_unique<ShmTransport>(loop(process), limits, ShmSizes());
  }

 private:
  std::unique_ptr<Factory> factory_;
};

class MixedWorld final : public RealWorld {
 public:
  MixedWorld() : RealWorld(NetKind::kMixed), factory_(NewFactory(Config())) {}
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return std::make_unique<MixedTransport>(
        loop(process), std::make_unique<TcpTransport>(loop(process), limits),
        std::make_unique<ShmTransport>(loop(process), limits, ShmSizes()), nullptr,
        MixedTransport::Only::kAny);
  }

 private:
  std::unique_ptr<Factory> factory_;
};

// Uses a device in memory, or one of this machine if RDMA_TEST_HOST is an address of it (./dev
// rdma).
class RdmaWorld final : public RealWorld {
 public:
  RdmaWorld()
      : RealWorld(NetKind::kRdma),
        host_(std::getenv("RDMA_TEST_HOST")),
        provider_(host_ != nullptr ? verbs::NewSystemProvider() : verbs::NewFakeProvider(fabric_)),
        factory_(NewRdmaFactory(provider_)) {}
  std::string AnyAddress(int) override {
    return factory_->AnyAddress(host_ != nullptr ? host_ : "127.0.0.1");
  }
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return NewRdmaTransport(provider_.get(), loop(process), limits, RdmaSizes());
  }

 private:
  const char* const host_;
  verbs::FakeFabric fabric_;
  std::shared_ptr<verbs::Provider> provider_;
  std::unique_ptr<Factory> factory_;
};

class SimTestWorld final : public TestWorld {
 public:
  SimTestWorld() : TestWorld(NetKind::kSim), sim_(7), network_(&sim_) {}

  int NewProcess() override {
    Process process;
    process.name = absl::StrCat("host", processes_.size());
    process.host = sim_.NewHost(process.name);
    process.runner = process.host->Spawn("loop");
    process.factory = network_.NewFactory(process.name);
    processes_.push_back(std::move(process));
    return static_cast<int>(processes_.size()) - 1;
  }
  runtime::Loop* loop(int process) override { return processes_[process].runner->loop(); }
  Factory* factory(int process) override { return processes_[process].factory.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits&) override {
    return NewSimTransport(network_.state(), processes_[process].name, loop(process));
  }
  std::string AnyAddress(int process) override { return factory(process)->AnyAddress(""); }
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit) override {
    return sim_.RunUntil(done, limit).ok();
  }
  void RunFor(absl::Duration duration) override { sim_.RunFor(duration); }
  void Freeze(int process) override { SetDelayTo(process, absl::Seconds(20)); }
  void Thaw(int process) override { SetDelayTo(process, absl::Microseconds(50)); }
  runtime::SimWorld* sim() override { return &sim_; }
  SimNetwork* network() override { return &network_; }

 private:
  struct Process {
    std::string name;
    std::unique_ptr<runtime::Host> host;
    std::unique_ptr<runtime::LoopRunner> runner;
    std::unique_ptr<Factory> factory;
  };

  void SetDelayTo(int process, absl::Duration delay) {
    LinkFaults faults;
    faults.delay_min = faults.delay_max = delay;
    for (const Process& from : processes_) {
      network_.SetFaults(from.name, processes_[process].name, faults);
    }
  }

  runtime::SimWorld sim_;
  SimNetwork network_;
  std::vector<Process> processes_;
};

}  // namespace

std::string NameOf(NetKind kind) {
  switch (kind) {
    case NetKind::kTcp:
      return "tcp";
    case NetKind::kZmqTcp:
      return "zmq_tcp";
    case NetKind::kIpc:
      return "ipc";
    case NetKind::kInproc:
      return "inproc";
    case NetKind::kShm:
      return "shm";
    case NetKind::kMixed:
      return "mixed";
    case NetKind::kRdma:
      return "rdma";
    case NetKind::kSim:
      return "sim";
  }
  return "?";
}

std::unique_ptr<TestWorld> TestWorld::New(NetKind kind) {
  if (kind == NetKind::kSim) return std::make_unique<SimTestWorld>();
  if (kind == NetKind::kTcp) return std::make_unique<TcpWorld>();
  if (kind == NetKind::kShm) return std::make_unique<ShmWorld>();
  if (kind == NetKind::kMixed) return std::make_unique<MixedWorld>();
  if (kind == NetKind::kRdma) return std::make_unique<RdmaWorld>();
  return std::make_unique<ZmqWorld>(kind);
}

// ---- Recorder ----

void Recorder::OnPeerUp(PeerId peer, const Identity& identity) {
  EXPECT_FALSE(in_van_call);
  EXPECT_FALSE(IsUp(peer));
  EXPECT_FALSE(IsDown(peer));
  ups.push_back({peer, identity});
  if (admits != nullptr && identity.cluster == kTestCluster) admits->Admit(peer);
  if (on_up) on_up();
}

void Recorder::OnPeerDown(PeerId peer, const absl::Status& why) {
  EXPECT_FALSE(in_van_call);
  EXPECT_FALSE(IsDown(peer));
  downs.push_back({peer, why});
  if (on_down) on_down();
}

void Recorder::OnMessage(PeerId peer, Message message) {
  EXPECT_FALSE(in_van_call);
  EXPECT_TRUE(IsUp(peer));
  EXPECT_FALSE(IsDown(peer));
  if (on_message) {
    // Calls a copy, because the function may replace itself or destroy this object.
    const auto call = on_message;
    call(peer, std::move(message));
  } else {
    messages.push_back({peer, std::move(message)});
  }
}

bool Recorder::IsUp(PeerId peer) const {
  return std::any_of(ups.begin(), ups.end(), [&](const Up& up) { return up.peer == peer; });
}

bool Recorder::IsDown(PeerId peer) const {
  return std::any_of(downs.begin(), downs.end(),
                     [&](const Down& down) { return down.peer == peer; });
}

absl::Status Recorder::WhyDown(PeerId peer) const {
  for (const Down& down : downs) {
    if (down.peer == peer) return down.why;
  }
  return absl::UnknownError("it is not down");
}

// ---- DoneProbe ----

SendDone DoneProbe::New() {
  struct Callback {
    explicit Callback(std::shared_ptr<State> s) : state(std::move(s)) {}
    Callback(Callback&&) = default;
    ~Callback() {
      if (state != nullptr && !called) ++state->dropped;
    }
    void operator()(absl::Status result) {
      EXPECT_FALSE(called);
      called = true;
      ++state->called;
      state->results.push_back(std::move(result));
    }
    std::shared_ptr<State> state;
    bool called = false;
  };
  return Callback(state_);
}

// ---- buffers ----

Buffer TrackedBuffer(std::size_t size, char fill, std::shared_ptr<std::atomic<int>> live) {
  class Owner final : public runtime::BufferOwner {
   public:
    Owner(std::size_t n, char c, std::shared_ptr<std::atomic<int>> l)
        : bytes(n, c), live_(std::move(l)) {
      ++*live_;
    }
    ~Owner() override { --*live_; }
    std::string bytes;

   private:
    std::shared_ptr<std::atomic<int>> live_;
  };
  auto* owner = new Owner(size, fill, std::move(live));
  return Buffer(owner->bytes.data(), size, owner);
}

// ---- RawPeer ----

void RawPeer::SendSession(ConnId conn, const proto::AnyMessage& message) {
  Prefix prefix;
  prefix.kind = Kind::kSession;
  Message out;
  out.header = proto::Encode(message);
  transport_->Send(conn, prefix, std::move(out), nullptr);
}

void RawPeer::SendData(ConnId conn, absl::string_view header, const std::vector<Buffer>& payload) {
  Prefix prefix;
  prefix.frames = static_cast<std::uint16_t>(payload.size() + 1);
  Message out;
  out.header = Buffer::CopyOf(header);
  out.payload.assign(payload.begin(), payload.end());
  transport_->Send(conn, prefix, std::move(out), nullptr);
}

ConnId RawPeer::Greet(TestWorld* world, const std::string& address, const proto::Hello& hello) {
  const auto conn = transport_->Dial(address);
  EXPECT_TRUE(conn.ok()) << conn.status();
  EXPECT_TRUE(world->RunUntil(
      [&] { return std::count(opened.begin(), opened.end(), conn.value_or(0)) > 0; }));
  SendSession(conn.value_or(0), hello);
  return conn.value_or(0);
}

void RawPeer::OnArrival(ConnId, Arrival arrival) {
  if (arrival.head.size() <= kPrefixBytes) return;
  auto message = proto::Decode(
      Buffer::CopyOf(arrival.head.data() + kPrefixBytes, arrival.head.size() - kPrefixBytes),
      std::span<Buffer>(arrival.payload.data(), arrival.payload.size()));
  if (message.ok()) heard.push_back(*std::move(message));
}

absl::Status RawPeer::Rejection() const {
  for (const proto::AnyMessage& message : heard) {
    if (const auto* reject = std::get_if<proto::Reject>(&message)) return reject->why;
  }
  return absl::OkStatus();
}

bool RawPeer::Heard(const std::function<bool(const proto::AnyMessage&)>& what) const {
  return std::any_of(heard.begin(), heard.end(), what);
}

// ---- Node ----

Node::Node(TestWorld* w, const Identity& identity, const Limits& limits)
    : world(w), process(w->NewProcess()), recorder(std::make_unique<Recorder>()) {
  van = w->factory(process)->New(w->loop(process), identity, limits, recorder.get());
  recorder->admits = van.get();
}

Node::Node(TestWorld* w, int of, std::unique_ptr<Van> van_on, std::unique_ptr<Recorder> recorder_of)
    : world(w), process(of), recorder(std::move(recorder_of)), van(std::move(van_on)) {
  recorder->admits = van.get();
}

std::string Node::Listen() {
  const auto address = van->Listen(world->AnyAddress(process));
  EXPECT_TRUE(address.ok()) << address.status();
  return address.value_or("");
}

PeerId Node::ConnectTo(Node* other, const std::string& address) {
  const std::size_t before = other->recorder->ups.size();
  const auto peer = van->Connect(address, absl::Seconds(30));
  EXPECT_TRUE(peer.ok()) << peer.status();
  const PeerId id = peer.value_or(0);
  EXPECT_TRUE(
      world->RunUntil([&] { return recorder->IsUp(id) && other->recorder->ups.size() > before; }));
  return id;
}

Identity IdentityOf(Role role, std::uint32_t node) {
  Identity identity;
  identity.cluster = kTestCluster;
  identity.role = role;
  identity.node = node;
  identity.incarnation = 1000 + node;
  return identity;
}

Message TextMessage(absl::string_view header, const std::vector<std::string>& payload) {
  Message message;
  message.header = Buffer::CopyOf(header);
  for (const std::string& frame : payload) message.payload.push_back(Buffer::CopyOf(frame));
  return message;
}

}  // namespace leeway::van
