#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/matrix.h"
#include "examples/fashion_mnist/model.h"
#include "gtest/gtest.h"

namespace leeway::fashion_mnist {
namespace {

std::vector<float> RandomNumbers(std::size_t n, float scale, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(n);
  for (float& x : numbers) x = scale * (static_cast<float>(random()) / 2147483648.0f - 1);
  return numbers;
}

Batch RandomBatch(std::size_t size, std::uint32_t seed) {
  Batch batch{RandomNumbers(size * kPixels, 1, seed), {}};
  for (std::size_t i = 0; i < size; ++i) batch.labels.push_back((i * 7 + 3) % kClasses);
  return batch;
}

struct Sizes {
  std::size_t rows, inner, columns;
};

class MatrixTest : public testing::TestWithParam<Sizes> {};

// Products of every awkward size against the definition, summed in double.
TEST_P(MatrixTest, MatchesTheDefinition) {
  const auto [rows, inner, columns] = GetParam();
  const std::vector<float> a = RandomNumbers(rows * inner, 1, 1);
  const std::vector<float> b = RandomNumbers(inner * columns, 1, 2);
  std::vector<float> transposed(a.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < inner; ++k) transposed[k * rows + i] = a[i * inner + k];
  }
  std::vector<float> c(rows * columns, 0.5f), d(rows * columns, 0.5f);
  AddProduct(a.data(), b.data(), c.data(), rows, inner, columns);
  AddTransposedProduct(transposed.data(), b.data(), d.data(), rows, inner, columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double want = 0.5;
      for (std::size_t k = 0; k < inner; ++k) {
        want += double{a[i * inner + k]} * b[k * columns + j];
      }
      EXPECT_NEAR(c[i * columns + j], want, 1e-5 * static_cast<double>(inner + 1));
      EXPECT_EQ(c[i * columns + j], d[i * columns + j]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MatrixTest,
                         testing::Values(Sizes{1, 1, 1}, Sizes{4, 5, 16}, Sizes{7, 3, 10},
                                         Sizes{9, 64, 33}, Sizes{3, 0, 17}, Sizes{0, 4, 4},
                                         Sizes{6, 20, 128}));

class ModelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    model_ = MakeModel(GetParam(), 1).value();
    std::uint32_t seed = 10;
    for (const Parameter& parameter : model_->parameters()) {
      values_.push_back(RandomNumbers(parameter.size(), 0.1f, seed++));
      gradients_.emplace_back(parameter.size(), 99.0f);  // to be overwritten
    }
  }

  double Loss(const Batch& batch) {
    return CrossEntropy(batch.labels, model_->Scores(batch, values_));
  }

  std::unique_ptr<Model> model_;
  std::vector<Tensor> values_, gradients_;
};

TEST_P(ModelTest, GradientsMatchFiniteDifferences) {
  const Batch batch = RandomBatch(6, 5);
  const double loss = model_->Gradients(batch, values_, 6, &gradients_);
  EXPECT_NEAR(loss, Loss(batch), 1e-9 * loss);
  for (std::size_t p = 0; p < values_.size(); ++p) {
    const std::string& name = model_->parameters()[p].name;
    const std::size_t stride = values_[p].size() / 40 + 1;
    for (std::size_t i = 0; i < values_[p].size(); i += stride) {
      const float kept = values_[p][i];
      constexpr float kStep = 1e-3f;
      values_[p][i] = kept + kStep;
      const double above = Loss(batch);
      values_[p][i] = kept - kStep;
      const double below = Loss(batch);
      values_[p][i] = kept;
      // Where a ReLU has its corner between, the slopes of the two sides differ.
      const double left = (loss - below) / kStep / 6, right = (above - loss) / kStep / 6;
      const double slack = 3e-3 + 0.03 * std::abs(left);
      EXPECT_GE(gradients_[p][i], std::min(left, right) - slack) << name << "[" << i << "]";
      EXPECT_LE(gradients_[p][i], std::max(left, right) + slack) << name << "[" << i << "]";
    }
  }
}

// BSP's mean over workers depends on this.
TEST_P(ModelTest, PartsAddUpToTheWhole) {
  const Batch whole = RandomBatch(8, 3);
  model_->Gradients(whole, values_, 8, &gradients_);
  std::vector<Tensor> sums = gradients_;
  for (Tensor& sum : sums) sum.assign(sum.size(), 0.0f);
  for (std::size_t begin : {0, 5}) {  // of sizes 5 and 3
    const std::size_t end = begin == 0 ? 5 : 8;
    Batch part;
    part.inputs.assign(whole.inputs.begin() + begin * kPixels,
                       whole.inputs.begin() + end * kPixels);
    part.labels.assign(whole.labels.begin() + begin, whole.labels.begin() + end);
    std::vector<Tensor> gradients = gradients_;
    model_->Gradients(part, values_, 8, &gradients);
    for (std::size_t p = 0; p < sums.size(); ++p) {
      for (std::size_t i = 0; i < sums[p].size(); ++i) sums[p][i] += gradients[p][i];
    }
  }
  for (std::size_t p = 0; p < sums.size(); ++p) {
    for (std::size_t i = 0; i < sums[p].size(); ++i) {
      ASSERT_NEAR(sums[p][i], gradients_[p][i], 1e-5);
    }
  }
}

TEST_P(ModelTest, NoSamplesGiveNoGradient) {
  EXPECT_EQ(model_->Gradients(Batch{}, values_, 1, &gradients_), 0);
  for (const Tensor& gradient : gradients_) {
    for (const float g : gradient) ASSERT_EQ(g, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest, testing::Values("softmax", "mlp", "cnn"));

TEST(CrossEntropyTest, SurvivesLargeScores) {
  std::vector<float> scores(kClasses, 0.0f);
  scores[4] = 1e4f;
  const std::uint8_t label = 4;
  EXPECT_EQ(CrossEntropy({&label, 1}, std::span<const float>(scores)), 0);
  const std::uint8_t wrong = 2;
  EXPECT_EQ(CrossEntropy({&wrong, 1}, 2, std::span<float>(scores)), 1e4);
  EXPECT_EQ(scores[4], 0.5f);
  EXPECT_EQ(scores[2], -0.5f);
}

TEST(MakeModelTest, UnknownNameListsTheKnown) {
  EXPECT_EQ(MakeModel("resnet", 1).status().message(),
            "there is no model 'resnet': there are softmax, mlp and cnn");
}

}  // namespace
}  // namespace leeway::fashion_mnist
