#include "tests/simulation/sim_reader.h"

#include "absl/strings/str_cat.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {
namespace {

constexpr absl::Duration kReaderTimeout = absl::Minutes(2);
constexpr absl::Duration kRestMax = absl::Milliseconds(200);
constexpr absl::Duration kAwayMax = absl::Seconds(2);
constexpr std::uint64_t kPullsPerVisitMax = 12;

}  // namespace

SimReader::SimReader(std::uint32_t number, const std::vector<SimTable>* tables, SimCluster* cluster,
                     const History* history, PublishedModel* model, Checker* checker,
                     std::uint64_t seed)
    : number_(number),
      tables_(tables),
      cluster_(cluster),
      history_(history),
      model_(model),
      checker_(checker),
      random_(seed) {
  // Values of an earlier visit must be seen again, since no applied push can be undone.
  invariants_.push_back(NewAppliedOnce());
  invariants_.push_back(NewMonotonicReads());
  invariants_.push_back(NewAcknowledgedIsThere());
}

std::string SimReader::Host() const { return SimCluster::HostName(Role::kReader, number_); }
std::string SimReader::Name() const { return absl::StrCat("reader ", number_); }

// ---- its visits ----

void SimReader::Come() {
  ++visits_;
  core_ = cluster_->Start(Role::kReader, number_)->core();
  infos_.clear();
  copy_.reset();
  answered_ = false;
  Waits("joining");
  core_->Start([this](const absl::Status& status) {
    if (Expect(status, "joining")) OpenTables();
  });
}

void SimReader::OpenTables() {
  pulls_left_ = 1 + random_.Below(kPullsPerVisitMax);
  tables_asked_ = 0;
  Waits("opening tables");
  for (const SimTable& table : *tables_) tables_asked_ += table.counter && table.created_in == 0;
  for (const SimTable& table : *tables_) {
    if (!table.counter || table.created_in > 0) continue;
    core_->OpenTable(table.spec.name, kReaderTimeout,
                     [this, &table](absl::StatusOr<std::shared_ptr<const worker::TableInfo>> info) {
                       if (!Expect(info.status(), "opening a table")) return;
                       infos_[table.index] = *std::move(info);
                       if (infos_.size() == tables_asked_)
                         After(absl::ZeroDuration(), &SimReader::PullOrGo);
                     });
  }
  if (tables_asked_ == 0) Go();
}

void SimReader::After(absl::Duration delay, void (SimReader::*next)()) {
  waits_for_.clear();
  cluster_->world().Schedule(delay, [this, next, visit = visits_] {
    if (visit == visits_) (this->*next)();
  });
}

void SimReader::PullOrGo() {
  if (core_ == nullptr) return ComeBack();
  if (pulls_left_-- == 0) return Go();
  if (!FetchModel()) Pull();
}

// In order, or as if it was killed: for the other nodes it is the same.
void SimReader::Go() {
  if (random_.Below(2) == 0) {
    cluster_->Kill(Host());
    core_ = nullptr;
    return After(kAwayMax * random_.Uniform(), &SimReader::ComeBack);
  }
  Waits("leaving");
  core_->Leave(kReaderTimeout, [this](const absl::Status& status) {
    if (!Expect(status, "leaving")) return;
    After(kAwayMax * random_.Uniform(), &SimReader::ComeBack);
  });
}

void SimReader::End() {
  may_fail_ = true;
  if (core_ != nullptr) cluster_->Kill(Host());
  core_ = nullptr;
}

void SimReader::ComeBack() {
  if (may_fail_) return;
  if (core_ != nullptr) cluster_->Kill(Host());
  core_ = nullptr;
  Come();
}

// ---- its reads ----

