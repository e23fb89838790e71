#include "tests/simulation/checkpoint_checker.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "ps/checkpoint/shard_file.h"

namespace leeway::simulation {

void CheckpointChecker::IgnoreOlder() {
  const auto found = checkpoint::ListCheckpoints(files_, kSavedFolder);
  for (std::size_t i = 0; found.ok() && i < found->size(); ++i) {
    const checkpoint::Found& one = (*found)[i];
    if (one.manifest.ok()) seen_.insert({one.name, one.manifest->checksum});
  }
}

void CheckpointChecker::Look(absl::Time now) {
  const auto found = checkpoint::ListCheckpoints(files_, kSavedFolder);
  if (!found.ok()) return checker_->Fail("checkpoints are whole", found.status().ToString());
  for (const checkpoint::Found& one : *found) {
    if (absl::IsNotFound(one.manifest.status())) continue;  // not finished
    if (!one.manifest.ok()) {
      return checker_->Fail("checkpoints are whole", one.manifest.status().ToString());
    }
    if (!seen_.insert({one.name, one.manifest->checksum}).second) continue;
    ++checked_;
    Judge(*one.manifest, next_begins_after_);
    next_begins_after_ = looked_;
  }
  looked_ = now;
}

void CheckpointChecker::Judge(const checkpoint::Manifest& manifest, absl::Time begun_after) {
  const auto fail = [&](absl::string_view promise, absl::string_view wrong) {
    if (!wrong.empty()) checker_->Fail(promise, absl::StrCat(manifest.name, ": ", wrong));
  };
  const auto chain =
      checkpoint::ReadChain(files_, checkpoint::JoinPath(kSavedFolder, manifest.name));
  if (!chain.ok()) return fail("checkpoints are whole", chain.status().ToString());
  CounterValues values;
  Updates updates;
  for (std::uint32_t shard = 0; shard < manifest.num_shards; ++shard) {
    const auto contents = ps::ReadShard(files_, kSavedFolder, *chain, shard, [](std::uint64_t) {});
    if (!contents.ok()) return fail("checkpoints are whole", contents.status().ToString());
    for (const ps::ShardContent& content : *contents) {
      fail("checkpoints are whole", Take(content, &values, &updates));
    }
    fail("what is sent again counts once",
         restores_->Judge(manifest, *contents, times_.WrittenAt(manifest)));
  }
  for (const SimTable& table : *tables_) {
    if (table.counter) {
      fail("checkpoints are whole", JudgeTable(manifest, begun_after, table, values));
    } else if (!table.coded) {
      fail("checkpoints are whole", JudgeUpdates(manifest, begun_after, table, updates));
    }
  }
}

std::string CheckpointChecker::Take(const ps::ShardContent& content, CounterValues* values,
                                    Updates* updates) const {
  for (const ps::ShardContent::Table& saved : content.tables) {
    const SimTable* const table = TableNamed(*tables_, saved.spec.name);
    if (table == nullptr) return absl::StrCat("nobody has created ", saved.spec.name);
    if (table->counter) {
      values->Take(*table, saved.pieces);
      values->Add(*table, saved.collected);
    }
    for (const ps::FrozenPiece& piece : saved.pieces) {
      if (table->counter || table->coded) break;
      ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
        const std::optional<std::uint32_t> place = PlaceOf(*table, row.key);
        if (place.has_value()) (*updates)[{table->index, *place}] = row.steps;
      });
    }
  }
  return "";
}

std::string CheckpointChecker::JudgeTable(const checkpoint::Manifest& manifest,
                                          absl::Time begun_after, const SimTable& table,
                                          const CounterValues& values) const {
  for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
    const std::vector<Push>& pushes = history_->pushes(table, worker);
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      const Push& push = pushes[number];
      const Expected expected = Expect(manifest, begun_after, table, worker, push);
      for (std::uint32_t place = 0; place < table.places; ++place) {
        if (((push.places >> place) & 1) == 0) continue;
        const int times = values.TimesApplied(table, place, worker, number);
        if (times <= (expected.may ? 1 : 0) && times >= (expected.must ? 1 : 0)) continue;
        return absl::StrCat("of clock ", manifest.clock, " has push ", number, " of worker ",
                            worker, " (clock ", push.clock, ") to place ", place, " of '",
                            table.spec.name, "' (", table.spec.consistency.ToString(), ") ", times,
                            " times");
      }
    }
  }
  return "";
}

std::string CheckpointChecker::JudgeUpdates(const checkpoint::Manifest& manifest,
                                            absl::Time begun_after, const SimTable& table,
                                            const Updates& updates) const {
  for (std::uint32_t place = 0; place < table.places; ++place) {
    const std::uint32_t writer = table.WriterOf(place);
    const std::uint64_t before = history_->updates_before(table, place);
    std::uint64_t must = before, may = before;
    for (const Push& push : history_->pushes(table, writer)) {
      if (((push.places >> place) & 1) == 0) continue;
      const Expected expected = Expect(manifest, begun_after, table, writer, push);
      must += expected.must ? 1 : 0;
      may += expected.may ? 1 : 0;
    }
    const auto found = updates.find({table.index, place});
    const std::uint64_t is = found == updates.end() ? 0 : found->second;
    if (is >= must && is <= may) continue;
    return absl::StrCat("of clock ", manifest.clock, " has ", is, " updates of place ", place,
                        " of '", table.spec.name, "' (", table.spec.consistency.ToString(),
                        "), and not ", must, " to ", may);
  }
  return "";
}

// A killed worker's pushes of a clock that it had not ended may be in it or not.
CheckpointChecker::Expected CheckpointChecker::Expect(const checkpoint::Manifest& manifest,
                                                      absl::Time begun_after, const SimTable& table,
                                                      std::uint32_t worker,
                                                      const Push& push) const {
  if (!HasClock(table)) {
    return {.must = push.outcome == Outcome::kAcknowledged && push.dropped == 0 &&
                    push.acknowledged < begun_after,
            .may = true};
  }
  const bool below = push.clock < manifest.clock;
  // What its worker does not know yet may have been dropped.
  const bool kept = !table.drops() || (push.outcome == Outcome::kAcknowledged && push.dropped == 0);
  const bool certain = kept && push.outcome != Outcome::kFailed &&
                       !history_->lives[worker].WasKilled(push.incarnation);
  return {.must = below && certain, .may = below};
}

// docs/checkpoint-format.md, "What is promised".
bool CheckpointChecker::HasClock(const SimTable& table) const {
  if (!table.spec.consistency.is_unbounded() && !table.collects()) return true;
  return std::any_of(tables_->begin(), tables_->end(),
                     [](const SimTable& other) { return other.spec.consistency.is_bounded(); });
}

}  // namespace leeway::simulation
