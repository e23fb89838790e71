// Checks that each push is applied at most once, and that every applied value was pushed.
#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

class AppliedOnce final : public Invariant {
 public:
  absl::string_view name() const override { return "applied once"; }

  std::string Judge(const Read& read, const History& history) override {
    if (!read.table->counter) return "";
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      const std::span<const std::int64_t> counts = read.CountsOf(i);
      for (std::uint32_t worker = 0; worker < history.lives.size(); ++worker) {
        const std::vector<Push>& pushes = history.pushes(*read.table, worker);
        const bool only_made = NoneAppliedFrom(*read.table, counts, worker, pushes.size());
        const std::size_t numbers = only_made ? pushes.size() : read.table->pushes_per_worker_max();
        for (std::size_t number = 0; number < numbers; ++number) {
          const int times = TimesApplied(*read.table, counts, worker, number);
          const bool exists =
              number < pushes.size() && ((pushes[number].places >> read.places[i]) & 1) != 0;
          if (times <= (exists ? 1 : 0)) continue;
          const Push push = number < pushes.size() ? pushes[number] : Push();
          return absl::StrCat(Describe(read, read.places[i], worker, number, push), " is applied ",
                              times, " times", exists ? "" : ", but was never made", ": ",
                              DescribeDigit(*read.table, worker, number), " is ", times, " for ",
                              DescribeReader(read));
        }
      }
    }
    return "";
  }
};

}  // namespace

std::unique_ptr<Invariant> NewAppliedOnce() { return std::make_unique<AppliedOnce>(); }

}  // namespace leeway::simulation
