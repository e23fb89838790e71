#include "tests/simulation/codec_ledger.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

std::string Describe(const proto::CodecSwitch& change) {
  return absl::StrCat("switch ", change.number, " of table ", change.table, ", from codec ",
                      change.before, " to ", change.choice, " at clock ", change.clock);
}

}  // namespace

std::string CodecLedger::OnMap(const proto::ClusterMap& map, absl::Time now) {
  std::string wrong;
  for (const proto::CodecSwitch& change : map.codecs) {
    const auto found = tables_.find(change.table);
    if (!change.decided || found == tables_.end()) continue;
    std::string why = OnDecision(&found->second, change, now);
    if (wrong.empty()) wrong = std::move(why);
  }
  return wrong;
}

std::string CodecLedger::OnDecision(Table* table, const proto::CodecSwitch& change,
                                    absl::Time now) const {
  const auto [known, fresh] = table->decisions.try_emplace(change.number, Decision{change, now});
  if (!fresh) {
    if (known->second.change == change) return "";
    return absl::StrCat(Describe(change), ", is decided anew: it was ",
                        Describe(known->second.change));
  }
  const proto::CodecSwitch* const before =
      known == table->decisions.begin() ? nullptr : &std::prev(known)->second.change;
  if (before != nullptr && (before->choice != change.before || before->clock >= change.clock)) {
    return absl::StrCat(Describe(change), ", does not follow on ", Describe(*before));
  }
  for (const Left& push : table->pushes) {
    if (push.clock < change.clock) continue;
    std::string wrong = Judge(*table, push);
    if (!wrong.empty()) return absl::StrCat(Describe(change), ", comes too late: ", wrong);
  }
  return "";
}

std::string CodecLedger::OnPush(std::uint32_t id, const Left& push) {
  Table& table = tables_.at(id);
  return table.pushes.insert(push).second ? Judge(table, push) : "";
}

std::string CodecLedger::Judge(const Table& table, const Left& push) const {
  const WorkerLife& life = history_->lives[push.rank];
  if (life.WasKilled(life.Incarnation(push.known_as))) return "";
  const std::uint32_t choice = ChoiceAt(table, push.clock);
  const compress::TableCodecs& codecs = table.table->codecs;
  const bool plain = push.codec == compress::kNoCodec;
  if (plain ? (push.plain_under >> choice & 1) != 0 : push.codec == codecs.choices[choice].id) {
    return "";
  }
  const compress::TableCodec* const named = codecs.Find(push.codec);
  const auto index = named == nullptr ? codecs.choices.size()
                                      : static_cast<std::size_t>(named - codecs.choices.data());
  return absl::StrCat("worker ", push.rank, " has pushed to '", table.table->spec.name,
                      "' in clock ", push.clock, " ",
                      plain              ? "without a codec"
                      : named == nullptr ? "by a codec that is not the table's"
                                         : absl::StrCat("by ", codecs.texts[index]),
                      ", where ", codecs.texts[choice], " holds");
}

bool CodecLedger::SwitchedBy(std::uint32_t id, std::uint64_t clock, absl::Time before) const {
  const auto found = tables_.find(id);
  return found != tables_.end() &&
         std::ranges::any_of(found->second.decisions, [&](const auto& decision) {
           return decision.second.change.clock <= clock && decision.second.told < before;
         });
}

std::uint32_t CodecLedger::ChoiceAt(const Table& table, std::uint64_t clock) {
  std::uint32_t choice = 0;
  for (const auto& [number, decision] : table.decisions) {
    if (decision.change.clock <= clock) choice = decision.change.choice;
  }
  return choice;
}

std::uint32_t CodecLedger::ChoiceAt(std::uint32_t id, std::uint64_t clock) const {
  return ChoiceAt(tables_.at(id), clock);
}

std::vector<std::uint32_t> CodecLedger::ChoicesAt(std::uint32_t id, std::uint64_t clock,
                                                  absl::Time since) const {
  std::vector<std::uint32_t> choices = {0};
  for (const auto& [number, decision] : tables_.at(id).decisions) {
    if (decision.change.clock > clock) break;
    if (decision.told < since) choices.clear();
    if (std::ranges::find(choices, decision.change.choice) == choices.end()) {
      choices.push_back(decision.change.choice);
    }
  }
  return choices;
}

std::uint64_t CodecLedger::decided() const {
  std::uint64_t decided = 0;
  for (const auto& [id, table] : tables_) decided += table.decisions.size();
  return decided;
}

}  // namespace leeway::simulation
