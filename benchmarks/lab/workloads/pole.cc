#include "benchmarks/lab/workloads/pole.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "runtime/base/random.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kEpisodes = 4096, kEvaluated = 100;
constexpr std::size_t kInputs = 4, kHidden = 16;
constexpr std::size_t kStepsMax = 200;
constexpr double kDiscount = 0.99;
constexpr std::uint64_t kBegin = 0x901e, kActions = 0x901f, kPoleHeldOut = 0x9020;

// Tables, in the order of tables().
enum : std::size_t { kInWeight, kInBias, kOutWeight, kOutBias };

class Cart {
 public:
  // Each part of the state is drawn from ±0.05.
  explicit Cart(std::uint64_t seed) {
    for (std::size_t i = 0; i < kInputs; ++i) {
      state_[i] = 0.1 * runtime::UniformAt(seed, kBegin, i) - 0.05;
    }
  }

  // The cart's place and speed, the pole's angle and its speed.
  const std::array<double, kInputs>& state() const { return state_; }
  bool has_fallen() const {
    return std::abs(state_[0]) > 2.4 || std::abs(state_[2]) > 12 * std::numbers::pi / 180;
  }

  void Push(bool right) {
    constexpr double kGravity = 9.8, kCart = 1.0, kPole = 0.1, kHalfLength = 0.5, kForce = 10;
    constexpr double kAll = kCart + kPole, kStep_s = 0.02;
    auto& [place, speed, angle, turning] = state_;
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const double pull =
        ((right ? kForce : -kForce) + kPole * kHalfLength * turning * turning * sine) / kAll;
    const double turn = (kGravity * sine - cosine * pull) /
                        (kHalfLength * (4.0 / 3 - kPole * cosine * cosine / kAll));
    const double push = pull - kPole * kHalfLength * turn * cosine / kAll;
    place += kStep_s * speed;
    speed += kStep_s * push;
    angle += kStep_s * turning;
    turning += kStep_s * turn;
  }

 private:
  std::array<double, kInputs> state_{};
};

// One hidden layer; the probability of a push to the right is logistic.
struct Forward {
  std::array<float, kInputs> inputs{};
  std::array<float, kHidden> hidden{};
  double right = 0.5;

  Forward(const std::array<double, kInputs>& state, const std::vector<std::vector<float>>& w) {
    constexpr std::array<float, kInputs> kScale = {1, 1, 10, 1};  // to about 1
    for (std::size_t i = 0; i < kInputs; ++i) {
      inputs[i] = kScale[i] * static_cast<float>(state[i]);
    }
    double logit = w[kOutBias][0];
    for (std::size_t j = 0; j < kHidden; ++j) {
      float sum = w[kInBias][j];
      for (std::size_t i = 0; i < kInputs; ++i) sum += w[kInWeight][j * kInputs + i] * inputs[i];
      hidden[j] = std::tanh(sum);
      logit += w[kOutWeight][j] * hidden[j];
    }
    right = 1 / (1 + std::exp(-logit));
  }
};

struct Played {
  std::vector<Forward> steps;
  std::vector<bool> pushed_right;
};

class Pole final : public Workload {
 public:
  explicit Pole(std::uint64_t seed) : seed_(seed) {}

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs = {
        TableSpec::Dense("in", {kHidden, kInputs}), TableSpec::Dense("in.bias", {kHidden}),
        TableSpec::Dense("out", {kHidden}), TableSpec::Dense("out.bias", {1})};
    specs[kInWeight].initializer = Initializer::Normal(0, 0.5, seed_);
    specs[kOutWeight].initializer = Initializer::Normal(0, 0.1, seed_);
    return specs;
  }
  std::size_t samples() const override { return kEpisodes; }
  std::string score_name() const override { return "return"; }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t seed,
                  Step* step) const override {
    std::vector<Played> all;
    std::size_t steps = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all.push_back(Play(runtime::RandomAt(seed, kActions, i), step->values));
      steps += all.back().steps.size();
    }
    for (std::vector<float>& gradient : step->gradients) std::ranges::fill(gradient, 0.0f);
    const std::vector<std::vector<double>> advantages = AdvantagesOf(all);
    for (std::size_t e = 0; e < all.size(); ++e) {
      for (std::size_t t = 0; t < all[e].steps.size(); ++t) {
        const Forward& at = all[e].steps[t];
        // Of −advantage · log probability of the action, by the logit.
        const double error = advantages[e][t] * (at.right - (all[e].pushed_right[t] ? 1 : 0));
        AddGradient(at, static_cast<float>(error / static_cast<double>(steps)), step);
      }
    }
    const auto mean_steps = static_cast<double>(steps) / static_cast<double>(samples.size());
    return static_cast<double>(samples.size()) * (1 - mean_steps / kStepsMax);
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool quick) const override {
    const std::size_t episodes = quick ? kEvaluated / 4 : kEvaluated;
    double likelier = 0, drawn = 0;
    for (std::size_t i = 0; i < episodes; ++i) {
      const std::uint64_t seed = runtime::RandomAt(seed_, kPoleHeldOut, i);
      drawn += static_cast<double>(Play(seed, values).steps.size());
      Cart cart(seed);
      std::size_t steps = 0;
      for (; steps < kStepsMax && !cart.has_fallen(); ++steps) {
        cart.Push(Forward(cart.state(), values).right > 0.5);
      }
      likelier += static_cast<double>(steps);
    }
    const double all = static_cast<double>(episodes) * kStepsMax;
    return {.loss = 1 - drawn / all, .score = likelier / all};
  }

 private:
  static Played Play(std::uint64_t seed, const std::vector<std::vector<float>>& values) {
    Played played;
    Cart cart(seed);
    for (std::size_t t = 0; t < kStepsMax && !cart.has_fallen(); ++t) {
      const Forward& at = played.steps.emplace_back(cart.state(), values);
      const bool right = runtime::UniformAt(seed, kActions, t) < at.right;
      played.pushed_right.push_back(right);
      cart.Push(right);
    }
    return played;
  }

  // Discounted returns, less their mean over all steps, divided by their deviation.
  static std::vector<std::vector<double>> AdvantagesOf(const std::vector<Played>& all) {
    std::vector<std::vector<double>> returns;
    double sum = 0, squares = 0, count = 0;
    for (const Played& played : all) {
      std::vector<double>& own = returns.emplace_back(played.steps.size());
      double value = 0;
      for (std::size_t t = own.size(); t-- > 0;) {
        own[t] = value = 1 + kDiscount * value;
        sum += value;
        squares += value * value;
        ++count;
      }
    }
    const double mean = sum / count;
    const double deviation = std::sqrt(std::max(squares / count - mean * mean, 1e-8));
    for (std::vector<double>& own : returns) {
      for (double& value : own) value = (value - mean) / deviation;
    }
    return returns;
  }

  static void AddGradient(const Forward& at, float error, Step* step) {
    const auto& w = step->values;
    auto& g = step->gradients;
    g[kOutBias][0] += error;
    for (std::size_t j = 0; j < kHidden; ++j) {
      g[kOutWeight][j] += error * at.hidden[j];
      const float back = error * w[kOutWeight][j] * (1 - at.hidden[j] * at.hidden[j]);
      g[kInBias][j] += back;
      for (std::size_t i = 0; i < kInputs; ++i)
        g[kInWeight][j * kInputs + i] += back * at.inputs[i];
    }
  }

  const std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Workload> NewPole(std::uint64_t seed) { return std::make_unique<Pole>(seed); }

}  // namespace leeway::lab
