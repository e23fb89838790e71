// Every built-in updater against steps worked out by hand.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway/updater.h"
#include "ps/updaters/registry.h"

namespace leeway::ps {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Updater> Make(const std::string& name, const UpdaterParameters& parameters = {}) {
  const absl::StatusOr<UpdaterFactory> factory = FindUpdater(name);
  EXPECT_TRUE(factory.ok()) << factory.status();
  absl::StatusOr<std::unique_ptr<Updater>> updater = (*factory)(parameters);
  EXPECT_TRUE(updater.ok()) << updater.status();
  return *std::move(updater);
}

// Some elements and their state.
template <class T>
class Values {
 public:
  Values(const Updater& updater, std::vector<T> initial)
      : updater_(updater), value_(std::move(initial)) {
    for (int i = 0; i < updater.state_slots(); ++i) {
      state_.emplace_back(value_.size(), static_cast<T>(updater.initial_state(i)));
    }
  }

  void Push(const std::vector<T>& gradient, double learning_rate = kNaN) {
    std::vector<T*> state;
    for (std::vector<T>& slot : state_) state.push_back(slot.data());
    updater_.Update(UpdateRun<T>{value_.data(), gradient.data(), state.data(), value_.size(),
                                 ++step_, learning_rate});
  }

  const std::vector<T>& value() const { return value_; }

 private:
  const Updater& updater_;
  std::vector<T> value_;
  std::vector<std::vector<T>> state_;
  std::uint64_t step_ = 0;
};

// Pushes the gradients in turn to an element that starts at `initial`; what it is after each.
template <class T>
void ExpectSteps(const Updater& updater, T initial, const std::vector<T>& gradients,
                 const std::vector<double>& expected) {
  ASSERT_EQ(gradients.size(), expected.size());
  constexpr double kTolerance = sizeof(T) == sizeof(float) ? 2e-7 : 1e-9;
  Values<T> values(updater, {initial});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    values.Push({gradients[i]});
    EXPECT_NEAR(values.value()[0], expected[i], kTolerance) << "step " << i + 1;
  }
}

template <class T>
class FloatUpdaters : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatUpdaters, FloatTypes);

template <class T>
class AllTypes : public testing::Test {};
using EveryType = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(AllTypes, EveryType);

TYPED_TEST(AllTypes, AssignReplaces) {
  const auto assign = Make("assign");
  EXPECT_EQ(assign->combine(), Updater::Combine::kLast);
  Values<TypeParam> values(*assign, {1, 2, 3});
  values.Push({7, -8, 9});
  EXPECT_THAT(values.value(), testing::ElementsAre(7, -8, 9));
  values.Push({0, 1, 2}, 0.5);  // a rate means nothing to it
  EXPECT_THAT(values.value(), testing::ElementsAre(0, 1, 2));
}

TYPED_TEST(AllTypes, AddAdds) {
  const auto add = Make("add");
  EXPECT_EQ(add->combine(), Updater::Combine::kSum);
  Values<TypeParam> values(*add, {1, 2, 3});
  values.Push({7, -8, 9});
  EXPECT_THAT(values.value(), testing::ElementsAre(8, -6, 12));
  values.Push({1, 1, 1}, 0.5);
  EXPECT_THAT(values.value(), testing::ElementsAre(9, -5, 13));
}