// Pulls one row, or all blocks of a dense table.
void SimReader::Pull() {
  auto which = infos_.begin();
  std::advance(which, random_.Below(infos_.size()));
  const SimTable& table = (*tables_)[which->first];
  auto call = std::make_shared<Call>();
  Read& read = call->read;
  read.table = &table;
  read.reader = static_cast<std::uint32_t>(history_->lives.size()) + number_;
  read.submitted = cluster_->world().Now();
  if (table.dense()) {
    for (std::uint32_t place = 0; place < table.places; ++place) read.places.push_back(place);
  } else {
    read.places = {static_cast<std::uint32_t>(random_.Below(table.places))};
    call->keys = {table.keys[read.places[0]]};
  }
  const std::size_t size = (read.places.size() - 1) * table.stride + table.width;
  for (const auto& invariant : invariants_) invariant->OnAsked(&read);

  worker::Access access;
  access.table = which->second;
  access.kind = table.spec.kind;
  access.op = proto::Op::kPull;
  access.dtype = table.spec.dtype;
  access.keys = call->keys;
  access.result = read.MakeRoomForCounts(size);
  access.result_size = size;
  if (table.ragged()) {
    access.result_widths = &call->ragged.widths;
    access.resize = [rows = &call->ragged](std::size_t elements) { return rows->Resize(elements); };
  }
  Waits(absl::StrCat("a pull of '", table.spec.name, "'"));
  core_->Submit(worker::Slice(access, core_->poster()), {.timeout = kReaderTimeout},
                [this, call](const std::shared_ptr<worker::Operation>& operation) {
                  OnPulled(call, *operation);
                });
}

void SimReader::OnPulled(const std::shared_ptr<Call>& call, const worker::Operation& operation) {
  const std::string table = call->read.table->spec.name;
  if (!Expect(operation.result, absl::StrCat("a pull of '", table, "'"))) return;
  ++reads_;
  answered_ = true;
  Read& read = call->read;
  read.TakeCounts();
  if (read.table->ragged()) {
    read.counts = call->ragged.Spread(*read.table);
    if (read.counts.empty()) return checker_->Fail("widths of rows", Name());
  }
  read.completed = cluster_->world().Now();
  read.clock = read.effective = read.reader_clock = operation.info.clock;
  cluster_->Note(absl::StrCat(Name(), " has read '", table, "' of clock ", operation.info.clock,
                              ", version ", operation.info.version));
  checker_->OnWaited(absl::StrCat(Name(), "'s pull of '", table, "'"), waits_since_,
                     read.completed);
  for (const auto& invariant : invariants_) {
    std::string wrong = invariant->Judge(read, *history_);
    if (!wrong.empty()) {
      checker_->Fail(absl::StrCat("readers: ", invariant->name()), std::move(wrong));
    }
  }
  JudgeClock(read, operation.info);
  JudgeVersion(read, operation.info);
  After(kRestMax * random_.Uniform(), &SimReader::PullOrGo);
}

// ---- the published model ----

// Where a model is published, every second read is of a version that it does not have yet.
bool SimReader::FetchModel() {
  const std::uint64_t above = copy_ == nullptr ? 0 : copy_->version().version;
  absl::StatusOr<proto::Published> newest = absl::NotFoundError("");
  core_->models().WhenNewer(
      PublishedModel::kName, above, absl::ZeroDuration(),
      [&](absl::StatusOr<proto::Published> found) { newest = std::move(found); });
  if (!newest.ok() || random_.Below(2) == 0) return false;
  if (copy_ == nullptr) {
    std::vector<std::shared_ptr<const worker::TableInfo>> tables;
    for (const auto& [id] : newest->tables) {
      for (const auto& [index, info] : infos_) {
        if (info->id == id) tables.push_back(info);
      }
    }
    if (tables.size() != newest->tables.size()) return false;
    copy_ = std::make_unique<worker::ModelCopy>(std::move(tables));
  }
  std::vector<worker::Sliced> pulls = copy_->Fetch(newest->versions.back());
  fetching_ = pulls.size();
  fetched_ = absl::OkStatus();
  fetching_version_ = newest->versions.back().publication;
  Waits(absl::StrCat("version ", newest->versions.back().version, " of the model"));
  for (worker::Sliced& pull : pulls) {
    core_->Submit(
        std::move(pull), {.timeout = kReaderTimeout},
        [this](const std::shared_ptr<worker::Operation>& operation) { OnFetched(*operation); });
  }
  return true;
}

