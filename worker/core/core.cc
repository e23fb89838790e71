#include "worker/core/core.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "proto/tables/table_difference.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "worker/control/argument_checks.h"
#include "worker/slicing/live_table_settings.h"

namespace leeway::worker {
namespace {

// How long after the time to connect the scheduler may still answer, saying which members are
// missing. The membership reports an absent scheduler by itself.
constexpr absl::Duration kConnectGrace = absl::Seconds(1);
// How long a server may take to answer a probe of the link before another is sent.
constexpr absl::Duration kProbeTimeout = absl::Seconds(30);
// How often a worker that leaves looks whether its pushes have been answered.
constexpr absl::Duration kLeaveLook = absl::Milliseconds(5);

// A table that refuses what is not finite takes no rows of one key that wrap around when they are
// added up. A server says so where this worker does not know yet that the table does.
absl::Status CheckSums(const Sliced& sliced, std::uint64_t clock) {
  if (!sliced.wrapped_key.has_value()) return absl::OkStatus();
  const TableInfo& table = *sliced.table;
  const std::optional<NonFinite> changed =
      table.settings == nullptr ? std::nullopt : table.settings->NonFiniteAt(clock);
  if (changed.value_or(table.spec.nonfinite) != NonFinite::kRefuse) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "push to table '", table.spec.name, "': integers of key ", *sliced.wrapped_key,
      ", of which it has several rows, wrap around when these are added up, which the table "
      "refuses (TableSpec::nonfinite); nothing of it was sent"));
}

absl::Status LeftOpen() {
  return absl::DeadlineExceededError(
      "this worker has left its cluster before the others ended the iterations that it had pushed "
      "in: what it pushed to tables in BSP counts, but is lost if a server dies before they have");
}

// The role by which the scheduler and servers know this client.
Role WireRole(const Config& config) { return config.read_only ? Role::kReader : Role::kWorker; }

}  // namespace

Core::Core(Setup setup)
    : config_(std::move(setup.config)),
      host_(setup.host),
      loop_(setup.loop),
      factory_(setup.factory),
      on_rank_(std::move(setup.on_rank)),
      incarnation_(host_->Random()),
      poster_(std::make_shared<Poster>(loop_)),
      operations_(config_, loop_),
      models_(loop_),
      connect_(loop_, [this] { ConnectDeadline(); }),
      leave_(loop_, [this] { LeaveWhenQuiet(); }) {}

Core::~Core() {
  poster_->Close();
  if (servers_ != nullptr) servers_->Close();
}

void Core::Start(Done ready) {
  ready_ = std::move(ready);
  node::Membership::Setup setup;
  setup.config = config_;
  setup.role = WireRole(config_);
  setup.incarnation = incarnation_;
  setup.host = host_;
  setup.loop = loop_;
  setup.factory = factory_;
  membership_ = std::make_unique<node::Membership>(std::move(setup), this);
  scheduler_requests_ = std::make_unique<SchedulerRequests>(config_, loop_, membership_.get());
  connect_.SetBy(loop_->Now() + config_.connect_timeout);
  membership_->Start();
}

void Core::ConnectDeadline() {
  if (phase_ != Phase::kJoining) return;
  if (map_ == nullptr && !connect_grace_) {
    connect_grace_ = true;
    membership_->AskForMap();
    return connect_.SetBy(loop_->Now() + kConnectGrace);
  }
  const std::string missing =
      map_ == nullptr
          ? absl::StrCat(membership_->DescribeScheduler(), "; it has not said who is missing",
                         welcome_.clock == 0 ? "" : ", and may be loading its checkpoint")
      : late_join_ != nullptr
          ? late_join_->DescribeWait()
          : node::DescribeMissing(*map_, welcome_.num_servers, welcome_.num_workers);
  End(absl::DeadlineExceededError(absl::StrCat("the cluster was not complete within ",
                                               runtime::FormatDuration(config_.connect_timeout),
                                               ": ", missing, " (LEEWAY_CONNECT_TIMEOUT_MS)")));
}

