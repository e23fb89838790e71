#include "benchmarks/lab/workloads/glosses.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "examples/wordnet/synsets.h"

namespace leeway::lab {

absl::StatusOr<std::vector<std::string>> LoadGlosses() {
  std::vector<std::string> glosses;
  for (const char* part : {"noun", "verb", "adj", "adv"}) {
    const std::string path = absl::StrCat(wordnet::kDefaultFolder, "/data.", part);
    std::ifstream file(path);
    if (!file) {
      return absl::NotFoundError(absl::StrCat("cannot read ", path, ": install wordnet-base"));
    }
    for (std::string line; std::getline(file, line);) {
      // Lines of the licence in front begin with a space.
      const std::size_t mark = line.find(" | ");
      if (line.starts_with(' ') || mark == std::string::npos) continue;
      glosses.push_back(absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(mark + 3))));
    }
  }
  return glosses;
}

}  // namespace leeway::lab
