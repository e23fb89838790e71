#include "tests/simulation/sim_rdma.h"

#include <poll.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/loop/lifetime.h"
#include "van/rdma/rdma_format.h"
#include "van/rdma/rdma_transport.h"
#include "van/session/envelope.h"
#include "van/session/session_van.h"
#include "van/transport.h"

namespace leeway::simulation {
namespace {

using van::Message;

// Small enough that a table's blocks are written into arenas and into posted memory, and that an
// arena is sometimes full.
van::RdmaSizes SmallSizes() {
  van::RdmaSizes sizes;
  sizes.slot_bytes = van::kRdmaSlotBytesMin;
  sizes.packets = 16;
  sizes.arena_units = 24;
  sizes.write_bytes_min = 1024;
  sizes.posted_bytes_min = 1024;
  return sizes;
}

// A simulated loop that turns one source, as a real loop does: after each task, when the source's
// descriptor is readable, and until it has nothing more to do.
class SourceLoop final : public runtime::Loop {
 public:
  explicit SourceLoop(runtime::Loop* loop) : loop_(loop) {}
  ~SourceLoop() override { lifetime_.End(); }

  absl::Time Now() const override { return loop_->Now(); }
  void Post(runtime::Task task) override { loop_->Post(ThenTurn(std::move(task))); }
  runtime::TimerId After(absl::Duration delay, runtime::Task task) override {
    return loop_->After(delay, ThenTurn(std::move(task)));
  }
  bool Cancel(runtime::TimerId timer) override { return loop_->Cancel(timer); }
  std::uint64_t Random() override { return loop_->Random(); }
  void AddSource(runtime::Source* source) override {
    source_ = source;
    busy_poll_ = source->busy_poll();
    TurnSoon();
  }
  void RemoveSource(runtime::Source*) override { source_ = nullptr; }

  // The source may have events, or a task that has used it has run.
  void TurnSoon() {
    if (source_ == nullptr || std::exchange(planned_, true)) return;
    loop_->Post([this, alive = lifetime_.watch()] {
      if (!alive) return;
      planned_ = false;
      Turn();
    });
  }

 private:
  runtime::Task ThenTurn(runtime::Task task) {
    return [this, alive = lifetime_.watch(), task = std::move(task)]() mutable {
      task();
      if (alive) TurnSoon();
    };
  }
  void Turn() {
    if (source_ == nullptr) return;
    if (std::exchange(asleep_, false)) busy_poll_->EndSleep();
    const runtime::Lifetime::Watch alive = lifetime_.watch();
    const bool any = source_->Poll();
    if (!alive || source_ == nullptr) return;
    if (any) return TurnSoon();
    asleep_ = true;
    busy_poll_->BeginSleep();
    pollfd readable{source_->fd(), POLLIN, 0};
    if (busy_poll_->Ready() || ::poll(&readable, 1, /*timeout=*/0) > 0) TurnSoon();
  }

  runtime::Loop* const loop_;
  runtime::Source* source_ = nullptr;
  std::shared_ptr<runtime::BusyPollSource> busy_poll_;
  bool planned_ = false, asleep_ = false;
  runtime::Lifetime lifetime_;
};

// The rdma transport of one van, which reports sent messages to the tap.
class SimRdmaTransport final : public van::Transport {
 public:
  SimRdmaTransport(std::shared_ptr<SimRdma::State> state, std::string host, runtime::Loop* loop,
                   const van::Limits& limits)
      : state_(std::move(state)),
        host_(std::move(host)),
        limits_(limits),
        loop_(std::make_shared<SourceLoop>(loop)),
        provider_(van::verbs::NewFakeProvider(state_->fabric, Hooks())),
        rdma_(van::NewRdmaTransport(provider_.get(), loop_.get(), limits, SmallSizes())) {}
  // No time passes meanwhile, so messages that it sends are not delayed.
  ~SimRdmaTransport() override {
    *hurry_ = true;
    rdma_ = nullptr;
  }

