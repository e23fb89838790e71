#include "tests/simulation/fault_kinds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace leeway::simulation {
namespace {

// A name and the seed decide whether a run has the fault: another name changes what seeds mean.
constexpr std::array<absl::string_view, kFaultKinds> kNames = {
    "drop",         "duplicate",   "delay",          "reorder",        "partition",
    "one-way",      "slow-link",   "kill-worker",    "restart-worker", "long-partition",
    "kill-server",  "kill-filler", "kill-scheduler", "disk-full",      "disk-errors",
    "clock-skew",   "priorities",  "aimed",          "add-server",     "drain",
    "rebalance",    "checkpoint",  "switch-codec",   "change-table",   "move-scheduler",
    "leave-worker", "stranger",    "refused-push",   "short-deadline", "publish",
};

}  // namespace

absl::string_view NameOf(FaultKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

FaultSet AllFaults() { return FaultSet().set(); }

FaultSet FaultsOfLinks() {
  FaultSet links;
  for (const FaultKind kind :
       {FaultKind::kDrop, FaultKind::kDuplicate, FaultKind::kDelay, FaultKind::kReorder,
        FaultKind::kPartition, FaultKind::kOneWayPartition, FaultKind::kSlowLink,
        FaultKind::kLongPartition, FaultKind::kPriorities, FaultKind::kAimed}) {
    links.set(static_cast<std::size_t>(kind));
  }
  return links;
}

absl::StatusOr<FaultSet> ParseFaults(absl::string_view text) {
  if (text == "all") return AllFaults();
  if (text == "none") return FaultSet();
  FaultSet faults;
  const bool all_but = absl::ConsumePrefix(&text, "-");
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    std::size_t kind = 0;
    while (kind < kFaultKinds && kNames[kind] != name) ++kind;
    if (kind == kFaultKinds) {
      std::string known;
      for (const absl::string_view each : kNames) absl::StrAppend(&known, " ", each);
      return absl::InvalidArgumentError(
          absl::StrCat("no fault '", name, "'; there are all none", known));
    }
    faults.set(kind);
  }
  return all_but ? ~faults : faults;
}

}  // namespace leeway::simulation
