#include "tests/simulation/scripted_worker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_handler.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {
namespace {

// Longer than any fault: operations that have to succeed, and are delayed by faults, do so within
// it.
constexpr absl::Duration kScriptTimeout = absl::Minutes(2);
constexpr std::uint64_t kCallsPerIterationMax = 8;
constexpr int kTicksAtGate = 10;
constexpr absl::Duration kLookForTables = absl::Milliseconds(10);
// One in so many pushes to a table that refuses some; and one in so many operations with a short
// deadline, in scripts that have these.
constexpr std::uint64_t kNonFiniteEvery = 6, kShortEvery = 6;
// One in so many iterations a worker calls a handler, in scripts that have that; and one in so many
// of these calls fails in the end.
constexpr std::uint64_t kCallEvery = 5, kFailingCallEvery = 6;
constexpr absl::Duration kShortTimeoutMax = absl::Milliseconds(40);

// ±1, ±2, ±3 or ±4.
float SmallNumber(runtime::Random* random) {
  const auto size = static_cast<float>(1 + random->Below(4));
  return random->Below(2) == 0 ? size : -size;
}

}  // namespace

struct ScriptedWorker::Call {
  std::uint64_t number = 0;
  proto::Op op = proto::Op::kPush;
  const SimTable* table = nullptr;
  absl::Time submitted;
  std::uint64_t places = 0;
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> counts;
  std::vector<float> floats;
  std::vector<std::byte> values;      // counters that are floats
  std::vector<std::uint32_t> widths;  // ragged tables: of each row pushed
  RaggedRows ragged;                  // likewise: the pulled rows
  std::optional<double> rate;         // coded tables
  std::string answer;                 // of a handler
  std::size_t push = 0;               // its number in the history
  std::uint64_t refused = 0;          // places that refuse it
  absl::Duration timeout = kScriptTimeout;
  Read read;
};

ScriptedWorker::ScriptedWorker(std::uint32_t rank, const Script* script, SimCluster* cluster,
                               History* history, Checker* checker, CodedChecker* coded,
                               std::uint64_t seed)
    : rank_(rank),
      script_(script),
      cluster_(cluster),
      history_(history),
      checker_(checker),
      coded_(coded),
      random_(seed),
      calls_random_(runtime::StableHash(seed)),
      iteration_(script->begins_at) {}

std::string ScriptedWorker::Name() const { return absl::StrCat("worker ", rank_); }

// ---- its processes ----

void ScriptedWorker::Start() {
  core_ = cluster_->Start(Role::kWorker, rank_)->core();
  ++history_->lives[rank_].incarnation;
  history_->lives[rank_].known_as.push_back(core_->incarnation());
  Waits("joining");
  core_->Start([this](const absl::Status& status) {
    // The scheduler may not know yet that its rank is free.
    if (!status.ok() && history_->lives[rank_].incarnation > 1) may_be_given_up_ = true;
    if (Expect(status, "joining")) OnReady();
  });
}

void ScriptedWorker::OnKilled() {
  WorkerLife& life = history_->lives[rank_];
  if (!life.left.contains(life.incarnation)) {
    life.killed = life.incarnation;
    life.died_in.try_emplace(life.incarnation, life.clock);
  }
  core_ = nullptr;
  leaves_.reset();
  ready_ = answered_ = at_gate_ = at_end_ = may_be_given_up_ = given_up_ = reads_last_ = false;
  calls_.clear();
  when_idle_ = nullptr;
  waits_for_.clear();
}

void ScriptedWorker::OnReady() {
  ready_ = true;
  infos_.assign(script_->tables.size(), nullptr);
  Waits("creating tables");
  std::vector<const SimTable*> first;
  for (const SimTable& table : script_->tables) {
    if (table.created_in == 0 || life() > 1) first.push_back(&table);
  }
  creating_ = first.size();
  opening_ = true;
  for (const SimTable* table : first) Create(*table);
}

void ScriptedWorker::Create(const SimTable& table) {
  core_->CreateTable(table.spec, kScriptTimeout,
                     [this, &table](absl::StatusOr<std::shared_ptr<const worker::TableInfo>> info) {
                       if (!Expect(info.status(), "creating a table")) return;
                       infos_[table.index] = *std::move(info);
                       coded_->Know(infos_[table.index]->id, table);
                       if (--creating_ == 0 && std::exchange(opening_, false)) OnTables();
                     });
}

