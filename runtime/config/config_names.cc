#include "runtime/config/config_names.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "runtime/config/config_settings.h"

namespace leeway::runtime {
namespace {

constexpr char kPrefix[] = "LEEWAY_";
// Names with a larger distance are not suggested.
constexpr std::size_t kDistanceMax = 4;
constexpr std::size_t kLengthMax = 64;

// The names that Config::From looks up.
std::set<std::string> KnownSettings() {
  std::set<std::string> names;
  Config::From([&names](const std::string& name) -> std::optional<std::string> {
    names.insert(name);
    return std::nullopt;
  })
      .status()
      .IgnoreError();
  return names;
}

// The edit distance (Levenshtein): the number of characters to insert, delete or replace.
std::size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0u);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t same = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({same, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> UnknownSettings(const std::vector<std::string>& names) {
  const std::set<std::string> known = KnownSettings();
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kPrefix) || known.contains(name)) continue;
    const std::string* nearest = nullptr;
    std::size_t least = kDistanceMax + 1;
    for (const std::string& other : known) {
      if (!absl::StartsWith(other, kPrefix) || name.size() > kLengthMax) continue;
      if (const std::size_t distance = Distance(name, other); distance < least) {
        least = distance;
        nearest = &other;
      }
    }
    lines.push_back(absl::StrCat(Quote(name), " is set, but there is no such setting",
                                 nearest == nullptr ? "" : "; did you mean ",
                                 nearest == nullptr ? "" : *nearest));
  }
  return lines;
}

}  // namespace leeway::runtime
