#include "tests/simulation/published_model.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/simulation/counter_values.h"

namespace leeway::simulation {

PublishedModel::PublishedModel(const std::vector<SimTable>* tables, const History* history,
                               Checker* checker)
    : tables_(tables), history_(history), checker_(checker) {
  invariants_.push_back(NewAppliedOnce());
  invariants_.push_back(NewAcknowledgedIsThere());
}

const SimTable* PublishedModel::Find(const std::string& name) const {
  const auto found = std::ranges::find_if(*tables_, [&](const SimTable& table) {
    return table.counter && table.dense() && table.created_in == 0 && table.spec.name == name;
  });
  return found == tables_->end() ? nullptr : &*found;
}

void PublishedModel::Hear(const van::Overheard& heard, absl::Time now) {
  if (const auto* install = std::get_if<proto::InstallTable>(&heard.message)) {
    const SimTable* const table = install->of == 0 ? Find(install->spec.name) : nullptr;
    if (table != nullptr) model_[install->table] = table;
  } else if (const auto* publish = std::get_if<proto::Publish>(&heard.message)) {
    begun_.try_emplace(publish->publication, now);
  } else if (const auto* published = std::get_if<proto::Published>(&heard.message)) {
    const bool newer = newest_.versions.empty() ||
                       newest_.versions.back().version < published->versions.back().version;
    if (newer) newest_ = *published;
    for (const auto& version : published->versions)
      announced_.try_emplace(version.publication, now);
  }
}

bool PublishedModel::IsKept(std::uint64_t publication) const {
  return std::ranges::any_of(newest_.versions, [publication](const auto& version) {
    return version.publication == publication;
  });
}

std::vector<std::string> PublishedModel::Arguments() const {
  if (model_.empty()) return {};
  std::string ids;
  for (const auto& [id, table] : model_) absl::StrAppend(&ids, ids.empty() ? "" : ",", id);
  return {kName, "at:0", ids};
}

void PublishedModel::Judge(const std::string& reader, const worker::ModelCopy& copy) {
  ++judged_;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    const SimTable* const table = Find(copy.table(i).spec.name);
    if (table == nullptr) return checker_->Fail("published versions", "a table that is no counter");
    const std::span<const std::byte> bytes = copy.values(i);
    std::vector<std::int64_t> counts(bytes.size() / sizeof(std::int64_t));
    if (table->converts()) {
      counts = ToCounts(*table, table->spec.dtype, bytes);
    } else {
      std::memcpy(counts.data(), bytes.data(), bytes.size());
    }
    JudgeTable(reader, copy.version(), *table, std::move(counts));
  }
}

void PublishedModel::JudgeTable(const std::string& reader, const proto::PublishedVersion& version,
                                const SimTable& table, std::vector<std::int64_t> counts) {
  const auto [first, is_first] = values_.try_emplace({version.publication, table.index}, counts);
  if (!is_first && first->second != counts) {
    checker_->Fail("published versions: one version has one value",
                   absl::StrCat(reader, " has other values of '", table.spec.name, "', version ",
                                version.version, ", than a reader before"));
  }
  Read read;
  read.table = &table;
  read.reader = static_cast<std::uint32_t>(history_->lives.size());
  read.clock = read.effective = read.reader_clock = version.clock;
  read.submitted = begun_[version.publication];
  read.completed = announced_[version.publication];
  for (std::uint32_t place = 0; place < table.places; ++place) read.places.push_back(place);
  read.counts = std::move(counts);
  for (const auto& invariant : invariants_) {
    std::string wrong = invariant->Judge(read, *history_);
    if (!wrong.empty()) {
      checker_->Fail(absl::StrCat("published versions: ", invariant->name()), std::move(wrong));
    }
  }
  for (std::uint32_t worker = 0; worker < history_->lives.size(); ++worker) {
    for (std::size_t number = 0; number < history_->pushes(table, worker).size(); ++number) {
      JudgePush(reader, version, read, worker, number);
    }
  }
}

void PublishedModel::JudgePush(const std::string& reader, const proto::PublishedVersion& version,
                               const Read& read, std::uint32_t worker, std::size_t number) {
  const SimTable& table = *read.table;
  const Push& push = history_->pushes(table, worker)[number];
  const bool promised =
      !history_->lives[worker].WasKilled(push.incarnation) && push.outcome != Outcome::kFailed;
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    if (((push.places >> read.places[i]) & 1) == 0) continue;
    const bool seen = TimesApplied(table, read.CountsOf(i), worker, number) > 0;
    const bool later = push.submitted > read.completed;
    const bool lacks = table.bsp() && push.clock < version.clock && promised && !seen;
    const bool has_open = table.bsp() && push.clock >= version.clock && seen;
    if (!(later && seen) && !lacks && !has_open) continue;
    checker_->Fail("published versions: the moment",
                   absl::StrCat(Describe(read, read.places[i], worker, number, push),
                                seen ? " is seen by " : " is not seen by ", reader, " in version ",
                                version.version, " of clock ", version.clock));
  }
}

}  // namespace leeway::simulation
