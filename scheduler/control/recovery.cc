#include "scheduler/control/recovery.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "node/joining.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/log/log.h"
#include "scheduler/control/cluster_end.h"
#include "scheduler/control/member_service.h"

namespace leeway::scheduler {

absl::Status Recovery::Open() {
  const Config& config = *s_->config;
  if (config.scheduler_state.empty()) return absl::OkStatus();
  keeper_ = std::make_unique<StateKeeper>(
      s_->host, s_->loop, config.scheduler_state, [this] { return Stamp(); },
      [this] { return Collect(); });
  s_->sender->HoldWith([this](runtime::Task send) { keeper_->Once(std::move(send)); });
  LEEWAY_ASSIGN_OR_RETURN(std::optional<State> state, keeper_->Open());
  if (!state.has_value()) return absl::OkStatus();
  if (absl::Status fits = CheckStateFits(*state, config); !fits.ok()) {
    return absl::Status(fits.code(),
                        absl::StrCat("LEEWAY_SCHEDULER_STATE=", config.scheduler_state, ": ",
                                     fits.message(), "; set it alike, or give another folder"));
  }
  GoOnFrom(*std::move(state));
  return absl::OkStatus();
}

void Recovery::GoOnFrom(State state) {
  s_->identity->cluster = state.cluster;
  address_before_ = state.address;
  recovered_at_ = s_->Now();
  state_is_newest_ = false;
  s_->members->Restore(state.nodes, state.next_node, state.complete);
  s_->chains->Restore(std::move(state.chains));
  CodecSwitches* const switches = s_->codecs->switches();
  TableChanges* const changes = s_->tables->table_changes();
  switches->Restore(state.codecs);
  s_->codecs->RestorePinned(state.pinned);
  changes->Restore(state.table_settings, state.ever_bounded);
  // Behind every version that any node may have seen.
  s_->maps->Restore(state.version + 1, state.epoch);
  for (Node* worker : s_->members->workers()) {
    if (worker != nullptr && worker->state == Node::State::kLeft) {
      s_->members->LeavingIsIn(worker, s_->maps->newest()->version);
    }
  }
  switches->Published(state.version + 1);
  changes->Published(state.version + 1);
  // Nothing is sent before that version has been written.
  s_->checkpoints->NumberFrom(state.version + 1);
  s_->publications->Restore(state.models, state.version + 1);
  TableCatalogue* const catalogue = s_->tables->catalogue();
  catalogue->Restore(state.tables, state.next_table);
  tables_numbered_ = catalogue->changes();
  s_->barriers->Restore(std::move(state.barriers));
  s_->restoration->GoOnFrom(std::move(state.restoration));
}

void Recovery::GoOn() {
  if (!restarted()) return;
  const std::vector<Node*> alive = s_->members->Alive();
  runtime::LogInfo("going on with the cluster that ", keeper_->path(), " keeps: ", alive.size(),
                   " nodes alive, epoch ", s_->maps->newest()->epoch);
  for (Node* const node : alive) s_->liveness->Heard(node);
  s_->liveness->ExpectReturn(!alive.empty());
  if (!s_->members->complete()) return;
  s_->member_service->StopWaiting();
  s_->restoration->LoadIfWanted();
  s_->maps->PublishNow();
  for (const Node* server : s_->members->Alive(Role::kServer)) {
    if (s_->chains->planner().servers().contains(server->rank) || s_->restoration->loading())
      continue;
    s_->tables->PrepareServer(server->id);
  }
  s_->end->EndIfDone(/*died=*/true);
  // Also where the address is the one of before: a scheduler that moved may have died before it had
  // told all servers. Servers that know the address have mostly connected before the first dial.
  for (const Node* server : s_->members->Alive(Role::kServer)) {
    untold_[server->id] = server->endpoints.front();
  }
  if (address_before_ != PublicAddress()) TellAddress();
}

// ---- an old copy ----

bool Recovery::CheckMapOf(const Node& node, std::uint64_t version) {
  const std::uint64_t newest = s_->maps->newest()->version;
  if (restarted() && version > newest) {
    EndAsOutdated(absl::StrCat(node.FullName(), " has version ", version,
                               " of the cluster's map, and the newest one here is ", newest));
    return false;
  }
  state_is_newest_ = state_is_newest_ || version == newest;
  return true;
}

// A node that joins for the first time does not know the cluster yet. One that does, and is not
// known here, has joined a scheduler with a later state, or lies. It is not refused for good before
// that is clear: known members tell which it is, and where none comes it is the former.
bool Recovery::IsOfUnknownPast(const Sender& sender) {
  if (sender.identity.cluster == 0) return false;
  if (state_is_newest_) {
    s_->member_service->Refuse(sender,
                               absl::FailedPreconditionError(
                                   "it says that it is of this cluster, but has never joined it"));
  } else if (s_->Now() - recovered_at_ > s_->config->failure_timeout) {
    EndAsOutdated(absl::StrCat("a ", Name(sender.identity.role), " at ",
                               s_->sender->van()->AddressOf(sender.peer),
                               " has joined the cluster, but is not in it, and nobody who is in it "
                               "has come back"));
  } else {
    s_->errors->Note(ProtocolErrors::Kind::kOutOfTurn,
                     "is of this cluster, but not in the state that was kept, which may be an "
                     "old copy",
                     sender.peer);
  }
  return true;
}

// Another scheduler has gone on from a later state. Nodes follow its maps and ignore older ones, so
// this scheduler would supervise nobody. It ends without a word to them, so that they go on, and
// wait for the scheduler with the newest state.
void Recovery::EndAsOutdated(const std::string& evidence) {
  if (!s_->end->running() || s_->end->over()) return;
  const absl::Status why = absl::FailedPreconditionError(absl::StrCat(
      "LEEWAY_SCHEDULER_STATE=", s_->config->scheduler_state,
      " is an old copy of the cluster's state: ", evidence,
      "; start the scheduler with the newest copy (nodes wait for it for ",
      "LEEWAY_SCHEDULER_TIMEOUT_MS), or end all nodes and start a new cluster from a checkpoint "
      "(LEEWAY_RESTORE)"));
  runtime::LogError(why.message());
  s_->end->EndSilently(why);
}

// ---- the address ----

void Recovery::CameBack(std::uint32_t node) {
  if (untold_.erase(node) == 0) return;
  std::vector<van::PeerId> useless;
  for (const auto& [peer, other] : telling_) {
    if (other == node) useless.push_back(peer);
  }
  for (const van::PeerId peer : useless) s_->sender->van()->Disconnect(peer, absl::OkStatus());
}

void Recovery::TellAddress() {
  if (untold_.empty() || !s_->end->running()) return;
  // A node that has not found the scheduler by then ends by itself.
  if (s_->Now() - recovered_at_ > s_->config->scheduler_timeout) {
    while (!untold_.empty()) CameBack(untold_.begin()->first);
    return;
  }
  // Over a slow link a dial takes longer than the resend interval. A few dials have to fit into the
  // time after which a server gives up its scheduler.
  const absl::Duration resend = s_->config->resend_interval;
  Dial(std::max(resend, s_->config->failure_timeout / 5));
}

// Dials the servers that have not connected. `patience`: the time until the next call.
void Recovery::Dial(absl::Duration patience) {
  std::set<std::uint32_t> dialled;
  for (const auto& [peer, node] : telling_) dialled.insert(node);
  for (const auto& [node, endpoint] : untold_) {
    if (dialled.contains(node)) continue;
    const absl::StatusOr<van::PeerId> peer = s_->sender->van()->Connect(endpoint, patience);
    if (peer.ok()) {
      telling_[*peer] = node;
    } else {
      runtime::LogDebug("cannot tell a server at ", endpoint,
                        " where the scheduler is: ", peer.status().message());
    }
  }
}

bool Recovery::OnPeerUp(van::PeerId peer) {
  if (!telling_.contains(peer)) return false;
  van::Van* const van = s_->sender->van();
  van::Message raw;
  raw.header = proto::Encode(
      proto::SchedulerMoved{.address = PublicAddress(), .cluster = s_->identity->cluster});
  (void)van->Send(peer, std::move(raw));
  van->Disconnect(peer, absl::OkStatus());  // after what was sent; dialled again if need be
  return true;
}

// The address that nodes were given, unless it leaves the port to the system.
std::string Recovery::PublicAddress() const {
  const std::string url = node::SchedulerUrl(s_->config->scheduler);
  return runtime::PortOf(url) == 0 ? address_ : url;
}

// ---- keeping the state ----

void Recovery::Write() {
  if (keeper_ != nullptr) keeper_->Write();
}

// Many tables that are created in a row are one more map.
void Recovery::NumberTables() {
  if (keeper_ == nullptr || !s_->members->complete()) return;
  const std::uint64_t changes = s_->tables->catalogue()->changes();
  if (std::exchange(tables_numbered_, changes) == changes) return;
  s_->maps->ChangeAndPublish();
}

void Recovery::ForgetState() {
  if (keeper_ != nullptr) keeper_->Forget();
}

std::uint64_t Recovery::Stamp() const {
  return s_->members->changes() + s_->maps->newest()->version + s_->tables->catalogue()->changes() +
         s_->barriers->changes() + s_->codecs->switches()->changes() +
         s_->tables->table_changes()->changes() + s_->codecs->pin_changes() +
         s_->chains->changes() + s_->publications->changes() +
         (s_->restoration->state().loaded ? 1 : 0);
}

State Recovery::Collect() const {
  const Config& config = *s_->config;
  const TableCatalogue& catalogue = *s_->tables->catalogue();
  const TableChanges& changes = *s_->tables->table_changes();
  State state;
  state.cluster = s_->identity->cluster;
  state.address = PublicAddress();
  state.num_servers = config.num_servers;
  state.num_workers = config.num_workers;
  state.replication = config.replication;
  state.block_bytes = config.block_bytes;
  for (const auto& [id, node] : s_->members->nodes()) {
    state.nodes.push_back(node);
    state.nodes.back().peer = state.nodes.back().pulse = 0;
  }
  state.next_node = s_->members->next_id();
  state.complete = s_->members->complete();
  state.version = s_->maps->newest()->version;
  state.epoch = s_->maps->newest()->epoch;
  state.chains = s_->chains->planner().state();
  for (TableCatalogue::Entry& table : catalogue.tables()) {
    if (table.installed) state.tables.push_back(std::move(table));
  }
  std::ranges::sort(state.tables, {}, &TableCatalogue::Entry::id);
  state.next_table = catalogue.next_id();
  state.barriers = s_->barriers->state();
  state.codecs = s_->codecs->switches()->entries();
  state.table_settings = changes.entries();
  state.ever_bounded = changes.ever_bounded();
  state.pinned = s_->codecs->pinned();
  for (const auto& [name, model] : s_->publications->models()) state.models.push_back(model);
  state.restoration = s_->restoration->state();
  return state;
}

}  // namespace leeway::scheduler
