// The scheduler's inside: scheduler.cc has its life, from Start to the end of the cluster,
// scheduler_messages.cc what it does with each message, scheduler_chains.cc what becomes of the
// shards, scheduler_links.cc where servers cannot reach each other, scheduler_checkpoints.cc how
// they are saved and restored, scheduler_codecs.cc how tables get other codecs,
// scheduler_readers.cc who comes to read, and scheduler_recovery.cc how it goes on after a restart.
#ifndef LEEWAY_SCHEDULER_CONTROL_SCHEDULER_IMPL_H_
#define LEEWAY_SCHEDULER_CONTROL_SCHEDULER_IMPL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "runtime/loop/log_limiter.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/chains/shard_loads.h"
#include "scheduler/chains/unreachable_pairs.h"
#include "scheduler/checkpoints/checkpoints.h"
#include "scheduler/checkpoints/restoration.h"
#include "scheduler/control/admin_service.h"
#include "scheduler/control/scheduler.h"
#include "scheduler/control/shutdown.h"
#include "scheduler/control/status.h"
#include "scheduler/members/address_notice.h"
#include "scheduler/members/barriers.h"
#include "scheduler/members/failure_detector.h"
#include "scheduler/members/map_builder.h"
#include "scheduler/members/map_publisher.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/readers.h"
#include "scheduler/state/state_keeper.h"
#include "scheduler/tables/codec_chooser.h"
#include "scheduler/tables/codec_switches.h"
#include "scheduler/tables/late_servers.h"
#include "scheduler/tables/table_catalogue.h"
#include "scheduler/tables/table_changes.h"

namespace leeway::scheduler {

inline constexpr char kAskedFor[] = "it was asked for";  // why a table has its codec

class Scheduler::Impl final : private van::Handler,
                              private Barriers::Workers,
                              private TableCatalogue::Members,
                              private LateServers::Owner,
                              private Checkpoints::Cluster {
 public:
  Impl(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config);
  ~Impl() override;

  absl::Status Start(Done done);
  void Stop(const absl::Status& why);
  const std::string& address() const { return address_; }
  std::string StatusJson() const;
  std::shared_ptr<const proto::ClusterMap> map() const { return maps_.newest(); }
  bool map_is_kept() const { return keeper_ == nullptr || keeper_->is_up_to_date(); }

 private:
  // Who sent a message: a connection, and the node it belongs to, if that has joined.
  struct Sender {
    van::PeerId peer;
    van::Identity identity;
    Node* node;
  };

  // ---- van::Handler ----
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message raw) override;
  std::string NameOf(van::PeerId peer, const van::Identity& identity) const override;

  // ---- messages ----
  void On(const Sender& sender, const proto::Join& join);
  void On(const Sender& sender, const proto::Heartbeat& beat);
  void On(const Sender& sender, const proto::MapAck& ack);
  void On(const Sender& sender, const proto::Leave& leave);
  void On(const Sender& sender, const proto::BarrierEnter& enter);
  void On(const Sender& sender, const proto::CreateTable& create);
  void On(const Sender& sender, const proto::OpenTable& open);
  void On(const Sender& sender, const proto::InstallTableReply& reply);
  void On(const Sender& sender, const proto::StatusRequest& request);
  void On(const Sender& sender, const proto::ReplicaReady& ready);
  void On(const Sender& sender, const proto::LoadReport& report);
  void On(const Sender& sender, const proto::LinkReport& report);
  void On(const Sender& sender, const proto::Admin& admin);
  void On(const Sender& sender, const proto::CheckpointPrepared& prepared);
  void On(const Sender& sender, const proto::CheckpointWritten& written);
  void On(const Sender& sender, const proto::RestoreShardsReply& reply);
  template <class Message>
  void On(const Sender& sender, const Message& message);  // what nobody says to a scheduler

  bool MayBecomeFree(const Sender& sender, const proto::Join& join);
  void JoinAgain(Node* node, const Sender& sender, const proto::Join& join);
  void Refuse(const Sender& sender, absl::Status why);
  void NotYet(const Sender& sender, absl::Status why);  // why: UNAVAILABLE
  void Welcome(const Node& node);
  bool IsMember(const Sender& sender, Role role);
  bool MayOpenTables(const Sender& sender);
  bool IsComplete(const Node& worker, std::uint64_t request);
  void OutOfTurn(const Sender& sender, absl::string_view what);
  void LogProtocolError(std::uint64_t count, absl::string_view what, van::PeerId peer);

