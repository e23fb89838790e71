// What a worker reads of a block whose replies are differences is a version that servers have told
// of, none older than one that it has read before, and with all updates that the staleness bound
// asks for.
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"
#include "tests/simulation/version_ledger.h"
#include "tests/simulation/visibility.h"

namespace leeway::simulation {
namespace {

class VersionsRead final : public Invariant {
 public:
  explicit VersionsRead(const VersionLedger* ledger) : ledger_(ledger) {}

  absl::string_view name() const override { return "a version is read"; }

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

  // The first that it can be; 0: none.
  std::uint64_t VersionOf(const Read& read, std::size_t i, std::uint64_t least) const {
    const VersionLedger::Contents& contents = ledger_->Of(*read.table, read.places[i]);
    least = std::max(least, read.versions_before[i]);
    for (auto it = contents.lower_bound(least); it != contents.end(); ++it) {
      if (std::memcmp(it->second.data(), read.FloatsOf(i).data(),
                      read.table->width * sizeof(float)) == 0) {
        return it->first;
      }
    }
    return 0;
  }

  const VersionLedger* const ledger_;
  std::map<Key, std::uint64_t> seen_;
};

}  // namespace

std::unique_ptr<Invariant> NewVersionsRead(const VersionLedger* ledger) {
  return std::make_unique<VersionsRead>(ledger);
}

}  // namespace leeway::simulation
