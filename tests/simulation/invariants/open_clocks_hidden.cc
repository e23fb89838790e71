// Checks for BSP that no push is seen before its clock closes, which it cannot do while the reader
// itself is in it; and none of a clock that its worker died in, which may be half of an iteration.
#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

class OpenClocksHidden final : public Invariant {
 public:
  absl::string_view name() const override { return "open clocks are hidden"; }

  std::string Judge(const Read& read, const History& history) override {
    if (!read.table->counter || !read.table->bsp()) return "";
    for (std::uint32_t worker = 0; worker < history.lives.size(); ++worker) {
      const std::vector<Push>& pushes = history.pushes(*read.table, worker);
      for (std::size_t number = 0; number < pushes.size(); ++number) {
        const Push& push = pushes[number];
        const bool half = history.lives[worker].DiedIn(push.incarnation, push.clock);
        if (push.clock < read.reader_clock && !half) continue;
        for (std::size_t i = 0; i < read.places.size(); ++i) {
          if (TimesApplied(*read.table, read.CountsOf(i), worker, number) == 0) continue;
          return absl::StrCat(
              Describe(read, read.places[i], worker, number, push), " is seen by ",
              DescribeReader(read),
              half ? ", though its worker died within that clock: " : ", which is in clock ",
              half ? "" : absl::StrCat(read.reader_clock, ": "),
              DescribeDigit(*read.table, worker, number), " is not 0");
        }
      }
    }
    return "";
  }
};

}  // namespace

std::unique_ptr<Invariant> NewOpenClocksHidden() { return std::make_unique<OpenClocksHidden>(); }

}  // namespace leeway::simulation
