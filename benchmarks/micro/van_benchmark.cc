// Micro-benchmarks of the vans alone, between two loops: small round trips, and large tensors in
// blocks of 1 MiB, eight tensors under way. The layers above the van are not measured here.
#include <cstring>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "runtime/loop/real_loop.h"
#include "van/shm/shm_transport.h"
#include "van/tcp/tcp_transport.h"
#include "van/zmq/zmq_transport.h"

namespace leeway {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr int kBlocksPerTensor = 4;
constexpr int kTensors = 8;
constexpr int kBlocks = kBlocksPerTensor * kTensors;

using Values = std::vector<float>;

std::vector<Values> NewBlocks() {
  return std::vector<Values>(kBlocks, Values(kBlockBytes / sizeof(float), 1.0f));
}

runtime::Buffer BytesOf(const Values& values) {
  return runtime::Buffer::Unowned(values.data(), values.size() * sizeof(float));
}

std::unique_ptr<van::Factory> NewFactory(std::int64_t kind) {
  if (kind == 0) return van::NewTcpFactory();
  if (kind == 1) return van::NewZmqFactory(van::ZmqScheme::kTcp);
  if (kind == 2) return van::NewZmqFactory(van::ZmqScheme::kIpc);
  return van::NewShmFactory();
}

// The header: the first byte is the request, then the block.
enum Ask : char { kEcho, kAdd, kGet };

// Answers on a thread of its own.
class Server final : public van::Handler {
 public:
  explicit Server(van::Factory* factory) : runner_(host_->Spawn("server")) {
    Run([&] {
      van_ = factory->New(runner_->loop(), {}, {}, this);
      address_ = van_->Listen(factory->AnyAddress("127.0.0.1")).value();
    });
  }
  ~Server() override {
    Run([&] { van_.reset(); });
  }
  const std::string& address() const { return address_; }

  void OnPeerUp(van::PeerId peer, const van::Identity&) override { van_->Admit(peer); }
  void OnPeerDown(van::PeerId, const absl::Status&) override {}
  void OnMessage(van::PeerId peer, van::Message message) override {
    const auto* header = reinterpret_cast<const char*>(message.header.data());
    const auto block = static_cast<unsigned char>(header[1]);
    van::Message answer;
    answer.header = message.header;
    if (header[0] == kAdd) {
      const std::span<const float> pushed = message.payload[0].as<float>();
      float* stored = store_[block].data();
      for (std::size_t i = 0; i < pushed.size(); ++i) stored[i] += pushed[i];
    } else if (header[0] == kGet) {
      answer.payload.push_back(BytesOf(store_[block]));
    } else {
      answer.payload = std::move(message.payload);
    }
    van_->Send(peer, std::move(answer)).IgnoreError();
  }

 private:
  void Run(std::function<void()> what) {
    std::atomic<bool> done{false};
    runner_->loop()->Post([&] {
      what();
      done = true;
      done.notify_one();
    });
    done.wait(false);
  }

  std::vector<Values> store_ = NewBlocks();
  std::unique_ptr<runtime::Host> host_ = runtime::NewRealHost();
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
  std::string address_;
};

class Client final : public van::Handler {
 public:
  Client(van::Factory* factory, const std::string& address)
      : van_(factory->New(&loop_, {}, {}, this)) {
    peer_ = van_->Connect(address, absl::Seconds(10)).value();
    while (!up_) Turn();
  }
  void OnPeerUp(van::PeerId, const van::Identity&) override { up_ = true; }
  void OnPeerDown(van::PeerId, const absl::Status&) override {}
  void OnMessage(van::PeerId, van::Message message) override {
    ++answers_;
    const auto block = static_cast<unsigned char>(message.header.text()[1]);
    if (message.header.text()[0] == kGet) {
      std::memcpy(blocks_[block].data(), message.payload[0].data(), message.payload[0].size());
    }
  }
  void Ask(Ask what, int block) {
    const char header[2] = {what, static_cast<char>(block)};
    van::Message message;
    message.header = runtime::Buffer::CopyOf(header, sizeof(header));
    if (what == kAdd) message.payload.push_back(BytesOf(blocks_[block]));
    if (what == kEcho) message.payload.push_back(runtime::Buffer::CopyOf(blocks_[0].data(), 64));
    van_->Send(peer_, std::move(message)).IgnoreError();
  }
  // Waits until so many answers have come.
  void WaitFor(std::uint64_t answers) {
    while (answers_ < answers) Turn();
  }
  std::uint64_t answers() const { return answers_; }

 private:
  void Turn() {
    if (!loop_.RunReady()) loop_.Wait(loop_.PrepareWait(absl::InfiniteFuture()));
  }

  runtime::RealLoop loop_{1};
  std::vector<Values> blocks_ = NewBlocks();
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  bool up_ = false;
  std::uint64_t answers_ = 0;
};

struct Pair {
  explicit Pair(benchmark::State& state)
      : factory(NewFactory(state.range(0))),
        server(factory.get()),
        client(factory.get(), server.address()) {
    static const char* const kNames[] = {"tcp", "zmq/tcp", "zmq/ipc", "shm"};
    state.SetLabel(kNames[state.range(0)]);
  }
  std::unique_ptr<van::Factory> factory;
  Server server;
  Client client;
};

void BM_RoundTrip64(benchmark::State& state) {
  Pair pair(state);
  for (auto _ : state) {
    pair.client.Ask(kEcho, 0);
    pair.client.WaitFor(pair.client.answers() + 1);
  }
}
BENCHMARK(BM_RoundTrip64)->DenseRange(0, 3)->UseRealTime();

// An iteration is one tensor; the one before last may still be under way.
void Stream(benchmark::State& state, Ask what) {
  Pair pair(state);
  std::uint64_t asked = 0;
  int block = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBlocksPerTensor; ++i) {
      pair.client.Ask(what, block);
      block = (block + 1) % kBlocks;
    }
    asked += kBlocksPerTensor;
    if (asked >= kBlocks) pair.client.WaitFor(asked - kBlocks + kBlocksPerTensor);
  }
  pair.client.WaitFor(asked);
  state.SetBytesProcessed(state.iterations() * kBlocksPerTensor *
                          static_cast<std::int64_t>(kBlockBytes));
}
void BM_Push4M(benchmark::State& state) { Stream(state, kAdd); }
void BM_Pull4M(benchmark::State& state) { Stream(state, kGet); }
BENCHMARK(BM_Push4M)->DenseRange(0, 3)->UseRealTime();
BENCHMARK(BM_Pull4M)->DenseRange(0, 3)->UseRealTime();

// The limit: memcpy on one core, in the same memory.
void BM_Memcpy4M(benchmark::State& state) {
  const std::vector<Values> from = NewBlocks();
  std::vector<Values> to = NewBlocks();
  int block = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBlocksPerTensor; ++i, block = (block + 1) % kBlocks) {
      std::memcpy(to[block].data(), from[block].data(), kBlockBytes);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBlocksPerTensor *
                          static_cast<std::int64_t>(kBlockBytes));
}
BENCHMARK(BM_Memcpy4M)->UseRealTime();

}  // namespace
}  // namespace leeway
