#include "scheduler/control/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "node/membership.h"
#include "node/scheduler_url.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {
namespace {

constexpr absl::Duration kMissingLogInterval = absl::Seconds(10);
// How often tables whose codec is chosen automatically are looked at.
constexpr absl::Duration kChooseInterval = absl::Milliseconds(500);
// How often a change of a table's codec is announced again while a worker has not reached the one
// before: its pushes wait meanwhile.
constexpr absl::Duration kSwitchInterval = absl::Milliseconds(50);
// So the scheduler sends no more than a thousand maps a second that can wait, however many nodes.
constexpr absl::Duration kMapRestPerNode = absl::Milliseconds(1);

// Of the failure timeout: for how long a pair of servers is kept apart.
constexpr int kApartFirst = 4, kApartLongest = 64;

absl::Duration AtLeastOneMs(absl::Duration duration) {
  return std::max(duration, absl::Milliseconds(1));
}

Checkpoints::Options CheckpointOptions(const Config& config) {
  return {.directory = config.checkpoint_dir,
          .every = absl::Seconds(config.checkpoint_every_s),
          .every_clocks = config.checkpoint_every_clocks,
          .keep = config.checkpoint_keep,
          .full_every = config.checkpoint_full_every,
          .timeout = config.checkpoint_timeout,
          .resend_interval = AtLeastOneMs(config.resend_interval)};
}

std::string Rounded(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

}  // namespace

Scheduler::Impl::Impl(runtime::Host* host, runtime::Loop* loop, van::Factory* factory,
                      Config config)
    : host_(host),
      loop_(loop),
      factory_(factory),
      config_(std::move(config)),
      log_(loop),
      started_(loop->Now()),
      members_(config_.num_servers, config_.num_workers),
      planner_(config_.replication),
      apart_(kApartFirst * config_.failure_timeout, kApartLongest * config_.failure_timeout),
      late_servers_(AtLeastOneMs(config_.resend_interval), this),
      publisher_(&members_, &readers_, AtLeastOneMs(config_.resend_interval),
                 [this](const Node& node, const proto::ClusterMap& map) { SendMap(node, map); }),
      detector_(config_.failure_timeout, AtLeastOneMs(config_.heartbeat_interval)),
      barriers_(this,
                [this](std::uint32_t rank, const proto::BarrierRelease& release) {
                  if (const Node* worker = members_.workers()[rank]) SendTo(*worker, release);
                }),
      // Nine tenths, so that it is the scheduler who answers in time and says whom it waited for.
      catalogue_(this, AtLeastOneMs(config_.resend_interval), config_.request_timeout * 0.9,
                 [this](std::uint32_t id, const proto::AnyMessage& message) {
                   if (const Node* node = FindNode(id)) SendTo(*node, message);
                 }),
      admin_service_([this](van::PeerId peer, const proto::AdminReply& reply, std::string json) {
        van::Message raw;
        raw.header = proto::Encode(reply);
        raw.payload.push_back(runtime::Buffer::CopyOf(json));
        Send(peer, std::move(raw), "AdminReply");
      }),
      restoration_(
          config_.checkpoint_timeout, AtLeastOneMs(config_.resend_interval),
          [this](std::uint32_t id, const proto::AnyMessage& message) { Tell(id, message); },
          [this](std::uint32_t id) { return Describe(id); }),
      checkpoints_(host, loop, this, CheckpointOptions(config_)),
      switches_([this] { return LivingWorkers(); },
                [this] {
                  NextMap();
                  PublishSoon();
                }),
      table_changes_(
          this, AtLeastOneMs(config_.resend_interval), config_.request_timeout * 0.9,
          [this](std::uint32_t id, const proto::AnyMessage& message) { Tell(id, message); },
          [this] { return LivingWorkers(); },
          [this] {
            NextMap();
            PublishSoon();
          }) {
  admin_service_.Register("table",
                          [this](const auto& ask, const auto& args) { TableCommand(ask, args); });
  admin_service_.Register("codec",
                          [this](const auto& ask, const auto& args) { CodecCommand(ask, args); });
  admin_service_.Register("drain",
                          [this](const auto& ask, const auto& args) { DrainCommand(ask, args); });
  admin_service_.Register(
      "rebalance", [this](const auto& ask, const auto& args) { RebalanceCommand(ask, args); });
  admin_service_.Register("checkpoint-save",
                          [this](const auto& ask, const auto& args) { SaveCommand(ask, args); });
}

Scheduler::Impl::~Impl() {
  for (runtime::TimerId timer :
       {detector_timer_, resend_timer_, log_timer_, nobody_timer_, barrier_timer_, codec_timer_,
        switch_timer_, publish_timer_, urgent_timer_, plan_timer_, return_timer_, ending_timer_,
        grace_timer_}) {
    loop_->Cancel(timer);
  }
  for (const auto& [node, timer] : suspects_) loop_->Cancel(timer);
}

absl::Status Scheduler::Impl::Start(Done done) {
  identity_.role = Role::kScheduler;
  identity_.node = kSchedulerNode;
  identity_.incarnation = std::max<std::uint64_t>(1, host_->Random());
  identity_.cluster = std::max<std::uint64_t>(1, host_->Random());
  if (absl::Status recovered = Recover(); !recovered.ok()) return recovered;
  if (absl::Status opened = OpenCheckpoint(); !opened.ok()) return opened;
  van_ = factory_->New(loop_, identity_, van::LimitsFrom(config_), this);
  const std::string url = node::SchedulerUrl(config_.scheduler);
  absl::StatusOr<std::string> bound = van_->Listen(url);
  if (!bound.ok()) {
    return absl::Status(bound.status().code(),
                        absl::StrCat("the scheduler cannot listen on LEEWAY_SCHEDULER=",
                                     config_.scheduler, ": ", bound.status().message()));
  }
  address_ = *std::move(bound);
  done_ = std::move(done);
  runtime::LogInfo("scheduler of ", config_.num_servers, " servers and ", config_.num_workers,
                   " workers at ", address_);
  Every(AtLeastOneMs(config_.heartbeat_interval), &detector_timer_, &Impl::FindDead);
  Every(AtLeastOneMs(config_.resend_interval / 2), &resend_timer_, &Impl::ResendWhatIsUnanswered);
  Every(kMissingLogInterval, &log_timer_, &Impl::LogMissing);
  Every(kChooseInterval, &codec_timer_, &Impl::ChooseCodecs);
  Every(kSwitchInterval, &switch_timer_, &Impl::AnnounceSwitchesAgain);
  PutOffNobodyCame();
  if (!address_before_.empty()) GoOn();
  return absl::OkStatus();
}

void Scheduler::Impl::Stop(const absl::Status& why) {
  if (van_ == nullptr || !running()) return;
  End(why, why);
}

std::string Scheduler::Impl::StatusJson() const {
  return StatusToJson({.address = address_,
                       .now = Now(),
                       .started = started_,
                       .resident_bytes = host_->ResidentBytes(),
                       .cluster = identity_.cluster,
                       .replication = config_.replication,
                       .map = *maps_.newest(),
                       .planner = planner_,
                       .loads = loads_,
                       .members = members_,
                       .readers = readers_.size(),
                       .detector = detector_,
                       .barriers = barriers_,
                       .catalogue = catalogue_,
                       .switches = switches_,
                       .table_changes = table_changes_,
                       .codec_reasons = codec_reasons_,
                       .pinned = pinned_,
                       .protocol_errors = protocol_errors_,
                       .checkpoint = checkpoints_.view(),
                       .checkpoints = checkpoints_.history(),
                       .restoring = restoration_.loading() ? restoration_.Progress() : "",
                       .keeper = keeper_.get(),
                       .van = van_ == nullptr ? van::Counters() : van_->counters(),
                       .stalls = van_ == nullptr ? std::vector<van::Stall>() : van_->stalls()});
}

// ---- members ----

void Scheduler::Impl::Joined(Node* node) {
  const bool was_complete = members_.complete();
  if (!members_.UpdateComplete()) {
    PutOffNobodyCame();
  } else if (!was_complete) {
    loop_->Cancel(nobody_timer_);
    DealShards();
    if (restoration_.wanted()) BeginRestoration();
  }
  NextMap();
  if (members_.complete() && !was_complete) {
    runtime::LogInfo("the cluster is complete: ", Missing());
  } else if (node->late && node->role == Role::kServer) {
    catalogue_.ServerCame(node->id);
    late_servers_.Begin(node->id, catalogue_.tables(), Now());
  } else if (node->late) {
    loop_->Cancel(std::exchange(return_timer_, runtime::TimerId::kNone));
  }
  PublishSoon();
}

void Scheduler::Impl::NextMap() {
  maps_.Next(members_, planner_, switches_.entries(), table_changes_.entries());
  switches_.Published(maps_.newest()->version);
  table_changes_.Published(maps_.newest()->version);
}

// While the cluster is not complete nobody can do anything with its map, and sending it to all at
// each join would be a message for each pair of nodes. Changes of one turn of the loop go out as
// one map. So do, where there are many nodes, changes of workers alone (their epoch is the same):
// when they all leave one after the other, a map for each would be a message for each pair again.
void Scheduler::Impl::PublishSoon() {
  if (!members_.complete()) return;
  const bool can_wait = maps_.newest()->epoch == published_epoch_;
  const absl::Time when = can_wait ? std::max(Now(), rest_until_) : Now();
  if (publish_timer_ != runtime::TimerId::kNone) {
    if (publish_at_ <= when) return;
    loop_->Cancel(publish_timer_);
  }
  publish_at_ = when;
  publish_timer_ = loop_->After(when - Now(), [this] {
    publish_timer_ = runtime::TimerId::kNone;
    if (running()) Publish();
  });
}

void Scheduler::Impl::Publish() {
  published_epoch_ = maps_.newest()->epoch;
  rest_until_ = Now() + kMapRestPerNode * members_.Alive().size();
  publisher_.Publish(maps_.newest(), Now());
}

void Scheduler::Impl::Retire(Node* node, Node::State state, const std::string& why) {
  members_.Retire(node, state, why);
  detector_.Forget(node->id);
  Trust(node->id);
  if (moved_ != nullptr) moved_->Forget(node->id);
  if (node->role == Role::kWorker) catalogue_.Forget(node->id);
  const bool left = state == Node::State::kLeft;
  const std::string line = absl::StrCat(node->FullName(), left ? " has left: " : " is dead: ", why);
  left ? runtime::LogInfo(line) : runtime::LogWarning(line);

  if (node->role == Role::kServer) {
    ServerGone(*node, why);
  } else {
    NextMap();
  }
  proto::NodeDown down;
  down.node = node->id;
  down.role = node->role;
  down.rank = node->rank;
  down.incarnation = node->incarnation;
  down.left = left;
  down.reason = why;
  down.epoch = maps_.newest()->epoch;
  // That a worker has left is in the map, and there is no more to say of it.
  if (members_.complete() && !(left && node->role == Role::kWorker)) {
    for (const Node* other : members_.Alive()) SendTo(*other, down);
  }
  if (!left) SendTo(*node, down);  // should it live after all, it ends
  PublishSoon();
  if (node->role == Role::kWorker) {
    chooser_.Forget(node->id);
    if (!runtime::Planted<"dead-worker-decides-codec">()) switches_.WorkersChanged();
    if (!runtime::Planted<"dead-worker-decides-change">()) table_changes_.WorkersChanged();
    if (!runtime::Planted<"dead-worker-keeps-barrier">()) {
      barriers_.Gone({.rank = node->rank, .late = node->late ? node->incarnation : 0});
    }
  }
  if (!runtime::Planted<"dead-server-holds-up-table">()) catalogue_.ServersChanged();
  table_changes_.ServersChanged();
  ArmBarrierTimer();
  if (node->role == Role::kServer && restoration_.loading() &&
      !runtime::Planted<"restore-outlives-server">()) {
    return RestorationFailed(absl::UnavailableError(
        absl::StrCat("the cluster cannot start from ", restoration_.state().path, ": ", line)));
  }
  EndIfDone(!left);
}

void Scheduler::Impl::FindDead() {
  const std::vector<std::uint32_t> silent = detector_.Silent(Now());
  if (IsCutOff(!silent.empty())) return;
  for (std::uint32_t id : silent) {
    if (Node* const reader = readers_.Find(id)) ReaderIsSilent(*reader);
    Node* node = members_.Find(id);
    if (node == nullptr || !node->alive() || !running()) continue;
    Retire(node, Node::State::kDead,
           absl::StrCat("not heard for ", Rounded(detector_.SilentFor(id, Now())),
                        " (LEEWAY_FAILURE_TIMEOUT_MS=",
                        absl::ToInt64Milliseconds(config_.failure_timeout), ")"));
  }
}

// No server is heard any more (if there is but one, nor most of the others), and yet their
// connections have not broken (or, after its return, have not come to be): then it is the scheduler
// that is cut off. To take them for dead would be of use to nobody, since no server is left that
// could take over, and would end a cluster that is in the best of health.
bool Scheduler::Impl::HearsNobody() const {
  const absl::Duration quiet =
      std::min(3 * config_.heartbeat_interval, config_.failure_timeout / 2);
  std::size_t servers = 0, quiet_servers = 0, quiet_nodes = 0;
  bool connected = nobody_came_back_;
  const std::vector<Node*> alive = members_.Alive();
  for (const Node* node : alive) {
    const bool is_server = node->role == Role::kServer;
    servers += is_server;
    if (detector_.SilentFor(node->id, Now()) < quiet) continue;
    ++quiet_nodes;
    quiet_servers += is_server;
    connected = connected || node->peer != 0 || node->pulse != 0;
  }
  const bool most = servers > 1 || 2 * quiet_nodes > alive.size();
  return connected && quiet_servers == servers && most;
}

// Not for ever: as long as nodes go on without it.
bool Scheduler::Impl::IsCutOff(bool somebody_is_late) {
  if (runtime::Planted<"cut-off-not-seen">()) return false;
  if (!HearsNobody()) {
    if (!cut_off_since_.has_value()) return false;
    cut_off_since_.reset();
    runtime::LogInfo("nodes are heard again");
    // The rest have been cut off from us as well.
    if (!runtime::Planted<"rest-not-heard">()) {
      for (const Node* node : members_.Alive()) detector_.Heard(node->id, Now());
    }
    return true;
  }
  if (!cut_off_since_.has_value()) {
    if (!somebody_is_late) return false;
    cut_off_since_ = Now();
    runtime::LogWarning(
        "no server is heard any more: the scheduler takes itself for cut off, and nobody "
        "for dead, for ",
        absl::FormatDuration(config_.scheduler_timeout), " (LEEWAY_SCHEDULER_TIMEOUT_MS)");
  }
  return runtime::Planted<"cut-off-for-ever">() ||
         Now() - *cut_off_since_ < config_.scheduler_timeout;
}

// Its connections have broken. Haste helps only where somebody can take over.
void Scheduler::Impl::Suspect(const Node& node) {
  if (!running() || !node.alive() || node.peer != 0 || node.pulse != 0) return;
  if (node.role != Role::kServer || !members_.complete() || config_.replication < 2) return;
  const absl::Duration patience = std::min(config_.suspicion, config_.failure_timeout);
  const auto [suspect, first] = suspects_.try_emplace(node.id);
  if (!first) return;
  suspect->second = loop_->After(patience, [this, id = node.id, patience] {
    suspects_.erase(id);
    Node* silent = members_.Find(id);
    if (silent == nullptr || !silent->alive() || !running() || !CanBeTakenOver(*silent)) return;
    Retire(
        silent, Node::State::kDead,
        absl::StrCat("its connections broke, and it has not come back for ", Rounded(patience),
                     " (LEEWAY_SUSPICION_MS=", absl::ToInt64Milliseconds(config_.suspicion), ")"));
  });
}

// Whether another server has all that it keeps, and one can be reached. If none is, it is rather
// the scheduler whose connections broke; and of the last replica of a shard nobody is better off
// without it. Then silence decides (FindDead).
bool Scheduler::Impl::CanBeTakenOver(const Node& server) const {
  if (planner_.IsLastOf(server.rank) && !runtime::Planted<"last-replica-suspected">()) return false;
  const std::vector<Node*> servers = members_.Alive(Role::kServer);
  return std::ranges::any_of(servers, [&server](const Node* other) {
    return other->id != server.id && (runtime::Planted<"suspected-though-nobody-reached">() ||
                                      other->peer != 0 || other->pulse != 0);
  });
}

void Scheduler::Impl::Trust(std::uint32_t node) {
  if (runtime::Planted<"suspicion-stays">()) return;
  const auto suspect = suspects_.find(node);
  if (suspect == suspects_.end()) return;
  loop_->Cancel(suspect->second);
  suspects_.erase(suspect);
}

std::vector<std::uint32_t> Scheduler::Impl::Needed() const {
  std::vector<std::uint32_t> ranks;
  const std::vector<Node*>& workers = members_.workers();
  for (std::uint32_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank] == nullptr || workers[rank]->alive()) ranks.push_back(rank);
  }
  return ranks;
}

