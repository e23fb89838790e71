// Every level against the scalar one. That the scalar one is right is ps/updaters' to test.
#include <functional>
#include <string>
#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/kernels/testing/hard_values.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

template <class T>
using UpdateWith = std::function<void(const UpdateKernels<T>&, const Elements<T>&)>;

template <class T>
struct Case {
  std::string name;
  UpdateWith<T> update;
};

// Terms as they are in use.
template <class T>
std::vector<Case<T>> Cases() {
  using Kernels = UpdateKernels<T>;
  using Run = Elements<T>;
  std::vector<Case<T>> cases = {
      {"add", [](const Kernels& kernels, const Run& run) { kernels.add(run); }}};
  if constexpr (!std::is_integral_v<T>) {
    const auto t = [](double value) { return static_cast<T>(value); };
    const SgdTerms<T> sgd{t(0.1), t(0.01)};
    const MomentumTerms<T> momentum{t(0.1), t(0.9), t(0.01)};
    const AdagradTerms<T> adagrad{t(0.1), t(0.01), t(1e-10)};
    const RmspropTerms<T> plain{t(0.1), t(0.99), t(0.01), t(0.01), t(1e-8), t(0)};
    const RmspropTerms<T> heavy{t(0.1), t(0.99), t(0.01), t(0.01), t(1e-8), t(0.9)};
    const AdamTerms<T> adam{t(0.9),  t(0.999), t(0.1),  t(0.001), t(1e-8),
                            t(0.01), t(31.6),  t(0.01), t(0.999)};
    const FtrlTerms<T> ftrl{t(0.1), t(1), t(0.5), t(0.1)};
    cases.insert(
        cases.end(),
        {{"sgd", [=](const Kernels& kernels, const Run& run) { kernels.sgd(sgd, run); }},
         {"momentum", [=](const Kernels& k, const Run& run) { k.momentum(momentum, run); }},
         {"nesterov", [=](const Kernels& k, const Run& run) { k.nesterov(momentum, run); }},
         {"adagrad", [=](const Kernels& k, const Run& run) { k.adagrad(adagrad, run); }},
         {"rmsprop", [=](const Kernels& k, const Run& run) { k.rmsprop(plain, run); }},
         {"heavy rmsprop", [=](const Kernels& k, const Run& run) { k.rmsprop(heavy, run); }},
         {"adam", [=](const Kernels& kernels, const Run& run) { kernels.adam(adam, run); }},
         {"adamw", [=](const Kernels& kernels, const Run& run) { kernels.adamw(adam, run); }},
         {"ftrl", [=](const Kernels& kernels, const Run& run) { kernels.ftrl(ftrl, run); }}});
  }
  return cases;
}

// A value, two slots of state and a gradient, each of them somewhere in a larger array.
template <class T>
struct Arrays {
  std::vector<std::vector<T>> arrays;
  std::size_t start;
  std::size_t size;

  Arrays(std::size_t begin, std::size_t length, runtime::Random& random)
      : start(begin), size(length) {
    for (int i = 0; i < 4; ++i) {
      arrays.push_back(HardValues<T>(start + size + kGuard, random));
    }
  }

  Arrays Updated(Level level, const UpdateWith<T>& update) const {
    Arrays after = *this;
    T* const state[] = {after.arrays[1].data() + start, after.arrays[2].data() + start};
    update(KernelsOf(level).update.Of<T>(), {.value = after.arrays[0].data() + start,
                                             .gradient = after.arrays[3].data() + start,
                                             .state = state,
                                             .size = size});
    return after;
  }
};

template <class T>
void ExpectAllLevelsAlike(const Case<T>& tried, const Arrays<T>& before) {
  const Arrays<T> expected = before.Updated(Level::kScalar, tried.update);
  for (const Level level : LevelsHere()) {
    const Arrays<T> found = before.Updated(level, tried.update);
    for (std::size_t array = 0; array < found.arrays.size(); ++array) {
      for (std::size_t i = 0; i < found.arrays[array].size(); ++i) {
        ASSERT_TRUE(Same(found.arrays[array][i], expected.arrays[array][i]))
            << tried.name << ", " << Name(level) << ": array " << array << ", element " << i
            << " of " << before.size << " from " << before.start << " is " << found.arrays[array][i]
            << ", not " << expected.arrays[array][i];
      }
    }
  }
}

template <class T>
class UpdatesOfType : public testing::Test {};
using ComputeTypes = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(UpdatesOfType, ComputeTypes);

TYPED_TEST(UpdatesOfType, AllLevelsGiveTheSameBits) {
  runtime::Random random(1);
  for (const Case<TypeParam>& tried : Cases<TypeParam>()) {
    for (std::size_t size = 0; size <= kSizeMax; ++size) {
      ExpectAllLevelsAlike(tried, Arrays<TypeParam>(random.Below(kStartMax + 1), size, random));
      if (this->HasFatalFailure()) return;
    }
    ExpectAllLevelsAlike(tried, Arrays<TypeParam>(1, 5000, random));
  }
}

}  // namespace
}  // namespace leeway::compress
