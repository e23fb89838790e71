// Base classes of the built-in updaters, and access to their kernels.
#ifndef LEEWAY_PS_UPDATERS_KERNEL_H_
#define LEEWAY_PS_UPDATERS_KERNEL_H_

#include <cmath>
#include <cstdint>

#include "compress/kernels/kernels.h"
#include "leeway/updater.h"

namespace leeway::ps {

using compress::AdagradTerms;
using compress::AdamTerms;
using compress::FtrlTerms;
using compress::MomentumTerms;
using compress::RmspropTerms;
using compress::SgdTerms;

// An updater for floating-point tables. `Derived` has
//     template <class T> void Run(const UpdateRun<T>& run) const;
// which works out the terms of this update; the loop over the elements is one of compress/kernels.
template <class Derived>
class FloatUpdater : public Updater {
 public:
  using Updater::Update;
  void Update(const UpdateRun<float>& run) const final { derived().Run(run); }
  void Update(const UpdateRun<double>& run) const final { derived().Run(run); }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

// An updater for tables of every dtype; `Derived` as above.
template <class Derived>
class AnyUpdater : public Updater {
 public:
  bool Supports(DType) const final { return true; }
  void Update(const UpdateRun<float>& run) const final { derived().Run(run); }
  void Update(const UpdateRun<double>& run) const final { derived().Run(run); }
  void Update(const UpdateRun<std::int32_t>& run) const final { derived().Run(run); }
  void Update(const UpdateRun<std::int64_t>& run) const final { derived().Run(run); }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

// The rate of this run: its own, or else the updater's.
template <class T>
double RateOf(const UpdateRun<T>& run, double default_rate) {
  return std::isnan(run.learning_rate) ? default_rate : run.learning_rate;
}

template <class T>
const compress::UpdateKernels<T>& UpdatesOf() {
  return compress::ChosenKernels().update.Of<T>();
}

template <class T>
compress::Elements<T> ElementsOf(const UpdateRun<T>& run) {
  return {.value = run.value, .gradient = run.gradient, .state = run.state, .size = run.size};
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_KERNEL_H_