  void Start(van::TransportEvents* events) override { rdma_->Start(events); }
  absl::StatusOr<std::string> Listen(absl::string_view address) override {
    return rdma_->Listen(address);
  }
  absl::StatusOr<van::ConnId> Dial(absl::string_view address) override {
    loop_->TurnSoon();
    return rdma_->Dial(address);
  }
  void Send(van::ConnId conn, const van::Prefix& prefix, Message message,
            van::SendDone done) override {
    if (prefix.kind == van::Kind::kData) Tell(conn, message);
    if (prefix.kind == van::Kind::kEnvelope) TellEach(conn, message.header);
    rdma_->Send(conn, prefix, std::move(message), std::move(done));
    loop_->TurnSoon();
  }
  void Close(van::ConnId conn) override {
    rdma_->Close(conn);
    loop_->TurnSoon();
  }
  std::string AddressOf(van::ConnId conn) const override { return rdma_->AddressOf(conn); }
  std::uint64_t posted_bytes_min(van::ConnId conn) const override {
    return rdma_->posted_bytes_min(conn);
  }
  void PostReceive(van::ConnId conn, std::uint64_t token, std::span<std::byte> into) override {
    rdma_->PostReceive(conn, token, into);
  }
  void EndReceive(van::ConnId conn, std::uint64_t token) override {
    rdma_->EndReceive(conn, token);
  }
  void Admit(van::ConnId conn) override { rdma_->Admit(conn); }
  std::optional<std::uint64_t> ReceivedOfUnfinished(van::ConnId conn) const override {
    return rdma_->ReceivedOfUnfinished(conn);
  }
  bool lossy() const override { return false; }

 private:
  van::verbs::FakeHooks Hooks() {
    van::verbs::FakeHooks hooks;
    hooks.host = host_;
    hooks.hurry = hurry_;
    hooks.news = [weak = std::weak_ptr<SourceLoop>(loop_)] {
      if (const std::shared_ptr<SourceLoop> loop = weak.lock()) loop->TurnSoon();
    };
    hooks.after = [world = state_->world](absl::Duration delay, std::function<void()> then) {
      world->Schedule(delay, std::move(then));
    };
    return hooks;
  }

  // The tap may keep the message, so it gets a copy that does not change.
  void Tell(van::ConnId conn, const Message& message) {
    Message copy;
    copy.header = van::Buffer::CopyOf(message.header.data(), message.header.size());
    for (const van::Buffer& frame : message.payload) {
      copy.payload.push_back(van::Buffer::CopyOf(frame.data(), frame.size()));
    }
    Heard(conn, std::move(copy));
  }
  void TellEach(van::ConnId conn, const van::Buffer& body) {
    const absl::StatusOr<std::vector<Message>> messages = van::OpenEnvelope(body.bytes(), limits_);
    if (!messages.ok()) return;
    for (const Message& message : *messages) Heard(conn, message);
  }
  void Heard(van::ConnId conn, Message message) {
    const van::Overheard heard(host_, "", {van_, conn}, std::move(message));
    state_->world->Trace(absl::StrCat("rdma ", host_, ">", rdma_->AddressOf(conn), " ",
                                      heard.name(), " ", heard.raw.TotalBytes()));
    if (state_->tap != nullptr) state_->tap(heard);
  }

  const std::shared_ptr<SimRdma::State> state_;
  const std::string host_;
  const std::uint64_t van_ = ++state_->vans;
  const van::Limits limits_;
  const std::shared_ptr<bool> hurry_ = std::make_shared<bool>(false);
  const std::shared_ptr<SourceLoop> loop_;
  const std::unique_ptr<van::verbs::Provider> provider_;
  std::unique_ptr<van::Transport> rdma_;
};

}  // namespace

SimRdma::SimRdma(runtime::SimWorld* world)
    : state_(std::make_shared<State>(State{.world = world, .fabric = {}, .tap = nullptr})) {}

// A posted array for an answer is shorter than an arena.
bool SimRdma::HasOpenGrants() const {
  const van::verbs::FakeCounters counters = state_->fabric.counters();
  const std::uint64_t arena_bytes = std::uint64_t{SmallSizes().arena_units} * van::kRdmaUnitBytes;
  return counters.remote_bytes != counters.remote_regions * arena_bytes;
}

std::unique_ptr<van::Factory> SimRdma::NewFactory(const std::string& host) {
  return van::NewSessionFactory(
      [state = state_, host](runtime::Loop* loop, const van::Limits& limits) {
        return std::make_unique<SimRdmaTransport>(state, host, loop, limits);
      },
      [](absl::string_view) { return "tcp://127.0.0.1:0"; });
}

}  // namespace leeway::simulation