// Beside operations, whose clocks go on meanwhile.
void ScriptedWorker::CreateLateTables() {
  for (const SimTable& table : script_->tables) {
    if (table.created_in == 0 || table.created_in != iteration_ || life() > 1) continue;
    cluster_->Note(absl::StrCat(Name(), " creates ", table.spec.name));
    ++creating_;
    Create(table);
    script_->on_late_table();
  }
}

void ScriptedWorker::MayBeGivenUp() {
  may_be_given_up_ = true;
  history_->lives[rank_].killed = history_->lives[rank_].incarnation;
}

void ScriptedWorker::SurvivesIf(std::uint32_t incarnation) {
  if (incarnation != life() || core_ == nullptr) return;
  // A worker that waits for the others has no operation under way that would have failed.
  given_up_ = given_up_ || !core_->Usable().ok();
  may_be_given_up_ = given_up_;
}

// When it comes back the others have begun long ago, and it goes on at their clock.
void ScriptedWorker::OnTables() {
  history_->lives[rank_].clock = core_->clock();
  if (history_->lives[rank_].incarnation > 1) {
    answered_ = true;  // all servers, when they let it in; it may have nothing to ask of them
    iteration_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(core_->clock(), script_->iterations));
    return Iterate();
  }
  if (core_->clock() != script_->begins_at) {
    checker_->Fail("a restored cluster begins at the checkpoint's clock",
                   absl::StrCat(Name(), " begins at clock ", core_->clock(), ", and not at ",
                                script_->begins_at));
  }
  Barrier("start", [this] { Iterate(); });
}

void ScriptedWorker::Iterate() {
  if (iteration_ == script_->iterations) {
    if (leaves_.has_value()) std::exchange(leaves_, std::nullopt)->stays();
    if (creating_ > 0) return After(kLookForTables, [this] { Iterate(); });
    return WhenIdle([this] { at_gate_ = true; });
  }
  CreateLateTables();
  SubmitSome();
  // Half the time it waits for answers within the iteration, if they can come: a push-pull in BSP
  // is answered when the clock closes.
  const bool needs_clock = std::any_of(calls_.begin(), calls_.end(), [this](const auto& call) {
    return call.second->read.effective > core_->clock();
  });
  if (!needs_clock && leaves_.has_value() && creating_ == 0) {
    WhenIdle([this] { LeaveNow(); });
  } else if (!needs_clock && random_.Below(2) == 0) {
    WhenIdle([this] { EndIteration(); });
  } else {
    After(absl::Milliseconds(10) * random_.Uniform(), [this] { EndIteration(); });
  }
}

void ScriptedWorker::SubmitSome() {
  for (std::uint64_t i = 0, n = 1 + random_.Below(kCallsPerIterationMax); i < n; ++i) {
    const SimTable& table = script_->tables[random_.Below(script_->tables.size())];
    if (infos_[table.index] == nullptr) continue;  // to be created
    const std::uint64_t kind = random_.Below(8);
    const std::uint64_t pushed = kind < 5 ? PlacesToPush(table) : 0;
    if (pushed == 0) {
      Submit(table, proto::Op::kPull, table.dense() ? table.AllPlaces() : SomePlaces(table));
    } else {
      Submit(table, kind == 0 ? proto::Op::kPushPull : proto::Op::kPush, pushed);
    }
  }
  const bool small = std::ranges::any_of(script_->tables, &SimTable::small);
  if (small && random_.Below(4) == 0) PushToSmall();
  if (script_->calls_handlers && calls_random_.Below(kCallEvery) == 0) CallHandler();
}

void ScriptedWorker::PushToSmall() {
  for (const SimTable& table : script_->tables) {
    const std::uint64_t places = table.small ? PlacesToPush(table) : 0;
    if (places != 0) Submit(table, proto::Op::kPush, places, 0);
  }
}

void ScriptedWorker::EndIteration() {
  cluster_->Note(absl::StrCat(Name(), " ends clock ", core_->clock()));
  if (!EndClock()) return;
  ++iteration_;
  WhenIdle([this] { Rest(); });
}

