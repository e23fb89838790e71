#include "van/testing/test_processes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/config/address.h"

namespace leeway::van {
namespace {

// A server on a thread of its own that returns each message, and a van on a loop of the test that
// is connected to it and counts the answers.
class Echo {
 public:
  Echo(Factory* factory, const std::string& host) {
    server_ = factory->New(&server_loop_, IdentityOf(Role::kServer, 2), {}, &server_recorder_);
    server_recorder_.admits = server_.get();
    server_recorder_.on_message = [this](PeerId from, Message message) {
      EXPECT_TRUE(server_->Send(from, std::move(message)).ok());
    };
    const std::string address = server_->Listen(factory->AnyAddress(host)).value();
    thread_ = std::thread([this] { server_loop_.Run(); });
    van = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder_);
    recorder_.on_message = [this](PeerId, Message) { ++answers; };
    peer = van->Connect(address, absl::Seconds(30)).value();
  }
  ~Echo() {
    van.reset();
    server_loop_.Stop();
    thread_.join();
  }

 private:
  Recorder server_recorder_, recorder_;
  runtime::RealLoop server_loop_{1};
  std::unique_ptr<Van> server_;
  std::thread thread_;

 public:
  runtime::RealLoop loop{2};
  std::unique_ptr<Van> van;
  PeerId peer = 0;
  int answers = 0;
};

}  // namespace

int OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

int SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "memfd:leeway")) ++count;
  }
  return count;
}

bool TurnUntil(runtime::RealLoop* loop, const std::function<bool()>& done, absl::Duration at_most) {
  const absl::Time until = loop->Now() + at_most;
  while (!done() && loop->Now() < until) {
    if (!loop->RunReady()) loop->Wait(loop->PrepareWait(until));
  }
  return done();
}

pid_t InChild(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) body();
  ::_exit(0);
}

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

std::string Pattern(std::size_t size, int seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 31 + seed * 7) >> 3);
  return text;
}

void SendForEver(runtime::RealLoop* loop, Van* van, Recorder* recorder, PeerId peer) {
  std::uint64_t next = 0;
  recorder->on_message = [](PeerId, Message) {};
  TurnUntil(loop, [&] {
    while (van->Writable(peer)) {
      const std::size_t size = ++next % 3 == 0 ? 20'000'000 : next % 3 * 70'000;
      van->Send(peer, TextMessage(absl::StrCat(next), {std::string(size, 'k')})).IgnoreError();
    }
    return recorder->IsDown(peer);
  });
}

pid_t WorkerThatSendsForEver(Factory* factory, const std::string& address) {
  return InChild([&] {
    runtime::RealLoop loop(2);
    Recorder recorder;
    auto van = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder);
    const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
    TurnUntil(&loop, [&] { return recorder.IsUp(peer); });
    SendForEver(&loop, van.get(), &recorder, peer);
  });
}

void ExpectNoWakeUpIsLost(Factory* factory, const std::string& host) {
  Echo echo(factory, host);
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(echo.van->Send(echo.peer, TextMessage("m", {std::string(i % 9000, 'x')})).ok());
    ASSERT_TRUE(TurnUntil(&echo.loop, [&] { return echo.answers == i; }));
    const absl::Time until = echo.loop.Now() + absl::Microseconds(i % 150);
    while (echo.loop.Now() < until) {
    }
  }
}

void ExpectNoWakeUpIsLostByASharedLoop(Factory* factory, const std::string& host) {
  Echo echo(factory, host);
  std::mutex mutex;
  constexpr int kSenders = 2, kMessages = 500;
  std::vector<std::thread> senders;
  for (int t = 0; t < kSenders; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_TRUE(echo.van->Send(echo.peer, TextMessage("m", {std::string(5000, 'x')})).ok());
        while (echo.loop.RunReady()) {
        }
      }
    });
  }
  // Each message is answered; a thread that waits for the next answer runs the loop.
  while (true) {
    runtime::RealLoop::WaitSet set;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      while (echo.loop.RunReady()) {
      }
      if (echo.answers >= kSenders * kMessages) break;
      set = echo.loop.PrepareWait(echo.loop.Now() + absl::Seconds(20));
    }
    runtime::RealLoop::Wait(set);
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace leeway::van
