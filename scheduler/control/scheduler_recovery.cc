#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "node/scheduler_url.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {

// Takes up the state that was kept, if there is one. Called before anybody can connect.
absl::Status Scheduler::Impl::Recover() {
  if (config_.scheduler_state.empty()) return absl::OkStatus();
  keeper_ = std::make_unique<StateKeeper>(
      host_, loop_, config_.scheduler_state, [this] { return Stamp(); },
      [this] { return Collect(); });
  LEEWAY_ASSIGN_OR_RETURN(std::optional<State> state, keeper_->Open());
  if (!state.has_value()) return absl::OkStatus();
  if (absl::Status fits = CheckStateFits(*state, config_); !fits.ok()) {
    return absl::Status(fits.code(),
                        absl::StrCat("LEEWAY_SCHEDULER_STATE=", config_.scheduler_state, ": ",
                                     fits.message(), "; set it alike, or give another folder"));
  }
  GoOnFrom(*std::move(state));
  return absl::OkStatus();
}

void Scheduler::Impl::GoOnFrom(State state) {
  identity_.cluster = state.cluster;
  address_before_ = state.address;
  recovered_at_ = Now();
  state_is_newest_ = false;
  members_.Restore(state.nodes,
                   runtime::Planted<"ids-begin-again">() ? state.next_node - 1 : state.next_node,
                   state.complete);
  planner_.Restore(std::move(state.chains));
  // Behind every version that anybody may have seen.
  if (!runtime::Planted<"codecs-lost-in-restart">()) switches_.Restore(state.codecs);
  if (!runtime::Planted<"pins-lost-in-restart">()) pinned_ = std::move(state.pinned);
  for (const std::uint32_t table : pinned_) codec_reasons_[table] = kAskedFor;
  if (!runtime::Planted<"settings-lost-in-restart">()) {
    table_changes_.Restore(state.settings, state.ever_bounded);
  }
  maps_.Restore(state.version + (runtime::Planted<"version-of-before">() ? 0 : 1), state.epoch,
                members_, planner_, switches_.entries(), table_changes_.entries());
  switches_.Published(state.version + 1);
  table_changes_.Published(state.version + 1);
  // Nothing is sent before that version has been written.
  if (!runtime::Planted<"numbers-begin-again">()) checkpoints_.NumberFrom(state.version + 1);
  catalogue_.Restore(state.tables,
                     runtime::Planted<"table-ids-begin-again">() ? 1 : state.next_table);
  tables_numbered_ = catalogue_.changes();
  if (!runtime::Planted<"barriers-lost-in-restart">()) barriers_.Restore(std::move(state.barriers));
  restoration_.GoOnFrom(std::move(state.restoration));
  for (const auto& [rank, server] : planner_.servers()) {
    if (server.draining && !runtime::Planted<"drain-lost-in-restart">()) drains_[rank];
  }
}

// Everyone known counts as heard now, and has the failure timeout to come back.
void Scheduler::Impl::GoOn() {
  const std::vector<Node*> alive = members_.Alive();
  runtime::LogInfo("going on with the cluster that ", keeper_->path(), " keeps: ", alive.size(),
                   " nodes alive, epoch ", maps_.newest()->epoch);
  if (!runtime::Planted<"restart-counts-nobody">()) {
    for (const Node* node : alive) detector_.Heard(node->id, Now());
  }
  nobody_came_back_ = !alive.empty();
  if (!members_.complete()) return;
  loop_->Cancel(nobody_timer_);
  if (restoration_.wanted()) BeginRestoration();
  Publish();
  for (const Node* server : members_.Alive(Role::kServer)) {
    if (planner_.servers().contains(server->rank) || restoration_.loading() ||
        runtime::Planted<"late-servers-lost-in-restart">())
      continue;
    late_servers_.Begin(server->id, catalogue_.tables(), Now());
  }
  EndIfDone(/*died=*/true);
  if (address_before_ == PublicAddress()) return;
  moved_ = std::make_unique<MovedNotice>(
      van_.get(), proto::SchedulerMoved{.address = PublicAddress(), .cluster = identity_.cluster});
  for (const Node* server : members_.Alive(Role::kServer)) {
    moved_->Await(server->id, server->endpoints.front());
  }
  TellWhereIAm();
}

// The map's version is what nodes know the scheduler's state by (EndAsOutdated), so it grows with
// the tables as well. Many that are created in a row are one more map.
void Scheduler::Impl::NumberTables() {
  if (keeper_ == nullptr || !members_.complete() || runtime::Planted<"tables-not-numbered">())
    return;
  if (std::exchange(tables_numbered_, catalogue_.changes()) == catalogue_.changes()) return;
  NextMap();
  PublishSoon();
}