std::string Scheduler::Impl::Describe(std::uint32_t rank, absl::Time now) const {
  const Node* worker = members_.workers()[rank];
  if (worker == nullptr) return absl::StrCat("worker ", rank, ", which has not joined");
  return absl::StrCat(worker->FullName(), ", last heard ",
                      Rounded(detector_.SilentFor(worker->id, now)), " ago");
}

std::vector<std::uint32_t> Scheduler::Impl::LivingWorkers() const {
  std::vector<std::uint32_t> ids;
  for (const Node* worker : members_.Alive(Role::kWorker)) ids.push_back(worker->id);
  return ids;
}

std::vector<std::uint32_t> Scheduler::Impl::LivingServers() const {
  std::vector<std::uint32_t> ids;
  for (const Node* server : members_.Alive(Role::kServer)) ids.push_back(server->id);
  return ids;
}

std::string Scheduler::Impl::Describe(std::uint32_t id) const {
  for (const Node* server : members_.servers()) {
    if (server != nullptr && server->id == id) return server->FullName();
  }
  return absl::StrCat("node ", id);
}

std::string Scheduler::Impl::LastHeard(std::uint32_t id) const {
  return absl::StrCat("last heard ", Rounded(detector_.SilentFor(id, Now())), " ago");
}

std::string Scheduler::Impl::MostSilentWorker() const {
  const std::vector<Node*> workers = members_.Alive(Role::kWorker);
  const auto heard_before = [this](const Node* a, const Node* b) {
    return detector_.SilentFor(a->id, Now()) < detector_.SilentFor(b->id, Now());
  };
  const auto most = std::max_element(workers.begin(), workers.end(), heard_before);
  return most == workers.end() ? ""
                               : absl::StrCat((*most)->FullName(), ", ", LastHeard((*most)->id));
}

