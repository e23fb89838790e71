#include "tests/simulation/second_life.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "runtime/base/status_macros.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {
namespace {

// One in so many runs that have saved checkpoints has a second life.
constexpr std::uint64_t kEvery = 3;

runtime::Random Choices(std::uint64_t seed, absl::string_view of) {
  return runtime::Random(runtime::RandomAt(seed, runtime::StableHash(of), 0));
}

std::vector<float> FloatsIn(std::span<const std::byte> bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

}  // namespace

bool SecondLife::IsPlanned(std::uint64_t seed) {
  return Choices(seed, "second life").Below(kEvery) == 0;
}

FaultSet SecondLife::Faults() {
  FaultSet faults = AllFaults();
  for (const FaultKind kind :
       {FaultKind::kLongPartition, FaultKind::kAimed, FaultKind::kMoveScheduler,
        FaultKind::kDiskFull, FaultKind::kDiskErrors, FaultKind::kStranger}) {
    faults.reset(static_cast<std::size_t>(kind));
  }
  return faults;
}

absl::StatusOr<std::optional<SecondLife>> SecondLife::Choose(runtime::FileSystem* files,
                                                             const std::vector<SimTable>& tables,
                                                             const History& history,
                                                             std::uint64_t seed) {
  LEEWAY_ASSIGN_OR_RETURN(std::vector<checkpoint::Found> found,
                          checkpoint::ListCheckpoints(files, kSavedFolder));
  std::erase_if(found, [](const checkpoint::Found& one) { return !one.manifest.ok(); });
  if (found.empty()) return std::nullopt;
  runtime::Random choices = Choices(seed, "where a second life begins");
  const bool newest = choices.Below(2) == 0;
  const std::size_t chosen = newest ? found.size() - 1 : choices.Below(found.size());
  SecondLife life(tables, history, choices.Next());
  life.manifest_ = *found[chosen].manifest;
  std::vector<std::string> unfinished;
  for (std::size_t later = chosen + 1; later < found.size(); ++later) {
    unfinished.push_back(found[later].name);
  }
  LEEWAY_RETURN_IF_ERROR(life.ReadFiles(files, unfinished));
  LEEWAY_RETURN_IF_ERROR(life.ReadTables(files, history));
  return life;
}

SecondLife::SecondLife(const std::vector<SimTable>& tables, const History& first,
                       std::uint64_t seed)
    : tables_(tables), seed_(seed), history_(tables.size(), first.lives.size()) {
  for (SimTable& table : tables_) table.created_in = 0;
}

// ---- what the checkpoint has ----

absl::Status SecondLife::ReadFiles(runtime::FileSystem* files,
                                   const std::vector<std::string>& unfinished) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> folders, files->List(kSavedFolder));
  for (const std::string& folder : folders) {
    const std::string path = checkpoint::JoinPath(kSavedFolder, folder);
    const bool cut_short = std::ranges::find(unfinished, folder) != unfinished.end();
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(path));
    for (const std::string& name : names) {
      if (cut_short && name == checkpoint::kManifestName) continue;
      const std::string file = checkpoint::JoinPath(path, name);
      LEEWAY_ASSIGN_OR_RETURN(files_[file], files->Read(file));
    }
  }
  return absl::OkStatus();
}