void ScriptedWorker::Rest() {
  const absl::Duration think = script_->think_max * random_.Uniform();
  if (script_->barrier_every > 0 && iteration_ % script_->barrier_every == 0 &&
      iteration_ < script_->iterations) {
    return Barrier(absl::StrCat("iteration ", iteration_),
                   [this, think] { After(think, [this] { Iterate(); }); });
  }
  After(think, [this] { Iterate(); });
}

void ScriptedWorker::TickAtGate() {
  for (int i = 0; i < kTicksAtGate; ++i) {
    cluster_->Note(absl::StrCat(Name(), " ends clock ", core_->clock(), ", at the gate"));
    if (!EndClock()) return;
  }
}

// The end: all pushes are visible. A worker that joined late may be ahead of the others.
void ScriptedWorker::ReadAll(std::uint64_t clock) {
  while (core_->clock() < clock) {
    cluster_->Note(absl::StrCat(Name(), " ends clock ", core_->clock(), ", at the end"));
    if (!EndClock()) return;
  }
  for (const SimTable& table : script_->tables) {
    Submit(table, proto::Op::kPull, table.AllPlaces());
  }
  WhenIdle([this] { ReadVersions(); });
}

// A worker with an older version than another one's gets only that one. It asks again to get the
// newest.
void ScriptedWorker::ReadVersions() {
  reads_last_ = true;
  for (const SimTable& table : script_->tables) {
    if (table.versions()) Submit(table, proto::Op::kPull, table.AllPlaces());
  }
  WhenIdle([this] {
    at_end_ = true;
    cluster_->Note(absl::StrCat(Name(), " is at the end"));
  });
}

bool ScriptedWorker::EndClock() {
  if (!Expect(core_->Clock(), "Clock()")) return false;
  history_->lives[rank_].clock = core_->clock();
  return true;
}

void ScriptedWorker::LeaveInMidRun(std::function<void()> left, std::function<void()> stays) {
  leaves_ = {std::move(left), std::move(stays)};
}

// Its clock stays open, with all that it has pushed in it.
void ScriptedWorker::LeaveNow() {
  Waits("leaving in mid-run");
  history_->lives[rank_].left.insert(life());
  core_->Leave(kScriptTimeout, [this](const absl::Status& status) {
    if (!Expect(status, "leaving in mid-run")) return;
    waits_for_.clear();
    cluster_->Note(absl::StrCat(Name(), " has left, in clock ", core_->clock()));
    cluster_->world().Schedule(absl::ZeroDuration(), leaves_->left);
  });
}

void ScriptedWorker::Leave() {
  Waits("leaving");
  history_->lives[rank_].leaving = true;
  core_->Leave(kScriptTimeout, [this](const absl::Status& status) {
    if (!Expect(status, "leaving")) return;
    waits_for_.clear();
    finished_ = true;
    cluster_->Note(absl::StrCat(Name(), " has left"));
  });
}

// ---- operations ----

std::uint64_t ScriptedWorker::SomePlaces(const SimTable& table) {
  const std::uint64_t places = random_.Next() & random_.Next() & table.AllPlaces();
  return places != 0 ? places : 1ull << random_.Below(table.places);
}

// The places that this worker may push to now; 0: none.
std::uint64_t ScriptedWorker::PlacesToPush(const SimTable& table) {
  if (history_->pushes(table, rank_).size() >= table.pushes_per_worker_max()) return 0;
  const std::uint64_t wanted = table.dense() ? table.AllPlaces() : SomePlaces(table);
  if (!table.one_writer) return wanted;
  // It is not known which pushes of its earlier incarnations have arrived.
  if (history_->lives[rank_].incarnation > 1) return 0;
  std::uint64_t places = 0;
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (((wanted >> place) & 1) == 0 || table.WriterOf(place) != rank_) continue;
    // In BSP two of one clock would be one update.
    std::uint64_t& last = last_push_[{table.index, place}];
    if (last == core_->clock() + 1) continue;
    last = core_->clock() + 1;
    places |= 1ull << place;
  }
  return places;
}

