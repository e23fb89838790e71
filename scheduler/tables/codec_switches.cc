#include "scheduler/tables/codec_switches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"

namespace leeway::scheduler {
namespace {

// The most clocks between the fastest worker and a switch that was missed before.
constexpr std::uint64_t kSwitchMarginMax = 1 << 20;

std::uint64_t NumberAfter(const std::deque<proto::CodecSwitch>& decided) {
  return decided.empty() ? 1 : decided.back().number + 1;
}

}  // namespace

void CodecSwitches::NoteChange() {
  ++changes_;
  changed_();
}

CodecSwitches::Current CodecSwitches::CurrentOf(std::uint32_t id) const {
  const auto found = tables_.find(id);
  if (found == tables_.end()) return {};
  const Table& table = found->second;
  Current current{.being_changed = table.announced.has_value()};
  if (!table.decided.empty()) {
    current.choice = table.decided.back().choice;
    current.since = table.decided.back().clock;
  }
  return current;
}

void CodecSwitches::Switch(std::uint32_t id, std::uint32_t choice, Done done) {
  Table& table = tables_[id];
  if (table.wishes.size() >= kSwitchesWaitingMax) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat(table.wishes.size(), " changes of the table's codec wait already")));
  }
  table.wishes.push_back({.choice = choice, .done = std::move(done)});
  if (!table.announced.has_value()) Begin(id, &table);
}

// Begins the first wish whose codec the table does not have.
void CodecSwitches::Begin(std::uint32_t id, Table* table) {
  while (!table->wishes.empty()) {
    const Current current = CurrentOf(id);
    const Wish& wish = table->wishes.front();
    if (wish.choice != current.choice) {
      table->announced = proto::CodecSwitch{.table = id,
                                            .number = NumberAfter(table->decided),
                                            .before = current.choice,
                                            .choice = wish.choice};
      table->margin = kMarginMin;
      Announce(table);
      NoteChange();
      // Without workers there is none that has to agree.
      if (DecideIfAgreed(id, table)) NoteChange();
      return;
    }
    const Done done = std::move(table->wishes.front().done);
    table->wishes.pop_front();
    if (done != nullptr) done(current.since);
  }
}

void CodecSwitches::Announce(Table* table) {
  const std::uint64_t after = table->decided.empty() ? 0 : table->decided.back().clock + 1;
  table->announced->clock = std::min<std::uint64_t>(std::max(newest_clock_ + table->margin, after),
                                                    proto::kStartClockMax);
  table->version.reset();
  table->agreed.clear();
  table->again = false;
}

void CodecSwitches::Published(std::uint64_t version) {
  for (auto& [id, table] : tables_) {
    if (table.announced.has_value() && !table.version.has_value()) table.version = version;
  }
}

void CodecSwitches::Hear(std::uint32_t worker, std::uint64_t clock, Table* table) {
  if (table->agreed.contains(worker)) return;
  if (clock < table->announced->clock) {
    table->agreed.insert(worker);
    return;
  }
  table->margin = std::min(2 * table->margin, kSwitchMarginMax);
  Announce(table);
  ++changes_;
}

std::uint64_t CodecSwitches::OldestClock() const {
  std::uint64_t oldest = proto::kStartClockMax;
  for (const std::uint32_t worker : workers_()) {
    const auto found = oldest_.find(worker);
    oldest = std::min(oldest, found == oldest_.end() ? 0 : found->second);
  }
  return oldest;
}

bool CodecSwitches::IsFull(const Table& table) const {
  return table.decided.size() >= told_max_ && OldestClock() < table.decided.front().clock;
}

// A switch says which choice was before it, so it is needed as long as a clock before it is.
void CodecSwitches::DropUnneeded(Table* table) const {
  const std::uint64_t oldest = OldestClock();
  while (table->decided.size() > 1 && table->decided.front().clock <= oldest) {
    table->decided.pop_front();
  }
}

void CodecSwitches::OnAck(std::uint32_t worker, std::uint64_t version, std::uint64_t clock,
                          std::uint64_t oldest) {
  OnClock(clock);
  std::uint64_t& known = oldest_[worker];
  known = std::max(known, std::min(oldest, clock));
  const std::uint64_t before = changes_;
  bool decided = false;
  for (auto& [id, table] : tables_) {
    const std::size_t told = table.decided.size();
    DropUnneeded(&table);
    if (table.decided.size() != told) ++changes_;
    if (!table.announced.has_value() || !table.version.has_value() || version < *table.version) {
      continue;
    }
    Hear(worker, clock, &table);
    decided = DecideIfAgreed(id, &table) || decided;
  }
  if (decided || changes_ != before) NoteChange();
}

