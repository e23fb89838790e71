#include "tests/storm/traced_tables.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::storm {
namespace {

using simulation::SimTable;

// In a longer training only some steps are traced.
constexpr std::uint64_t kTracedStepsMax = 1900;
// More digits than steps, for steps that are repeated after a worker was replaced.
constexpr std::uint64_t kSpareDigits = 100;
constexpr std::uint32_t kTracedBlocks = 2;
constexpr std::size_t kTracedBlockElements = 2048;  // of the storm's block size
constexpr std::uint32_t kTracedKeys = 48;           // so that most shards have some
constexpr std::uint64_t kReadAllEvery = 16;         // reads of a table
constexpr std::uint32_t kTablesOfTheMode = 2;       // the first ones
constexpr std::uint64_t kOthersEvery = 4;           // steps

std::uint64_t TracedEvery(std::uint64_t steps) { return steps / kTracedStepsMax + 1; }

SimTable Describe(const std::string& name, bool dense, std::uint32_t index, std::uint32_t workers,
                  std::uint64_t digits, Consistency consistency) {
  SimTable table;
  table.index = index;
  table.num_workers = workers;
  table.width = workers * (digits / simulation::kDigitsPerElement + 1);
  const std::string full = absl::StrCat("traced.", name, dense ? ".dense" : ".sparse");
  if (dense) {
    table.places = kTracedBlocks;
    table.stride = std::max(table.width, kTracedBlockElements);
    table.spec =
        TableSpec::Dense(full, {(table.places - 1) * table.stride + table.width}, DType::kInt64);
  } else {
    table.places = kTracedKeys;
    table.stride = table.width;
    table.spec = TableSpec::Sparse(full, table.width, DType::kInt64);
    for (std::uint64_t key = 0; key < table.places; ++key) table.keys.push_back(key);
  }
  table.spec.updater.name = "add";
  table.spec.consistency = consistency;
  return table;
}

}  // namespace

std::vector<SimTable> TracedTables(std::uint32_t workers, std::uint64_t steps,
                                   Consistency consistency) {
  const std::uint64_t digits = steps / TracedEvery(steps) + kSpareDigits;
  // What a read sees is judged by a bound on clocks.
  if (consistency.rule != Consistency::Rule::kClocks || consistency.is_weighted()) {
    consistency = Consistency::Ssp(3);
  }
  std::vector<SimTable> tables;
  for (const auto& [name, how] :
       {std::pair("mode", consistency), std::pair("asp", Consistency::Asp())}) {
    for (const bool dense : {true, false}) {
      tables.push_back(
          Describe(name, dense, static_cast<std::uint32_t>(tables.size()), workers, digits, how));
    }
  }
  return tables;
}

// One operation, with its memory.
struct Tracer::Call {
  std::shared_ptr<const std::vector<SimTable>> described;
  const SimTable* table = nullptr;  // one of them
  std::vector<std::uint32_t> places;
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> pushed, pulled;
  bool pushes = false, pulls = false;
  std::uint64_t number = 0;  // of the push
  std::uint64_t read = 0;
};

absl::StatusOr<Tracer> Tracer::Create(const TracerOptions& options, Consistency consistency,
                                      Worker* worker) {
  LEEWAY_ASSIGN_OR_RETURN(std::shared_ptr<HistoryWriter> history,
                          HistoryWriter::Open(options.file));
  history->SetClock(worker->clock());
  Tracer tracer(TracedEvery(options.steps),
                TracedTables(worker->num_workers(), options.steps, consistency), std::move(history),
                worker);
  for (const SimTable& described : *tracer.described_) {
    LEEWAY_ASSIGN_OR_RETURN(Table table, worker->CreateTable(described.spec));
    tracer.tables_.push_back(std::move(table));
    tracer.numbered_.push_back(options.pushes_before);
  }
  return tracer;
}

Tracer::Tracer(std::uint64_t every, std::vector<SimTable> described,
               std::shared_ptr<HistoryWriter> history, Worker* worker)
    : every_(every),
      described_(std::make_shared<const std::vector<SimTable>>(std::move(described))),
      history_(std::move(history)),
      worker_(worker),
      random_(runtime::RandomAt(worker->clock(), runtime::StableHash("traced tables"),
                                worker->rank())) {}

bool Tracer::IsTaken(const SimTable& table) {
  return table.index < kTablesOfTheMode || random_.Below(kOthersEvery) == 0;
}

