// A Recorder draws the learning curve: it sums up the training loss and, from time to time, tests
// the model on the test images.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_RECORDER_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_RECORDER_H_

#include <chrono>
#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/settings.h"

namespace leeway::fashion_mnist {

class Recorder {
 public:
  // All outlive it. Time counts from here. `taken`: steps of an earlier run.
  Recorder(const Images* test, Model* model, const Observer* observer, std::size_t steps,
           std::size_t taken = 0)
      : test_(test), model_(model), observer_(observer), steps_(steps), step_(taken) {}

  // A step was taken, with `samples` samples and a total loss of `loss`.
  void AddStep(double loss, std::size_t samples);
  // Tests the model with these values.
  void AddPoint(std::size_t epoch, const std::vector<Tensor>& values);

  const std::vector<CurvePoint>& curve() const { return curve_; }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const Images* test_;
  Model* model_;
  const Observer* observer_;
  std::size_t steps_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t step_;
  double loss_ = 0;  // since the last point
  std::size_t samples_ = 0;
  std::vector<CurvePoint> curve_;
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_RECORDER_H_
