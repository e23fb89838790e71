// A workload of one's own in the staleness lab (docs/lab.md): two spirals that a small network
// tells apart. The program is the lab with this workload beside its own:
//
//     my_workload run examples/my_workload/experiment.toml
//     my_workload run examples/my_workload/experiment.toml --engine real
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "benchmarks/lab/lab.h"
#include "benchmarks/lab/workloads/workload.h"

namespace {

using leeway::Initializer;
using leeway::TableSpec;
using leeway::lab::Evaluation;
using leeway::lab::Step;
using leeway::lab::Workload;

constexpr std::size_t kPoints = 4000, kTrained = 3000;  // the other ones are held out
constexpr std::size_t kHidden = 64;
constexpr double kTurns = 1.25;

// Tables, in the order of tables().
enum : std::size_t { kIn, kInBias, kOut, kOutBias };

struct Place {
  float x = 0, y = 0;
  bool second = false;  // of the two spirals
};

// One hidden layer of rectified units; logistic loss.
class Spirals final : public Workload {
 public:
  // Points follow from their numbers alone, so that all processes have the same ones.
  explicit Spirals(std::uint64_t seed) : seed_(seed) {
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double along = std::sqrt(std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0));
      const double angle = 2 * M_PI * kTurns * along + (i % 2 == 1 ? M_PI : 0);
      points_.push_back({.x = static_cast<float>(2 * along * std::cos(angle)),
                         .y = static_cast<float>(2 * along * std::sin(angle)),
                         .second = i % 2 == 1});
    }
  }

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs = {
        TableSpec::Dense("in", {kHidden, 2}), TableSpec::Dense("in.bias", {kHidden}),
        TableSpec::Dense("out", {kHidden}), TableSpec::Dense("out.bias", {1})};
    specs[kIn].initializer = Initializer::Normal(0, 2, seed_);
    specs[kInBias].initializer = Initializer::Uniform(-2, 2, seed_);
    specs[kOut].initializer = Initializer::Normal(0, 0.1, seed_);
    return specs;
  }
  std::size_t samples() const override { return kTrained; }
  std::string score_name() const override { return "accuracy"; }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t,
                  Step* step) const override {
    const auto& w = step->values;
    auto& g = step->gradients;
    for (std::vector<float>& gradient : g) std::ranges::fill(gradient, 0.0f);
    std::vector<float> hidden(kHidden);
    double loss = 0;
    for (const std::uint32_t sample : samples) {
      const Place& at = points_[sample];
      const double z = Forward(at, w, hidden);
      loss += LossOf(z, at);
      const auto error = static_cast<float>((1 / (1 + std::exp(-z)) - (at.second ? 1 : 0)) /
                                            static_cast<double>(samples.size()));
      g[kOutBias][0] += error;
      for (std::size_t j = 0; j < kHidden; ++j) {
        g[kOut][j] += error * hidden[j];
        if (hidden[j] <= 0) continue;
        const float back = error * w[kOut][j];
        g[kIn][2 * j] += back * at.x;
        g[kIn][2 * j + 1] += back * at.y;
        g[kInBias][j] += back;
      }
    }
    return loss;
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool) const override {
    std::vector<float> hidden(kHidden);
    double loss = 0, right = 0;
    for (std::size_t i = kTrained; i < kPoints; ++i) {
      const double z = Forward(points_[i], values, hidden);
      loss += LossOf(z, points_[i]);
      right += (z > 0) == points_[i].second;
    }
    constexpr double kHeldOut = kPoints - kTrained;
    return {.loss = loss / kHeldOut, .score = right / kHeldOut};
  }

 private:
  // The logit of the second spiral; fills the hidden units.
  static double Forward(const Place& at, const std::vector<std::vector<float>>& w,
                        std::span<float> hidden) {
    double z = w[kOutBias][0];
    for (std::size_t j = 0; j < kHidden; ++j) {
      hidden[j] = std::max(0.0f, w[kIn][2 * j] * at.x + w[kIn][2 * j + 1] * at.y + w[kInBias][j]);
      z += w[kOut][j] * hidden[j];
    }
    return z;
  }
  static double LossOf(double z, const Place& at) {
    const double margin = at.second ? z : -z;
    return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }

  const std::uint64_t seed_;
  std::vector<Place> points_;
};

}  // namespace

int main(int argc, char** argv) {
  return leeway::lab::RunLab(
      argc, argv,
      {{"spirals", [](std::uint64_t seed) { return std::make_unique<Spirals>(seed); }}});
}
