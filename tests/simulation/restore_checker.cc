#include "tests/simulation/restore_checker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "tests/simulation/counter_values.h"
#include "tests/simulation/sim_handler.h"

namespace leeway::simulation {
namespace {

// Calls `visit(place, elements)` for every place that a call of the handler changes.
template <class Visit>
void ForEachPlaceOfCall(const SimTable& table, const ps::Inbound& sent, const Visit& visit) {
  const SimHandlerRequest call = SimHandlerRequest::From(sent.payload[1].text());
  const std::span<const std::int64_t> counts = call.counts;
  for (std::size_t i = 0; i < call.keys.size() && !call.fails; ++i) {
    const std::optional<std::uint32_t> place = PlaceOf(table, call.keys[i]);
    if (place.has_value()) visit(*place, counts.subspan(i * table.width, table.width));
  }
}

// Calls `visit(place, elements)` for every place that a push to a counter table changes; not at all
// if the push has to be refused.
template <class Visit>
void ForEachPlace(const SimTable& table, const ps::Inbound& sent, const Visit& visit) {
  if (sent.request.op == proto::Op::kCall) return ForEachPlaceOfCall(table, sent, visit);
  const ps::PushView push = ps::ToPush(sent);
  std::vector<std::int64_t> whole;
  if (table.refuses()) {
    const auto doubles = push.values.as<double>();
    if (!std::ranges::all_of(doubles, [](double value) { return std::isfinite(value); })) return;
  }
  if (table.converts()) {
    whole = ToCounts(table, table.spec.dtype, push.values.bytes(), table.push_scale);
  }
  const auto values =
      table.converts() ? std::span<const std::int64_t>(whole) : push.values.as<std::int64_t>();
  const auto keys = push.keys.as<std::uint64_t>();
  for (std::size_t i = 0; i < std::max<std::size_t>(keys.size(), 1); ++i) {
    const std::optional<std::uint32_t> place = PlaceOf(table, keys.empty() ? push.block : keys[i]);
    if (place.has_value()) visit(*place, values.subspan(i * table.width, table.width));
  }
}

}  // namespace

std::string RestoreChecker::Judge(const checkpoint::Manifest& manifest,
                                  const std::vector<ps::ShardContent>& contents,
                                  absl::Time written) const {
  const std::uint32_t shard = contents.back().shard;
  RestoredShard restored(manifest, shard, history_);
  if (const absl::Status begun = restored.Begin(manifest, contents); !begun.ok()) {
    return absl::StrCat("shard ", shard, ": ", begun.ToString());
  }
  std::string held = JudgeHeld(&restored, manifest.clock, written);
  if (!held.empty()) return absl::StrCat("shard ", shard, " has ", held);
  DigitsByPlace wanted = SendAgain(&restored);
  AddBefore(manifest, shard, &wanted);
  CounterValues found;
  for (const auto& [id, store] : restored.shard().stores()) {
    const SimTable* const table = TableNamed(*tables_, restored.Find(id)->spec().name);
    if (table != nullptr && table->counter) found.Take(*table, store->Freeze().pieces);
  }
  for (const auto& [id, collected] : restored.shard().collected()) {
    const SimTable* const table = TableNamed(*tables_, restored.Find(id)->spec().name);
    if (table != nullptr && table->counter) found.Add(*table, collected.Freeze());
  }
  for (const SimTable& table : *tables_) {
    for (std::uint32_t place = 0; table.counter && place < table.places; ++place) {
      Digits& digits = wanted[{table.index, place}];
      digits.must.resize(table.width);
      digits.may.resize(table.width);
      std::string wrong = Compare(table, place, digits, found.Of(table, place));
      if (!wrong.empty()) return absl::StrCat("shard ", shard, " has ", wrong);
    }
  }
  return "";
}

// Of tables whose replies are differences.
std::string RestoreChecker::JudgeHeld(RestoredShard* restored, std::uint64_t clock,
                                      absl::Time written) const {
  for (const auto& [id, store] : restored->shard().stores()) {
    const SimTable* const table = TableNamed(*tables_, restored->Find(id)->spec().name);
    if (table == nullptr || !table->versions() || !switched_by_(id, clock, written)) continue;
    for (const ps::FrozenPiece& piece : store->Freeze().pieces) {
      const auto block = store->OpenFeedback(piece.block, /*write_values=*/false);
      if (!block.ok() || block->slot == nullptr) continue;
      const std::span<const float> values(reinterpret_cast<const float*>(block->values),
                                          block->elements);
      if (std::ranges::equal(values, std::span(block->slot, block->elements))) continue;
      return absl::StrCat("in block ", piece.block, " of '", table->spec.name,
                          "', whose codec was changed before clock ", clock,
                          ", something else for new workers than the values");
    }
  }
  return "";
}

RestoreChecker::DigitsByPlace RestoreChecker::SendAgain(RestoredShard* restored) const {
  DigitsByPlace wanted;
  for (const ps::Inbound& sent : sent_->To(restored->shard().id())) {
    const ps::Table* const installed = restored->Find(sent.request.table);
    if (installed == nullptr) continue;  // a table that was created later
    const bool taken = restored->Take(sent);
    const SimTable* const table = TableNamed(*tables_, installed->spec().name);
    if (table == nullptr || !table->counter) continue;
    const proto::RequestId& id = sent.request.id;
    const WorkerLife& life = history_->lives[id.worker];
    // docs/consistency.md: a clock that its worker has not ended.
    const bool may_be_lost =
        table->drops() || (table->bsp() && life.WasKilled(life.Incarnation(id.incarnation)));
    ForEachPlace(*table, sent, [&](std::uint32_t place, std::span<const std::int64_t> elements) {
      Digits& digits = wanted[{table->index, place}];
      digits.must.resize(table->width);
      digits.may.resize(table->width);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        digits.may[i] |= elements[i];
        if (taken && !may_be_lost) digits.must[i] |= elements[i];
      }
    });
  }
  restored->End();
  return wanted;
}

