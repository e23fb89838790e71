#include "ps/control/server.h"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/encoding/encoding.h"
#include "ps/control/endpoints.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {
namespace {

// Of the scheduler's failure timeout, from the sending of a heartbeat that it has answered: so long
// a server may take itself for the head without asking. The clock of a server may run at half the
// speed of the scheduler's, and no slower (docs/consistency.md).
constexpr double kLeaseShare = 0.5;

// The parts of a table on each data thread. Every thread has an updater of its own, so that a
// user's need not be safe to call from several.
struct Kit {
  std::vector<std::unique_ptr<Updater>> updaters;
  Updater::Combine combine = Updater::Combine::kSum;
};

absl::StatusOr<Kit> MakeKit(const TableSpec& spec, std::size_t threads) {
  Kit kit;
  for (std::size_t i = 0; i < threads; ++i) {
    absl::StatusOr<std::unique_ptr<Updater>> updater = MakeUpdater(spec);
    if (!updater.ok()) return runtime::OfArgument(updater.status());
    LEEWAY_RETURN_IF_ERROR(CheckConsistency(spec, **updater));
    kit.combine = (*updater)->combine();
    kit.updaters.push_back(*std::move(updater));
  }
  return kit;
}

}  // namespace

Server::Server(Setup setup)
    : setup_(std::move(setup)),
      incarnation_(setup_.host->Random()),
      table_memory_(setup_.config.table_bytes_max),
      send_queue_(std::make_shared<runtime::SharedByteBudget>(setup_.config.send_queue_bytes_max)),
      control_(setup_.host->Spawn("server control")),
      seats_(setup_.config.server_threads),
      endpoints_(setup_.config.server_threads),
      loads_(setup_.config.server_threads),
      drain_timer_(control_->loop(),
                   [this] {
                     DrainFailed(absl::DeadlineExceededError("LEEWAY_DRAIN_TIMEOUT_MS has passed"));
                   }),
      ask_timer_(control_->loop(), [this] { AskToBeDrained(); }) {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].runner = setup_.host->Spawn(absl::StrCat("server data ", i));
  }
  checkpoints_ = std::make_unique<ServerCheckpoints>(ServerCheckpoints::Setup{
      .host = setup_.host,
      .loop = control_->loop(),
      .on_every_thread = [this](auto task, auto done) { OnEveryThread(task, std::move(done)); },
      .tell_scheduler = [this](proto::AnyMessage message) { TellScheduler(std::move(message)); }});
  publications_ = std::make_unique<ServerPublications>(ServerPublications::Setup{
      .loop = control_->loop(),
      .on_every_thread = [this](auto task, auto done) { OnEveryThread(task, std::move(done)); },
      .tell_scheduler = [this](proto::AnyMessage message) { TellScheduler(std::move(message)); }});
}

Server::~Server() {
  control_->Stop();
  for (Seat& seat : seats_) seat.runner->Stop();
  control_->Join();
  for (Seat& seat : seats_) seat.runner->Join();
  // The loops stand still, so what lives on them may be taken apart from here.
  checkpoints_.reset();
  membership_.reset();
  for (Seat& seat : seats_) seat.thread.reset();
}

void Server::Start(absl::AnyInvocable<void(absl::Status)> over) {
  control_->loop()->Post([this, over = std::move(over)]() mutable {
    if (final_.has_value()) return over(*final_);  // stopped before it started
    over_ = std::move(over);
    for (std::uint32_t i = 0; i < seats_.size(); ++i) Bind(i);
  });
}

void Server::Stop(absl::Status why) {
  control_->loop()->Post([this, why = std::move(why)]() mutable { Leave(std::move(why)); });
}

void Server::Leave(absl::Status why) {
  if (final_.has_value() || leaving_) return;
  if (membership_ == nullptr) return Finish(std::move(why));
  leaving_ = true;
  drain_timer_.Clear();
  ask_timer_.Clear();
  std::string reason(why.message());
  membership_->Leave(
      setup_.config.failure_timeout,
      [this, why = std::move(why)](absl::Status left) mutable {
        if (!left.ok()) runtime::LogWarning("leaving: ", left.message());
        Finish(std::move(why));
      },
      std::move(reason));
}