void ScriptedWorker::FillPush(Call* call) {
  const SimTable& table = *call->table;
  std::vector<Push>& pushes = history_->pushes(table, rank_);
  call->push = pushes.size();
  pushes.push_back({.clock = core_->clock(),
                    .incarnation = history_->lives[rank_].incarnation,
                    .places = call->places,
                    .submitted = call->submitted});
  for (std::size_t i = 0; i < call->read.places.size(); ++i) {
    if (table.counter) {
      AddPush(table, {call->counts.data() + i * table.stride, table.width}, rank_, call->push);
      continue;
    }
    const std::uint32_t place = call->read.places[i];
    const std::span<float> gradient(call->floats.data() + i * table.stride,
                                    table.ElementsOf(place));
    if (table.coded) {
      for (float& value : gradient) value = SmallNumber(&random_);
      coded_->OnPush(table, rank_, place, gradient, call->rate.value_or(1));
      continue;
    }
    for (float& value : gradient) value = 0.5f + static_cast<float>(random_.Uniform());
    history_->gradients(table, place).emplace_back(gradient.begin(), gradient.end());
    checker_->OnFloatPush(table, place, gradient);
  }
  if (table.converts()) call->values = ToValues(table, call->counts);
  if (table.refuses() && random_.Below(kNonFiniteEvery) == 0) MakeNonFinite(call);
}

void ScriptedWorker::MakeNonFinite(Call* call) {
  const SimTable& table = *call->table;
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  const std::size_t i = random_.Below(call->read.places.size());
  const double value = bad[random_.Below(3)];
  const std::size_t at = i * table.stride + random_.Below(table.width);
  std::memcpy(&call->values[at * sizeof(double)], &value, sizeof(double));
  call->refused =
      RefusedPlaces(table, cluster_->config().num_shards, call->places, call->read.places[i]);
  history_->pushes(table, rank_)[call->push].places &= ~call->refused;
}

// Too little time for an operation that may have to wait, or just enough. Not for tables with one
// writer a place, where the history has to know which of its pushes have arrived.
void ScriptedWorker::ChooseTimeout(Call* call) {
  if (!script_->short_deadlines || reads_last_ || at_gate_ || call->refused != 0) return;
  if (proto::HasPush(call->op) && !call->table->counter) return;
  if (random_.Below(kShortEvery) == 0) {
    call->timeout = kShortTimeoutMax * std::pow(random_.Uniform(), 2);
  }
}

void ScriptedWorker::Submit(const SimTable& table, proto::Op op, std::uint64_t places,
                            int priority) {
  auto call = std::make_shared<Call>();
  call->number = ++operations_;
  call->op = op;
  call->table = &table;
  call->places = places;
  call->submitted = cluster_->world().Now();
  Read& read = call->read;
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (((places >> place) & 1) == 0) continue;
    read.places.push_back(place);
    if (!table.dense()) call->keys.push_back(table.keys[place]);
  }
  const std::size_t size = (read.places.size() - 1) * table.stride + table.width;
  const auto make_room = [&](auto* values) { values->resize(size); };
  table.counter ? make_room(&call->counts) : make_room(&call->floats);
  const double rates[] = {0.25, 0.5, 1};
  if (table.coded && table.spec.updater.name != "add") {
    // In BSP a clock has one update, and that one rate.
    call->rate = rates[table.bsp() ? core_->clock() % 3 : random_.Below(3)];
  }
  if (proto::HasPush(op)) FillPush(call.get());
  ChooseTimeout(call.get());

  worker::Access access;
  access.table = infos_[table.index];
  access.kind = table.spec.kind;
  access.op = op;
  access.dtype = table.spec.dtype;
  access.keys = call->keys;
  if (table.ragged() && proto::HasPush(op)) {
    call->widths.assign(call->keys.size(), static_cast<std::uint32_t>(table.width));
    access.widths = call->widths;
  }
  if (proto::HasPush(op)) {
    access.values = table.converts() ? static_cast<void*>(call->values.data())
                    : table.counter  ? static_cast<void*>(call->counts.data())
                                     : call->floats.data();
    access.size = size;
    access.copy = random_.Below(2) == 0;
  }
  if (proto::HasPull(op)) {
    read.table = &table;
    if (!table.counter) make_room(&read.floats);
    access.result = table.counter ? read.MakeRoomForCounts(size) : read.floats.data();
    access.result_size = size;
    if (table.ragged()) {
      access.result_widths = &call->ragged.widths;
      access.resize = [rows = &call->ragged](std::size_t elements) {
        return rows->Resize(elements);
      };
    }
    read.reader = rank_;
    read.incarnation = history_->lives[rank_].incarnation;
    read.clock = core_->clock();
    read.effective = table.EffectiveClock(op, read.clock);
    read.submitted = call->submitted;
    read.own_pushes = history_->pushes(table, rank_).size();
    checker_->OnAsked(&read);
  }
  calls_[call->number] = call;
  core_->Submit(worker::Slice(access, core_->poster()),
                {.timeout = call->timeout, .learning_rate = call->rate, .priority = priority},
                [this, call](const std::shared_ptr<worker::Operation>& operation) {
                  OnDone(call, operation->result, operation->info.parts_dropped);
                });
}

