// Checks that a worker reads, of a block whose replies are differences, a version that servers have
// sent, none older than one that it has read before, and with all updates that the staleness bound
// asks for. While the table has a codec whose replies are not differences, it is such a version of
// the block itself. If that came without a version, it is compared with the states of the block if
// that has one writer; otherwise its age is unknown.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"
#include "tests/simulation/version_ledger.h"
#include "tests/simulation/visibility.h"

namespace leeway::simulation {
namespace {

// As a part of the least change of a step, which is 1/16.
constexpr float kValueTolerance = 1e-3f;

class VersionsRead final : public Invariant {
 public:
  explicit VersionsRead(const VersionLedger* ledger) : ledger_(ledger) {}

  absl::string_view name() const override { return "a version is read"; }

  void OnState(const SimTable& table, std::uint32_t place,
               const std::vector<std::vector<float>>& either) override {
    if (table.versions()) states_[{table.index, place}].push_back(either.front());
  }

  void OnAsked(Read* read) override {
    if (!read->table->versions()) return;
    for (const std::uint32_t place : read->places) {
      read->versions_before.push_back(seen_[KeyOf(*read, place)]);
    }
  }

  std::string Judge(const Read& read, const History& history) override {
    if (!read.table->versions()) return "";
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      const std::uint32_t place = read.places[i];
      const std::uint64_t promised =
          UpdatesPromised(*read.table, place, history,
                          [&](std::uint32_t worker, std::size_t number, const Push& push) {
                            return IsWithinBound({read, history, worker, number, push});
                          });
      const std::uint64_t version = VersionOf(read, i, promised + 1);
      if (version == 0) {
        return absl::StrCat("block ", place, " of '", read.table->spec.name, "' (",
                            read.table->spec.codec, ", ", read.table->spec.consistency.ToString(),
                            ") holds ", read.FloatsOf(i)[0], ", … for ", DescribeReader(read),
                            ", which is no version from ", promised + 1, " on, nor from ",
                            read.versions_before[i], " on, which it has seen");
      }
      std::uint64_t& seen = seen_[KeyOf(read, place)];
      seen = std::max(seen, version);
    }
    return "";
  }

 private:
  using Key = std::pair<std::pair<std::uint32_t, std::uint32_t>,   // reader, incarnation
                        std::pair<std::uint32_t, std::uint32_t>>;  // table, place
  static Key KeyOf(const Read& read, std::uint32_t place) {
    return {{read.reader, read.incarnation}, {read.table->index, place}};
  }

  // The first version that it can be; 0: none.
  std::uint64_t VersionOf(const Read& read, std::size_t i, std::uint64_t least) const {
    const SimTable& table = *read.table;
    const std::uint32_t place = read.places[i];
    least = std::max(least, read.versions_before[i]);
    const std::uint64_t told = FirstIn(ledger_->Of(table, place), read.FloatsOf(i), least);
    const std::uint64_t itself = FirstIn(ledger_->ItselfOf(table, place), read.FloatsOf(i), least);
    if (told != 0 || itself != 0)
      return told == 0 || itself == 0 ? told + itself : std::min(told, itself);
    if (!ledger_->WasToldAsItIs(table, place, read.FloatsOf(i))) return 0;
    return table.one_writer ? FirstState(table, place, read.FloatsOf(i), least) : least;
  }

  static std::uint64_t FirstIn(const VersionLedger::Contents& contents,
                               std::span<const float> values, std::uint64_t least) {
    for (auto it = contents.lower_bound(least); it != contents.end(); ++it) {
      if (std::memcmp(it->second.data(), values.data(), values.size_bytes()) == 0) return it->first;
    }
    return 0;
  }

  // The first version from `least` on with that state: version 1 is the block before any update.
  std::uint64_t FirstState(const SimTable& table, std::uint32_t place,
                           std::span<const float> values, std::uint64_t least) const {
    const std::vector<float> nothing(values.size());
    if (least <= 1 && std::equal(values.begin(), values.end(), nothing.begin())) return 1;
    const auto found = states_.find({table.index, place});
    if (found == states_.end()) return 0;
    for (std::uint64_t n = std::max<std::uint64_t>(least, 2) - 1; n <= found->second.size(); ++n) {
      const auto near = [](float a, float b) { return std::abs(a - b) <= kValueTolerance; };
      if (std::equal(values.begin(), values.end(), found->second[n - 1].begin(), near))
        return n + 1;
    }
    return 0;
  }

  // By table, place: the values after the first update, the second, …
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::vector<float>>> states_;
  const VersionLedger* const ledger_;
  std::map<Key, std::uint64_t> seen_;
};

}  // namespace

std::unique_ptr<Invariant> NewVersionsRead(const VersionLedger* ledger) {
  return std::make_unique<VersionsRead>(ledger);
}

}  // namespace leeway::simulation