absl::Status Core::Usable() const {
  switch (phase_) {
    case Phase::kReady:
      return absl::OkStatus();
    case Phase::kJoining:
      return absl::FailedPreconditionError("this worker has not joined its cluster yet");
    case Phase::kLeaving:
      return absl::FailedPreconditionError("this worker has left its cluster");
    case Phase::kOver:
      break;
  }
  return over_;
}

absl::Status Core::MayDo(absl::string_view what) const {
  if (config_.read_only) {
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     ": this client is a reader (LEEWAY_READ_ONLY=1, Config::read_only), "
                     "which only opens tables and pulls"));
  }
  return Usable();
}

// ---- membership ----

void Core::OnWelcome(const proto::Welcome& welcome) {
  welcome_ = welcome;
  if (on_rank_ != nullptr) on_rank_(welcome.rank);
  const WorkerId self{.incarnation = incarnation_, .rank = welcome.rank};
  servers_ = std::make_unique<Servers>(config_, loop_, factory_,
                                       van::Identity{.role = WireRole(config_),
                                                     .node = welcome.node,
                                                     .incarnation = incarnation_,
                                                     .cluster = welcome.cluster},
                                       this);
  requests_ = std::make_unique<Requests>(config_, loop_, servers_.get(), self, &operations_);
  servers_->SetReplyListener(requests_.get());
  operations_.Connect(servers_.get(), requests_.get(), scheduler_requests_.get());
  ticker_ = std::make_unique<Ticker>(config_, loop_, servers_.get(), requests_.get(), self);
  calls_ = std::make_unique<Calls>(loop_, servers_.get());
  meter_ = std::make_unique<CodecMeter>(CodecMeter::World{
      .loop = loop_,
      .servers = [this] { return LivingServers(); },
      .probe =
          [this](std::uint32_t rank, runtime::Buffer bytes, Calls::Done done) {
            calls_->Call(rank, proto::kProbeHandler, {std::move(bytes)}, kProbeTimeout,
                         std::move(done));
          },
      .bytes_moved =
          [this] { return requests_->totals().pushed_bytes() + operations_.bytes_pulled(); },
      .report = [this](const proto::CodecReport& report) { SendCodecReport(report); }});
  tables_ = std::make_unique<Tables>(config_, welcome_, requests_.get(), meter_.get());
}

void Core::OnMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (phase_ == Phase::kOver || servers_ == nullptr) return;
  map_ = std::move(map);
  if (map_->epoch == 0) {
    if (connect_grace_) ConnectDeadline();
    return;
  }
  operations_.Follow(map_);
  tables_->Follow(map_);
  servers_->Follow(*map_);
  DropDeadServers();
  operations_.FailLost(requests_->Follow(*map_));
  ticker_->Follow(*map_);
  if (phase_ == Phase::kJoining) Enter();
}

std::vector<std::uint32_t> Core::LivingServers() const {
  std::vector<std::uint32_t> ranks;
  for (const proto::ServerEntry& server : map_->servers) {
    const Link* const link = servers_->Find(server.rank, 0);
    if (server.alive && link != nullptr && link->up) ranks.push_back(server.rank);
  }
  return ranks;
}

// A lost report is made again by the meter.
void Core::SendCodecReport(proto::CodecReport report) {
  report.clock = clock();
  membership_->Send(report).IgnoreError();
}

// A founding worker starts at the cluster's first clock; a late one where the others are.
void Core::Enter() {
  if (config_.read_only) return BeReady();  // servers wait for no clock of a reader
  if (late_join_ != nullptr) return late_join_->Follow(*map_);
  const auto self =
      std::find_if(map_->workers.begin(), map_->workers.end(),
                   [this](const proto::WorkerEntry& w) { return w.node == welcome_.node; });
  if (self == map_->workers.end()) return;  // a map from before this worker joined
  if (!self->late) {
    if (welcome_.clock != 0) ticker_->Begin(welcome_.clock);
    return BeReady();
  }
  late_join_ = std::make_unique<LateJoin>(
      config_, loop_, servers_.get(), WorkerId{.incarnation = incarnation_, .rank = welcome_.rank},
      [this](std::uint64_t clock) {
        runtime::LogInfo("worker ", welcome_.rank, " enters at clock ", clock);
        ticker_->Begin(clock);
        BeReady();
      });
  late_join_->Follow(*map_);
}