void ScriptedWorker::CallHandler() {
  std::vector<const SimTable*> tables;
  for (const SimTable& table : script_->tables) {
    if (TakesHandlers(table) && infos_[table.index] != nullptr) tables.push_back(&table);
  }
  if (tables.empty()) return;
  const SimTable& table = *tables[calls_random_.Below(tables.size())];
  const std::uint64_t wanted = PlacesToPush(table);
  if (wanted == 0) return;
  auto call = std::make_shared<Call>();
  call->number = ++operations_;
  call->op = proto::Op::kCall;
  call->table = &table;
  const auto first = static_cast<std::uint32_t>(table.dense() ? calls_random_.Below(table.places)
                                                              : std::countr_zero(wanted));
  call->places = InOneShard(table, *infos_[table.index], wanted, first);
  call->submitted = cluster_->world().Now();
  Read& read = call->read;
  SimHandlerRequest request{.fails = calls_random_.Below(kFailingCallEvery) == 0,
                            .width = static_cast<std::uint32_t>(table.width)};
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (((call->places >> place) & 1) == 0) continue;
    read.places.push_back(place);
    request.keys.push_back(table.dense() ? place : table.keys[place]);
  }
  call->counts.resize((read.places.size() - 1) * table.stride + table.width);
  read.table = &table;
  read.reader = rank_;
  read.incarnation = life();
  read.clock = read.effective = core_->clock();
  read.submitted = call->submitted;
  read.own_pushes = history_->pushes(table, rank_).size();
  FillPush(call.get());
  if (request.fails) {
    call->refused = call->places;
    history_->pushes(table, rank_)[call->push].places = 0;
  }
  ChooseTimeout(call.get());
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    const auto place = call->counts.begin() + i * table.stride;
    request.counts.insert(request.counts.end(), place, place + table.width);
  }
  calls_[call->number] = call;
  const std::uint64_t key = table.dense() ? first * table.stride : request.keys[0];
  core_->Submit(worker::SliceCall(infos_[table.index], key, kSimHandler, request.ToBytes(),
                                  std::make_unique<TextSink>(&call->answer)),
                {.timeout = call->timeout,
                 .learning_rate = {},
                 .priority = static_cast<int>(calls_random_.Below(3)) - 1},
                [this, call](const std::shared_ptr<worker::Operation>& operation) {
                  OnDone(call, operation->result, 0);
                });
}

void ScriptedWorker::OnCalled(Call* call) {
  const SimTable& table = *call->table;
  Read& read = call->read;
  ++handler_calls_;
  if (call->answer.size() != read.places.size() * table.width * sizeof(std::int64_t)) {
    return checker_->Fail("a handler's answer is whole",
                          absl::StrCat(Name(), "'s operation ", call->number));
  }
  read.counts.resize(call->counts.size());
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    const std::size_t bytes = table.width * sizeof(std::int64_t);
    std::memcpy(&read.counts[i * table.stride], call->answer.data() + i * bytes, bytes);
  }
  read.completed = cluster_->world().Now();
  read.reader_clock = core_->clock();
  checker_->OnCalled(read);
}

