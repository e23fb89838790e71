#include "benchmarks/lab/experiment/straggler.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

constexpr double kFactorMax = 1e6;
constexpr char kForms[] =
    "none, slow:RANK:FACTOR, random:PROBABILITY:FACTOR, exponential:MEAN, pareto:SHAPE, "
    "pause:EVERY_S:LENGTH_S, and several of them with + between them";

// The streams of random numbers: steps' factors and workers' phases.
constexpr std::uint64_t kFactors = 0x57a6;
constexpr std::uint64_t kPhases = 0x57a7;

double Draw(std::uint64_t seed, std::uint32_t rank, std::uint64_t step, std::size_t part) {
  return runtime::UniformAt(seed + part, kFactors + rank * 0x10000ull, step);
}

}  // namespace

absl::StatusOr<Straggler> Straggler::Parse(absl::string_view text) {
  Straggler straggler;
  if (text == "none") return straggler;
  for (const absl::string_view piece : absl::StrSplit(text, '+')) {
    const std::vector<std::string> words = absl::StrSplit(piece, ':');
    const auto wrong = [&](absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat("straggler '", piece, "': ", why, " (there are ", kForms, ")"));
    };
    std::vector<double> numbers;
    for (std::size_t i = 1; i < words.size(); ++i) {
      double number = 0;
      if (!absl::SimpleAtod(words[i], &number) || !std::isfinite(number) || number < 0 ||
          number > kFactorMax) {
        return wrong(absl::StrCat("'", words[i], "' is no number from 0 to ", kFactorMax));
      }
      numbers.push_back(number);
    }
    const auto is = [&](absl::string_view name, std::size_t count) {
      return words[0] == name && numbers.size() == count;
    };
    Part part;
    if (is("slow", 2)) {
      part.kind = Kind::kSlow;
      if (numbers[0] != std::floor(numbers[0])) return wrong("the rank is no whole number");
      if (numbers[1] < 1) return wrong("the factor is below 1");
    } else if (is("random", 2)) {
      part.kind = Kind::kRandom;
      if (numbers[0] > 1) return wrong("the probability is above 1");
      if (numbers[1] < 1) return wrong("the factor is below 1");
    } else if (is("exponential", 1)) {
      part.kind = Kind::kExponential;
    } else if (is("pareto", 1)) {
      part.kind = Kind::kPareto;
      if (numbers[0] <= 1) return wrong("the shape must be above 1, or the mean is infinite");
    } else if (is("pause", 2)) {
      part.kind = Kind::kPause;
      if (numbers[0] <= 0 || numbers[1] >= numbers[0]) {
        return wrong("a pause must be shorter than the time from one to the next");
      }
    } else {
      return wrong("there is no such form");
    }
    part.a = numbers[0];
    part.b = numbers.size() > 1 ? numbers[1] : 0;
    straggler.parts_.push_back(part);
  }
  return straggler;
}

double Straggler::StepSeconds(std::uint64_t seed, std::uint32_t rank, std::uint64_t step,
                              double begin_s, double usual_s) const {
  double seconds = usual_s;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    switch (part.kind) {
      case Kind::kSlow:
        if (rank == part.a) seconds *= part.b;
        break;
      case Kind::kRandom:
        if (Draw(seed, rank, step, i) < part.a) seconds *= part.b;
        break;
      case Kind::kExponential:
        seconds *= 1 - part.a * std::log1p(-Draw(seed, rank, step, i));
        break;
      case Kind::kPareto:
        seconds *= std::pow(1 - Draw(seed, rank, step, i), -1 / part.a);
        break;
      case Kind::kPause:
        break;  // below: it depends on how long the step takes otherwise
    }
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.kind != Kind::kPause) continue;
    const double phase = part.a * runtime::UniformAt(seed + i, kPhases, rank);
    const auto pauses_before = [&](double time_s) { return std::floor((time_s - phase) / part.a); };
    seconds += part.b * (pauses_before(begin_s + seconds) - pauses_before(begin_s));
  }
  return seconds;
}

std::optional<std::uint32_t> Straggler::LastRank() const {
  std::optional<std::uint32_t> last;
  for (const Part& part : parts_) {
    if (part.kind == Kind::kSlow)
      last = std::max(last.value_or(0), static_cast<std::uint32_t>(part.a));
  }
  return last;
}

double Straggler::MeanFactor(std::uint32_t rank) const {
  double factor = 1;
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::kSlow:
        if (rank == part.a) factor *= part.b;
        break;
      case Kind::kRandom:
        factor *= 1 + part.a * (part.b - 1);
        break;
      case Kind::kExponential:
        factor *= 1 + part.a;
        break;
      case Kind::kPareto:
        factor *= std::min(part.a / (part.a - 1), 10.0);
        break;
      case Kind::kPause:
        factor *= 1 + part.b / part.a;
        break;
    }
  }
  return factor;
}

}  // namespace leeway::lab
