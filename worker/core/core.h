// A worker without anything that blocks: its membership of the cluster, and the entry of all its
// calls, whose completions are called back.
//
// Lives on one loop, real or simulated, and calls everything back on it. The blocking calls of
// leeway::Worker are a thin layer above (client/session.h); workers in the simulator use Core
// directly. Phases: joining, ready, leaving, over. Parts: Operations (pushes and pulls), Tables
// (settings, codecs and residuals), Requests (what is sent to shards), Ticker (the clock), Calls,
// SchedulerRequests, LateJoin.
#ifndef LEEWAY_WORKER_CORE_CORE_H_
#define LEEWAY_WORKER_CORE_CORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "node/membership.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/van.h"
#include "worker/control/calls.h"
#include "worker/control/codec_meter.h"
#include "worker/control/late_join.h"
#include "worker/control/scheduler_requests.h"
#include "worker/control/ticker.h"
#include "worker/core/operations.h"
#include "worker/core/tables.h"
#include "worker/encoding/residual_file.h"
#include "worker/links/servers.h"
#include "worker/models/published_models.h"
#include "worker/operations/operation.h"
#include "worker/requests/requests.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker {

class Core final : public node::Membership::Listener, public Servers::Listener {
 public:
  struct Setup {
    Config config;
    runtime::Host* host = nullptr;
    runtime::Loop* loop = nullptr;
    van::Factory* factory = nullptr;
    // Called once, when the scheduler has given this worker its rank. Optional.
    std::function<void(std::uint32_t rank)> on_rank = {};
  };
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  using TableDone = absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<const TableInfo>>)>;

  // Construct, use and destroy on the loop. Destroying it calls nothing.
  explicit Core(Setup setup);
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Joins the cluster. `ready` once the cluster is complete, or with an error.
  void Start(Done ready);
  // OK if this worker is ready; otherwise the error that calls fail with.
  absl::Status Usable() const;
  // Likewise, and FAILED_PRECONDITION if this is a reader (Config::read_only), which may not do
  // `what`.
  absl::Status MayDo(absl::string_view what) const;

  std::uint32_t rank() const { return welcome_.rank; }
  // Distinguishes this process from others that have or had the same rank.
  std::uint64_t incarnation() const { return incarnation_; }
  std::uint32_t num_workers() const { return welcome_.num_workers; }
  std::uint32_t num_servers() const { return welcome_.num_servers; }
  std::uint64_t epoch() const { return map_ == nullptr ? 0 : map_->epoch; }  // of the newest map
  // Living servers that it is connected to, by rank. Not before the first map.
  std::vector<std::uint32_t> LivingServers() const;

  void CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done);
  void OpenTable(const std::string& name, absl::Duration timeout, TableDone done);

  using Terms = Operations::Terms;
  // `completion` may be called before this returns, if the error is known at once. Without one the
  // operation is marked done instead.
  std::shared_ptr<Operation> Submit(absl::StatusOr<Sliced> sliced, const Terms& terms,
                                    Operation::Completion completion);
  // Ends an operation that cannot be answered, with that error: UNKNOWN where a part of its push
  // may have been applied.
  void GiveUp(const std::shared_ptr<Operation>& operation, absl::Status why);
  // For Slice, which exports the user's memory. Any thread.
  const std::shared_ptr<Poster>& poster() const { return poster_; }

  // Ends this worker's clock. DATA_LOSS if a push that had been accepted was refused since.
  absl::Status Clock();
  std::uint64_t clock() const override { return ticker_ == nullptr ? 0 : ticker_->clock(); }
  std::uint64_t oldest_clock() const override {
    return ticker_ == nullptr ? 0 : ticker_->OldestClock();
  }
  void Barrier(Group group, const std::string& name, absl::Duration timeout, Done done);
  void Call(std::uint32_t server_rank, const std::string& handler, Calls::Frames request,
            absl::Duration timeout, Calls::Done done);
  // `done` with what the scheduler says once it is decided (ClockOfSwitch).
  void SetCodec(const std::string& table, const std::string& codec, absl::Duration timeout,
                SchedulerRequests::TextDone done);
  // Likewise. `changes`: "updater.learning_rate=0.1", "consistency=asp", … (the scheduler's command
  // `table`).
  void ChangeTable(const std::string& table, const std::vector<std::string>& changes,
                   absl::Duration timeout, SchedulerRequests::TextDone done);
  // `done` with the folder of the checkpoint, once it is complete.
  void Checkpoint(const std::string& directory, absl::Duration timeout,
                  SchedulerRequests::TextDone done);

  // Publishes a version of the model, which has those tables. `done` with the scheduler's JSON.
  void Publish(const std::string& model, const std::vector<std::uint32_t>& tables,
               absl::Duration timeout, SchedulerRequests::TextDone done);
  // What the scheduler says of a model: {"tables": [names]}.
  void DescribeModel(const std::string& model, absl::Duration timeout,
                     SchedulerRequests::TextDone done) {
    if (absl::Status usable = Usable(); !usable.ok()) return done(usable);
    scheduler_requests_->DescribeModel(model, timeout, std::move(done));
  }
  PublishedModels& models() { return models_; }

  // Tables::Residuals and TakeResiduals.
  SavedResiduals Residuals();
  absl::Status TakeResiduals(const SavedResiduals& saved);

  // Waits until all pushes are answered, the last tick is acknowledged and no push of an ended
  // clock is retained; then leaves. `done` when the scheduler has confirmed, or `timeout` has
  // passed. Everything else fails with FAILED_PRECONDITION from the call on. A second call
  // meanwhile waits for the same end, and both for the shorter of their timeouts.
  void Leave(absl::Duration timeout, Done done);

  // Ends everything at once and closes the network.
  void Stop();

  // All fields but `waited`, which the blocking layer measures.
  WorkerStats stats() const;
  // Of pushes that are retained until their clock is stable.
  std::uint64_t retained_bytes() const {
    return requests_ == nullptr ? 0 : requests_->totals().retained_bytes();
  }

 private:
  // node::Membership::Listener
  void OnWelcome(const proto::Welcome& welcome) override;
  void OnMap(std::shared_ptr<const proto::ClusterMap> map) override;
  void OnNodeDown(const proto::NodeDown& down) override;
  void OnSchedulerMessage(proto::AnyMessage message) override;
  void OnSchedulerText(proto::AnyMessage message, absl::string_view text) override;
  void OnOver(const absl::Status& why) override;
  // Servers::Listener
  void OnLinkUp(Link* link) override;
  void OnLinkDown(Link* link, const absl::Status& why) override;
  void OnServerMessage(Link* link, proto::AnyMessage message,
                       std::span<runtime::Buffer> payload) override;

  SchedulerRequests::TableDone TableAnswer(TableDone done);
  void OpenEqualTable(const TableSpec& spec, absl::Duration timeout, TableDone done);
  void SendCodecReport(proto::CodecReport report);
  void Enter();
  void BeReady();
  void DropDeadServers();
  void ConnectDeadline();
  void LeaveWhenQuiet();
  void End(const absl::Status& why);

  const Config config_;
  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const std::function<void(std::uint32_t rank)> on_rank_;
  const std::uint64_t incarnation_;
  const std::shared_ptr<Poster> poster_;

  enum class Phase { kJoining, kReady, kLeaving, kOver };
  Phase phase_ = Phase::kJoining;
  absl::Status over_;  // why it is over
  Done ready_;
  proto::Welcome welcome_;
  std::shared_ptr<const proto::ClusterMap> map_;

  Operations operations_;
  PublishedModels models_;
  bool connect_grace_ = false;  // the time to connect is up; an answer of the scheduler may come
  Done left_;
  absl::Time leave_by_;

  runtime::Timer connect_;
  runtime::Timer leave_;
  std::unique_ptr<node::Membership> membership_;
  std::unique_ptr<Servers> servers_;  // from the welcome on
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<CodecMeter> meter_;
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<SchedulerRequests> scheduler_requests_;
  std::unique_ptr<LateJoin> late_join_;  // null unless this worker joined late
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CORE_CORE_H_