// ---- timers ----

void Scheduler::Impl::Every(absl::Duration interval, runtime::TimerId* timer,
                            void (Impl::*what)()) {
  *timer = loop_->After(interval, [this, interval, timer, what] {
    Every(interval, timer, what);
    (this->*what)();
  });
}

void Scheduler::Impl::ResendWhatIsUnanswered() {
  publisher_.Resend(Now());
  catalogue_.Tick(Now());
  table_changes_.Tick(Now());
  FinishRenewals();
  late_servers_.Tick(Now());
  if (absl::Status loading = restoration_.Tick(Now()); !loading.ok()) RestorationFailed(loading);
  if (running()) checkpoints_.Tick(Now());
  ExpireApart();
  if (keeper_ != nullptr) keeper_->Write();
  if (running()) NumberTables();
  TellWhereIAm();
}

void Scheduler::Impl::AnnounceSwitchesAgain() {
  if (!running()) return;
  switches_.Tick();
  table_changes_.AnnounceAgain();
}

absl::Status Scheduler::Impl::Ready() const {
  if (!members_.complete()) {
    return absl::UnavailableError(absl::StrCat("the cluster is not complete: ", Missing()));
  }
  if (restoration_.loading()) {
    return absl::UnavailableError(
        absl::StrCat("the cluster has not started yet: ", restoration_.Progress()));
  }
  return absl::OkStatus();
}