void ScriptedWorker::OnDone(const std::shared_ptr<Call>& call, const absl::Status& result,
                            std::uint64_t dropped) {
  const absl::Time now = cluster_->world().Now();
  const SimTable& table = *call->table;
  if (proto::HasPush(call->op)) {
    Push& push = history_->pushes(table, rank_)[call->push];
    push.outcome = result.ok() ? Outcome::kAcknowledged : Outcome::kFailed;
    push.acknowledged = now;
    push.dropped = dropped;
  }
  cluster_->Note(absl::StrCat(Name(), " done ", call->number, " ", table.spec.name, " ",
                              absl::StatusCodeToString(result.code())));
  const std::string what = absl::StrCat("operation ", call->number, " on '", table.spec.name, "'");
  if (call->refused != 0 && result.ok()) {
    checker_->Fail("what a table refuses fails", absl::StrCat(Name(), "'s ", what, " did not"));
  } else if (!MayFail(*call, result) && Expect(result, what)) {
    answered_ = true;
    checker_->OnWaited(absl::StrCat(Name(), "'s ", what), call->submitted, now);
    if (call->op == proto::Op::kCall) OnCalled(call.get());
    if (proto::HasPull(call->op)) {
      call->read.completed = now;
      if (table.counter) call->read.TakeCounts();
      if (table.ragged()) call->read.counts = call->ragged.Spread(table);
      if (table.ragged() && call->read.counts.empty()) {
        return checker_->Fail("widths of rows", absl::StrCat(Name(), "'s ", what));
      }
      call->read.reader_clock = core_->clock();
      checker_->OnRead(call->read);
      if (reads_last_) coded_->OnLastRead(call->read);
      if (call->read.complete()) history_->Prove(table, rank_, call->read.effective);
    }
  }
  calls_.erase(call->number);
  if (calls_.empty() && when_idle_) std::exchange(when_idle_, nullptr)();
}

bool ScriptedWorker::MayFail(const Call& call, const absl::Status& result) {
  Push* const push =
      proto::HasPush(call.op) ? &history_->pushes(*call.table, rank_)[call.push] : nullptr;
  if (call.refused != 0) {
    // Other shards have accepted it.
    const bool in_part = call.refused != call.places;
    if (in_part ? !absl::IsUnknown(result) : !absl::IsInvalidArgument(result)) return false;
    if (in_part) push->outcome = Outcome::kUnknown;
    ++refused_;
    return true;
  }
  if (push != nullptr && push->dropped > 0) {
    // The pull that came along has no answer then.
    if (absl::IsCancelled(result) || absl::IsUnknown(result)) {
      push->outcome = Outcome::kUnknown;
      return true;
    }
  }
  if (call.timeout == kScriptTimeout) return false;
  if (absl::IsDeadlineExceeded(result)) {
    if (push != nullptr) push->places = 0;  // no part of it is applied, now or later
  } else if (push != nullptr && absl::IsUnknown(result)) {
    push->outcome = Outcome::kUnknown;  // it is still resent
  } else {
    return false;
  }
  ++out_of_time_;
  return true;
}

// ---- steps ----

void ScriptedWorker::WhenIdle(std::function<void()> next) {
  waits_for_.clear();
  if (calls_.empty()) return After(absl::ZeroDuration(), std::move(next));
  when_idle_ = std::move(next);
}

void ScriptedWorker::Barrier(const std::string& name, std::function<void()> next) {
  Waits(absl::StrCat("barrier ", name));
  core_->Barrier(Group::kWorkers, name, kScriptTimeout,
                 [this, name, next = std::move(next)](const absl::Status& status) {
                   if (!Expect(status, absl::StrCat("barrier ", name))) return;
                   cluster_->Note(absl::StrCat(Name(), " passes barrier ", name));
                   next();
                 });
}

void ScriptedWorker::After(absl::Duration delay, std::function<void()> next) {
  waits_for_.clear();
  cluster_->Find(SimCluster::HostName(Role::kWorker, rank_))
      ->loop()
      ->After(delay, [next = std::move(next)] { next(); });
}

bool ScriptedWorker::Expect(const absl::Status& status, const std::string& what) {
  if (status.ok()) return true;
  if (may_be_given_up_) {
    given_up_ = true;
    return false;
  }
  checker_->Fail("what is promised to succeed does",
                 absl::StrCat(Name(), ": ", what, ": ", status.ToString()));
  return false;
}

void ScriptedWorker::Waits(const std::string& what) {
  waits_for_ = what;
  waits_since_ = cluster_->world().Now();
}

void ScriptedWorker::CheckWaiting() {
  const absl::Time now = cluster_->world().Now();
  if (may_be_given_up_) return;
  if (!waits_for_.empty())
    checker_->OnWaited(absl::StrCat(Name(), ", ", waits_for_), waits_since_, now);
  for (const auto& [number, call] : calls_) {
    checker_->OnWaited(
        absl::StrCat(Name(), "'s operation ", number, " on '", call->table->spec.name, "'"),
        call->submitted, now);
  }
}

}  // namespace leeway::simulation
