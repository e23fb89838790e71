// Tests of the user's memory when a peer stops reading: over real TCP, through a proxy that stops
// on command, like a process that got SIGSTOP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/loop/real_loop.h"
#include "van/zmq/zmq_transport.h"
#include "worker/client/client.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

constexpr std::size_t kElements = 16 << 20;  // 64 MiB: more than sockets buffer
constexpr std::size_t kBytes = kElements * sizeof(float);

// A proxy that passes bytes between TCP connections and a listener on a Unix socket.
class Proxy {
 public:
  explicit Proxy(std::string to) : to_(std::move(to)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int small = 64 << 10;
    setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    EXPECT_EQ(bind(listener_, generic, size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Proxy() {
    End();
    for (const auto& [from, to] : pairs_) close(from), close(to);
    close(listener_);
    close(wake_);
  }

  std::string address() const { return absl::StrCat("tcp://127.0.0.1:", port_); }
  // Stops reading, without closing anything. Returns once that is so.
  void StandStill() { End(); }
  void GoOn() {
    end_ = false;
    thread_ = std::thread([this] { Run(); });
  }

 private:
  void End() {
    end_ = true;
    const std::uint64_t one = 1;
    if (write(wake_, &one, sizeof(one)) < 0) return;
    if (thread_.joinable()) thread_.join();
    std::uint64_t count = 0;
    if (read(wake_, &count, sizeof(count)) < 0) return;
  }

  void Run() {
    while (!end_) {
      std::vector<pollfd> fds = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const auto& [from, to] : pairs_) {
        fds.push_back({from, POLLIN, 0});
        fds.push_back({to, POLLIN, 0});
      }
      poll(fds.data(), fds.size(), -1);
      if (end_) return;
      for (std::size_t i = fds.size(); i > 2; i -= 2) {
        const std::size_t pair = i / 2 - 2;
        const auto [from, to] = pairs_[pair];
        if ((fds[i - 2].revents != 0 && !Pass(from, to)) ||
            (fds[i - 1].revents != 0 && !Pass(to, from))) {
          close(from);
          close(to);
          pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(pair));
        }
      }
      if (fds[1].revents != 0) Accept();
    }
  }

  void Accept() {
    const int from = accept(listener_, nullptr, nullptr);
    const int to = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, to_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(connect(to, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    pairs_.emplace_back(from, to);
  }

  bool Pass(int from, int to) {
    char bytes[64 << 10];
    const ssize_t size = recv(from, bytes, sizeof(bytes), 0);
    for (ssize_t sent = 0; sent < size;) {
      const ssize_t one =
          send(to, bytes + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
      if (one < 0) return false;
      sent += one;
    }
    return size > 0;
  }

  const std::string to_;
  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  const int wake_ = eventfd(0, 0);
  int port_ = 0;
  std::vector<std::pair<int, int>> pairs_;  // used by the thread alone
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

class StoppedPeerTest : public ::testing::Test {
 protected:
  StoppedPeerTest() {
    proto::Welcome welcome;
    welcome.node = 10;
    welcome.cluster = kTestCluster;
    welcome.num_servers = welcome.num_workers = 1;
    welcome.heartbeat_interval_ms = 1000;
    welcome.failure_timeout_ms = 600'000;
    welcome.block_bytes = 1 << 20;
    OnPeers([&] {
      server_ = std::make_unique<ScriptedServer>(
          runner_->loop(), factory_.get(),
          van::Identity{
              .role = Role::kServer, .node = 2, .incarnation = 5, .cluster = kTestCluster},
          absl::StrCat("ipc://", path_));
      scheduler_ = std::make_unique<ScriptedScheduler>(runner_->loop(), factory_.get(), welcome,
                                                       "inproc://scheduler");
      scheduler_->map.version = scheduler_->map.epoch = 1;
      scheduler_->map.servers.push_back({.node = 2, .rank = 0, .endpoints = {proxy_.address()}});
      scheduler_->map.owners.resize(2);
      scheduler_->map.workers.push_back({.node = 10, .rank = 0});
    });
    Config config;
    config.role = Role::kWorker;
    config.scheduler = "inproc://scheduler";
    config.resend_interval = absl::Milliseconds(200);
    absl::StatusOr<std::unique_ptr<Worker>> worker =
        Client::ConnectWith(config, host_.get(), factory_.get());
    EXPECT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  ~StoppedPeerTest() override {
    worker_.reset();
    OnPeers([&] {
      server_.reset();
      scheduler_.reset();
    });
    unlink(path_.c_str());
  }
  void OnPeers(const std::function<void()>& task) {
    std::promise<void> done;
    runner_->loop()->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/leeway_stopped_", getpid());
  std::unique_ptr<runtime::Host> host_ = runtime::NewRealHost();
  std::unique_ptr<van::Factory> factory_ = van::NewZmqFactory(van::ZmqScheme::kTcp);
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("peers");
  Proxy proxy_{path_};
  std::unique_ptr<ScriptedScheduler> scheduler_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(StoppedPeerTest, TheUsersMemoryIsReleasedAndNeverReadAgain) {
  absl::StatusOr<Table> table = worker_->CreateTable(TableSpec::Dense("w", {kElements}));
  ASSERT_TRUE(table.ok()) << table.status();
  // Memory of which every later use is detected.
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<float> values(static_cast<float*>(memory), kElements);
  std::fill(values.begin(), values.end(), 3.0f);
  // The connection is up and works.
  std::vector<float> got(kElements);
  ASSERT_TRUE(worker_->Wait(table->Pull(std::span<float>(got))).ok());

  proxy_.StandStill();
  Options options;
  options.timeout = absl::Seconds(1);
  const absl::Time start = absl::Now();
  const absl::Status pushed = worker_->Wait(table->Push(std::span<const float>(values), options));
  std::fill(values.begin(), values.end(), -1.0f);
  EXPECT_EQ(pushed.code(), absl::StatusCode::kUnknown) << pushed;
  EXPECT_GT(absl::Now() - start, absl::Seconds(1));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));

  // In the end the push that was stopped is applied, once.
  proxy_.GoOn();
  const absl::Status pulled = worker_->Wait(table->Pull(std::span<float>(got)));
  ASSERT_TRUE(pulled.ok()) << pulled;
  EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](float value) { return value == 3.0f; }));
  ASSERT_EQ(munmap(memory, kBytes), 0);
}

}  // namespace
}  // namespace leeway::worker