std::string Scheduler::Impl::Missing() const {
  return node::DescribeMissing(*maps_.newest(), config_.num_servers, config_.num_workers);
}

void Scheduler::Impl::LogMissing() {
  if (!members_.complete() && running()) runtime::LogInfo("waiting: ", Missing());
}

void Scheduler::Impl::PutOffNobodyCame() {
  loop_->Cancel(nobody_timer_);
  nobody_timer_ = loop_->After(config_.connect_timeout, [this] { NobodyCame(); });
}

void Scheduler::Impl::NobodyCame() {
  if (!running() || members_.complete()) return;
  const absl::Status why = absl::DeadlineExceededError(absl::StrCat(
      "the cluster is not complete, and nobody has joined for ",
      absl::FormatDuration(config_.connect_timeout), " (LEEWAY_CONNECT_TIMEOUT_MS): ", Missing()));
  End(why, why);
}

void Scheduler::Impl::ArmBarrierTimer() {
  loop_->Cancel(barrier_timer_);
  const absl::Time next = barriers_.NextDeadline();
  if (next == absl::InfiniteFuture()) return;
  barrier_timer_ = loop_->After(std::max(next - Now(), absl::ZeroDuration()), [this] {
    barriers_.Expire(Now());
    ArmBarrierTimer();
  });
}