void Core::BeReady() {
  phase_ = Phase::kReady;
  connect_.Clear();
  if (ready_) std::exchange(ready_, nullptr)(absl::OkStatus());
}

// A call is for a server and fails with it; a request is for a shard and goes to its next head.
void Core::DropDeadServers() {
  for (const proto::ServerEntry& server : map_->servers) {
    const Link* link = servers_->Find(server.rank, 0);
    if (server.alive || link == nullptr) continue;
    calls_->DropServer(
        server.rank, absl::UnavailableError(absl::StrCat(
                         "server ", server.rank, " (", link->address, ") is gone: ", link->death)));
  }
}

void Core::OnNodeDown(const proto::NodeDown& down) {
  runtime::LogInfo(Name(down.role), " ", down.rank, down.left ? " has left" : " is gone", ": ",
                   down.reason);
  if (down.role == Role::kServer && servers_ != nullptr) {
    servers_->NoteDeath(down.node, down.reason);
  }
}

void Core::OnSchedulerMessage(proto::AnyMessage message) {
  if (auto* table = std::get_if<proto::TableReply>(&message)) {
    scheduler_requests_->OnTableReply(std::move(*table));
  } else if (auto* release = std::get_if<proto::BarrierRelease>(&message)) {
    scheduler_requests_->OnBarrierRelease(*release);
  } else if (auto* published = std::get_if<proto::Published>(&message)) {
    models_.On(std::move(*published));
  }
}

void Core::OnSchedulerText(proto::AnyMessage message, absl::string_view text) {
  scheduler_requests_->OnText(message, text);
}

void Core::OnOver(const absl::Status& why) {
  End(why.ok() ? absl::UnavailableError("the scheduler has ended the cluster") : why);
}

// ---- servers ----

void Core::OnLinkUp(Link* link) {
  if (late_join_ != nullptr) late_join_->OnLinkUp(link);
  requests_->OnLinkUp(link);
  ticker_->OnLinkUp(link);
  calls_->OnLinkUp(link);
}

void Core::OnLinkDown(Link* link, const absl::Status& why) {
  requests_->OnLinkDown(link);
  calls_->OnLinkDown(link, why);
}

void Core::OnServerMessage(Link* link, proto::AnyMessage message,
                           std::span<runtime::Buffer> payload) {
  if (auto* ack = std::get_if<proto::ClockAck>(&message)) {
    ticker_->OnAck(link, *ack);
  } else if (auto* entered = std::get_if<proto::EnterClockReply>(&message)) {
    if (late_join_ != nullptr) late_join_->OnReply(link, *entered);
  } else if (auto* call = std::get_if<proto::CallReply>(&message)) {
    calls_->OnReply(*call, payload);
  } else if (auto* moved = std::get_if<proto::SchedulerMoved>(&message)) {
    membership_->OnSchedulerMoved(*moved);
  } else {
    runtime::LogDebug(link->Describe(), " sent a message that is not for a worker");
  }
}

// ---- tables, barriers, calls ----

SchedulerRequests::TableDone Core::TableAnswer(TableDone done) {
  return [this, done = std::move(done)](const absl::StatusOr<proto::TableReply>& reply) mutable {
    if (!reply.ok()) return done(reply.status());
    done(tables_->Open(*reply));
  };
}

void Core::CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done) {
  absl::Status status = Usable();
  if (status.ok()) status = spec.Validate();
  if (!status.ok()) return done(status);
  if (config_.read_only) return OpenEqualTable(spec, timeout, std::move(done));
  status = compress::TableCodecsOf(spec).status();
  if (!status.ok()) return done(runtime::OfArgument(status));
  scheduler_requests_->CreateTable(spec, timeout, TableAnswer(std::move(done)));
}

