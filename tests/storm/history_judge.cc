#include "tests/storm/history_judge.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::storm {
namespace {

using simulation::Outcome;
using simulation::Push;
using simulation::Read;
using simulation::SimTable;

absl::Status Senseless(std::uint32_t rank, const HistoryRecord& record) {
  return absl::DataLossError(absl::StrCat("the history of worker ", rank, " makes no sense at \"",
                                          ToHistoryLine(record), "\""));
}

// A push with the result UNKNOWN may be in the table or not, now or later: like a failed one it
// need not be seen, and may be seen once.
Outcome OutcomeOf(int code) {
  return code == static_cast<int>(absl::StatusCode::kOk) ? Outcome::kAcknowledged
                                                         : Outcome::kFailed;
}

}  // namespace

HistoryJudge::HistoryJudge(std::vector<SimTable> tables, std::uint32_t workers)
    : tables_(std::move(tables)), history_(tables_.size(), workers), checker_(&history_) {}

void HistoryJudge::AddProcess(std::uint32_t rank, std::unique_ptr<std::istream> lines,
                              absl::Time killed) {
  const auto before = std::count_if(processes_.begin(), processes_.end(),
                                    [&](const auto& other) { return other->rank == rank; });
  processes_.push_back(
      std::unique_ptr<Process>(new Process{.rank = rank,
                                           .incarnation = static_cast<std::uint32_t>(before) + 1,
                                           .killed = killed,
                                           .lines = HistoryReader(std::move(lines)),
                                           .next = std::nullopt,
                                           .reads = {},
                                           .told = {}}));
}

absl::StatusOr<HistoryVerdict> HistoryJudge::Judge() {
  for (const auto& process : processes_) {
    LEEWAY_ASSIGN_OR_RETURN(process->next, process->lines.Next());
    if (process->next.has_value() || process->killed != absl::InfiniteFuture()) continue;
    return absl::DataLossError(absl::StrCat("worker ", process->rank, " has written no history"));
  }
  while (Process* const process = Earliest()) {
    const HistoryRecord record = *std::move(process->next);
    KillUntil(TimeOf(record));
    std::uint32_t& incarnation = history_.lives[process->rank].incarnation;
    if (process->incarnation < incarnation) return Senseless(process->rank, record);
    incarnation = process->incarnation;
    LEEWAY_RETURN_IF_ERROR(
        std::visit([&](const auto& what) { return Replay(process, what); }, record));
    LEEWAY_ASSIGN_OR_RETURN(process->next, process->lines.Next());
  }
  verdict_.reads = checker_.reads();
  verdict_.violation = checker_.violation();
  return verdict_;
}

// Of records of one moment, beginnings come first: every value that a read sees was pushed before.
HistoryJudge::Process* HistoryJudge::Earliest() {
  const auto order = [](const HistoryRecord& record) {
    return std::pair(TimeOf(record), !IsBeginning(record));
  };
  Process* earliest = nullptr;
  for (const auto& process : processes_) {
    if (!process->next.has_value()) continue;
    if (earliest == nullptr || order(*process->next) < order(*earliest->next)) {
      earliest = process.get();
    }
  }
  return earliest;
}

// From that moment on a process may be dead, though it may still write some lines.
void HistoryJudge::KillUntil(absl::Time time) {
  for (const auto& process : processes_) {
    std::uint32_t& killed = history_.lives[process->rank].killed;
    if (process->killed <= time) killed = std::max(killed, process->incarnation);
  }
}

absl::Status HistoryJudge::Replay(Process* process, const PushMade& push) {
  if (push.table >= tables_.size() || push.number >= tables_[push.table].pushes_per_worker_max()) {
    return Senseless(process->rank, push);
  }
  std::vector<Push>& pushes = history_.pushes(tables_[push.table], process->rank);
  if (push.number < pushes.size()) return Senseless(process->rank, push);
  // Numbers that a killed process has not used change no place.
  pushes.resize(push.number);
  pushes.push_back({.clock = push.clock,
                    .incarnation = process->incarnation,
                    .places = push.places,
                    .submitted = push.at});
  ++verdict_.pushes;
  return absl::OkStatus();
}

absl::Status HistoryJudge::Replay(Process* process, const PushTold& told) {
  if (told.table >= tables_.size()) return Senseless(process->rank, told);
  std::vector<Push>& pushes = history_.pushes(tables_[told.table], process->rank);
  if (told.number >= pushes.size()) return Senseless(process->rank, told);
  Push& push = pushes[told.number];
  push.outcome = OutcomeOf(told.code);
  push.acknowledged = told.at;
  if (push.outcome == Outcome::kAcknowledged) ++verdict_.acknowledged;
  return absl::OkStatus();
}

absl::Status HistoryJudge::Replay(Process* process, const ReadAsked& asked) {
  if (asked.table >= tables_.size()) return Senseless(process->rank, asked);
  const SimTable& table = tables_[asked.table];
  if (asked.places == 0 || (asked.places & ~table.AllPlaces()) != 0) {
    return Senseless(process->rank, asked);
  }
  Read read;
  read.table = &table;
  read.reader = process->rank;
  read.incarnation = process->incarnation;
  read.clock = asked.clock;
  read.effective = asked.effective;
  read.submitted = asked.at;
  read.own_pushes = asked.own_pushes;
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (((asked.places >> place) & 1) != 0) read.places.push_back(place);
  }
  checker_.OnAsked(&read);
  process->reads.insert_or_assign(asked.id, std::move(read));
  return absl::OkStatus();
}

absl::Status HistoryJudge::Replay(Process* process, const ReadSeen& seen) {
  const auto found = process->reads.find(seen.id);
  if (found == process->reads.end()) return Senseless(process->rank, seen);
  Read read = std::move(found->second);
  process->reads.erase(found);
  const SimTable& table = *read.table;
  for (const ReadSeen::Change& change : seen.changes) {
    std::vector<std::int64_t>& told = process->told[{table.index, change.place}];
    told.resize(table.width);
    if (change.element >= table.width) return Senseless(process->rank, seen);
    told[change.element] = change.value;
  }
  read.counts.resize((read.places.size() - 1) * table.stride + table.width);
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    const std::vector<std::int64_t>& told = process->told[{table.index, read.places[i]}];
    std::copy(told.begin(), told.end(),
              read.counts.begin() + static_cast<std::ptrdiff_t>(i * table.stride));
  }
  read.completed = seen.at;
  read.reader_clock = seen.reader_clock;
  checker_.OnRead(read);
  if (read.complete()) history_.Prove(table, process->rank, read.effective);
  return absl::OkStatus();
}

absl::Status HistoryJudge::Replay(Process* process, const ReadFailed& failed) {
  process->reads.erase(failed.id);
  return absl::OkStatus();
}

}  // namespace leeway::storm
