// The invariants of tables whose pushes are collected (docs/consistency.md).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

// Fewer acknowledged pushes to a place wait than make an update.
class FewAreWaiting final : public Invariant {
 public:
  absl::string_view name() const override { return "enough pushes are an update"; }

  std::string Judge(const Read& read, const History& history) override {
    const Consistency& consistency = read.table->spec.consistency;
    if (!read.table->counter || !read.table->by_arrivals()) return "";
    const auto workers = static_cast<std::uint32_t>(history.lives.size());
    const std::uint32_t enough = consistency.rule == Consistency::Rule::kBuffered
                                     ? consistency.count
                                     : std::max<std::uint32_t>(1, workers / consistency.count);
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      std::uint32_t waiting = 0;
      for (std::uint32_t worker = 0; worker < workers; ++worker) {
        const std::vector<Push>& pushes = history.pushes(*read.table, worker);
        for (std::size_t number = 0; number < pushes.size(); ++number) {
          const Push& push = pushes[number];
          const bool there = ((push.places >> read.places[i]) & 1) != 0 &&
                             push.outcome == Outcome::kAcknowledged && push.dropped == 0 &&
                             push.acknowledged < read.submitted;
          if (!there) continue;
          waiting += TimesApplied(*read.table, read.CountsOf(i), worker, number) == 0;
        }
      }
      if (waiting < enough) continue;
      return absl::StrCat(waiting, " acknowledged pushes to place ", read.places[i], " of '",
                          read.table->spec.name, "' (", consistency.ToString(), ") wait, where ",
                          enough, " are an update, for ", DescribeReader(read));
    }
    return "";
  }
};

// Of an acknowledged push those places are missing that its worker was told of.
class DroppedIsSaid final : public Invariant {
 public:
  absl::string_view name() const override { return "what is dropped is said"; }

  std::string Judge(const Read& read, const History& history) override {
    const SimTable& table = *read.table;
    if (!table.counter || !table.collects() || table.by_arrivals() || !read.complete()) return "";
    for (std::uint32_t worker = 0; worker < history.lives.size(); ++worker) {
      const std::vector<Push>& pushes = history.pushes(table, worker);
      for (std::size_t number = 0; number < pushes.size(); ++number) {
        const Push& push = pushes[number];
        if (push.outcome != Outcome::kAcknowledged || push.dropped == 0) continue;
        if (push.acknowledged >= read.submitted || push.clock >= read.effective) continue;
        std::uint64_t missing = 0;
        for (std::size_t i = 0; i < read.places.size(); ++i) {
          if (((push.places >> read.places[i]) & 1) == 0) continue;
          missing += TimesApplied(table, read.CountsOf(i), worker, number) == 0;
        }
        const bool right = table.dense() ? missing == push.dropped : missing >= push.dropped;
        if (right) continue;
        return absl::StrCat(Describe(read, read.places[0], worker, number, push), " lacks ",
                            missing, " places for ", DescribeReader(read),
                            ", and its worker was told that ", push.dropped,
                            " of its requests were dropped");
      }
    }
    return "";
  }
};

}  // namespace

std::unique_ptr<Invariant> NewFewAreWaiting() { return std::make_unique<FewAreWaiting>(); }
std::unique_ptr<Invariant> NewDroppedIsSaid() { return std::make_unique<DroppedIsSaid>(); }

}  // namespace leeway::simulation
