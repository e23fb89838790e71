#include "worker/core/core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
#include "proto/tables/table_difference.h"
#include "proto/tables/text.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/mutants.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "worker/core/cluster_status.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

// When there is no time left to connect: the membership reports an absent scheduler itself, and a
// scheduler that is there says who is missing; only if neither does do we.
constexpr absl::Duration kConnectGrace = absl::Seconds(1);
// How long a server may take to answer a probe of the link, before another is sent.
constexpr absl::Duration kProbeTimeout = absl::Seconds(30);

// A message that its receiver refuses to read costs the connection, and is sent again over the
// next: so what the user may get wrong is looked at before it is put into one.
absl::Status CheckName(absl::string_view field, absl::string_view name, std::size_t min = 1) {
  return proto::CheckText(field, name, min, proto::kNameBytesMax);
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
      deadlines_(loop_, [this] { LookAtDeadlines(); }),
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
  requests_ = std::make_unique<Requests>(
      config_, loop_, servers_.get(), self,
      [this](Request& request, const Link& link, const proto::Reply& reply,
             std::span<runtime::Buffer> payload) { OnAnswer(request, link, reply, payload); });
  ticker_ = std::make_unique<Ticker>(config_, loop_, servers_.get(), requests_.get(), self);
  calls_ = std::make_unique<Calls>(loop_, servers_.get());
  meter_ = std::make_unique<CodecMeter>(CodecMeter::World{
      .loop = loop_,
      .servers = [this] { return LivingServers(); },
      .probe =
          [this](std::uint32_t rank, runtime::Buffer bytes, Calls::Done done) {
            calls_->Call(rank, proto::kProbeHandler, std::move(bytes), kProbeTimeout,
                         std::move(done));
          },
      .bytes_moved = [this] { return requests_->totals().pushed_bytes() + bytes_pulled_; },
      .tell = [this](const proto::CodecReport& report) { Tell(report); }});
}

void Core::OnMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (phase_ == Phase::kOver || servers_ == nullptr) return;
  map_ = std::move(map);
  if (map_->epoch == 0) {
    if (connect_grace_) ConnectDeadline();
    return;
  }
  FollowSettings();
  FollowCodecs();
  servers_->Follow(*map_);
  DropDeadServers();
  FailLost(requests_->Follow(*map_));
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

// One that is lost is made again.
void Core::Tell(proto::CodecReport report) {
  report.clock = clock();
  membership_->Send(report).IgnoreError();
}

// What waited for a codec to be decided goes on.
void Core::FollowCodecs() {
  bool news = false;
  for (const proto::CodecSwitch& change : map_->codecs) {
    const auto coding = codings_.find(change.table);
    news = (coding != codings_.end() && coding->second->Follow(change)) || news;
  }
  if (news) requests_->SendUndecided();
}

// Likewise what waited for settings.
void Core::FollowSettings() {
  if (map_->settings.empty() || settings_.empty()) return;
  for (const auto& [table, settings] : settings_) {
    settings->Follow(proto::SettingsOf(map_->settings, table));
  }
  if (!runtime::Planted<"settings-follow-no-map">()) requests_->SendUndecided();
}

