#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {

// ---- saving ----

Checkpoints::Facts Scheduler::Impl::GetFacts() const {
  Checkpoints::Facts facts;
  facts.ready = Ready();
  if (facts.ready.ok() && planner_.Lost() > 0 && !runtime::Planted<"lost-shards-saved">()) {
    facts.ready = absl::FailedPreconditionError(
        absl::StrCat(planner_.Lost(), " of ", planner_.chains().size(),
                     " shards are lost: the rest of the model is not worth saving"));
  }
  facts.cluster = identity_.cluster;
  facts.epoch = maps_.newest()->epoch;
  facts.num_shards = static_cast<std::uint32_t>(planner_.chains().size());
  facts.block_bytes = config_.block_bytes;
  facts.servers = LivingServers();
  for (const TableCatalogue::Entry& table : catalogue_.tables()) {
    if (!table.installed) continue;
    facts.tables.push_back({.id = table.id, .spec = SpecOf(table), .combine = table.combine});
    facts.bounded = facts.bounded || (!runtime::Planted<"ever-bounded-forgotten">() &&
                                      table_changes_.IsEverBounded(table));
  }
  std::uint64_t bytes = 0;  // of all replicas
  for (const auto& [rank, server] : planner_.servers()) bytes += loads_.BytesOn(rank);
  facts.model_bytes = bytes / std::max<std::uint32_t>(1, config_.replication);
  std::sort(facts.tables.begin(), facts.tables.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return facts;
}

void Scheduler::Impl::Tell(std::uint32_t id, const proto::AnyMessage& message) {
  if (const Node* node = members_.Find(id)) SendTo(*node, message);
}

void Scheduler::Impl::SaveCommand(const AdminService::Ask& ask,
                                  const AdminService::Arguments& arguments) {
  Checkpoints::Wish wish;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view text = arguments[i];
    std::uint64_t clock = 0;
    if (i == 0) {
      wish.directory = arguments[0];
    } else if (text == "incremental") {
      wish.incremental = true;
    } else if (absl::ConsumePrefix(&text, "at:") && absl::SimpleAtoi(text, &clock)) {
      wish.at = clock;
    } else {
      return admin_service_.Answer(
          ask, absl::InvalidArgumentError(
                   absl::StrCat("checkpoint-save takes a folder, and perhaps 'incremental' and "
                                "'at:CLOCK', but not '",
                                arguments[i], "'")));
    }
  }
  checkpoints_.Save(std::move(wish), [this, ask](const absl::StatusOr<Checkpoints::Saved>& saved) {
    if (!saved.ok()) return admin_service_.Answer(ask, saved.status());
    const checkpoint::Manifest& manifest = saved->manifest;
    const nlohmann::json json = {{"path", saved->path},
                                 {"clock", manifest.clock},
                                 {"bytes", manifest.bytes()},
                                 {"files", manifest.files.size()},
                                 {"base", manifest.base.has_value() ? manifest.base->name : ""}};
    admin_service_.Answer(ask, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void Scheduler::Impl::On(const Sender& sender, const proto::CheckpointPrepared& prepared) {
  if (IsMember(sender, Role::kServer)) checkpoints_.OnPrepared(sender.node->id, prepared);
}

void Scheduler::Impl::On(const Sender& sender, const proto::CheckpointWritten& written) {
  if (IsMember(sender, Role::kServer)) checkpoints_.OnWritten(sender.node->id, written);
}

// ---- starting from one ----

// A cluster that goes on after a restart of its scheduler has started already, unless that came
// between.
absl::Status Scheduler::Impl::OpenCheckpoint() {
  if (!address_before_.empty()) {
    if (!restoration_.wanted()) return absl::OkStatus();
    return restoration_.Open(host_->files(), restoration_.state().path);
  }
  if (config_.restore.empty()) return absl::OkStatus();
  if (absl::Status opened = restoration_.Open(host_->files(), config_.restore); !opened.ok()) {
    return opened;
  }
  if (restoration_.block_bytes() != config_.block_bytes &&
      !runtime::Planted<"blocks-of-another-size-restored">()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "LEEWAY_BLOCK_BYTES=", config_.block_bytes, ", but the blocks of ",
        restoration_.state().path, " have ", restoration_.block_bytes(), ": set it alike"));
  }
  std::vector<TableCatalogue::Entry> tables = restoration_.tables();
  for (TableCatalogue::Entry& table : tables) table.untouched = true;
  catalogue_.Restore(tables, restoration_.next_table());
  return absl::OkStatus();
}

void Scheduler::Impl::BeginRestoration() {
  publisher_.HoldWorkers(true, Now());
  restoration_.Begin(LivingServers(), std::max<std::uint64_t>(1, host_->Random()), Now());
  for (const std::uint32_t server : LivingServers()) {
    late_servers_.Begin(server, catalogue_.tables(), Now());
  }
}

void Scheduler::Impl::LoadIfPrepared() {
  if (publish_timer_ == runtime::TimerId::kNone && publisher_.ServersHaveIt()) {
    restoration_.Load(Now());
  }
}

void Scheduler::Impl::On(const Sender& sender, const proto::RestoreShardsReply& reply) {
  if (!IsMember(sender, Role::kServer) || !restoration_.loading()) return;
  const absl::Status taken = restoration_.OnReply(sender.node->id, reply);
  if (!taken.ok()) return RestorationFailed(taken);
  if (!restoration_.loading()) publisher_.HoldWorkers(false, Now());
}

void Scheduler::Impl::RestorationFailed(const absl::Status& why) {
  if (!running()) return;
  runtime::LogError(why.message());
  End(why, why);
}

}  // namespace leeway::scheduler
