#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "runtime/file_system.h"
#include "runtime/random.h"
#include "runtime/real_loop.h"

namespace leeway::runtime {
namespace {

std::uint64_t SystemEntropy() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), 0) == static_cast<ssize_t>(sizeof(value))) return value;
  // An old kernel or a sandbox without the call: time and place still differ between processes.
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return RandomAt(static_cast<std::uint64_t>(now.tv_sec), static_cast<std::uint64_t>(now.tv_nsec),
                  reinterpret_cast<std::uintptr_t>(&value));
}

class RealRunner final : public LoopRunner {
 public:
  explicit RealRunner(const std::string& name)
      : loop_(SystemEntropy()), thread_([this, name] {
          constexpr std::size_t kThreadNameMax = 15;  // the kernel's
          ::pthread_setname_np(::pthread_self(), name.substr(0, kThreadNameMax).c_str());
          loop_.Run();
        }) {}
  ~RealRunner() override {
    Stop();
    Join();
  }

  Loop* loop() override { return &loop_; }
  void Stop() override { loop_.Stop(); }
  void Join() override {
    const std::lock_guard lock(joining_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  RealLoop loop_;
  std::mutex joining_;
  std::thread thread_;  // last: it uses the rest
};

class RealHost final : public Host {
 public:
  std::unique_ptr<LoopRunner> Spawn(const std::string& name) override {
    return std::make_unique<RealRunner>(name);
  }
  FileSystem* files() override { return RealFileSystem(); }
  std::uint64_t Random() override { return SystemEntropy(); }
  absl::Time WallTime() override { return absl::Now(); }
};

}  // namespace

std::unique_ptr<Host> NewRealHost() { return std::make_unique<RealHost>(); }

}  // namespace leeway::runtime
