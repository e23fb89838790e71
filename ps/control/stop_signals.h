// SIGTERM and SIGINT, delivered as tasks of a loop.
#ifndef LEEWAY_PS_CONTROL_STOP_SIGNALS_H_
#define LEEWAY_PS_CONTROL_STOP_SIGNALS_H_

#include <signal.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/loop/loop.h"

namespace leeway::ps {

// While it lives, the first SIGTERM or SIGINT makes fd() readable and Poll call `on_signal`; a
// second one does what it did before (usually: ends the process). One at a time in a process.
class StopSignals final : public runtime::Source {
 public:
  // ALREADY_EXISTS if there is one.
  static absl::StatusOr<std::unique_ptr<StopSignals>> Install(std::function<void(int)> on_signal);
  ~StopSignals() override;

  int fd() const override { return fd_; }
  bool Poll() override;

 private:
  explicit StopSignals(int fd, std::function<void(int)> on_signal)
      : fd_(fd), on_signal_(std::move(on_signal)) {}

  const int fd_;
  const std::function<void(int)> on_signal_;
  struct sigaction old_term_ = {}, old_int_ = {};
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_STOP_SIGNALS_H_
