#include "benchmarks/lab/workloads/quadratic.h"

#include <cmath>
#include <limits>

#include "runtime/base/random.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kTargets = 4096;
constexpr std::size_t kCoordinates = 256;
constexpr double kCondition = 50;  // κ
constexpr std::uint64_t kCentres = 0x9ad1, kSpreads = 0x9ad2;

class Quadratic final : public Workload {
 public:
  explicit Quadratic(std::uint64_t seed)
      : targets_(kTargets * kCoordinates), optimum_(kCoordinates) {
    for (std::size_t j = 0; j < kCoordinates; ++j) {
      const double place = static_cast<double>(j) / (kCoordinates - 1);
      curvature_.push_back(static_cast<float>(std::pow(kCondition, -place)));
      const double centre = runtime::NormalAt(seed, kCentres, j);
      double sum = 0;
      for (std::size_t i = 0; i < kTargets; ++i) {
        const double a = centre + runtime::NormalAt(seed, kSpreads, i * kCoordinates + j);
        targets_[i * kCoordinates + j] = static_cast<float>(a);
        sum += targets_[i * kCoordinates + j];
      }
      optimum_[j] = sum / kTargets;
    }
  }

  std::vector<TableSpec> tables() const override { return {TableSpec::Dense("w", {kCoordinates})}; }
  std::size_t samples() const override { return kTargets; }
  std::string score_name() const override { return ""; }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t,
                  Step* step) const override {
    const std::vector<float>& w = step->values[0];
    std::vector<float>& gradient = step->gradients[0];
    gradient.assign(kCoordinates, 0);
    const float scale = 1.0f / static_cast<float>(samples.size());
    double loss = 0;
    for (const std::uint32_t sample : samples) {
      const float* const a = targets_.data() + sample * kCoordinates;
      for (std::size_t j = 0; j < kCoordinates; ++j) {
        const float away = w[j] - a[j];
        gradient[j] += scale * curvature_[j] * away;
        loss += 0.5 * curvature_[j] * away * away;
      }
    }
    return loss;
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool) const override {
    double excess = 0;
    for (std::size_t j = 0; j < kCoordinates; ++j) {
      const double away = values[0][j] - optimum_[j];
      excess += 0.5 * curvature_[j] * away * away;
    }
    return {.loss = excess, .score = std::numeric_limits<double>::quiet_NaN()};
  }

 private:
  std::vector<float> targets_, curvature_;
  std::vector<double> optimum_;
};

}  // namespace

std::unique_ptr<Workload> NewQuadratic(std::uint64_t seed) {
  return std::make_unique<Quadratic>(seed);
}

}  // namespace leeway::lab