// Who was there when the cluster became complete counts from where it begins; who came later from
// where the others are.
void Core::Enter() {
  if (config_.read_only) return BeReady();  // nobody waits for it
  if (late_join_ != nullptr) return late_join_->Follow(*map_);
  const auto self =
      std::find_if(map_->workers.begin(), map_->workers.end(),
                   [this](const proto::WorkerEntry& w) { return w.node == welcome_.node; });
  if (self == map_->workers.end()) return;  // a map from before this worker came
  if (!self->late || runtime::Planted<"late-worker-is-a-founder">()) {
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

// Calls are for a server; requests are for a shard, and go to its next head.
void Core::DropDeadServers() {
  for (const proto::ServerEntry& server : map_->servers) {
    const Link* link = servers_->Find(server.rank, 0);
    if (server.alive || link == nullptr || runtime::Planted<"calls-to-the-dead-wait">()) continue;
    calls_->DropServer(
        server.rank, absl::UnavailableError(absl::StrCat(
                         "server ", server.rank, " (", link->address, ") is gone: ", link->death)));
  }
}

void Core::FailLost(const std::vector<Failover::Lost>& lost) {
  for (const auto& [operation, shard] : lost) {
    if (operation->stage != Operation::Stage::kAsking) continue;
    FailOperation(operation, runtime::Prefixed(operation->Describe(), requests_->LossOf(shard)));
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
  if (auto* reply = std::get_if<proto::Reply>(&message)) {
    requests_->OnReply(link, *reply, payload);
  } else if (auto* acks = std::get_if<proto::PushAcks>(&message)) {
    requests_->OnAcks(link, *acks);
  } else if (auto* ack = std::get_if<proto::ClockAck>(&message)) {
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
  return [this, done = std::move(done)](absl::StatusOr<proto::TableReply> reply) mutable {
    if (!reply.ok()) return done(reply.status());
    auto info = std::make_shared<TableInfo>();
    info->id = reply->table;
    TakeSettings(*reply, info.get());
    info->combine = reply->combine;
    info->num_shards = static_cast<std::uint32_t>(map_->owners.size());
    info->block_bytes = welcome_.block_bytes;
    info->message_bytes_max = config_.message_bytes_max;
    if (absl::Status coding = SetCoding(info.get()); !coding.ok()) return done(std::move(coding));
    done(std::move(info));
  };
}

// The description with the newest settings, and those of each clock.
void Core::TakeSettings(const proto::TableReply& reply, TableInfo* info) {
  info->spec = reply.spec;
  for (const proto::TableSettings& settings : reply.settings) {
    if (settings.decided) info->spec = proto::WithSettings(info->spec, settings);
  }
  // Readers have no clock, and get no map that only changes tables.
  if (config_.read_only && !runtime::Planted<"readers-wait-for-maps">()) return;
  std::shared_ptr<LiveSettings>& settings = settings_[reply.table];
  if (settings == nullptr) {
    settings = std::make_shared<LiveSettings>(reply.spec.consistency);
    settings->Follow(proto::SettingsOf(map_->settings, reply.table));
  }
  settings->Hear(reply.settings);
  info->settings = settings;
}

// One for each table, also where it is opened again: residuals are the worker's.
absl::Status Core::SetCoding(TableInfo* info) {
  LEEWAY_ASSIGN_OR_RETURN(compress::TableCodecs codecs, compress::TableCodecsOf(info->spec));
  if (!codecs.encodes() || config_.read_only) return absl::OkStatus();  // readers get values plain
  std::shared_ptr<TableCoding>& coding = codings_[info->id];
  if (coding == nullptr || runtime::Planted<"coding-anew-for-each-open">()) {
    coding =
        std::make_shared<TableCoding>(info->spec, std::move(codecs),
                                      PushPlace{.table = info->id,
                                                .rank = rank(),
                                                .num_shards = info->num_shards,
                                                .block_bytes = info->block_bytes,
                                                .residual_bytes_max = config_.residual_bytes_max});
    FollowCodecs();
  }
  info->coding = coding;
  if (info->spec.codec == compress::kAutomaticCodec) meter_->Watch(coding);
  return absl::OkStatus();
}

void Core::CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done) {
  absl::Status status = Usable();
  if (status.ok()) status = spec.Validate();
  if (!status.ok()) return done(status);
  if (config_.read_only) return OpenEqualTable(spec, timeout, std::move(done));
  status = compress::TableCodecsOf(spec).status();
  if (!status.ok()) return done(status);
  scheduler_requests_->CreateTable(spec, timeout, TableAnswer(std::move(done)));
}

// What a reader gets for a table that it describes as its workers do.
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
  absl::Status status = runtime::Planted<"reader-does-a-barrier">() ? Usable() : MayDo("a barrier");
  if (status.ok()) status = CheckName("a barrier's name", name, 0);
  if (status.ok() && (group < Group::kWorkers || group > Group::kAll)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a barrier's group is ", static_cast<int>(group), ", may be 1 to 3"));
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  scheduler_requests_->Barrier(group, name, timeout, std::move(done));
}

void Core::Call(std::uint32_t server_rank, const std::string& handler, runtime::Buffer request,
                absl::Duration timeout, Calls::Done done) {
  absl::Status status = MayDo("a call of a handler");
  if (status.ok()) status = CheckName("a handler's name", handler);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  calls_->Call(server_rank, handler, std::move(request), timeout, std::move(done));
}

void Core::SetCodec(const std::string& table, const std::string& codec, absl::Duration timeout,
                    SchedulerRequests::TextDone done) {
  absl::Status status = MayDo("changing a table's codec");
  if (status.ok()) status = CheckName("a table's name", table);
  if (status.ok()) status = CheckName("a codec", codec);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  scheduler_requests_->Admin(absl::StrCat("giving table '", table, "' codec ", codec), "codec",
                             {table, codec}, timeout, std::move(done));
}

void Core::ChangeTable(const std::string& table, const std::vector<std::string>& changes,
                       absl::Duration timeout, SchedulerRequests::TextDone done) {
  absl::Status status = MayDo("changing a table");
  if (status.ok()) status = CheckName("a table's name", table);
  for (const std::string& change : changes) {
    if (status.ok()) {
      status = proto::CheckText("a change of a table", change, 1, proto::kArgumentBytesMax);
    }
  }
  if (status.ok() && changes.size() >= proto::kArgumentsMax) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "a change of a table has ", changes.size(), " parts, may have ", proto::kArgumentsMax - 1));
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  std::vector<std::string> arguments = {table};
  arguments.insert(arguments.end(), changes.begin(), changes.end());
  scheduler_requests_->Admin(absl::StrCat("changing table '", table, "'"), "table",
                             std::move(arguments), timeout, std::move(done));
}

void Core::Checkpoint(const std::string& directory, absl::Duration timeout,
                      SchedulerRequests::TextDone done) {
  absl::Status status = MayDo("saving a checkpoint");
  if (status.ok()) {
    status = proto::CheckText("a checkpoint's folder", directory, 0, proto::kArgumentBytesMax);
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  scheduler_requests_->Admin(absl::StrCat("saving a checkpoint in '", directory, "'"),
                             "checkpoint-save", {directory, absl::StrCat("at:", clock())}, timeout,
                             [done = std::move(done)](absl::StatusOr<std::string> json) mutable {
                               done(json.ok() ? CheckpointPath(*json) : std::move(json));
                             });
}

SavedResiduals Core::Residuals() {
  const bool any =
      std::ranges::any_of(codings_, [](const auto& entry) { return entry.second->keeps_state(); });
  // Encoding what waits ends the order that it could still take.
  if (any && !runtime::Planted<"residuals-before-what-waits">()) requests_->FillOpen();
  SavedResiduals residuals;
  for (const auto& [table, coding] : codings_) {
    if (!coding->keeps_state()) continue;
    residuals[coding->pushes.table_name()] = coding->pushes.Save();
  }
  return residuals;
}

// All of them or none.
absl::Status Core::TakeResiduals(const SavedResiduals& saved) {
  LEEWAY_RETURN_IF_ERROR(MayDo("loading residuals"));
  std::vector<std::pair<PushEncoder*, const SavedTable*>> taken;
  for (const auto& [table, coding] : codings_) {
    const auto found = saved.find(coding->pushes.table_name());
    if (found == saved.end() || !coding->keeps_state()) continue;
    if (!runtime::Planted<"any-residuals-loaded">())
      LEEWAY_RETURN_IF_ERROR(coding->pushes.CheckSaved(found->second));
    taken.emplace_back(&coding->pushes, &found->second);
  }
  for (const auto& [pushes, residuals] : taken) pushes->Take(*residuals);
  return absl::OkStatus();
}

absl::Status Core::Clock() {
  LEEWAY_RETURN_IF_ERROR(MayDo("Clock()"));
  ticker_->Tick();
  return requests_->TakeRefusal();
}

WorkerStats Core::stats() const {
  WorkerStats stats;
  stats.staleness_histogram = staleness_.histogram();
  stats.max_staleness = staleness_.max();
  stats.staleness_violations = staleness_.violations();
  stats.bytes_pushed = requests_ == nullptr ? 0 : requests_->totals().pushed_bytes();
  stats.bytes_pulled = bytes_pulled_;
  for (const auto& [table, coding] : codings_) {
    if (!coding->keeps_residuals()) continue;
    stats.residual_norms[coding->pushes.table_name()] = coding->pushes.ResidualNorm();
  }
  stats.resends = requests_ == nullptr ? 0 : requests_->totals().resends();
  return stats;
}

}  // namespace leeway::worker
