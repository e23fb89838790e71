#include "benchmarks/lab/experiment/links.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway::lab {

absl::StatusOr<std::vector<WorkerLink>> ParseLinks(absl::string_view text) {
  constexpr double kMbitMax = 1e6;
  std::vector<WorkerLink> links;
  if (text == "even") return links;
  for (const absl::string_view piece : absl::StrSplit(text, '+')) {
    const std::vector<std::string> words = absl::StrSplit(piece, ':');
    WorkerLink link;
    const auto is_speed = [](const std::string& word, double* mbit) {
      return absl::SimpleAtod(word, mbit) && *mbit >= 0 && *mbit <= kMbitMax;
    };
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &link.rank) ||
        !is_speed(words[1], &link.up_mbit) || !is_speed(words[2], &link.down_mbit)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "links '", piece,
          "': it is not RANK:UP_MBIT:DOWN_MBIT, with speeds from 0 (unlimited) to ", kMbitMax));
    }
    if (std::ranges::any_of(links, [&](const WorkerLink& one) { return one.rank == link.rank; })) {
      return absl::InvalidArgumentError(
          absl::StrCat("links '", text, "': worker ", link.rank, " is there twice"));
    }
    links.push_back(link);
  }
  return links;
}

}  // namespace leeway::lab