template <class T>
void ExpectAddWraps() {
  const auto add = Make("add");
  Values<T> values(*add, {std::numeric_limits<T>::max(), std::numeric_limits<T>::min()});
  values.Push({1, -1});
  EXPECT_THAT(values.value(),
              testing::ElementsAre(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

TEST(Add, IntegersWrapAround) {
  ExpectAddWraps<std::int32_t>();
  ExpectAddWraps<std::int64_t>();
}

TYPED_TEST(FloatUpdaters, Sgd) {
  // 1 − 0.1·0.5 = 0.95; 0.95 + 0.1·1 = 1.05.
  ExpectSteps<TypeParam>(*Make("sgd", {{"learning_rate", 0.1}}), 1, {0.5, -1}, {0.95, 1.05});
  // λ = 0.5: d = 0.5 + 0.5 = 1 → 0.9; d = −1 + 0.45 = −0.55 → 0.955.
  ExpectSteps<TypeParam>(*Make("sgd", {{"learning_rate", 0.1}, {"weight_decay", 0.5}}), 1,
                         {0.5, -1}, {0.9, 0.955});
}

TYPED_TEST(FloatUpdaters, Momentum) {
  const UpdaterParameters parameters = {{"learning_rate", 0.1}, {"momentum", 0.5}};
  // v = 2 → 0.8; v = 1 + 1 = 2 → 0.6; v = 1 − 3 = −2 → 0.8.
  ExpectSteps<TypeParam>(*Make("momentum", parameters), 1, {2, 1, -3}, {0.8, 0.6, 0.8});
  // λ = 0.5: v = 2.5 → 0.75; d = 1.375, v = 1.25 + 1.375 = 2.625 → 0.4875.
  UpdaterParameters decaying = parameters;
  decaying["weight_decay"] = 0.5;
  ExpectSteps<TypeParam>(*Make("momentum", decaying), 1, {2, 1}, {0.75, 0.4875});
}

TYPED_TEST(FloatUpdaters, Nesterov) {
  const UpdaterParameters parameters = {{"learning_rate", 0.1}, {"momentum", 0.5}};
  // v = 2, d + μv = 3 → 0.7; v = 2, 1 + 1 = 2 → 0.5; v = −2, −3 − 1 = −4 → 0.9.
  ExpectSteps<TypeParam>(*Make("nesterov", parameters), 1, {2, 1, -3}, {0.7, 0.5, 0.9});
  // λ = 0.5: d = v = 2.5, 2.5 + 1.25 = 3.75 → 0.625.
  UpdaterParameters decaying = parameters;
  decaying["weight_decay"] = 0.5;
  ExpectSteps<TypeParam>(*Make("nesterov", decaying), 1, {2}, {0.625});
}

TYPED_TEST(FloatUpdaters, DelayedNesterov) {
  // N = 1, c = 0 is Nesterov's momentum.
  ExpectSteps<TypeParam>(*Make("delayed_nesterov", {{"learning_rate", 0.1}, {"momentum", 0.5}}), 1,
                         {2, 1, -3}, {0.7, 0.5, 0.9});
  // N = 2: g/N = 1 → 0.9; then b = 3, v = 1.5, 0.75 + 0.5 = 1.25 → 0.775; 0.5 → 0.725;
  // b = 3, v = 0.75 + 1.5 = 2.25, 1.125 + 1 = 2.125 → 0.5125.
  UpdaterParameters delayed = {{"learning_rate", 0.1}, {"momentum", 0.5}, {"delay", 2}};
  ExpectSteps<TypeParam>(*Make("delayed_nesterov", delayed), 1, {2, 1, 1, 2},
                         {0.9, 0.775, 0.725, 0.5125});
  // c = 0.5 = 1/N: each push is ahead by cμv = v/4, and (1 − cN + c) μ v likewise. 1 → 0.9;
  // v = 1.5, 0.375 + 0.5 = 0.875 → 0.8125; 0.375 + 0.5 → 0.725.
  delayed["activation"] = 0.5;
  ExpectSteps<TypeParam>(*Make("delayed_nesterov", delayed), 1, {2, 1, 1}, {0.9, 0.8125, 0.725});
}

TEST(DelayedNesterov, OptionsAreInRange) {
  for (const UpdaterParameters& wrong : {UpdaterParameters{{"delay", 0}},
                                         {{"delay", 1.5}},
                                         {{"delay", 4}, {"activation", 0.3}},
                                         {{"momentum", 1}}}) {
    EXPECT_FALSE((*FindUpdater("delayed_nesterov"))(wrong).ok());
  }
}

TYPED_TEST(FloatUpdaters, Adagrad) {
  // s = 9: 1 − 0.1·3/3 = 0.9; s = 25: 0.9 − 0.1·4/5 = 0.82; no gradient, no change.
  ExpectSteps<TypeParam>(*Make("adagrad", {{"learning_rate", 0.1}}), 1, {3, 4, 0},
                         {0.9, 0.82, 0.82});
  // κ = 1: the second step has half the rate: 0.9 − 0.05·4/5 = 0.86.
  ExpectSteps<TypeParam>(*Make("adagrad", {{"learning_rate", 0.1}, {"learning_rate_decay", 1}}), 1,
                         {3, 4}, {0.9, 0.86});
  // s = 7 + 9 = 16: 1 − 0.1·3/4 = 0.925.
  ExpectSteps<TypeParam>(*Make("adagrad", {{"learning_rate", 0.1}, {"initial_accumulator", 7}}), 1,
                         {3}, {0.925});
  // λ = 1, ε = 1: d = 3, s = 9: 1 − 0.1·3/(3 + 1) = 0.925.
  ExpectSteps<TypeParam>(
      *Make("adagrad", {{"learning_rate", 0.1}, {"weight_decay", 1}, {"epsilon", 1}}), 1, {2},
      {0.925});
}

TYPED_TEST(FloatUpdaters, Rmsprop) {
  // An ε too small to show.
  const UpdaterParameters parameters = {
      {"learning_rate", 0.1}, {"alpha", 0.75}, {"epsilon", 1e-12}};
  // s = 0.25·4 = 1, u = 2 → 0.8; s = 0.75 + 0.25 = 1, u = 1 → 0.7; s = 1, u = −1 → 0.8.
  ExpectSteps<TypeParam>(*Make("rmsprop", parameters), 1, {2, 1, -1}, {0.8, 0.7, 0.8});
  // μ = 0.5: v = 2 → 0.8; v = 1 + 1 = 2 → 0.6; v = 1 − 1 = 0 → 0.6.
  UpdaterParameters heavy = parameters;
  heavy["momentum"] = 0.5;
  ExpectSteps<TypeParam>(*Make("rmsprop", heavy), 1, {2, 1, -1}, {0.8, 0.6, 0.6});
  // λ = 1, ε = 1: d = 2, s = 1, u = 2/(1 + 1) = 1 → 0.9.
  UpdaterParameters other = parameters;
  other["weight_decay"] = 1;
  other["epsilon"] = 1;
  ExpectSteps<TypeParam>(*Make("rmsprop", other), 1, {1}, {0.9});
}

const UpdaterParameters kAdam = {{"learning_rate", 0.1}, {"beta1", 0.5}, {"beta2", 0.75}};

TYPED_TEST(FloatUpdaters, Adam) {
  // t = 1: m = 1, v = 1; m/0.5 = 2, √(v/0.25) = 2: 1 − 0.1 = 0.9.
  // t = 2: m = 0.5 − 0.5 = 0: no change; v = 0.75 + 0.25 = 1.
  // t = 3: m = 0.5, v = 1; m/0.875 = 0.571428571, √(1/0.578125) = 1.315191898:
  //        0.9 − 0.1·0.434483038 = 0.8565516962.
  ExpectSteps<TypeParam>(*Make("adam", kAdam), 1, {2, -1, 1}, {0.9, 0.9, 0.8565516962});
  // λ = 1: d = 1 + 1 = 2, as the first step above.  ε = 2: 1 − 0.1·2/(2 + 2) = 0.95.
  UpdaterParameters other = kAdam;
  other["weight_decay"] = 1;
  ExpectSteps<TypeParam>(*Make("adam", other), 1, {1}, {0.9});
  other["epsilon"] = 2;
  ExpectSteps<TypeParam>(*Make("adam", other), 1, {1}, {0.95});
}

TYPED_TEST(FloatUpdaters, AdamW) {
  // λ = 0.5: w is first multiplied by 1 − 0.1·0.5 = 0.95; the steps are Adam's.
  // 0.95 − 0.1 = 0.85; 0.85·0.95 = 0.8075; 0.8075·0.95 − 0.0434483038 = 0.7236766962.
  UpdaterParameters parameters = kAdam;
  parameters["weight_decay"] = 0.5;
  ExpectSteps<TypeParam>(*Make("adamw", parameters), 1, {2, -1, 1}, {0.85, 0.8075, 0.7236766962});
}

TYPED_TEST(FloatUpdaters, AdamAndAdamWDifferByDefaultInTheirDecay) {
  // With η = 0.1 alone the first step is η·sgn(g): 0.9; AdamW's λ = 0.01 takes off 0.001 more.
  ExpectSteps<TypeParam>(*Make("adam", {{"learning_rate", 0.1}}), 1, {1}, {0.9});
  ExpectSteps<TypeParam>(*Make("adamw", {{"learning_rate", 0.1}}), 1, {1}, {0.899});
}

TYPED_TEST(FloatUpdaters, Ftrl) {
  // α = β = λ₁ = λ₂ = 1.
  // σ = 3, z = 3, n = 9:      w = −(3 − 1)/(4 + 1) = −0.4.
  // σ = 5 − 3 = 2, z = 3 + 4 + 2·0.4 = 7.8, n = 25:    w = −6.8/(6 + 1) = −0.9714285714.
  // σ = 13 − 5 = 8, z = 7.8 − 12 + 8·0.9714285714 = 3.571428571, n = 169:
  //                           w = −2.571428571/(14 + 1) = −0.1714285714.
  ExpectSteps<TypeParam>(*Make("ftrl", {{"learning_rate", 1}, {"beta", 1}, {"l1", 1}, {"l2", 1}}),
                         0, {3, 4, -12}, {-0.4, -0.9714285714, -0.1714285714});
  // |z| = 0.5 ≤ λ₁: zero. Then σ = 1.3 − 0.5, z = −0.7: zero again. z = −0.7 − 8.4 = −9.1,
  // n = 1.69 + 70.56 = 72.25, √n = 8.5: w = 8.1/9.5 = 0.8526315789.
  ExpectSteps<TypeParam>(*Make("ftrl", {{"learning_rate", 1}, {"l1", 1}}), 0, {0.5, -1.2, -8.4},
                         {0, 0, 0.8526315789});
  // α = 2, no regularisation: w = −3/((1 + 3)/2) = −1.5.
  ExpectSteps<TypeParam>(*Make("ftrl", {{"learning_rate", 2}}), 0, {3}, {-1.5});
  // β = 0 and no gradient yet: nothing is divided by zero.
  ExpectSteps<TypeParam>(*Make("ftrl", {{"learning_rate", 2}, {"beta", 0}}), 0, {0}, {0});
}

// The rate of a push scales the weight, and not only the step (docs/updaters.md).
TYPED_TEST(FloatUpdaters, FtrlComputesTheWeightAnewWithTheRateOfThePush) {
  const auto ftrl = Make("ftrl", {{"learning_rate", 1}});
  Values<TypeParam> values(*ftrl, {0});
  const auto push = [&](double gradient, double rate = kNaN) {
    values.Push({static_cast<TypeParam>(gradient)}, rate);
    return static_cast<double>(values.value()[0]);
  };
  EXPECT_NEAR(push(3), -0.75, 1e-6);        // z = 3, n = 9: w = −3/(1 + 3)
  EXPECT_NEAR(push(0, 0.5), -0.375, 1e-6);  // −3/((1 + 3)/0.5)
  EXPECT_NEAR(push(0), -0.75, 1e-6);
  // σ = (5 − 3)/0.5 = 4, z = 3 + 4 + 4·0.75 = 10, n = 25: w = −10/((1 + 5)/0.5).
  EXPECT_NEAR(push(4, 0.5), -10 / 12.0, 1e-6);
  // What that push put into z stays as it is.
  EXPECT_NEAR(push(0), -10 / 6.0, 1e-6);
  EXPECT_NEAR(push(7, 0), -10 / 6.0, 1e-6);
}

// The steps of a run do not depend on where it is cut: each element is computed alone.
TYPED_TEST(FloatUpdaters, ElementsOfARunAreIndependent) {
  constexpr int kSize = 37;  // some vectors and a rest
  for (const std::string& name : UpdaterNames()) {
    const auto updater = Make(name);
    std::vector<TypeParam> initial, gradient;
    for (int i = 0; i < kSize; ++i) {
      initial.push_back(static_cast<TypeParam>(std::sin(i)));
      gradient.push_back(static_cast<TypeParam>(std::cos(3 * i)));
    }
    Values<TypeParam> whole(*updater, initial);
    for (int step = 0; step < 3; ++step) whole.Push(gradient);
    for (int i = 0; i < kSize; ++i) {
      Values<TypeParam> single(*updater, {initial[i]});
      for (int step = 0; step < 3; ++step) single.Push({gradient[i]});
      EXPECT_EQ(whole.value()[i], single.value()[0]) << name << " element " << i;
    }
  }
}

TYPED_TEST(FloatUpdaters, GradientStoresWhatIsPushedWhateverTheRate) {
  const auto updater = Make("gradient", {{"learning_rate", 0.5}});
  Values<TypeParam> values(*updater, {0.75});
  values.Push({2});
  EXPECT_THAT(values.value(), testing::ElementsAre(2));
  values.Push({-3}, 0);
  EXPECT_THAT(values.value(), testing::ElementsAre(-3));
  EXPECT_EQ(updater->combine(), Updater::Combine::kSum);
}

TYPED_TEST(FloatUpdaters, APushsRateReplacesTheTables) {
  for (const std::string& name : UpdaterNames()) {
    if (name == "assign" || name == "add" || name == "gradient") continue;
    const auto fixed = Make(name, {{"learning_rate", 0.25}});
    const auto overridden = Make(name, {{"learning_rate", 0.5}});
    Values<TypeParam> expected(*fixed, {1});
    Values<TypeParam> actual(*overridden, {1});
    Values<TypeParam> own(*overridden, {1});
    for (const TypeParam gradient : {2, -1, 3}) {
      expected.Push({gradient});
      actual.Push({gradient}, 0.25);
      own.Push({gradient});
    }
    EXPECT_EQ(actual.value(), expected.value()) << name;
    EXPECT_NE(own.value(), expected.value()) << name;
  }
}

TYPED_TEST(FloatUpdaters, ARateOfZeroChangesNoValue) {
  for (const std::string& name : UpdaterNames()) {
    if (name == "assign" || name == "add" || name == "gradient") continue;
    const auto updater = Make(name);
    Values<TypeParam> values(*updater, {0.75});
    for (const TypeParam gradient : {2, -1, 3}) values.Push({gradient}, 0);
    EXPECT_THAT(values.value(), testing::ElementsAre(0.75)) << name;
  }
}

TEST(Updater, FunctionsThatAreNotOverriddenDoNothing) {
  class Idle : public Updater {};
  const Idle idle;
  Values<float> floats(idle, {1});
  floats.Push({2});
  EXPECT_EQ(floats.value()[0], 1);
  Values<std::int64_t> integers(idle, {1});
  integers.Push({2});
  EXPECT_EQ(integers.value()[0], 1);
}

}  // namespace
}  // namespace leeway::ps