void RestoreChecker::AddBefore(const checkpoint::Manifest& manifest, std::uint32_t shard,
                               DigitsByPlace* wanted) const {
  for (const checkpoint::TableEntry& entry : manifest.tables) {
    const SimTable* const table = TableNamed(*tables_, entry.spec.name);
    if (table == nullptr || !table->counter) continue;
    for (std::uint32_t place = 0; place < table->places; ++place) {
      const std::uint32_t its = table->dense()
                                    ? proto::ShardOfBlock(entry.id, place, manifest.num_shards)
                                    : proto::ShardOfKey(table->keys[place], manifest.num_shards);
      if (its != shard) continue;
      Digits& digits = (*wanted)[{table->index, place}];
      digits.must.resize(table->width);
      digits.may.resize(table->width);
      for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
        const std::vector<Push>& pushes = history_->pushes(*table, worker);
        for (std::size_t number = 0; number < pushes.size(); ++number) {
          const Push& push = pushes[number];
          if (push.incarnation != 0 || ((push.places >> place) & 1) == 0) continue;
          AddPush(*table, digits.must, worker, number);
          AddPush(*table, digits.may, worker, number);
        }
      }
    }
  }
}

std::string RestoreChecker::Compare(const SimTable& table, std::uint32_t place,
                                    const Digits& wanted,
                                    const std::vector<std::int64_t>& found) const {
  const auto right = [&](std::size_t i) {
    return (found[i] & wanted.must[i]) == wanted.must[i] && (found[i] & ~wanted.may[i]) == 0;
  };
  std::size_t element = 0;
  while (element < table.width && right(element)) ++element;
  if (element == table.width) return "";
  for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
    const std::vector<Push>& pushes = history_->pushes(table, worker);
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      const int times = TimesApplied(table, found, worker, number);
      if (times >= TimesApplied(table, wanted.must, worker, number) &&
          times <= TimesApplied(table, wanted.may, worker, number)) {
        continue;
      }
      return absl::StrCat("push ", number, " of worker ", worker, " (clock ", pushes[number].clock,
                          ") to place ", place, " of '", table.spec.name, "' (",
                          table.spec.consistency.ToString(), ") ", times, " times");
    }
  }
  return absl::StrCat("in place ", place, " of '", table.spec.name, "' what nobody has pushed");
}

}  // namespace leeway::simulation