absl::Status SecondLife::ReadTables(runtime::FileSystem* files, const History& first) {
  LEEWAY_ASSIGN_OR_RETURN(
      const std::vector<checkpoint::Manifest> chain,
      checkpoint::ReadChain(files, checkpoint::JoinPath(kSavedFolder, manifest_.name)));
  CounterValues counters, applied;
  for (std::uint32_t shard = 0; shard < manifest_.num_shards; ++shard) {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<ps::ShardContent> contents,
                            ps::ReadShard(files, kSavedFolder, chain, shard, [](std::uint64_t) {}));
    for (const ps::ShardContent& content : contents) {
      for (const ps::ShardContent::Table& saved : content.tables) {
        const SimTable* const table = TableNamed(tables_, saved.spec.name);
        if (table == nullptr) continue;
        if (!table->counter) {
          TakePlaces(*table, saved);
          continue;
        }
        applied.Take(*table, saved.pieces);
        counters.Take(*table, saved.pieces);
        counters.Add(*table, saved.collected);
      }
    }
  }
  for (const SimTable& table : tables_) {
    if (table.counter) TakeCounters(table, counters, applied, first);
  }
  for (const auto& [where, place] : places_) {
    const SimTable& table = tables_[where.first];
    history_.BeginWith(table, where.second, place.updates);
    if (table.coded) continue;
    std::vector<std::vector<float>> gradients = first.gradients(table, where.second);
    if (gradients.size() < place.updates) {
      return absl::DataLossError(
          absl::StrCat(manifest_.name, " has ", place.updates, " updates of place ", where.second,
                       " of '", table.spec.name, "', to which ", gradients.size(), " were pushed"));
    }
    gradients.resize(place.updates);
    gradients_[where] = std::move(gradients);
  }
  return absl::OkStatus();
}

// A file that builds on another one comes after it.
void SecondLife::TakePlaces(const SimTable& table, const ps::ShardContent::Table& saved) {
  for (const ps::FrozenPiece& piece : saved.pieces) {
    ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
      const std::optional<std::uint32_t> at = PlaceOf(table, row.key);
      if (!at.has_value()) return;
      SavedPlace& place = places_[{table.index, *at}];
      place = {.updates = row.steps,
               .values = FloatsIn(row.values),
               .feedback = {},
               .version = piece.version,
               .codec_changed = saved.codec_changed};
      const std::size_t bytes = row.values.size();
      if (table.coded && table.dense() && row.state.size() >= bytes) {
        place.feedback = FloatsIn(row.state.last(bytes));
      }
    });
  }
}

void SecondLife::TakeCounters(const SimTable& table, const CounterValues& values,
                              const CounterValues& applied, const History& first) {
  for (std::uint32_t worker = 0; worker < first.lives.size(); ++worker) {
    std::vector<Push>& pushes = history_.pushes(table, worker);
    for (const Push& push : first.pushes(table, worker)) {
      Push kept = {.clock = push.clock,
                   .submitted = absl::InfinitePast(),
                   .outcome = Outcome::kAcknowledged,
                   .acknowledged = absl::InfinitePast()};
      for (std::uint32_t place = 0; place < table.places; ++place) {
        const int times = values.TimesApplied(table, place, worker, pushes.size());
        if (times > 0) kept.places |= 1ull << place;
        // What is collected is of the clock at which the cluster begins.
        if (times > applied.TimesApplied(table, place, worker, pushes.size())) {
          kept.clock = std::max(kept.clock, manifest_.clock);
        }
      }
      pushes.push_back(kept);
    }
  }
}

// ---- the second run's beginning ----

absl::Status SecondLife::PutFiles(runtime::FileSystem* disk) const {
  for (const auto& [path, contents] : files_) {
    LEEWAY_RETURN_IF_ERROR(disk->CreateDirectories(checkpoint::SplitPath(path).first));
    LEEWAY_RETURN_IF_ERROR(runtime::WriteFileAtomically(disk, path, contents));
  }
  return absl::OkStatus();
}

void SecondLife::Begin(Checker* checker, CodedChecker* coded) const {
  for (const auto& [where, gradients] : gradients_) {
    for (const std::vector<float>& gradient : gradients) {
      checker->OnFloatPush(tables_[where.first], where.second, gradient);
    }
  }
  for (const auto& [where, place] : places_) {
    const SimTable& table = tables_[where.first];
    if (!table.coded) continue;
    // Nobody asks for the states before this one.
    for (std::uint64_t i = 0; table.one_writer && i < place.updates; ++i) {
      checker->OnState(table, where.second, {place.values});
    }
    coded->BeginWith(table, where.second, place);
  }
}

}  // namespace leeway::simulation
