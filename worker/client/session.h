// One worker with calls that block: its core, and the threads that take turns at driving it.
//
// Any thread, except that nothing may wait from within an operation's `done`. Shared by the Client
// and by tables, so that a table that outlives its worker gets an error. In a child of the process
// that made it (fork()) all calls fail with FAILED_PRECONDITION and nothing of it is destroyed: its
// connections and the numbers of its requests are the parent's.
#ifndef LEEWAY_WORKER_CLIENT_SESSION_H_
#define LEEWAY_WORKER_CLIENT_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/call.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "runtime/base/fork.h"
#include "runtime/loop/loop.h"
#include "van/van.h"
#include "worker/client/driver.h"
#include "worker/client/log_name.h"
#include "worker/core/core.h"
#include "worker/operations/operation.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker {

class Session : public std::enable_shared_from_this<Session> {
 public:
  // The network and clocks of a session. `factory` and `host` outlive it unless owned here.
  // `driver`: null for that of a real loop.
  struct World {
    runtime::Host* host = nullptr;
    van::Factory* factory = nullptr;
    std::unique_ptr<runtime::Host> owned_host = nullptr;
    std::unique_ptr<van::Factory> owned_factory = nullptr;
    std::unique_ptr<Driver> driver = nullptr;
  };

  static absl::StatusOr<std::shared_ptr<Session>> Connect(const Config& config, World world);
  ~Session();

  std::uint32_t rank() const { return rank_; }
  std::uint32_t num_workers() const { return num_workers_; }
  std::uint32_t num_servers() const { return num_servers_; }

  absl::StatusOr<std::shared_ptr<const TableInfo>> CreateTable(const TableSpec& spec);
  absl::StatusOr<std::shared_ptr<const TableInfo>> OpenTable(absl::string_view name);

  using Slicing = absl::FunctionRef<absl::StatusOr<Sliced>(const std::shared_ptr<Poster>&)>;
  Ticket Submit(Slicing slice, Options options);
  Ticket Submit(const Access& access, Options options) {
    return Submit([&](const auto& poster) { return Slice(access, poster); }, std::move(options));
  }
  absl::Status Wait(std::span<const Ticket> tickets);
  bool Done(const Ticket& ticket);
  void WhenDone(const Ticket& ticket, std::function<void(const absl::Status&)> done);

  absl::Status Clock();
  std::uint64_t clock() const;
  absl::Status Barrier(Group group, absl::string_view name, std::optional<absl::Duration> timeout);
  absl::StatusOr<std::string> Call(std::uint32_t server_rank, absl::string_view handler,
                                   absl::string_view request, const Options& options);
  Ticket Call(std::uint32_t server_rank, std::string handler, CallFrames request, CallDone done,
              Options options);

  absl::StatusOr<std::uint64_t> SetCodec(absl::string_view table, absl::string_view codec,
                                         std::optional<absl::Duration> timeout);
  absl::StatusOr<std::uint64_t> ChangeTable(absl::string_view table, const TableChange& change,
                                            std::optional<absl::Duration> timeout);
  absl::StatusOr<std::string> Checkpoint(absl::string_view directory,
                                         std::optional<absl::Duration> timeout);
  // Returns the number of the version.
  absl::StatusOr<std::uint64_t> Publish(const std::string& model,
                                        const std::vector<std::uint32_t>& tables,
                                        std::optional<absl::Duration> timeout);
  absl::StatusOr<std::string> DescribeModel(const std::string& model);
  absl::StatusOr<proto::Published> WhenNewer(const std::string& model, std::uint64_t version,
                                             absl::Duration timeout);
  absl::Status SaveResiduals(const std::string& directory);
  absl::Status LoadResiduals(const std::string& directory, std::optional<std::uint32_t> rank);

  // Idempotent: a call while another leaves waits with it, for the shorter of both timeouts.
  // Operations that are submitted afterwards fail with FAILED_PRECONDITION.
  absl::Status Leave(absl::Duration timeout);
  absl::Duration request_timeout() const { return config_.request_timeout; }
  bool may_share_memory() const {
    return config_.van == "auto" || config_.van == "shm" || config_.van == "rdma";
  }
  // Leaves within a short time, and destroys everything. From within an operation's callback, later
  // on a thread of its own.
  void Close();

  WorkerStats stats() const;

 private:
  struct Deleter {
    void operator()(Session* session) const;
  };

  absl::StatusOr<SavedResiduals> Residuals();
  absl::Status MayKeepResiduals();
  // FAILED_PRECONDITION in a child of the process that made this.
  absl::Status OfThisProcess() const;
  bool inherited() const { return runtime::ForkCount() != forks_; }
  Session(const Config& config, World world);

  // Runs `start` with the core and a callback for the answer; waits for the answer.
  template <class T>
  absl::StatusOr<T> Ask(
      absl::FunctionRef<void(Core&, absl::AnyInvocable<void(absl::StatusOr<T>)>)> start);
  // Likewise the scheduler, by way of the core; counts the time.
  absl::StatusOr<std::string> AskText(
      absl::FunctionRef<void(Core&, SchedulerRequests::TextDone)> start);
  absl::Duration TimeoutOf(std::optional<absl::Duration> timeout) const {
    return timeout.value_or(config_.request_timeout);
  }
  absl::Status AskStatus(absl::FunctionRef<void(Core&, Core::Done)> start);
  // Of Close.
  void LeaveAndEnd();
  void Destroy();
  absl::Duration CloseTimeout() const;
  void CloseLater();
  void GiveUpThoseOfThisClock(std::span<const Ticket> tickets);
  absl::Status WaitUntil(absl::FunctionRef<bool()> done);
  void CallThoseWhoWait(const std::shared_ptr<Operation>& operation);
  void CountWait(absl::Time since);

  const std::uint64_t forks_ = runtime::ForkCount();
  const Config config_;
  World world_;
  LogName log_name_;
  std::uint32_t rank_ = 0, num_workers_ = 0, num_servers_ = 0;
  const std::unique_ptr<Driver> driver_;
  std::shared_ptr<Poster> poster_;
  std::unique_ptr<Core> core_;    // under the lock of driver_; null once closed
  absl::Duration waited_;         // under the lock of driver_
  WorkerStats last_stats_;        // under the lock: the core's, once it is gone
  std::uint64_t last_clock_ = 0;  // likewise
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_SESSION_H_