// ---- leaving without its shards ----

void Server::Drain(absl::Status why) {
  control_->loop()->Post([this, why = std::move(why)]() mutable {
    if (final_.has_value() || leaving_ || draining_because_.has_value()) return;
    const absl::Duration patience = setup_.config.drain_timeout;
    if (!rank_.has_value() || patience <= absl::ZeroDuration()) return Leave(std::move(why));
    runtime::LogInfo(why.message(), "; it ends once its shards are on other servers, or after ",
                     runtime::FormatDuration(patience),
                     " (LEEWAY_DRAIN_TIMEOUT_MS); a second signal ends it at once");
    draining_because_ = std::move(why);
    drain_timer_.SetAfter(patience);
    AskToBeDrained();
  });
}

// Until the scheduler answers or shuts this server down, which it does once nothing is left here.
// It says which process it is: it may be taken for dead, and another one have its rank.
void Server::AskToBeDrained() {
  std::vector<std::string> itself = {absl::StrCat("server:", *rank_)};
  itself.push_back(absl::StrCat("node:", node_));
  const absl::Status sent = membership_->Send(
      proto::Admin{.request = 1, .command = "drain", .arguments = std::move(itself)});
  if (!sent.ok()) runtime::LogDebug("asking to be drained: ", sent.message());
  ask_timer_.SetAfter(setup_.config.resend_interval);
}

void Server::OnSchedulerText(proto::AnyMessage message, absl::string_view /*text*/) {
  const auto* reply = std::get_if<proto::AdminReply>(&message);
  if (reply != nullptr && !reply->result.ok()) DrainFailed(reply->result);
}

void Server::DrainFailed(const absl::Status& reason) {
  if (!draining_because_.has_value() || leaving_) return;
  runtime::LogWarning("leaving with the shards that it still has: ", reason.message());
  Leave(*draining_because_);
}

// ---- the beginning ----

void Server::Bind(std::uint32_t index) {
  seats_[index].runner->loop()->Post([this, index] {
    Seat& seat = seats_[index];
    seat.thread = std::make_unique<DataThread>(DataThread::Setup{
        .config = setup_.config,
        .index = index,
        .incarnation = incarnation_,
        .loop = seat.runner->loop(),
        .factory = setup_.factory,
        .options = setup_.options,
        .table_memory = &table_memory_,
        .tell_scheduler =
            [this, index](proto::AnyMessage message) {
              if (auto* const load = std::get_if<proto::LoadReport>(&message)) {
                return TellLoad(index, std::move(*load));
              }
              TellScheduler(std::move(message));
            },
        .scheduler_moved = [this](const proto::SchedulerMoved& moved) { LookElsewhere(moved); },
        .give_up = [this](const absl::Status& why) { GiveUp(why); },
        .straggler_lines = straggler_lines_,
        .send_queue = send_queue_});
    absl::StatusOr<std::string> endpoint =
        ListenWithin(setup_.config, setup_.factory->AnyAddress(BindHost(setup_.config)),
                     [&](const std::string& address) { return seat.thread->Listen(address); });
    control_->loop()->Post([this, index, endpoint = std::move(endpoint)]() mutable {
      OnBound(index, std::move(endpoint));
    });
  });
}

void Server::OnBound(std::uint32_t index, absl::StatusOr<std::string> endpoint) {
  if (endpoint.ok()) {
    endpoints_[index] = AnnouncedEndpoint(setup_.config, *endpoint);
  } else {
    bind_failure_ = endpoint.status();
  }
  if (++bound_ < seats_.size() || final_.has_value()) return;
  bind_failure_.ok() ? JoinCluster() : Finish(bind_failure_);
}