void CodecSwitches::OnLeave(std::uint32_t worker, std::uint64_t clock) {
  OnClock(clock);
  const std::uint64_t before = changes_;
  for (auto& [id, table] : tables_) {
    if (table.announced.has_value()) Hear(worker, clock, &table);
  }
  if (changes_ != before) NoteChange();
}

void CodecSwitches::OnClock(std::uint64_t clock) {
  newest_clock_ = std::max(newest_clock_, std::min(clock, proto::kStartClockMax));
}

void CodecSwitches::WorkersChanged() {
  const std::vector<std::uint32_t> living = workers_();
  std::erase_if(oldest_, [&](const auto& entry) {
    return std::find(living.begin(), living.end(), entry.first) == living.end();
  });
  bool decided = false;
  for (auto& [id, table] : tables_) decided = DecideIfAgreed(id, &table) || decided;
  if (decided) NoteChange();
}

void CodecSwitches::Tick() {
  bool announced = false;
  for (auto& [id, table] : tables_) {
    if (!table.announced.has_value() || !table.again || !table.version.has_value()) continue;
    Announce(&table);
    announced = true;
  }
  if (announced) NoteChange();
}

bool CodecSwitches::DecideIfAgreed(std::uint32_t id, Table* table) {
  if (!table->announced.has_value() || !table->version.has_value()) return false;
  for (const std::uint32_t worker : workers_()) {
    if (!table->agreed.contains(worker)) return false;
  }
  if (IsFull(*table)) {
    table->again = true;
    return false;
  }
  table->decided.push_back(*std::exchange(table->announced, std::nullopt));
  table->decided.back().decided = true;
  DropUnneeded(table);
  table->version.reset();
  ++changes_;                    // first, so that answers wait until the change is on disk
  if (!table->wishes.empty()) {  // those of before a restart have none
    const Done done = std::move(table->wishes.front().done);
    table->wishes.pop_front();
    if (done != nullptr) done(table->decided.back().clock);
  }
  if (!table->wishes.empty()) Begin(id, table);
  return true;
}

std::vector<proto::CodecSwitch> CodecSwitches::entries() const {
  std::vector<proto::CodecSwitch> entries;
  for (const auto& [id, table] : tables_) {
    entries.insert(entries.end(), table.decided.begin(), table.decided.end());
    if (table.announced.has_value()) entries.push_back(*table.announced);
  }
  return entries;
}

void CodecSwitches::Set(std::uint32_t id, std::uint32_t choice, std::uint64_t clock) {
  Table& table = tables_[id];
  table.decided.push_back({.table = id,
                           .number = NumberAfter(table.decided),
                           .before = CurrentOf(id).choice,
                           .choice = choice,
                           .clock = clock,
                           .decided = true});
  // No clock before it has ever been used.
  table.decided.erase(table.decided.begin(), table.decided.end() - 1);
  ++changes_;
}

std::uint32_t CodecSwitches::OldestChoice(std::uint32_t id) const {
  const auto found = tables_.find(id);
  if (found == tables_.end()) return 0;
  const Table& table = found->second;
  if (!table.decided.empty()) return table.decided.front().before;
  return table.announced.has_value() ? table.announced->before : 0;
}

void CodecSwitches::Restore(const std::vector<proto::CodecSwitch>& entries,
                            const Decided& decided) {
  tables_.clear();
  for (const proto::CodecSwitch& entry : entries) {
    Table& table = tables_[entry.table];
    if (entry.decided) {
      table.decided.push_back(entry);
    } else {
      table.announced = entry;
      Done done = nullptr;
      if (decided != nullptr) {
        done = [decided, id = entry.table](const absl::StatusOr<std::uint64_t>& clock) {
          if (clock.ok()) decided(id, *clock);
        };
      }
      table.wishes.push_back({.choice = entry.choice, .done = std::move(done)});
    }
    newest_clock_ = std::max(newest_clock_, entry.clock);
  }
}

}  // namespace leeway::scheduler
