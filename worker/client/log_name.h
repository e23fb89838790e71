// The part of a worker in the name that the log lines of its process carry.
#ifndef LEEWAY_WORKER_CLIENT_LOG_NAME_H_
#define LEEWAY_WORKER_CLIENT_LOG_NAME_H_

#include <cstdint>
#include <optional>

namespace leeway::worker {

// Lines carry the rank ("worker 3") from SetRank until this object is destroyed; in a process with
// several workers, all their ranks ("workers 3, 4"). A name that the process has got otherwise
// stays. Any thread.
class LogName {
 public:
  LogName() = default;
  ~LogName() { Clear(); }
  LogName(const LogName&) = delete;
  LogName& operator=(const LogName&) = delete;

  void SetRank(std::uint32_t rank);
  void Clear();

 private:
  std::optional<std::uint32_t> rank_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_LOG_NAME_H_