// ---- the end ----

// When the last worker has left. One that died may come back, and is given some time to.
void Scheduler::Impl::EndIfDone(bool died) {
  if (!running() || !members_.complete() || !members_.Alive(Role::kWorker).empty()) return;
  if (return_timer_ != runtime::TimerId::kNone || saves_at_end_) return;
  if (!died || runtime::Planted<"no-time-to-come-back">()) {
    SaveAndEnd();
    return;
  }
  return_timer_ = loop_->After(config_.failure_timeout, [this] {
    return_timer_ = runtime::TimerId::kNone;
    if (running() && members_.Alive(Role::kWorker).empty()) SaveAndEnd();
  });
}

// A worker may come on top meanwhile: then it is not the end.
void Scheduler::Impl::SaveAndEnd() {
  if (!config_.checkpoint_at_end || runtime::Planted<"ends-unsaved">())
    return EndInOrder(absl::OkStatus());
  saves_at_end_ = true;
  runtime::LogInfo("all workers have left: a checkpoint is saved (LEEWAY_CHECKPOINT_AT_END)");
  Checkpoints::Wish wish;
  wish.at_end = true;
  checkpoints_.Save(std::move(wish), [this](const absl::StatusOr<Checkpoints::Saved>& saved) {
    saves_at_end_ = false;
    if (!running() || !members_.Alive(Role::kWorker).empty()) return;
    EndInOrder(saved.ok() ? absl::OkStatus()
                          : absl::Status(saved.status().code(),
                                         absl::StrCat("the checkpoint at the end "
                                                      "(LEEWAY_CHECKPOINT_AT_END) was not saved: ",
                                                      saved.status().message())));
  });
}