// A reader that creates a table opens it, if it exists and is described alike.
void Core::OpenEqualTable(const TableSpec& spec, absl::Duration timeout, TableDone done) {
  scheduler_requests_->OpenTable(
      spec.name, timeout,
      TableAnswer([this, spec, done = std::move(done)](
                      absl::StatusOr<std::shared_ptr<const TableInfo>> info) mutable {
        if (absl::IsNotFound(info.status())) {
          return done(MayDo(absl::StrCat("creating table '", spec.name, "', which is not there")));
        }
        if (info.ok()) {
          if (const absl::Status shaped = proto::CheckShapedAlike((*info)->spec, spec);
              !shaped.ok()) {
            return done(shaped);
          }
        }
        done(std::move(info));
      }));
}

void Core::OpenTable(const std::string& name, absl::Duration timeout, TableDone done) {
  absl::Status status = Usable();
  if (status.ok()) status = CheckName("a table's name", name);
  if (!status.ok()) return done(status);
  scheduler_requests_->OpenTable(name, timeout, TableAnswer(std::move(done)));
}

void Core::Barrier(Group group, const std::string& name, absl::Duration timeout, Done done) {
  const absl::Status may = MayDo("a barrier");
  if (!may.ok()) return done(may);
  scheduler_requests_->Barrier(group, name, timeout, std::move(done));
}

void Core::Call(std::uint32_t server_rank, const std::string& handler, Calls::Frames request,
                absl::Duration timeout, Calls::Done done) {
  absl::Status status = MayDo("a call of a handler");
  if (status.ok()) status = CheckName("a handler's name", handler);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  calls_->Call(server_rank, handler, std::move(request), timeout, std::move(done));
}

void Core::SetCodec(const std::string& table, const std::string& codec, absl::Duration timeout,
                    SchedulerRequests::TextDone done) {
  if (absl::Status may = MayDo("changing a table's codec"); !may.ok()) return done(may);
  scheduler_requests_->SetCodec(table, codec, timeout, std::move(done));
}

void Core::ChangeTable(const std::string& table, const std::vector<std::string>& changes,
                       absl::Duration timeout, SchedulerRequests::TextDone done) {
  if (absl::Status may = MayDo("changing a table"); !may.ok()) return done(may);
  scheduler_requests_->ChangeTable(table, changes, timeout, std::move(done));
}

void Core::Checkpoint(const std::string& directory, absl::Duration timeout,
                      SchedulerRequests::TextDone done) {
  if (absl::Status may = MayDo("saving a checkpoint"); !may.ok()) return done(may);
  scheduler_requests_->Checkpoint(directory, clock(), timeout, std::move(done));
}

void Core::Publish(const std::string& model, const std::vector<std::uint32_t>& tables,
                   absl::Duration timeout, SchedulerRequests::TextDone done) {
  if (absl::Status may = MayDo("publishing a model"); !may.ok()) return done(may);
  scheduler_requests_->Publish(model, tables, clock(), timeout, std::move(done));
}

SavedResiduals Core::Residuals() {
  return tables_ == nullptr ? SavedResiduals() : tables_->Residuals();
}

absl::Status Core::TakeResiduals(const SavedResiduals& saved) {
  LEEWAY_RETURN_IF_ERROR(MayDo("loading residuals"));
  return tables_->TakeResiduals(saved);
}

// ---- operations and clocks ----

void Core::GiveUp(const std::shared_ptr<Operation>& operation, absl::Status why) {
  operations_.GiveUp(operation, std::move(why));
}

std::shared_ptr<Operation> Core::Submit(absl::StatusOr<Sliced> sliced, const Terms& terms,
                                        Operation::Completion completion) {
  absl::Status status = Usable();
  if (status.ok()) status = sliced.status();
  if (status.ok() && proto::HasPush(sliced->op)) {
    status =
        MayDo(absl::StrCat(sliced->op == proto::Op::kCall ? "call at table '" : "push to table '",
                           sliced->table->spec.name, "'"));
    if (status.ok()) status = CheckSums(*sliced, clock());
  }
  if (!status.ok()) return operations_.Refuse(std::move(status), std::move(completion));
  return operations_.Submit(*std::move(sliced), clock(), terms, std::move(completion));
}