void Server::JoinCluster() {
  membership_.reset(new node::Membership({.config = setup_.config,
                                          .role = Role::kServer,
                                          .incarnation = incarnation_,
                                          .endpoints = endpoints_,
                                          .host = setup_.host,
                                          .loop = control_->loop(),
                                          .factory = setup_.factory},
                                         this));
  membership_->Start();
}

void Server::OnWelcome(const proto::Welcome& welcome) {
  rank_ = welcome.rank;
  node_ = welcome.node;
  failure_timeout_ = absl::Milliseconds(welcome.failure_timeout_ms);
  SetLease(absl::InfinitePast());
  if (setup_.on_welcome) setup_.on_welcome(welcome);
  runtime::LogInfo("server ", welcome.rank, " of the cluster of ", membership_->scheduler_address(),
                   " serves at ", absl::StrJoin(endpoints_, ", "));
  OnEveryThread([welcome](DataThread* thread, std::uint32_t) { thread->SetPlace(welcome); }, [] {});
}

// ---- what the scheduler says ----

void Server::OnEveryThread(std::function<void(DataThread*, std::uint32_t)> task, Seen done) {
  struct Round {
    std::size_t missing;
    Seen done;
  };
  auto round = std::make_shared<Round>(Round{seats_.size(), std::move(done)});
  for (std::uint32_t i = 0; i < seats_.size(); ++i) {
    seats_[i].runner->loop()->Post([this, i, task, round] {
      if (seats_[i].thread != nullptr) task(seats_[i].thread.get(), i);
      control_->loop()->Post([round] {
        if (--round->missing == 0) round->done();
      });
    });
  }
}

// The scheduler hears of it once all threads act by the map; they may have to wait for other
// servers.
void Server::OnMap(std::shared_ptr<const proto::ClusterMap> map) {
  auto missing = std::make_shared<std::size_t>(seats_.size());
  for (Seat& seat : seats_) {
    seat.runner->loop()->Post([this, &seat, map, missing] {
      if (seat.thread == nullptr) return;
      seat.thread->TakeMap(map, [this, version = map->version, missing] {
        control_->loop()->Post([this, version, missing] {
          const bool all = --*missing == 0;
          if (all && membership_ != nullptr) membership_->AckMap(version);
        });
      });
    });
  }
}

void Server::GiveUp(const absl::Status& why) {
  control_->loop()->Post([this, why] { Finish(why); });
}

void Server::LookElsewhere(const proto::SchedulerMoved& moved) {
  control_->loop()->Post([this, moved] {
    if (membership_ != nullptr) membership_->OnSchedulerMoved(moved);
  });
}

void Server::TellScheduler(proto::AnyMessage message) {
  control_->loop()->Post([this, message = std::move(message)] {
    // A message that is lost now is repeated.
    if (membership_ != nullptr) membership_->Send(message).IgnoreError();
  });
}

// The scheduler takes a report for all that the server has: it is told of all threads together,
// once for each time that the first of them reports.
void Server::TellLoad(std::uint32_t index, proto::LoadReport report) {
  control_->loop()->Post([this, index, report = std::move(report)]() mutable {
    std::map<std::uint32_t, proto::ShardLoad> all;
    loads_[index] = std::move(report.shards);
    for (const std::vector<proto::ShardLoad>& of_thread : loads_) {
      for (const proto::ShardLoad& load : of_thread) all[load.shard] = load;
    }
    if (index != 0 || membership_ == nullptr) return;
    proto::LoadReport told;
    for (const auto& [shard, load] : all) told.shards.push_back(load);
    const bool any = std::exchange(load_told_, !told.shards.empty());
    if (any || load_told_) membership_->Send(told).IgnoreError();
  });
}

void Server::OnNodeDown(const proto::NodeDown& down) {
  runtime::LogInfo(Name(down.role), " ", down.rank,
                   down.left ? " has left: " : " is down: ", down.reason);
}

