#include "scheduler/checkpoints/checkpoint_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

absl::Duration ResendInterval(const Config& config) {
  return std::max(config.resend_interval, absl::Milliseconds(1));
}

Checkpoints::Options CheckpointOptions(const Config& config) {
  return {.directory = config.checkpoint_dir,
          .every = absl::Seconds(config.checkpoint_every_s),
          .every_clocks = config.checkpoint_every_clocks,
          .keep = config.checkpoint_keep,
          .full_every = config.checkpoint_full_every,
          .timeout = config.checkpoint_timeout,
          .resend_interval = ResendInterval(config)};
}

}  // namespace

CheckpointService::CheckpointService(const Parts& parts)
    : parts_(parts),
      restoration_(
          parts.config->checkpoint_timeout, ResendInterval(*parts.config),
          [this](std::uint32_t id, const proto::AnyMessage& message) { Tell(id, message); },
          [this](std::uint32_t id) { return Describe(id); }),
      checkpoints_(parts.host, parts.loop, this, CheckpointOptions(*parts.config)) {}

// ---- saving ----

Checkpoints::Facts CheckpointService::GetFacts() const {
  const ChainPlanner& planner = parts_.chains->planner();
  const TableChanges& changes = std::as_const(*parts_.tables).table_changes();
  Checkpoints::Facts facts;
  facts.ready = parts_.life->Ready();
  if (facts.ready.ok() && planner.Lost() > 0) {
    facts.ready = absl::FailedPreconditionError(
        absl::StrCat(planner.Lost(), " of ", planner.chains().size(),
                     " shards are lost: the rest of the model is not worth saving"));
  }
  facts.cluster = parts_.identity->cluster;
  facts.epoch = parts_.maps->newest()->epoch;
  facts.num_shards = static_cast<std::uint32_t>(planner.chains().size());
  facts.block_bytes = parts_.config->block_bytes;
  facts.servers = parts_.members->AliveIds(Role::kServer);
  const auto codec_changed = [this](std::uint32_t table) {
    return std::ranges::any_of(parts_.maps->newest()->codecs, [table](const auto& change) {
      return change.table == table && change.decided;
    });
  };
  for (const TableCatalogue::Entry& table : parts_.tables->catalogue()->tables()) {
    if (!table.installed) continue;
    facts.tables.push_back({.id = table.id,
                            .spec = changes.SpecOf(table),
                            .combine = table.combine,
                            .codec_changed = codec_changed(table.id)});
    facts.bounded = facts.bounded || changes.IsEverBounded(table);
  }
  std::uint64_t bytes = 0;  // of all replicas
  for (const auto& [rank, server] : planner.servers()) {
    bytes += parts_.chains->loads().BytesOn(rank);
  }
  facts.model_bytes = bytes / std::max<std::uint32_t>(1, parts_.config->replication);
  std::sort(facts.tables.begin(), facts.tables.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return facts;
}

std::string CheckpointService::Describe(std::uint32_t node) const {
  return parts_.members->DescribeServer(node);
}

std::string CheckpointService::LastHeard(std::uint32_t node) const {
  return parts_.liveness->LastHeard(node);
}

std::string CheckpointService::MostSilentWorker() const {
  return parts_.liveness->MostSilentWorker();
}

void CheckpointService::Tell(std::uint32_t node, const proto::AnyMessage& message) {
  parts_.sender->SendToNode(node, message);
}

void CheckpointService::SaveCommand(const AdminService::Arguments& arguments,
                                    const AdminService::Answer& answer) {
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
      return answer(absl::InvalidArgumentError(
          absl::StrCat("checkpoint-save takes a folder, and perhaps 'incremental' and "
                       "'at:CLOCK', but not '",
                       arguments[i], "'")));
    }
  }
  checkpoints_.Save(std::move(wish), [answer](const absl::StatusOr<Checkpoints::Saved>& saved) {
    if (!saved.ok()) return answer(saved.status());
    const checkpoint::Manifest& manifest = saved->manifest;
    const nlohmann::json json = {{"path", saved->path},
                                 {"clock", manifest.clock},
                                 {"bytes", manifest.bytes()},
                                 {"files", manifest.files.size()},
                                 {"base", manifest.base.has_value() ? manifest.base->name : ""}};
    answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void CheckpointService::SaveAtEnd(std::function<void(const absl::Status&)> done) {
  Checkpoints::Wish wish;
  wish.at_end = true;
  checkpoints_.Save(std::move(wish),
                    [done = std::move(done)](const absl::StatusOr<Checkpoints::Saved>& saved) {
                      done(saved.status());
                    });
}

void CheckpointService::OnPrepared(std::uint32_t server,
                                   const proto::CheckpointPrepared& prepared) {
  checkpoints_.OnPrepared(server, prepared);
}

void CheckpointService::OnWritten(std::uint32_t server, const proto::CheckpointWritten& written) {
  checkpoints_.OnWritten(server, written);
}

void CheckpointService::TickSaving() { checkpoints_.Tick(Now()); }

// ---- starting from one ----

absl::Status CheckpointService::Open(bool restarted) {
  const Config& config = *parts_.config;
  if (restarted) {
    if (!restoration_.wanted()) return absl::OkStatus();
    return restoration_.Open(parts_.host->files(), restoration_.state().path);
  }
  if (config.restore.empty()) return absl::OkStatus();
  if (absl::Status opened = restoration_.Open(parts_.host->files(), config.restore); !opened.ok()) {
    return opened;
  }
  if (restoration_.block_bytes() != config.block_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "LEEWAY_BLOCK_BYTES=", config.block_bytes, ", but the blocks of ",
        restoration_.state().path, " have ", restoration_.block_bytes(), ": set it alike"));
  }
  std::vector<TableCatalogue::Entry> tables = restoration_.tables();
  for (TableCatalogue::Entry& table : tables) table.untouched = true;
  parts_.tables->catalogue()->Restore(tables, restoration_.next_table());
  return absl::OkStatus();
}

void CheckpointService::LoadIfWanted() {
  if (!restoration_.wanted()) return;
  parts_.maps->publisher()->HoldWorkers(true, Now());
  const std::vector<std::uint32_t> servers = parts_.members->AliveIds(Role::kServer);
  restoration_.Begin(servers, std::max<std::uint64_t>(1, parts_.host->Random()), Now());
  for (const std::uint32_t server : servers) parts_.tables->PrepareServer(server);
}

void CheckpointService::ServerPrepared(std::uint32_t server) {
  restoration_.Prepared(server);
  LoadIfPrepared();
}

void CheckpointService::LoadIfPrepared() {
  if (parts_.maps->ServersHaveNewest()) restoration_.Load(Now());
}

void CheckpointService::OnLoaded(std::uint32_t server, const proto::RestoreShardsReply& reply) {
  if (!restoration_.loading()) return;
  const absl::Status taken = restoration_.OnReply(server, reply);
  if (!taken.ok()) return Fail(taken);
  if (!restoration_.loading()) parts_.maps->publisher()->HoldWorkers(false, Now());
}

bool CheckpointService::FailIfLoading(const std::string& why) {
  if (!restoration_.loading()) return false;
  Fail(absl::UnavailableError(
      absl::StrCat("the cluster cannot start from ", restoration_.state().path, ": ", why)));
  return true;
}

void CheckpointService::TickLoading() {
  if (absl::Status loading = restoration_.Tick(Now()); !loading.ok()) Fail(loading);
}

void CheckpointService::Fail(const absl::Status& why) {
  if (!parts_.life->running()) return;
  runtime::LogError(why.message());
  parts_.life->Fail(why);
}

}  // namespace leeway::scheduler
