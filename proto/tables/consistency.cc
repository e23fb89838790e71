#include "leeway/consistency.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/tables/table_texts.h"
#include "runtime/base/status_macros.h"

namespace leeway {
namespace {

constexpr absl::string_view kForms =
    "may be bsp, ssp:S, asp, backup:K/N, dssp:LOW-HIGH, psp:S/SAMPLE, softsync:N or fedbuff:K, and "
    "then \",drop\", \",wait\", \",weight=…\", \",dc=LAMBDA\" or \",dc=adaptive:LAMBDA/DECAY\", "
    "LAMBDA above 0 and DECAY above 0 and below 1 (docs/consistency.md)";

// What pushes are multiplied by is a float32 in most tables.
constexpr double kFactorMax = std::numeric_limits<float>::max();
bool IsFactor(double value) { return value >= 0 && value <= kFactorMax; }

// Digits and nothing else.
template <class Number>
bool ReadNumber(absl::string_view text, Number* to) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, to);
}

template <class First, class Second>
bool ReadPair(absl::string_view text, char between, First* first, Second* second) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(between, 1));
  return ReadNumber(parts.first, first) && ReadNumber(parts.second, second);
}

bool ReadFraction(absl::string_view text, double* to) {
  return !text.empty() && !absl::ascii_isspace(text.front()) && !absl::ascii_isspace(text.back()) &&
         absl::SimpleAtod(text, to);
}

bool ReadRule(absl::string_view text, Consistency* to) {
  using Rule = Consistency::Rule;
  if (text == "bsp") return true;
  if (text == "asp") {
    to->staleness = Consistency::kUnbounded;
    return true;
  }
  if (absl::ConsumePrefix(&text, "ssp:")) {
    return ReadNumber(text, &to->staleness) && !to->is_unbounded();
  }
  if (absl::ConsumePrefix(&text, "backup:")) {
    to->rule = Rule::kBackup;
    return ReadPair(text, '/', &to->count, &to->of);
  }
  if (absl::ConsumePrefix(&text, "dssp:")) {
    to->rule = Rule::kDynamic;
    return ReadPair(text, '-', &to->count, &to->staleness);
  }
  if (absl::ConsumePrefix(&text, "psp:")) {
    to->rule = Rule::kSampled;
    return ReadPair(text, '/', &to->staleness, &to->count);
  }
  to->staleness = Consistency::kUnbounded;
  if (absl::ConsumePrefix(&text, "softsync:")) {
    to->rule = Rule::kSoftsync;
    return ReadNumber(text, &to->count);
  }
  to->rule = Rule::kBuffered;
  return absl::ConsumePrefix(&text, "fedbuff:") && ReadNumber(text, &to->count);
}

bool ReadWeight(absl::string_view text, Consistency* to) {
  using Weight = Consistency::Weight;
  if (text == "1/tau") {
    to->weight = Weight::kInverse;
    return true;
  }
  if (absl::ConsumePrefix(&text, "poly:")) {
    to->weight = Weight::kPolynomial;
    return ReadFraction(text, &to->a);
  }
  if (absl::ConsumePrefix(&text, "hinge:")) {
    to->weight = Weight::kHinge;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('/', 1));
    return ReadFraction(parts.first, &to->a) && ReadFraction(parts.second, &to->b);
  }
  if (absl::ConsumePrefix(&text, "cutoff:")) {
    to->weight = Weight::kCutOff;
    return ReadFraction(text, &to->b);
  }
  to->weight = Weight::kTable;
  if (!absl::ConsumePrefix(&text, "table:")) return false;
  for (const absl::string_view one : absl::StrSplit(text, '/')) {
    if (!ReadFraction(one, &to->weights.emplace_back())) return false;
  }
  return true;
}

bool ReadCompensation(absl::string_view text, Consistency* to) {
  if (!absl::ConsumePrefix(&text, "adaptive:")) return ReadFraction(text, &to->compensation);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  return ReadFraction(parts.first, &to->compensation) &&
         ReadFraction(parts.second, &to->compensation_decay) && to->compensation_decay != 0;
}

bool ReadOption(absl::string_view text, Consistency* to) {
  if (!to->is_compensated() && absl::ConsumePrefix(&text, "dc=")) {
    return ReadCompensation(text, to) && to->is_compensated();
  }
  if (text == "drop" && to->late == Consistency::Late::kApply) {
    to->late = Consistency::Late::kDrop;
    return true;
  }
  if (text == "wait" && to->when_short == Consistency::Short::kClose) {
    to->when_short = Consistency::Short::kWait;
    return true;
  }
  return !to->is_weighted() && absl::ConsumePrefix(&text, "weight=") && ReadWeight(text, to);
}

