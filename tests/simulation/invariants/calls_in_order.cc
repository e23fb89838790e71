// Checks that the calls of a handler take effect one after the other: what they have read of a
// place, each with those before it, is one sequence of states.
#include <bit>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

using Counts = std::vector<std::int64_t>;

// All pushes that `less` shows are in `more`.
bool IsIn(const Counts& less, const Counts& more) {
  for (std::size_t i = 0; i < less.size(); ++i) {
    if ((less[i] & ~more[i]) != 0) return false;
  }
  return true;
}

class CallsInOrder final : public Invariant {
 public:
  absl::string_view name() const override { return "calls of handlers are in order"; }

  std::string Judge(const Read& read, const History&) override {
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      const std::uint32_t place = read.places[i];
      const std::span<const std::int64_t> counts = read.CountsOf(i);
      int pushes = 0;
      for (const std::int64_t count : counts) {
        pushes += std::popcount(static_cast<std::uint64_t>(count));
      }
      std::map<int, Counts>& states = states_[{read.table->index, place}];
      const auto [here, first] = states.try_emplace(pushes, counts.begin(), counts.end());
      const auto wrong = [&](absl::string_view what) {
        return absl::StrCat("place ", place, " of '", read.table->spec.name, "' had ", pushes,
                            " pushes for ", DescribeReader(read), ", ", what);
      };
      // Each call that is answered has pushed to the place itself.
      if (!first) return wrong("as it had for another call");
      const bool follows = here == states.begin() || IsIn(std::prev(here)->second, here->second);
      const bool leads =
          std::next(here) == states.end() || IsIn(here->second, std::next(here)->second);
      if (!follows || !leads) return wrong("and others than for another call");
    }
    return "";
  }

 private:
  // By table and place, then by the number of pushes: the states that calls have read.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<int, Counts>> states_;
};

}  // namespace

std::unique_ptr<Invariant> NewCallsInOrder() { return std::make_unique<CallsInOrder>(); }

}  // namespace leeway::simulation
