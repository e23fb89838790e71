// Checks that a worker sees what it has seen before in every read that it asks for later.
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

class MonotonicReads final : public Invariant {
 public:
  absl::string_view name() const override { return "monotonic reads"; }

  void OnAsked(Read* read) override {
    if (!read->table->counter) return;
    for (const std::uint32_t place : read->places) {
      read->seen_before.push_back(seen_[{read->reader, read->table->index, place}]);
    }
  }

  std::string Judge(const Read& read, const History&) override {
    if (!read.table->counter) return "";
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      const std::span<const std::int64_t> now = read.CountsOf(i);
      const std::vector<std::int64_t>& before = read.seen_before[i];
      for (std::size_t e = 0; e < before.size(); ++e) {
        if ((before[e] & ~now[e]) == 0) continue;
        return absl::StrCat("element ", e, " of ", read.table->dense() ? "block " : "row ",
                            read.places[i], " of '", read.table->spec.name, "' was ", before[e],
                            " and is ", now[e], " for ", DescribeReader(read));
      }
      std::vector<std::int64_t>& seen = seen_[{read.reader, read.table->index, read.places[i]}];
      seen.resize(now.size());
      for (std::size_t e = 0; e < now.size(); ++e) seen[e] |= now[e];
    }
    return "";
  }

 private:
  struct SeenPlace {
    std::uint32_t reader, table, place;
    auto operator<=>(const SeenPlace&) const = default;
  };
  std::map<SeenPlace, std::vector<std::int64_t>> seen_;  // digits that were 1
};

}  // namespace

std::unique_ptr<Invariant> NewMonotonicReads() { return std::make_unique<MonotonicReads>(); }

}  // namespace leeway::simulation