template <class... Parts>
absl::Status WrongField(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("consistency.", parts...));
}

absl::Status CheckCount(const Consistency& is) {
  using Rule = Consistency::Rule;
  if (is.rule == Rule::kClocks) {
    return is.count == 0 ? absl::OkStatus()
                         : WrongField("count is ", is.count, ", may be 0 for bsp, ssp and asp");
  }
  const std::uint32_t least = is.rule == Rule::kDynamic ? 0 : 1;
  if (is.count >= least && is.count <= Consistency::kCountMax) return absl::OkStatus();
  return WrongField("count is ", is.count, ", may be ", least, " to ", Consistency::kCountMax);
}

absl::Status CheckStaleness(const Consistency& is) {
  using Rule = Consistency::Rule;
  if (is.rule == Rule::kDynamic && (is.is_unbounded() || is.staleness < is.count)) {
    return WrongField("staleness is ", is.staleness, ", the upper bound of dssp may be ", is.count,
                      " (the lower one) to ", Consistency::kUnbounded - 1);
  }
  if (is.rule == Rule::kBackup && is.staleness != 0) {
    return WrongField("staleness is ", is.staleness, ", may be 0 for backup");
  }
  if (is.rule == Rule::kSampled && is.is_unbounded())
    return WrongField("staleness has no bound in psp");
  const bool by_arrivals = is.rule == Rule::kSoftsync || is.rule == Rule::kBuffered;
  if (by_arrivals && !is.is_unbounded()) {
    return WrongField("staleness is ", is.staleness, "; softsync and fedbuff have no bound");
  }
  return absl::OkStatus();
}

absl::Status CheckBackup(const Consistency& is) {
  if (is.rule == Consistency::Rule::kBackup) {
    if (is.of >= is.count && is.of <= Consistency::kCountMax) return absl::OkStatus();
    return WrongField("count is ", is.count, " of ", is.of, " workers, may be at most as many");
  }
  if (is.of != 0) return WrongField("of is ", is.of, ", only backup has one");
  if (is.late != Consistency::Late::kApply)
    return WrongField("late is drop; only backup has late pushes");
  if (is.when_short != Consistency::Short::kClose)
    return WrongField("when_short is wait; only backup has a count to fall short of");
  return absl::OkStatus();
}

absl::Status CheckWeight(const Consistency& is) {
  using Weight = Consistency::Weight;
  const auto unused = [&](bool uses_a, bool uses_b) {
    return (uses_a || is.a == 0) && (uses_b || is.b == 0) &&
           (is.weight == Weight::kTable || is.weights.empty());
  };
  if (is.is_weighted() && is.closes_clocks()) {
    return WrongField("weight is by staleness, and pushes wait for their clock in ",
                      is.is_bsp() ? "bsp" : "backup", ": they are never stale");
  }
  const bool positive = is.a > 0 && std::isfinite(is.a);
  const bool from_0 = is.b >= 0 && std::isfinite(is.b);
  switch (is.weight) {
    case Weight::kOne:
    case Weight::kInverse:
      if (unused(false, false)) return absl::OkStatus();
      return WrongField("a, b and weights are not used by this weight, may be 0 and none");
    case Weight::kPolynomial:
      if (positive && unused(true, false)) return absl::OkStatus();
      return WrongField("a is ", is.a, ", may be above 0 for poly, which uses nothing else");
    case Weight::kHinge:
      if (positive && from_0 && unused(true, true)) return absl::OkStatus();
      return WrongField("a is ", is.a, " and b ", is.b,
                        ", may be above 0, and 0 or more, for hinge");
    case Weight::kCutOff:
      if (from_0 && unused(false, true)) return absl::OkStatus();
      return WrongField("b is ", is.b, ", may be 0 or more for cutoff, which uses nothing else");
    case Weight::kTable:
      break;
  }
  if (is.weights.empty() || is.weights.size() > Consistency::kWeightsMax) {
    return WrongField("weights are ", is.weights.size(), ", may be 1 to ",
                      Consistency::kWeightsMax);
  }
  const auto wrong = std::ranges::find_if_not(is.weights, IsFactor);
  if (wrong == is.weights.end() && unused(false, false)) return absl::OkStatus();
  return wrong == is.weights.end()
             ? WrongField("a is ", is.a, " and b ", is.b, ", may be 0 for table")
             : WrongField("weights has ", *wrong, ", each may be 0 to ", kFactorMax);
}

