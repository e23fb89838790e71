#include "leeway/consistency.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/tables/text.h"

namespace leeway {

absl::StatusOr<Consistency> Consistency::Parse(absl::string_view text) {
  if (text == "bsp") return Bsp();
  if (text == "asp") return Asp();
  absl::string_view digits = text;
  std::uint64_t bound = 0;
  if (absl::ConsumePrefix(&digits, "ssp:") && !digits.empty() &&
      std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(digits, &bound) && bound != kUnbounded) {
    return Ssp(bound);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("consistency is ", proto::QuotedBriefly(text),
                   ", may be \"bsp\", \"asp\", or \"ssp:S\" with S from 0 to ", kUnbounded - 1));
}

std::string Consistency::ToString() const {
  if (is_bsp()) return "bsp";
  if (is_unbounded()) return "asp";
  return absl::StrCat("ssp:", staleness);
}

}  // namespace leeway