  // Says it once what it may rest on is kept (LEEWAY_SCHEDULER_STATE); SendNow: at once.
  void Send(van::PeerId peer, van::Message message, absl::string_view what);
  void SendNow(van::PeerId peer, van::Message message, absl::string_view what);
  void SendTo(van::PeerId peer, const proto::AnyMessage& message);
  void SendTo(const Node& node, const proto::AnyMessage& message);
  void SendMap(const Node& node, const proto::ClusterMap& map);

  // ---- readers (scheduler_readers.cc) ----
  Node* NodeOf(const van::Identity& identity);
  Node* FindNode(std::uint32_t id);
  void ReaderJoins(const Sender& sender, const proto::Join& join);
  void ReaderIsCutOff(const Node& reader);
  void ReaderIsSilent(const Node& reader);
  void ForgetReader(const Node& reader, const std::string& why);

  // ---- members ----
  void Joined(Node* node);
  void NextMap();
  void PublishSoon();
  void Publish();
  void Retire(Node* node, Node::State state, const std::string& why);
  void FindDead();
  bool HearsNobody() const;
  bool IsCutOff(bool somebody_is_late);
  void Suspect(const Node& node);
  bool CanBeTakenOver(const Node& server) const;
  void Trust(std::uint32_t node);
  std::vector<std::uint32_t> Needed() const override;
  std::string Describe(std::uint32_t rank, absl::Time now) const override;
  std::vector<std::uint32_t> LivingServers() const override;
  std::vector<std::uint32_t> LivingWorkers() const;
  std::string Describe(std::uint32_t node) const override;
  std::string LastHeard(std::uint32_t node) const override;
  absl::Status CheckCodecs(const TableSpec& spec) const override;
  std::string MostSilentWorker() const override;

  // ---- shards ----
  void DealShards();
  void ServerGone(const Node& server, const std::string& why);
  void HurryChains();
  void LacksReplicas(absl::string_view because);
  void SendTo(std::uint32_t node, const proto::InstallTable& install) override;
  void OnPrepared(std::uint32_t node) override;
  void OnUnfit(std::uint32_t node, const absl::Status& why) override;
  void PlanSoon();
  void Plan();
  void PutOffPlans(absl::Duration pause);
  void Balance(BalanceBy by);
  void FinishDrains();
  void FailStuckDrains();
  void FinishRebalances();
  void SayIfWholeAgain();
  void DrainCommand(const AdminService::Ask& ask, const AdminService::Arguments& arguments);
  void RebalanceCommand(const AdminService::Ask& ask, const AdminService::Arguments& arguments);
  absl::StatusOr<const Node*> ServerToDrain(const AdminService::Arguments& arguments) const;

  // ---- links between servers (scheduler_links.cc) ----
  const Node* OtherEnd(const Sender& sender, const proto::LinkReport& report) const;
  bool HeardBetweenReports(std::uint32_t shard, const Node& other);
  void NoteApart(const Node& server, const Node& other, const proto::LinkReport& report);
  void ExpireApart();

  // ---- checkpoints ----
  Checkpoints::Facts GetFacts() const override;
  void Tell(std::uint32_t node, const proto::AnyMessage& message) override;
  void SaveCommand(const AdminService::Ask& ask, const AdminService::Arguments& arguments);
  absl::Status OpenCheckpoint();
  void BeginRestoration();
  void LoadIfPrepared();
  void RestorationFailed(const absl::Status& why);

  // ---- codecs (scheduler_codecs.cc) ----
  void On(const Sender& sender, const proto::CodecReport& report);
  void ChooseCodecs();
  void CodecCommand(const AdminService::Ask& ask, const AdminService::Arguments& arguments);

  // ---- tables that change (scheduler_tables.cc) ----
  TableSpec SpecOf(const TableCatalogue::Entry& table) const override;
  std::vector<proto::TableSettings> SettingsOf(std::uint32_t table) const override;
  void TableCommand(const AdminService::Ask& ask, const AdminService::Arguments& arguments);
  bool Renews(const Node& worker, const proto::CreateTable& create);
  bool IsRenewed(const std::string& name) const;
  void AnswerLater(std::uint32_t worker, const proto::CreateTable& create);
  void FinishRenewals();

  // ---- after a restart ----
  absl::Status Recover();
  void GoOnFrom(State state);
  void GoOn();
  std::uint64_t Stamp() const;
  State Collect() const;
  std::string PublicAddress() const;
  void TellWhereIAm();
  bool recovered() const { return !address_before_.empty(); }
  void NumberTables();
  void EndAsOutdated(const std::string& evidence);
  bool IsOfUnknownPast(const Sender& sender);