void SimReader::OnFetched(const worker::Operation& operation) {
  fetched_.Update(operation.result);
  if (--fetching_ > 0) return;
  // It may have been dropped meanwhile.
  const bool dropped = absl::IsNotFound(fetched_) && !model_->IsKept(fetching_version_);
  if (!dropped) {
    if (!Expect(fetched_, "a version of the model")) return;
    ++reads_;
    answered_ = true;
    copy_->Apply();
    if (const absl::Status same = copy_->Verify(); !same.ok()) {
      return checker_->Fail("published versions: digests", std::string(same.message()));
    }
    cluster_->Note(absl::StrCat(Name(), " has version ", copy_->version().version));
    checker_->OnWaited(absl::StrCat(Name(), "'s version"), waits_since_, cluster_->world().Now());
    model_->Judge(Name(), *copy_);
  }
  After(kRestMax * random_.Uniform(), &SimReader::PullOrGo);
}

// All pushes of living workers before the clock are visible; with BSP none of it or later is, if
// all values come from one shard.
void SimReader::JudgeClock(const Read& read, const PullInfo& info) {
  for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
    const std::vector<Push>& pushes = history_->pushes(*read.table, worker);
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      const Push& push = pushes[number];
      const bool killed = history_->lives[worker].WasKilled(push.incarnation);
      const bool failed = push.outcome == Outcome::kFailed;
      for (std::size_t i = 0; i < read.places.size(); ++i) {
        if (((push.places >> read.places[i]) & 1) == 0) continue;
        const bool seen = TimesApplied(*read.table, read.CountsOf(i), worker, number) > 0;
        const bool promised = !read.table->collects() && !killed && !failed;
        if (push.clock < info.clock && !seen && promised) {
          checker_->Fail(
              "readers: the clock that is said",
              absl::StrCat(Describe(read, read.places[i], worker, number, push), " is not seen by ",
                           Name(), ", which was told clock ", info.clock));
        }
        if (read.table->bsp() && read.places.size() == 1 && push.clock >= info.clock && seen) {
          checker_->Fail(
              "readers: open clocks are hidden",
              absl::StrCat(Describe(read, read.places[i], worker, number, push), " is seen by ",
                           Name(), ", which was told clock ", info.clock));
        }
      }
    }
  }
}

void SimReader::JudgeVersion(const Read& read, const PullInfo& info) {
  const std::uint64_t what = read.places.size() == 1 ? read.places[0] : read.table->places;
  auto& [version, values] = newest_[{read.table->index, what}];
  const std::string where =
      absl::StrCat("'", read.table->spec.name, "' at ", what, " for ", Name());
  if (!values.empty() && info.version < version) {
    checker_->Fail("readers: versions grow",
                   absl::StrCat(where, " was of version ", version, " and is of ", info.version));
  }
  if (!values.empty() && info.version == version && values != read.counts) {
    checker_->Fail("readers: one version has one value",
                   absl::StrCat(where, " has changed within version ", version));
  }
  version = info.version;
  values = read.counts;
}

// ---- failing and waiting ----

bool SimReader::Expect(const absl::Status& status, const std::string& what) {
  if (status.ok()) return true;
  waits_for_.clear();
  if (may_fail_) return false;
  checker_->Fail("what is promised to readers",
                 absl::StrCat(Name(), ": ", what, ": ", status.ToString()));
  return false;
}

void SimReader::Waits(const std::string& what) {
  waits_for_ = what;
  waits_since_ = cluster_->world().Now();
}

void SimReader::CheckWaiting() {
  if (may_fail_ || waits_for_.empty()) return;
  checker_->OnWaited(absl::StrCat(Name(), ", ", waits_for_), waits_since_, cluster_->world().Now());
}

}  // namespace leeway::simulation