std::uint64_t Tracer::SomePlaces(const SimTable& table) {
  std::uint64_t places = table.AllPlaces();
  for (int halved = 0; halved < 4; ++halved) places &= random_.Next();
  return places != 0 ? places : std::uint64_t{1} << random_.Below(table.places);
}

std::vector<Ticket> Tracer::Read(std::uint64_t step) {
  std::vector<Ticket> tickets;
  if (!IsTraced(step)) return tickets;
  for (const SimTable& table : *described_) {
    if (!IsTaken(table)) continue;
    const bool all = random_.Below(kReadAllEvery) == 0;
    // A read has all of a dense table.
    if (table.dense() && !all && random_.Below(4) != 0) continue;
    Submit(table, all || table.dense() ? table.AllPlaces() : SomePlaces(table), false, true,
           &tickets);
  }
  return tickets;
}

std::vector<Ticket> Tracer::Push(std::uint64_t step) {
  std::vector<Ticket> tickets;
  if (!IsTraced(step)) return tickets;
  for (const SimTable& table : *described_) {
    if (!IsTaken(table) || numbered_[table.index] >= table.pushes_per_worker_max()) continue;
    const std::uint64_t places = table.dense() ? table.AllPlaces() : SomePlaces(table);
    const std::uint64_t kind = random_.Below(8);
    Submit(table, places, true, kind == 0, &tickets);
    // It is answered while the worker goes on, perhaps after it has ended this clock.
    if (kind == 1) Submit(table, places, false, true, &tickets);
  }
  return tickets;
}

std::vector<Ticket> Tracer::ReadAll() {
  std::vector<Ticket> tickets;
  for (const SimTable& table : *described_) {
    Submit(table, table.AllPlaces(), false, true, &tickets);
  }
  return tickets;
}

absl::Status Tracer::BeforeClock() {
  history_->SetClock(worker_->clock() + 1);
  return history_->status();
}

void Tracer::Submit(const SimTable& table, std::uint64_t places, bool pushes, bool pulls,
                    std::vector<Ticket>* tickets) {
  auto call = std::make_shared<Call>();
  call->described = described_;
  call->table = &table;
  call->pushes = pushes;
  call->pulls = pulls;
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (((places >> place) & 1) == 0) continue;
    call->places.push_back(place);
    if (!table.dense()) call->keys.push_back(table.keys[place]);
  }
  const std::size_t size = (call->places.size() - 1) * table.stride + table.width;
  const std::uint64_t clock = worker_->clock();
  if (pushes) {
    call->number = numbered_[table.index]++;
    call->pushed.resize(size);
    for (std::size_t i = 0; i < call->places.size(); ++i) {
      simulation::AddPush(table, {call->pushed.data() + i * table.stride, table.width},
                          worker_->rank(), call->number);
    }
    history_->Made(
        {.table = table.index, .number = call->number, .clock = clock, .places = places, .at = {}});
  }
  if (pulls) {
    call->read = ++reads_;
    call->pulled.resize(size);
    const bool after_this_clock = pushes && table.bsp();
    history_->Asked({.id = call->read,
                     .table = table.index,
                     .clock = clock,
                     .effective = clock + (after_this_clock ? 1 : 0),
                     .own_pushes = numbered_[table.index],
                     .places = places,
                     .at = {}});
  }
  // A push that is not in the history would count as one that no worker has made.
  if (!history_->status().ok()) return;
  Options options;
  options.done = [call, history = history_](const absl::Status& status) {
    if (call->pushes) {
      history->Told({.table = call->table->index,
                     .number = call->number,
                     .code = static_cast<int>(status.code()),
                     .at = {}});
    }
    if (call->pulls && status.ok()) {
      history->Seen(call->read, *call->table, call->places, call->pulled);
    } else if (call->pulls) {
      history->Failed({.id = call->read, .code = static_cast<int>(status.code()), .at = {}});
    }
  };
  const Table& to = tables_[table.index];
  const std::span<const std::uint64_t> keys(call->keys);
  const std::span<const std::int64_t> pushed(call->pushed);
  const std::span<std::int64_t> pulled(call->pulled);
  if (pushes && pulls) {
    tickets->push_back(table.dense() ? to.PushPull(pushed, pulled, options)
                                     : to.PushPull(keys, pushed, pulled, options));
  } else if (pushes) {
    tickets->push_back(table.dense() ? to.Push(pushed, options) : to.Push(keys, pushed, options));
  } else {
    tickets->push_back(table.dense() ? to.Pull(pulled, options) : to.Pull(keys, pulled, options));
  }
}

}  // namespace leeway::storm