void Scheduler::Impl::EndInOrder(const absl::Status& saved) {
  std::vector<std::string> died;
  for (const Node* node : members_.Dead()) {
    died.push_back(absl::StrCat(node->FullName(), ": ", node->gone_because));
  }
  absl::Status result = saved;
  if (const std::size_t lost = planner_.Lost(); lost > 0) {
    result = absl::DataLossError(absl::StrCat(
        "the cluster has ended, but ", lost, " of ", planner_.chains().size(),
        " shards were lost with servers that went (LEEWAY_REPLICATION=", config_.replication, ")",
        died.empty() ? "" : "; dead: ", absl::StrJoin(died, "; ")));
  } else if (!died.empty() && saved.ok()) {
    result = absl::UnavailableError(
        absl::StrCat("the cluster has ended in order, but not everyone lived to see it; dead: ",
                     absl::StrJoin(died, "; ")));
  }
  End(absl::OkStatus(), result);
}

void Scheduler::Impl::End(const absl::Status& word, const absl::Status& result) {
  runtime::LogInfo("the cluster ends", word.ok() ? "" : ": ", word.message());
  ending_.emplace(word, result);
  checkpoints_.Stop();
  for (const Node* node : members_.Alive()) {
    // Who has gone from a cluster that never came to be has given up, and will not be back for the
    // word.
    if (members_.complete() || node->peer != 0) ending_->Await(node->id);
  }
  // Those that have left may still wait to hear that it is known.
  for (const Node* worker : members_.workers()) {
    if (worker != nullptr && worker->state == Node::State::kLeft && worker->peer != 0) {
      ending_->Await(worker->id);
    }
  }
  SayShutdown();
  grace_timer_ = loop_->After(kEndingGrace, [this] { Finish(); });
  FinishIfAllGone();
}

