#include "tests/simulation/invariants/invariant.h"

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

absl::string_view NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAcknowledged:
      return "acknowledged";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kUnknown:
      break;
  }
  return "unanswered";
}

}  // namespace

std::string Describe(const Read& read, std::uint32_t place, std::uint32_t worker,
                     std::size_t number, const Push& push) {
  return absl::StrCat("push ", number, " of worker ", worker, " (clock ", push.clock, ", ",
                      NameOf(push.outcome), ") in ", read.table->dense() ? "block " : "row ", place,
                      " of '", read.table->spec.name, "' (",
                      read.table->spec.consistency.ToString(), ")");
}

std::string DescribeReader(const Read& read) {
  return absl::StrCat("worker ", read.reader, ", asking at clock ", read.clock);
}

}  // namespace leeway::simulation
