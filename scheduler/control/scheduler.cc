#include "scheduler/control/scheduler.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "node/joining.h"
#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"
#include "runtime/loop/timer.h"
#include "scheduler/control/cluster_end.h"
#include "scheduler/control/dispatcher.h"
#include "scheduler/control/member_service.h"
#include "scheduler/control/recovery.h"
#include "scheduler/control/services.h"
#include "scheduler/control/status.h"

namespace leeway::scheduler {
namespace {

constexpr absl::Duration kMissingLogInterval = absl::Seconds(10);
// How often codecs are compared for tables whose codec is chosen automatically.
constexpr absl::Duration kChooseInterval = absl::Milliseconds(500);
// How often a change of a table's codec is announced again while a worker has not reached the one
// before: its pushes wait meanwhile.
constexpr absl::Duration kSwitchInterval = absl::Milliseconds(50);

absl::Duration AtLeastOneMs(absl::Duration duration) {
  return std::max(duration, absl::Milliseconds(1));
}

}  // namespace

// Owns the services, answers what they ask about the cluster as a whole, and turns them by timers.
class Scheduler::Impl final : private ClusterLife, private ClusterMaps::Source {
 public:
  Impl(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config,
       Additions additions);
  ~Impl() override {
    if (additions_.on_end != nullptr) additions_.on_end();
  }

  absl::Status Start(Done done);
  void Stop(const absl::Status& why);
  const std::string& address() const { return address_; }
  std::string StatusJson() const { return StatusToJson(services_, address_, started_); }
  std::shared_ptr<const proto::ClusterMap> map() const { return maps_.newest(); }
  bool map_is_kept() const {
    return recovery_.keeper() == nullptr || recovery_.keeper()->is_up_to_date();
  }

 private:
  // ---- ClusterLife ----
  bool running() const override { return end_.running(); }
  absl::Status Ready() const override;
  bool loading() const override { return restoration_.loading(); }
  bool IsLastReplica(std::uint32_t rank) const override { return chains_.planner().IsLastOf(rank); }
  void Retire(Node* node, Node::State state, const std::string& why) override {
    member_service_.Retire(node, state, why);
  }
  void OnReaderSilent(const Node& reader) override { member_service_.OnReaderSilent(reader); }
  void Fail(const absl::Status& why) override { end_.End(why, why); }

  // ---- ClusterMaps::Source ----
  const std::vector<proto::Chain>& Chains() const override { return chains_.planner().chains(); }
  std::vector<proto::CodecSwitch> Codecs() const override { return codecs_.switches().entries(); }
  std::vector<proto::TableSettings> Settings() const override {
    return tables_.table_changes().entries();
  }
  void OnNewVersion(std::uint64_t version) override {
    codecs_.switches()->Published(version);
    tables_.table_changes()->Published(version);
    if (additions_.on_map != nullptr) additions_.on_map(*maps_.newest());
  }

  absl::Status IsWhole() const;
  Checkpoints::Facts CheckpointFacts() const;
  Publications::Facts PublicationFacts() const;
  void TellAll(const proto::Published& published);
  void RegisterCommands();
  void Every(absl::Duration interval, std::function<void()> what);
  void ResendWhatIsUnanswered();
  void AnnounceChangesAgain();

  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const Config config_;
  const Additions additions_;
  const absl::Time started_;
  const Services services_;
  std::string address_;
  van::Identity identity_;
  Dispatcher dispatcher_;
  std::unique_ptr<van::Van> van_;