template <class Enum>
absl::Status CheckEnumField(absl::string_view field, Enum value, Enum last) {
  if (value <= last) return absl::OkStatus();
  return WrongField(field, " is ", static_cast<unsigned>(value), ", may be 0 to ",
                    static_cast<unsigned>(last));
}

absl::Status CheckCompensation(const Consistency& is) {
  const bool in_range = IsFactor(is.compensation) && is.compensation_decay >= 0 &&
                        is.compensation_decay < 1 &&
                        (is.compensation > 0 || is.compensation_decay == 0);
  if (!in_range) {
    return WrongField("compensation is ", is.compensation, " and its decay ", is.compensation_decay,
                      ", may be 0 to ", kFactorMax, ", and 0 to below 1");
  }
  if (is.is_compensated() && (is.is_bsp() || is.collects())) {
    return WrongField("compensation is of pushes that take effect when they come, one by one");
  }
  return absl::OkStatus();
}

std::string CompensationText(const Consistency& is) {
  using proto::Exact;
  if (!is.is_compensated()) return "";
  if (is.compensation_decay == 0) return absl::StrCat(",dc=", Exact(is.compensation));
  return absl::StrCat(",dc=adaptive:", Exact(is.compensation), "/", Exact(is.compensation_decay));
}

std::string RuleText(const Consistency& is) {
  using Rule = Consistency::Rule;
  switch (is.rule) {
    case Rule::kClocks:
      break;
    case Rule::kBackup:
      return absl::StrCat("backup:", is.count, "/", is.of);
    case Rule::kDynamic:
      return absl::StrCat("dssp:", is.count, "-", is.staleness);
    case Rule::kSampled:
      return absl::StrCat("psp:", is.staleness, "/", is.count);
    case Rule::kSoftsync:
      return absl::StrCat("softsync:", is.count);
    case Rule::kBuffered:
      return absl::StrCat("fedbuff:", is.count);
  }
  if (is.is_bsp()) return "bsp";
  return is.is_unbounded() ? "asp" : absl::StrCat("ssp:", is.staleness);
}

std::string WeightText(const Consistency& is) {
  using Weight = Consistency::Weight;
  using proto::Exact;
  switch (is.weight) {
    case Weight::kOne:
      return "";
    case Weight::kInverse:
      return ",weight=1/tau";
    case Weight::kPolynomial:
      return absl::StrCat(",weight=poly:", Exact(is.a));
    case Weight::kHinge:
      return absl::StrCat(",weight=hinge:", Exact(is.a), "/", Exact(is.b));
    case Weight::kCutOff:
      return absl::StrCat(",weight=cutoff:", Exact(is.b));
    case Weight::kTable:
      break;
  }
  return absl::StrCat(",weight=table:",
                      absl::StrJoin(is.weights, "/", [](std::string* out, double one) {
                        absl::StrAppend(out, Exact(one));
                      }));
}

}  // namespace

absl::Status Consistency::Validate() const {
  LEEWAY_RETURN_IF_ERROR(CheckEnumField("rule", rule, Rule::kBuffered));
  LEEWAY_RETURN_IF_ERROR(CheckEnumField("late", late, Late::kDrop));
  LEEWAY_RETURN_IF_ERROR(CheckEnumField("when_short", when_short, Short::kWait));
  LEEWAY_RETURN_IF_ERROR(CheckEnumField("weight", weight, Weight::kTable));
  LEEWAY_RETURN_IF_ERROR(CheckCount(*this));
  LEEWAY_RETURN_IF_ERROR(CheckStaleness(*this));
  LEEWAY_RETURN_IF_ERROR(CheckBackup(*this));
  LEEWAY_RETURN_IF_ERROR(CheckCompensation(*this));
  return CheckWeight(*this);
}

absl::StatusOr<Consistency> Consistency::Parse(absl::string_view text) {
  Consistency read;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  bool fits = ReadRule(parts.front(), &read);
  for (std::size_t i = 1; i < parts.size(); ++i) fits = fits && ReadOption(parts[i], &read);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("consistency is ", proto::QuotedBriefly(text), ", ", kForms));
  }
  LEEWAY_RETURN_IF_ERROR(read.Validate());
  return read;
}

std::string Consistency::ToString() const {
  return absl::StrCat(RuleText(*this), late == Late::kDrop ? ",drop" : "",
                      when_short == Short::kWait ? ",wait" : "", WeightText(*this),
                      CompensationText(*this));
}

}  // namespace leeway
