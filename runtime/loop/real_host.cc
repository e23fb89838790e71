#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/base/random.h"
#include "runtime/files/file_system.h"
#include "runtime/loop/real_loop.h"

namespace leeway::runtime {
namespace {

std::uint64_t SystemEntropy() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), 0) == static_cast<ssize_t>(sizeof(value))) return value;
  // An old kernel or a sandbox without the call: the time and an address still differ between
  // processes.
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return RandomAt(static_cast<std::uint64_t>(now.tv_sec), static_cast<std::uint64_t>(now.tv_nsec),
                  reinterpret_cast<std::uintptr_t>(&value));
}

// With this niceness the thread gets about an eighth of a core that another thread wants as well.
constexpr int kBackgroundNiceness = 10;

class RealRunner final : public LoopRunner {
 public:
  RealRunner(const std::string& name, int niceness, absl::Duration busy_poll)
      : loop_(SystemEntropy(), busy_poll), thread_([this, name, niceness] {
          constexpr std::size_t kThreadNameMax = 15;  // the kernel's
          ::pthread_setname_np(::pthread_self(), name.substr(0, kThreadNameMax).c_str());
          // Applies to this thread only. If the system refuses, the thread keeps the normal
          // priority.
          if (niceness != 0) (void)::setpriority(PRIO_PROCESS, 0, niceness);
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
  std::thread thread_;  // declared last: it uses the members above
};

class RealHost final : public Host {
 public:
  explicit RealHost(absl::Duration busy_poll) : busy_poll_(busy_poll) {}
  std::unique_ptr<LoopRunner> Spawn(const std::string& name) override {
    return std::make_unique<RealRunner>(name, 0, busy_poll_);
  }
  std::unique_ptr<LoopRunner> SpawnInBackground(const std::string& name) override {
    return std::make_unique<RealRunner>(name, kBackgroundNiceness, busy_poll_);
  }
  FileSystem* files() override { return RealFileSystem(); }
  std::uint64_t Random() override { return SystemEntropy(); }
  absl::Time WallTime() override { return absl::Now(); }
  std::uint64_t ResidentBytes() override {
    // The first two fields are numbers of pages: mapped, and resident.
    const absl::StatusOr<std::string> pages = RealFileSystem()->Read("/proc/self/statm");
    if (!pages.ok()) return 0;
    const std::vector<absl::string_view> fields = absl::StrSplit(*pages, ' ');
    std::uint64_t resident = 0;
    if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &resident)) return 0;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  const absl::Duration busy_poll_;
};

}  // namespace

std::unique_ptr<Host> NewRealHost(absl::Duration busy_poll) {
  return std::make_unique<RealHost>(busy_poll);
}

}  // namespace leeway::runtime