void Scheduler::Impl::SayShutdown() {
  for (std::uint32_t id : ending_->awaited()) {
    const Node* node = members_.Find(id);
    if (node != nullptr && node->alive()) SendTo(*node, proto::Shutdown{ending_->word()});
  }
  for (const Node* reader : readers_.All()) SendTo(*reader, proto::Shutdown{ending_->word()});
  if (runtime::Planted<"shutdown-said-once">()) return;
  ending_timer_ = loop_->After(kEndingResendInterval, [this] { SayShutdown(); });
}

void Scheduler::Impl::FinishIfAllGone() {
  if (!running() && ending_->over()) Finish();
}

void Scheduler::Impl::Finish() {
  loop_->Cancel(ending_timer_);
  loop_->Cancel(grace_timer_);
  if (done_ == nullptr) return;
  if (keeper_ != nullptr) keeper_->Forget();
  // Later, since whoever is told may destroy this object.
  loop_->Post([done = std::exchange(done_, nullptr), result = ending_->result()]() mutable {
    done(std::move(result));
  });
}

// ---- the public face ----

Scheduler::Scheduler(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config)
    : impl_(std::make_unique<Impl>(host, loop, factory, std::move(config))) {}
Scheduler::~Scheduler() = default;
absl::Status Scheduler::Start(Done done) { return impl_->Start(std::move(done)); }
void Scheduler::Stop(const absl::Status& why) { impl_->Stop(why); }
const std::string& Scheduler::address() const { return impl_->address(); }
std::string Scheduler::StatusJson() const { return impl_->StatusJson(); }
std::shared_ptr<const proto::ClusterMap> Scheduler::map() const { return impl_->map(); }
bool Scheduler::map_is_kept() const { return impl_->map_is_kept(); }

}  // namespace leeway::scheduler
