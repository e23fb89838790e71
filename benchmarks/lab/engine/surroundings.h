// Surroundings are time and computation as a process of a run has them: real, or virtual.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_SURROUNDINGS_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_SURROUNDINGS_H_

#include <functional>

#include "absl/functional/function_ref.h"

namespace leeway::lab {

class Surroundings {
 public:
  virtual ~Surroundings() = default;

  // Seconds since the run began, the same for all its processes.
  virtual double Now() = 0;
  virtual void Sleep(double seconds) = 0;
  // Runs `work`, a step whose usual time is `usual_s`, or longer where it really takes longer.
  // Takes as long as `stretched(begin, usual)` says.
  using Stretched = std::function<double(double begin_s, double usual_s)>;
  virtual void Compute(double usual_s, const Stretched& stretched,
                       absl::FunctionRef<void()> work) = 0;
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_SURROUNDINGS_H_
