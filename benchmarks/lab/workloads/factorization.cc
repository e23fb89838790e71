#include "benchmarks/lab/workloads/factorization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "benchmarks/lab/workloads/step_rows.h"
#include "runtime/base/random.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kUsers = 2000, kItems = 1000, kRowWidth = 8;
constexpr std::size_t kTrained = 60'000, kHeldOut = 5'000;
constexpr double kDeviation = 0.1;
constexpr std::uint64_t kUserRows = 0xfac1, kItemRows = 0xfac2, kWho = 0xfac3, kWhat = 0xfac4,
                        kRatings = 0xfac5;
enum : std::size_t { kUserTable, kItemTable };

struct Rating {
  std::uint64_t user = 0, item = 0;
  float value = 0;
};

// Numbers below n by Zipf's law of exponent 1, nearly: the logarithm is uniform.
std::uint64_t Zipf(double uniform, std::size_t n) {
  const double rank = std::exp(uniform * std::log(static_cast<double>(n) + 1)) - 1;
  return std::min<std::uint64_t>(static_cast<std::uint64_t>(rank), n - 1);
}

class Factorization final : public Workload {
 public:
  explicit Factorization(std::uint64_t seed) : seed_(seed) {
    for (std::size_t i = 0; i < kTrained + kHeldOut; ++i) {
      Rating rating{.user = Zipf(runtime::UniformAt(seed, kWho, i), kUsers),
                    .item = Zipf(runtime::UniformAt(seed, kWhat, i), kItems)};
      double value = kDeviation * runtime::NormalAt(seed, kRatings, i);
      for (std::size_t k = 0; k < kRowWidth; ++k) {
        value += runtime::NormalAt(seed, kUserRows, rating.user * kRowWidth + k) *
                 runtime::NormalAt(seed, kItemRows, rating.item * kRowWidth + k) / kRowWidth;
      }
      rating.value = static_cast<float>(value);
      ratings_.push_back(rating);
    }
  }

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs = {TableSpec::Sparse("users", kRowWidth),
                                    TableSpec::Sparse("items", kRowWidth)};
    for (TableSpec& spec : specs) spec.initializer = Initializer::Normal(0, 0.3, seed_);
    return specs;
  }
  std::size_t samples() const override { return kTrained; }
  std::string score_name() const override { return ""; }

  void Choose(std::span<const std::uint32_t> samples, std::uint64_t, Step* step) const override {
    for (std::size_t table : {kUserTable, kItemTable}) {
      std::vector<std::uint64_t>& keys = step->keys[table];
      keys.clear();
      for (const std::uint32_t sample : samples) keys.push_back(KeyOf(ratings_[sample], table));
      KeepEachOnce(&keys);
    }
  }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t,
                  Step* step) const override {
    for (std::vector<float>& gradient : step->gradients) std::ranges::fill(gradient, 0.0f);
    double loss = 0;
    for (const std::uint32_t sample : samples) {
      const Rating& rating = ratings_[sample];
      const std::size_t u = PlaceOf(rating, kUserTable, *step);
      const std::size_t v = PlaceOf(rating, kItemTable, *step);
      const float* const user = step->values[kUserTable].data() + u;
      const float* const item = step->values[kItemTable].data() + v;
      const float error = std::inner_product(user, user + kRowWidth, item, 0.0f) - rating.value;
      loss += double{error} * error;
      const float scale = 2 * error / static_cast<float>(samples.size());
      for (std::size_t k = 0; k < kRowWidth; ++k) {
        step->gradients[kUserTable][u + k] += scale * item[k];
        step->gradients[kItemTable][v + k] += scale * user[k];
      }
    }
    return loss;
  }

  std::vector<std::vector<std::uint64_t>> rows_to_evaluate() const override {
    return {FirstKeys(kUsers), FirstKeys(kItems)};
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool) const override {
    double loss = 0;
    for (std::size_t i = kTrained; i < ratings_.size(); ++i) {
      const float* const user = values[kUserTable].data() + ratings_[i].user * kRowWidth;
      const float* const item = values[kItemTable].data() + ratings_[i].item * kRowWidth;
      const double error =
          std::inner_product(user, user + kRowWidth, item, 0.0f) - double{ratings_[i].value};
      loss += error * error;
    }
    return {.loss = loss / kHeldOut, .score = std::numeric_limits<double>::quiet_NaN()};
  }

 private:
  static std::uint64_t KeyOf(const Rating& rating, std::size_t table) {
    return table == kUserTable ? rating.user : rating.item;
  }
  // Where the row begins in the step's values.
  static std::size_t PlaceOf(const Rating& rating, std::size_t table, const Step& step) {
    return RowOf(step.keys[table], KeyOf(rating, table)) * kRowWidth;
  }

  const std::uint64_t seed_;
  std::vector<Rating> ratings_;
};

}  // namespace

std::unique_ptr<Workload> NewFactorization(std::uint64_t seed) {
  return std::make_unique<Factorization>(seed);
}

}  // namespace leeway::lab