// The state is an old copy: another scheduler has gone on from a later one. Nodes follow what that
// one said and ignore older maps, so this one would supervise nobody. It ends without a word to
// them, so that they go on, and wait for the scheduler with the newest state.
void Scheduler::Impl::EndAsOutdated(const std::string& evidence) {
  if (!running() || done_ == nullptr) return;
  const absl::Status why = absl::FailedPreconditionError(absl::StrCat(
      "LEEWAY_SCHEDULER_STATE=", config_.scheduler_state,
      " is an old copy of the cluster's state: ", evidence,
      "; start the scheduler with the newest copy (nodes wait for it for ",
      "LEEWAY_SCHEDULER_TIMEOUT_MS), or end all nodes and start a new cluster from a checkpoint "
      "(LEEWAY_RESTORE)"));
  runtime::LogError(why.message());
  ending_.emplace(why, why);
  checkpoints_.Stop();
  // Later, since whoever is told may destroy this object. The state stays where it is.
  loop_->Post([done = std::exchange(done_, nullptr), why]() mutable { done(std::move(why)); });
}

// A node that joins for the first time does not know the cluster yet. One that does, and is not
// known here, has joined a scheduler with a later state, or lies. Nobody is refused for good before
// that is clear: known members tell which it is, and where none comes it is the former.
bool Scheduler::Impl::IsOfUnknownPast(const Sender& sender) {
  if (sender.identity.cluster == 0 || runtime::Planted<"unknown-past-joins">()) return false;
  if (state_is_newest_) {
    Refuse(sender, absl::FailedPreconditionError(
                       "it says that it is of this cluster, but has never joined it"));
  } else if (Now() - recovered_at_ > config_.failure_timeout) {
    EndAsOutdated(absl::StrCat("a ", Name(sender.identity.role), " at ",
                               van_->AddressOf(sender.peer),
                               " has joined the cluster, but is not in it, and nobody who is in it "
                               "has come back"));
  } else {
    OutOfTurn(sender,
              "is of this cluster, but not in the state that was kept, which may be an "
              "old copy");
  }
  return true;
}

void Scheduler::Impl::TellWhereIAm() {
  if (moved_ == nullptr || !running() || runtime::Planted<"moved-untold">()) return;
  // Over a slow link a dial takes longer than what is lost waits to be said again. A few of them
  // have to fit into the time that a server has.
  moved_->Tell(runtime::Planted<"dialled-too-shortly">()
                   ? config_.resend_interval
                   : std::max(config_.resend_interval, config_.failure_timeout / 5));
}

// Where nodes find it: what they were given, unless that leaves the port to the system.
std::string Scheduler::Impl::PublicAddress() const {
  const std::string url = node::SchedulerUrl(config_.scheduler);
  return runtime::PortOf(url) == 0 ? address_ : url;
}

std::uint64_t Scheduler::Impl::Stamp() const {
  return (runtime::Planted<"stamp-without-members">() ? 0 : members_.changes()) +
         maps_.newest()->version +
         (runtime::Planted<"stamp-without-tables">() ? 0 : catalogue_.changes()) +
         (runtime::Planted<"stamp-without-barriers">() ? 0 : barriers_.changes()) +
         switches_.changes() + table_changes_.changes() +
         (runtime::Planted<"stamp-without-pins">() ? 0 : pin_changes_) + plans_ +
         (restoration_.state().loaded ? 1 : 0);
}

State Scheduler::Impl::Collect() const {
  State state;
  state.cluster = identity_.cluster;
  state.address = PublicAddress();
  state.num_servers = config_.num_servers;
  state.num_workers = config_.num_workers;
  state.replication = config_.replication;
  state.block_bytes = config_.block_bytes;
  for (const auto& [id, node] : members_.nodes()) {
    state.nodes.push_back(node);
    state.nodes.back().peer = state.nodes.back().pulse = 0;
  }
  state.next_node = members_.next_id();
  state.complete = members_.complete();
  state.version = maps_.newest()->version;
  state.epoch = maps_.newest()->epoch;
  state.chains = planner_.state();
  for (TableCatalogue::Entry& table : catalogue_.tables()) {
    if (table.installed || runtime::Planted<"uninstalled-tables-kept">())
      state.tables.push_back(std::move(table));
  }
  state.next_table = catalogue_.next_id();
  state.barriers = barriers_.state();
  state.codecs = switches_.entries();
  state.settings = table_changes_.entries();
  state.ever_bounded = table_changes_.ever_bounded();
  state.pinned = pinned_;
  state.restoration = restoration_.state();
  if (runtime::Planted<"loaded-not-kept">()) state.restoration.loaded = false;
  return state;
}

}  // namespace leeway::scheduler