void Server::OnSchedulerMessage(proto::AnyMessage message) {
  if (auto* install = std::get_if<proto::InstallTable>(&message)) {
    Install(*install);
  } else if (auto* failed = std::get_if<proto::InstallTableReply>(&message)) {
    runtime::LogInfo("table ", failed->table, " was not created: ", failed->result.message());
    OnEveryThread(
        [id = failed->table](DataThread* thread, std::uint32_t) { thread->ForgetTable(id); },
        [] {});
  } else if (auto* prepare = std::get_if<proto::CheckpointPrepare>(&message)) {
    checkpoints_->On(*prepare);
  } else if (auto* cut = std::get_if<proto::CheckpointCut>(&message)) {
    checkpoints_->On(*cut);
  } else if (auto* restore = std::get_if<proto::RestoreShards>(&message)) {
    checkpoints_->On(*restore);
  } else if (auto* publish = std::get_if<proto::Publish>(&message)) {
    publications_->On(*publish);
  } else if (auto* published = std::get_if<proto::Published>(&message)) {
    publications_->On(*published);
  } else if (auto* lead = std::get_if<proto::LeadNow>(&message)) {
    OnEveryThread([it = *lead](DataThread* thread, std::uint32_t) { thread->OnLeadNow(it); },
                  [] {});
  } else {
    runtime::LogWarning("the scheduler sent a ", proto::NameOf(message),
                        ", which is not for servers; ignored");
  }
}

void Server::Install(const proto::InstallTable& install) {
  absl::StatusOr<Kit> made = MakeKit(install.spec, seats_.size());
  auto reply = std::make_shared<proto::InstallTableReply>();
  reply->table = install.table;
  reply->result = made.status();
  auto send = [this, reply] {
    if (membership_ == nullptr) return;
    if (absl::Status sent = membership_->Send(*reply); !sent.ok()) {
      runtime::LogWarning("the scheduler was not told about table ", reply->table, ": ",
                          sent.message());
    }
  };
  if (!made.ok()) return send();
  reply->combine = made->combine;
  auto kit = std::make_shared<Kit>(*std::move(made));
  auto results = std::make_shared<std::vector<absl::Status>>(seats_.size());
  OnEveryThread(
      [kit, results, install](DataThread* thread, std::uint32_t index) {
        std::unique_ptr<Updater>& updater = kit->updaters[index];
        (*results)[index] =
            install.of == 0 ? thread->InstallTable(install.table, install.spec, std::move(updater))
                            : thread->CheckTableSettings(install.of, install.spec, *updater);
      },
      [reply, results, send] {
        for (const absl::Status& result : *results) {
          reply->result.Update(result);
        }
        send();
      });
}

void Server::OnSchedulerHeard(bool heard) {
  OnEveryThread([heard](DataThread* thread, std::uint32_t) { thread->SetSchedulerHeard(heard); },
                [] {});
}

// Of what the scheduler waits, so that the lease is over first even where this clock is slower.
void Server::OnSchedulerAnswered(absl::Time sent) {
  SetLease(sent + kLeaseShare * failure_timeout_);
}

void Server::SetLease(absl::Time until) {
  OnEveryThread([until](DataThread* thread, std::uint32_t) { thread->SetLease(until); }, [] {});
}

void Server::OnOver(const absl::Status& why) { Finish(why); }

// ---- the end ----

void Server::Finish(absl::Status why) {
  if (final_.has_value()) return;
  drain_timer_.Clear();
  ask_timer_.Clear();
  final_ = std::move(why);
  // Not at once: this may be a call of the membership's, which is taken apart as well.
  control_->loop()->Post([this] { Dismantle(); });
}

void Server::Dismantle() {
  membership_.reset();
  auto missing = std::make_shared<std::size_t>(seats_.size());
  for (Seat& seat : seats_) {
    seat.runner->loop()->Post([this, &seat, missing] {
      seat.thread.reset();
      control_->loop()->Post([this, missing] {
        if (--*missing == 0 && over_ != nullptr) std::exchange(over_, nullptr)(*final_);
      });
    });
  }
}

}  // namespace leeway::ps
