// The invariants about the pushes that a read of a counter table must show.
#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"
#include "tests/simulation/visibility.h"

namespace leeway::simulation {
namespace {

class MustBeVisible final : public Invariant {
 public:
  MustBeVisible(absl::string_view name, bool (*promised)(const Sighting&))
      : name_(name), promised_(promised) {}

  absl::string_view name() const override { return name_; }

  std::string Judge(const Read& read, const History& history) override {
    if (!read.table->counter) return "";
    for (std::uint32_t worker = 0; worker < history.lives.size(); ++worker) {
      const std::vector<Push>& pushes = history.pushes(*read.table, worker);
      for (std::size_t number = 0; number < pushes.size(); ++number) {
        const Push& push = pushes[number];
        if (!promised_({read, history, worker, number, push})) continue;
        for (std::size_t i = 0; i < read.places.size(); ++i) {
          if (((push.places >> read.places[i]) & 1) == 0) continue;
          if (TimesApplied(*read.table, read.CountsOf(i), worker, number) > 0) continue;
          return absl::StrCat(Describe(read, read.places[i], worker, number, push),
                              " is not seen by ", DescribeReader(read), ": ",
                              DescribeDigit(*read.table, worker, number), " is 0 and not 1");
        }
      }
    }
    return "";
  }

 private:
  const absl::string_view name_;
  bool (*const promised_)(const Sighting&);
};

}  // namespace

std::unique_ptr<Invariant> NewAcknowledgedIsThere() {
  return std::make_unique<MustBeVisible>("an acknowledged push is in the state", IsAcknowledged);
}
std::unique_ptr<Invariant> NewOwnWritesRead() {
  return std::make_unique<MustBeVisible>("own writes are read", IsOwnWrite);
}
std::unique_ptr<Invariant> NewStalenessBound() {
  return std::make_unique<MustBeVisible>("the staleness bound", IsWithinBound);
}

}  // namespace leeway::simulation
