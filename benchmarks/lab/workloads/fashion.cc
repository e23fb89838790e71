#include "benchmarks/lab/workloads/fashion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/sharding.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

namespace fashion = fashion_mnist;

constexpr std::size_t kTestBatch = 500;
constexpr std::size_t kQuickSamples = 2000;

// What one thread computes with: models keep intermediate results.
struct Scratch {
  std::unique_ptr<fashion::Model> model;
  fashion::Batch batch;
};

class Fashion final : public Workload {
 public:
  Fashion(std::string name, std::uint64_t seed, fashion::Dataset data,
          std::unique_ptr<fashion::Model> model)
      : name_(std::move(name)), seed_(seed), data_(std::move(data)), model_(std::move(model)) {}

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs;
    for (const fashion::Parameter& parameter : model_->parameters()) {
      TableSpec spec = TableSpec::Dense(parameter.name, parameter.shape);
      spec.initializer = parameter.initializer;
      specs.push_back(std::move(spec));
    }
    return specs;
  }
  std::size_t samples() const override { return data_.train.size(); }
  std::string score_name() const override { return "accuracy"; }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t,
                  Step* step) const override {
    if (step->scratch == nullptr) step->scratch = NewScratch();
    auto& scratch = *static_cast<Scratch*>(step->scratch.get());
    fashion::FillBatch(data_.train, samples, &scratch.batch);
    return scratch.model->Gradients(scratch.batch, step->values,
                                    static_cast<double>(samples.size()), &step->gradients);
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool quick) const override {
    const std::shared_ptr<Scratch> scratch = NewScratch();
    const std::size_t size = std::min(quick ? kQuickSamples : data_.test.size(), data_.test.size());
    std::vector<std::uint32_t> samples(size);
    std::iota(samples.begin(), samples.end(), 0u);
    double loss = 0;
    std::size_t right = 0;
    for (std::size_t at = 0; at < size; at += kTestBatch) {
      const auto part = std::span(samples).subspan(at, std::min(kTestBatch, size - at));
      fashion::FillBatch(data_.test, part, &scratch->batch);
      const std::span<const float> scores = scratch->model->Scores(scratch->batch, values);
      loss += fashion::CrossEntropy(scratch->batch.labels, scores);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const float* const row = scores.data() + i * fashion::kClasses;
        right += std::max_element(row, row + fashion::kClasses) - row == scratch->batch.labels[i];
      }
    }
    return {.loss = loss / static_cast<double>(size),
            .score = static_cast<double>(right) / static_cast<double>(size)};
  }

 private:
  std::shared_ptr<Scratch> NewScratch() const {
    auto scratch = std::make_shared<Scratch>();
    scratch->model = *fashion::MakeModel(name_, seed_);
    return scratch;
  }

  const std::string name_;
  const std::uint64_t seed_;
  const fashion::Dataset data_;
  const std::unique_ptr<fashion::Model> model_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> NewFashion(const std::string& model, std::uint64_t seed) {
  LEEWAY_ASSIGN_OR_RETURN(auto made, fashion::MakeModel(model, seed));
  LEEWAY_ASSIGN_OR_RETURN(auto data, fashion::LoadDataset(fashion::kDefaultFolder));
  return std::make_unique<Fashion>(model, seed, std::move(data), std::move(made));
}

}  // namespace leeway::lab
