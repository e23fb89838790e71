#include "compress/momentum.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compress/common/options.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kMomentum = "momentum";
constexpr absl::string_view kNesterov = "nesterov";
constexpr double kLargestFactor = 0.9999;  // so that old gradients fade

float Finite(float value) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::clamp(value, -kLargest, kLargest);
}

// Moves an option, where it is there, from one map to the other.
void Move(absl::string_view name, CodecOptions* from, CodecOptions* to) {
  if (auto option = from->extract(std::string(name)); !option.empty()) {
    to->insert(std::move(option));
  }
}

}  // namespace

void Momentum::Step(std::span<const float> gradient, std::span<float> velocity,
                    std::span<float> pushed) const {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    velocity[i] = Finite(factor_ * velocity[i] + gradient[i]);
    pushed[i] = nesterov_ ? Finite(gradient[i] + factor_ * velocity[i]) : velocity[i];
  }
}

absl::StatusOr<std::optional<Momentum>> TakeMomentum(absl::string_view codec,
                                                     CodecOptions* options) {
  CodecOptions taken;
  Move(kMomentum, options, &taken);
  Move(kNesterov, options, &taken);
  if (taken.empty()) return std::optional<Momentum>();
  if (taken.find(std::string(kMomentum)) == taken.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec, ": nesterov is a form of momentum, which is not given"));
  }
  double factor = 0, nesterov = 0;
  LEEWAY_RETURN_IF_ERROR(
      ReadOptions(codec, taken,
                  {{.name = kMomentum, .value = &factor, .low = 0, .high = kLargestFactor},
                   {.name = kNesterov, .value = &nesterov, .low = 0, .high = 1, .whole = true}}));
  return std::optional<Momentum>(Momentum(static_cast<float>(factor), nesterov == 1));
}

}  // namespace leeway::compress
