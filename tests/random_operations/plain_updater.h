// PlainUpdate implements all updaters for one element, close to the papers and without any of the
// servers' code. It is the oracle of the random-operations test.
#ifndef LEEWAY_TESTS_RANDOM_OPERATIONS_PLAIN_UPDATER_H_
#define LEEWAY_TESTS_RANDOM_OPERATIONS_PLAIN_UPDATER_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "leeway/dtype.h"

namespace leeway::tests {

// The type that an element is computed in: float for 16-bit floats, otherwise its own.
template <class T>
using Computed =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
struct Element {
  T value{};
  Computed<T> first{}, second{};  // the updater's state
  std::uint64_t step = 0;
};

inline constexpr double kRate = 0.05, kMomentum = 0.9, kBeta1 = 0.9, kBeta2 = 0.99, kDecay = 0.01,
                        kAlpha = 0.95, kEpsilon = 1e-6, kL1 = 0.01, kL2 = 0.1, kFtrlBeta = 1.0;

template <class C>
C Sign(C x) {
  return x > 0 ? C(1) : x < 0 ? C(-1) : C(0);
}

// Applies one (already combined) push to one element.
template <class T>
void PlainUpdate(const std::string& updater, Computed<T> g, Element<T>* e) {
  using C = Computed<T>;
  C x = static_cast<C>(e->value);
  C& a = e->first;
  C& b = e->second;
  ++e->step;
  if (updater == "assign") {
    x = g;
  } else if (updater == "add") {
    x = x + g;
  } else if constexpr (std::is_floating_point_v<C>) {
    const double t = static_cast<double>(e->step);
    if (updater == "sgd") {
      x -= C(kRate) * g;
    } else if (updater == "momentum") {
      a = C(kMomentum) * a + g;
      x -= C(kRate) * a;
    } else if (updater == "nesterov") {
      a = C(kMomentum) * a + g;
      x -= C(kRate) * (g + C(kMomentum) * a);
    } else if (updater == "adagrad") {
      a += g * g;
      x -= C(kRate) * g / (std::sqrt(a) + C(kEpsilon));
    } else if (updater == "rmsprop") {
      a = C(kAlpha) * a + C(1 - kAlpha) * g * g;
      x -= C(kRate) * g / (std::sqrt(a) + C(kEpsilon));
    } else if (updater == "adam" || updater == "adamw") {
      if (updater == "adamw") x -= C(kRate * kDecay) * x;
      a = C(kBeta1) * a + C(1 - kBeta1) * g;
      b = C(kBeta2) * b + C(1 - kBeta2) * g * g;
      const C m = a / C(1 - std::pow(kBeta1, t));
      const C v = b / C(1 - std::pow(kBeta2, t));
      x -= C(kRate) * m / (std::sqrt(v) + C(kEpsilon));
    } else if (updater == "ftrl") {
      const C n = b + g * g;
      const C sigma = (std::sqrt(n) - std::sqrt(b)) / C(kRate);
      a += g - sigma * x;
      b = n;
      x = std::abs(a) <= C(kL1)
              ? C(0)
              : -(a - Sign(a) * C(kL1)) / ((C(kFtrlBeta) + std::sqrt(b)) / C(kRate) + C(kL2));
    }
  }
  e->value = static_cast<T>(x);
}

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_RANDOM_OPERATIONS_PLAIN_UPDATER_H_