  MembershipTable members_;
  NodeSender sender_;
  ProtocolErrors errors_;
  AdminService admin_;
  ClusterMaps maps_;
  Liveness liveness_;
  Barriers barriers_;
  TableService tables_;
  CodecService codecs_;
  ChainController chains_;
  Checkpoints checkpoints_;
  Restoration restoration_;
  Publications publications_;
  MemberService member_service_;
  ClusterEnd end_;
  Recovery recovery_;
  std::vector<std::unique_ptr<runtime::Timer>> periodic_;
};

Scheduler::Impl::Impl(runtime::Host* host, runtime::Loop* loop, van::Factory* factory,
                      Config config, Additions additions)
    : host_(host),
      loop_(loop),
      factory_(factory),
      config_(std::move(config)),
      additions_(std::move(additions)),
      started_(loop->Now()),
      services_{.config = &config_,
                .host = host,
                .loop = loop,
                .identity = &identity_,
                .members = &members_,
                .sender = &sender_,
                .liveness = &liveness_,
                .maps = &maps_,
                .barriers = &barriers_,
                .tables = &tables_,
                .codecs = &codecs_,
                .chains = &chains_,
                .checkpoints = &checkpoints_,
                .restoration = &restoration_,
                .publications = &publications_,
                .admin = &admin_,
                .errors = &errors_,
                .life = this,
                .member_service = &member_service_,
                .recovery = &recovery_,
                .end = &end_},
      dispatcher_(&services_, [this] { return StatusJson(); }),
      members_(config_.num_servers, config_.num_workers),
      sender_(&members_),
      errors_(loop, &sender_),
      admin_([this](van::PeerId peer, const proto::AdminReply& reply, std::string json) {
        van::Message raw;
        raw.header = proto::Encode(reply);
        raw.payload.push_back(runtime::Buffer::CopyOf(json));
        sender_.Send(peer, std::move(raw), "AdminReply");
      }),
      maps_(loop, &members_, this, AtLeastOneMs(config_.resend_interval),
            [this](const Node& node, const proto::ClusterMap& map) { sender_.SendMap(node, map); }),
      liveness_(&config_, loop, &members_, this),
      barriers_(
          loop, &members_, [this] { return members_.AwaitedWorkers(); },
          [this](const Node& worker, const proto::BarrierRelease& release) {
            sender_.SendTo(worker, release);
          }),
      tables_(loop, &members_, &sender_, &maps_, this,
              {.resend_interval = AtLeastOneMs(config_.resend_interval),
               // Nine tenths, so that the scheduler answers before the worker's own deadline, and
               // names the servers that it waited for.
               .install_timeout = config_.request_timeout * 0.9,
               .start_clock = [this] { return restoration_.state().clock; },
               .on_prepared =
                   [this](std::uint32_t server) { member_service_.ServerPrepared(server); }}),
      codecs_(&members_, tables_.catalogue(), this, [this] { maps_.ChangeAndPublish(); }),
      chains_(&config_, loop, &members_, &sender_, &maps_, this),
      checkpoints_(
          &config_, host, loop, &members_, [this] { return CheckpointFacts(); },
          [this](std::uint32_t node, const proto::AnyMessage& message) {
            sender_.SendToNode(node, message);
          }),
      restoration_(&config_, host, loop, &members_, &sender_, &maps_, &tables_, this),
      publications_(
          &config_, loop, &members_, [this] { return PublicationFacts(); },
          [this](std::uint32_t node, const proto::AnyMessage& message) {
            sender_.SendToNode(node, message);
          },
          [this](const proto::Published& published) { TellAll(published); }),
      member_service_(&services_),
      end_(&services_),
      recovery_(&services_) {
  RegisterCommands();
}

void Scheduler::Impl::RegisterCommands() {
  using Arguments = AdminService::Arguments;
  using Answer = AdminService::Answer;
  admin_.Register("table", [this](const Arguments& arguments, const Answer& answer) {
    tables_.Command(arguments, answer);
  });
  admin_.Register("codec", [this](const Arguments& arguments, const Answer& answer) {
    codecs_.Command(arguments, answer);
  });
  admin_.Register("drain", [this](const Arguments& arguments, const Answer& answer) {
    chains_.commands()->Drain(arguments, answer);
  });
  admin_.Register("rebalance", [this](const Arguments& arguments, const Answer& answer) {
    chains_.commands()->Rebalance(arguments, answer);
  });
  admin_.Register("checkpoint-save", [this](const Arguments& arguments, const Answer& answer) {
    checkpoints_.SaveCommand(arguments, answer);
  });
  admin_.Register("publish", [this](const Arguments& arguments, const Answer& answer) {
    publications_.Command(arguments, answer);
  });
  admin_.Register("model", [this](const Arguments& arguments, const Answer& answer) {
    publications_.Describe(arguments, answer);
  });
  for (const auto& [command, handler] : additions_.commands) admin_.Register(command, handler);
}

absl::Status Scheduler::Impl::Start(Done done) {
  if (additions_.on_start != nullptr) additions_.on_start(loop_);
  identity_.role = Role::kScheduler;
  identity_.node = kSchedulerNode;
  identity_.incarnation = std::max<std::uint64_t>(1, host_->Random());
  identity_.cluster = std::max<std::uint64_t>(1, host_->Random());
  if (absl::Status recovered = recovery_.Open(); !recovered.ok()) return recovered;
  if (absl::Status opened = restoration_.Open(recovery_.restarted()); !opened.ok()) return opened;
  van_ = factory_->New(loop_, identity_, van::LimitsFrom(config_), &dispatcher_);
  sender_.Open(van_.get());
  const std::string url = node::SchedulerUrl(config_.scheduler);
  absl::StatusOr<std::string> bound = van_->Listen(url);
  if (!bound.ok()) {
    return absl::Status(bound.status().code(),
                        absl::StrCat("the scheduler cannot listen on LEEWAY_SCHEDULER=",
                                     config_.scheduler, ": ", bound.status().message()));
  }
  address_ = *std::move(bound);
  recovery_.SetAddress(address_);
  end_.SetDone(std::move(done));
  runtime::LogInfo("scheduler of ", config_.num_servers, " servers and ", config_.num_workers,
                   " workers of cluster ", absl::Hex(identity_.cluster), " at ", address_);
  Every(AtLeastOneMs(config_.heartbeat_interval), [this] { liveness_.FindDead(); });
  Every(AtLeastOneMs(config_.resend_interval / 2), [this] { ResendWhatIsUnanswered(); });
  Every(kMissingLogInterval, [this] { member_service_.LogMissing(); });
  Every(kChooseInterval, [this] { codecs_.Choose(); });
  Every(kSwitchInterval, [this] { AnnounceChangesAgain(); });
  member_service_.PutOffNobodyCame();
  recovery_.GoOn();
  return absl::OkStatus();
}

void Scheduler::Impl::Stop(const absl::Status& why) {
  if (van_ == nullptr || !running()) return;
  end_.End(why, why);
}

absl::Status Scheduler::Impl::Ready() const {
  if (!members_.complete()) {
    return absl::UnavailableError(
        absl::StrCat("the cluster is not complete: ", member_service_.Missing()));
  }
  if (restoration_.loading()) {
    return absl::UnavailableError(
        absl::StrCat("the cluster has not started yet: ", restoration_.Progress()));
  }
  return absl::OkStatus();
}

// Ready, and no shard is lost.
absl::Status Scheduler::Impl::IsWhole() const {
  absl::Status ready = Ready();
  const ChainPlanner& planner = chains_.planner();
  if (ready.ok() && planner.Lost() > 0) {
    ready = absl::FailedPreconditionError(
        absl::StrCat(planner.Lost(), " of ", planner.chains().size(),
                     " shards are lost: the rest of the model is not worth saving"));
  }
  return ready;
}

Checkpoints::Facts Scheduler::Impl::CheckpointFacts() const {
  const ChainPlanner& planner = chains_.planner();
  const TableChanges& changes = tables_.table_changes();
  Checkpoints::Facts facts;
  facts.ready = IsWhole();
  facts.cluster = identity_.cluster;
  facts.epoch = maps_.newest()->epoch;
  facts.num_shards = static_cast<std::uint32_t>(planner.chains().size());
  facts.block_bytes = config_.block_bytes;
  facts.servers = members_.AliveIds(Role::kServer);
  const auto codec_changed = [this](std::uint32_t table) {
    return std::ranges::any_of(maps_.newest()->codecs, [table](const auto& change) {
      return change.table == table && change.decided;
    });
  };
  for (const TableCatalogue::Entry& table : tables_.catalogue().tables()) {
    if (!table.installed) continue;
    facts.tables.push_back({.id = table.id,
                            .spec = changes.SpecOf(table),
                            .combine = table.combine,
                            .codec_changed = codec_changed(table.id)});
    facts.bounded = facts.bounded || changes.IsEverBounded(table);
  }
  std::uint64_t bytes = 0;  // of all replicas
  for (const auto& [rank, server] : planner.servers()) {
    bytes += chains_.loads().BytesOn(rank);
  }
  facts.model_bytes = bytes / std::max<std::uint32_t>(1, config_.replication);
  std::sort(facts.tables.begin(), facts.tables.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return facts;
}

Publications::Facts Scheduler::Impl::PublicationFacts() const {
  const ChainPlanner& planner = chains_.planner();
  Publications::Facts facts;
  facts.ready = IsWhole();
  facts.epoch = maps_.newest()->epoch;
  facts.num_shards = static_cast<std::uint32_t>(planner.chains().size());
  facts.servers = members_.AliveIds(Role::kServer);
  for (const TableCatalogue::Entry& table : tables_.catalogue().tables()) {
    if (table.installed) facts.tables.emplace(table.id, table.spec.name);
  }
  return facts;
}

// Servers first: a reader asks them for the version that it has heard of.
void Scheduler::Impl::TellAll(const proto::Published& published) {
  for (const Role role : {Role::kServer, Role::kWorker}) {
    for (const Node* const node : members_.Alive(role)) sender_.SendTo(*node, published);
  }
  for (const Node* const reader : members_.readers().All()) sender_.SendTo(*reader, published);
}

// ---- timers ----

// Calls `what` at every interval until this object is destroyed.
void Scheduler::Impl::Every(absl::Duration interval, std::function<void()> what) {
  const std::size_t index = periodic_.size();
  periodic_.push_back(
      std::make_unique<runtime::Timer>(loop_, [this, index, interval, what = std::move(what)] {
        periodic_[index]->SetBy(loop_->Now() + interval);
        what();
      }));
  periodic_[index]->SetBy(loop_->Now() + interval);
}

void Scheduler::Impl::ResendWhatIsUnanswered() {
  maps_.publisher()->Resend(loop_->Now());
  tables_.Tick();
  restoration_.Tick();
  if (running()) checkpoints_.Tick();
  if (running()) publications_.Tick();
  chains_.links()->Expire();
  recovery_.Write();
  if (running()) recovery_.NumberTables();
  recovery_.TellAddress();
}

void Scheduler::Impl::AnnounceChangesAgain() {
  if (!running()) return;
  codecs_.switches()->Tick();
  tables_.table_changes()->AnnounceAgain();
}

// ---- the public face ----

Scheduler::Scheduler(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config,
                     Additions additions)
    : impl_(std::make_unique<Impl>(host, loop, factory, std::move(config), std::move(additions))) {}
Scheduler::~Scheduler() = default;
absl::Status Scheduler::Start(Done done) { return impl_->Start(std::move(done)); }
void Scheduler::Stop(const absl::Status& why) { impl_->Stop(why); }
const std::string& Scheduler::address() const { return impl_->address(); }
std::string Scheduler::StatusJson() const { return impl_->StatusJson(); }
std::shared_ptr<const proto::ClusterMap> Scheduler::map() const { return impl_->map(); }
bool Scheduler::map_is_kept() const { return impl_->map_is_kept(); }

}  // namespace leeway::scheduler