  // ---- timers ----
  void Every(absl::Duration interval, runtime::TimerId* timer, void (Impl::*what)());
  void AnnounceSwitchesAgain();
  void ResendWhatIsUnanswered();
  void LogMissing();
  void NobodyCame();
  void PutOffNobodyCame();
  void ArmBarrierTimer();

  // ---- the end ----
  void EndIfDone(bool died);
  void SaveAndEnd();
  void EndInOrder(const absl::Status& saved);
  void End(const absl::Status& word, const absl::Status& result);
  void SayShutdown();
  void FinishIfAllGone();
  void Finish();
  bool running() const { return !ending_.has_value(); }

  absl::Time Now() const { return loop_->Now(); }
  // Why nothing can be done with the shards now.
  absl::Status Ready() const;
  std::string Missing() const;

  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const Config config_;
  runtime::LogLimiter log_;
  absl::Time started_;
  std::string address_;
  Done done_;
  van::Identity identity_;
  std::unique_ptr<van::Van> van_;
  std::map<van::PeerId, van::Identity> peers_;

  MembershipTable members_;
  Readers readers_;
  ChainPlanner planner_;
  ApartPairs apart_;
  struct HandoverReport {  // the latest of a shard
    absl::Time at = absl::InfinitePast();
    std::uint32_t new_head = 0;  // node id
  };
  std::map<std::uint32_t, HandoverReport> handover_reports_;  // by shard
  ShardLoads loads_;
  LateServers late_servers_;
  std::set<std::uint32_t> prepared_;  // of them: those that have all tables, and no map yet
  MapBuilder maps_;
  MapPublisher publisher_;
  FailureDetector detector_;
  Barriers barriers_;
  TableCatalogue catalogue_;
  AdminService admin_service_;
  std::map<std::uint32_t, runtime::TimerId> suspects_;  // by node
  std::optional<absl::Time> cut_off_since_;
  bool nobody_came_back_ =
      false;  // it goes on from a state that was kept, and has heard nobody yet
  std::map<van::PeerId, absl::Time> turned_away_;  // first, though it may ask again
  std::map<std::uint32_t, std::vector<AdminService::Ask>> drains_;  // by rank: who waits for it
  std::vector<AdminService::Ask> rebalances_;
  std::optional<absl::Time> not_whole_since_;  // replicas have gone
  std::string not_whole_because_;              // "a server had gone"
  bool as_whole_as_can_be_ = false;            // which has been said
  Restoration restoration_;
  Checkpoints checkpoints_;
  CodecSwitches switches_;
  TableChanges table_changes_;
  // Tables from a checkpoint that a worker has created with other settings: it is answered once all
  // servers know them.
  std::vector<std::pair<std::uint32_t, proto::CreateTable>> renewals_;  // with the worker's node
  CodecChooser chooser_;
  std::map<std::uint32_t, std::string> codec_reasons_;  // by table: of its last change
  std::set<std::uint32_t> pinned_;  // tables with codec auto that somebody has given another
  std::uint64_t pin_changes_ = 0;
  absl::Time next_plan_ = absl::InfinitePast();
  std::optional<Ending> ending_;
  ProtocolErrors protocol_errors_;

  std::unique_ptr<StateKeeper> keeper_;  // null: nothing is kept
  std::unique_ptr<MovedNotice> moved_;   // null: it is where it was
  std::string address_before_;           // of the restart; empty: there was none
  absl::Time recovered_at_;
  std::uint64_t tables_numbered_ = 0;  // TableCatalogue::changes, of the newest map
  bool state_is_newest_ = true;        // a member has taken a map of it; false: nobody has, as yet
  std::uint64_t plans_ = 0;            // that were ordered

  runtime::Buffer encoded_map_;  // of encoded_version_: the same bytes for all nodes
  std::uint64_t encoded_version_ = 0;

  std::uint64_t published_epoch_ = 0;
  absl::Time publish_at_;                         // while that timer runs
  absl::Time rest_until_ = absl::InfinitePast();  // before which no map goes out that can wait

  bool saves_at_end_ = false;  // the last worker has left, a checkpoint is being saved
  runtime::TimerId detector_timer_{}, resend_timer_{}, log_timer_{}, nobody_timer_{},
      barrier_timer_{}, codec_timer_{}, switch_timer_{}, publish_timer_{}, urgent_timer_{},
      plan_timer_{}, return_timer_{}, ending_timer_{}, grace_timer_{};
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_SCHEDULER_IMPL_H_
