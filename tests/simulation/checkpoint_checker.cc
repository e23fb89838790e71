#include "tests/simulation/checkpoint_checker.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "ps/checkpoint/shard_file.h"

namespace leeway::simulation {
namespace {

// Nullopt: a row that nobody pushes to.
std::optional<std::uint32_t> PlaceOf(const SimTable& table, std::uint64_t key) {
  if (table.dense()) {
    return key < table.places ? std::optional(static_cast<std::uint32_t>(key)) : std::nullopt;
  }
  const auto found = std::find(table.keys.begin(), table.keys.end(), key);
  if (found == table.keys.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - table.keys.begin());
}

const SimTable* TableNamed(const std::vector<SimTable>& tables, const std::string& name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const SimTable& table) { return table.spec.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

}  // namespace

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
    if (std::string wrong = Judge(*one.manifest, next_begins_after_); !wrong.empty()) {
      checker_->Fail("checkpoints are whole", absl::StrCat(one.name, ": ", wrong));
    }
    next_begins_after_ = looked_;
  }
  looked_ = now;
}

std::string CheckpointChecker::Judge(const checkpoint::Manifest& manifest,
                                     absl::Time begun_after) const {
  Values values;
  if (std::string wrong = ReadInto(manifest, &values); !wrong.empty()) return wrong;
  for (const SimTable& table : *tables_) {
    if (!table.counter) continue;
    if (std::string wrong = JudgeTable(manifest, begun_after, table, values); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string CheckpointChecker::ReadInto(const checkpoint::Manifest& manifest,
                                        Values* values) const {
  const auto chain =
      checkpoint::ReadChain(files_, checkpoint::JoinPath(kSavedFolder, manifest.name));
  if (!chain.ok()) return chain.status().ToString();
  for (std::uint32_t shard = 0; shard < manifest.num_shards; ++shard) {
    const auto contents = ps::ReadShard(files_, kSavedFolder, *chain, shard, [](std::uint64_t) {});
    if (!contents.ok()) return contents.status().ToString();
    for (const ps::ShardContent& content : *contents) {
      for (const ps::ShardContent::Table& saved : content.tables) {
        const SimTable* const table = TableNamed(*tables_, saved.spec.name);
        if (table == nullptr) return absl::StrCat("nobody has created ", saved.spec.name);
        if (!table->counter) continue;
        for (const ps::FrozenPiece& piece : saved.pieces) {
          ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
            const std::optional<std::uint32_t> place = PlaceOf(*table, row.key);
            if (!place.has_value()) return;
            std::vector<std::int64_t>& elements = (*values)[{table->index, *place}];
            elements.resize(row.values.size() / sizeof(std::int64_t));
            std::memcpy(elements.data(), row.values.data(), row.values.size());
          });
        }
      }
    }
  }
  return "";
}

std::string CheckpointChecker::JudgeTable(const checkpoint::Manifest& manifest,
                                          absl::Time begun_after, const SimTable& table,
                                          const Values& values) const {
  for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
    const std::vector<Push>& pushes = history_->pushes(table, worker);
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      const Push& push = pushes[number];
      const Expected expected = Expect(manifest, begun_after, table, worker, push);
      for (std::uint32_t place = 0; place < table.places; ++place) {
        if (((push.places >> place) & 1) == 0) continue;
        const auto found = values.find({table.index, place});
        const bool there = found != values.end() && found->second.size() >= table.width;
        const int times =
            there ? TimesApplied({found->second.data(), table.width}, worker, number) : 0;
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

// What a killed worker pushed in a clock that it had not ended may be there or not.
CheckpointChecker::Expected CheckpointChecker::Expect(const checkpoint::Manifest& manifest,
                                                      absl::Time begun_after, const SimTable& table,
                                                      std::uint32_t worker,
                                                      const Push& push) const {
  if (!HasClock(table)) {
    return {.must = push.outcome == Outcome::kAcknowledged && push.acknowledged < begun_after,
            .may = true};
  }
  const bool below = push.clock < manifest.clock;
  const bool certain =
      push.outcome != Outcome::kFailed && !history_->lives[worker].WasKilled(push.incarnation);
  return {.must = below && certain, .may = below};
}

// docs/checkpoint-format.md, "What is promised".
bool CheckpointChecker::HasClock(const SimTable& table) const {
  if (!table.spec.consistency.is_unbounded()) return true;
  return std::any_of(tables_->begin(), tables_->end(), [](const SimTable& other) {
    return !other.spec.consistency.is_bsp() && !other.spec.consistency.is_unbounded();
  });
}

}  // namespace leeway::simulation