absl::Status Core::Clock() {
  LEEWAY_RETURN_IF_ERROR(MayDo("Clock()"));
  ticker_->Tick();
  return requests_->TakeRefusal();
}

WorkerStats Core::stats() const {
  WorkerStats stats;
  const StalenessLedger& staleness = operations_.staleness();
  stats.staleness_histogram = staleness.histogram();
  stats.max_staleness = staleness.max();
  stats.staleness_violations = staleness.violations();
  stats.bytes_pushed = requests_ == nullptr ? 0 : requests_->totals().pushed_bytes();
  stats.bytes_pulled = operations_.bytes_pulled();
  stats.parts_dropped = operations_.parts_dropped();
  if (tables_ != nullptr) stats.residual_norms = tables_->ResidualNorms();
  stats.resends = requests_ == nullptr ? 0 : requests_->totals().resends();
  return stats;
}

// ---- the end ----

void Core::Leave(absl::Duration timeout, Done done) {
  if (phase_ == Phase::kLeaving) {
    left_ = [first = std::move(left_), done = std::move(done)](const absl::Status& status) mutable {
      first(status);
      done(status);
    };
    leave_by_ = std::min(leave_by_, loop_->Now() + timeout);
    return leave_.SetBy(leave_by_);
  }
  if (phase_ != Phase::kReady) {
    End(absl::FailedPreconditionError("this worker has left its cluster"));
    return done(absl::OkStatus());
  }
  phase_ = Phase::kLeaving;
  left_ = std::move(done);
  leave_by_ = loop_->Now() + timeout;
  const absl::Status left = absl::FailedPreconditionError("this worker has left its cluster");
  scheduler_requests_->Fail(left);
  models_.Fail(left);
  calls_->Fail(left);
  LeaveWhenQuiet();
}

void Core::LeaveWhenQuiet() {
  if (phase_ != Phase::kLeaving) return;
  const absl::Time now = loop_->Now();
  // Of pushes of the open clock to BSP tables only the head of the shard and this worker may have a
  // copy. A tick lets the clock close while this worker can still send them again.
  if (requests_->totals().unanswered_pushes() == 0 && !requests_->RetainsBefore(ticker_->clock()) &&
      requests_->RetainsBefore(ticker_->clock() + 1)) {
    ticker_->Tick();
  }
  // Retained pushes of ended clocks are safe only when these clocks are stable.
  const bool quiet = requests_->totals().unanswered_pushes() == 0 && ticker_->acknowledged() &&
                     !requests_->RetainsBefore(ticker_->clock());
  ticker_->Look();
  if (!quiet && now < leave_by_) {
    leave_.SetBy(std::min(now + kLeaveLook, leave_by_));
    return;
  }
  // The scheduler is told even if the servers took all the time.
  const absl::Duration left = std::max(leave_by_ - now, absl::Seconds(1));
  const bool open = requests_->RetainsBefore(ticker_->clock());
  membership_->Leave(left, [this, open, poster = poster_](const absl::Status& status) {
    if (poster->closed()) return;
    Done done = std::exchange(left_, nullptr);
    End(absl::FailedPreconditionError("this worker has left its cluster"));
    if (done) done(status.ok() && open ? LeftOpen() : status);
  });
}

// Nothing arrives from here on: ends everything that is under way.
void Core::End(const absl::Status& why) {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  over_ = why;
  connect_.Clear();
  leave_.Clear();
  if (scheduler_requests_ != nullptr) scheduler_requests_->Fail(why);
  models_.Fail(why);
  if (calls_ != nullptr) calls_->Fail(why);
  if (ticker_ != nullptr) ticker_->Stop();
  if (meter_ != nullptr) meter_->Stop();
  operations_.End(why);
  // Posted, because this may run within a call of the van.
  poster_->Post([this] {
    if (servers_ != nullptr) servers_->Close();
  });
  if (left_) std::exchange(left_, nullptr)(why);
  if (ready_) std::exchange(ready_, nullptr)(why);
}

void Core::Stop() {
  End(absl::FailedPreconditionError("this worker has left its cluster"));
  if (servers_ != nullptr) servers_->Close();
  operations_.Stop();
}

}  // namespace leeway::worker
