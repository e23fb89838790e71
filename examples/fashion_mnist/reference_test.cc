#include "examples/fashion_mnist/reference.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "examples/fashion_mnist/parameters_file.h"
#include "gtest/gtest.h"

namespace leeway::fashion_mnist {
namespace {

// Plain gradient descent from small, different numbers.
class GradientDescent final : public LocalTable {
 public:
  explicit GradientDescent(std::size_t size) : values_(size) {
    for (std::size_t i = 0; i < size; ++i) {
      values_[i] = 0.05f * std::sin(static_cast<float>(i * i % 1009));
    }
  }
  absl::Status Push(std::span<const float> gradient, std::optional<double> rate) override {
    EXPECT_FALSE(rate.has_value());  // no rate was set, so none can fall
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= 0.1f * gradient[i];
    return absl::OkStatus();
  }
  absl::Status Pull(std::span<float> values) override {
    std::copy(values_.begin(), values_.end(), values.begin());
    return absl::OkStatus();
  }

 private:
  Tensor values_;
};

absl::StatusOr<std::unique_ptr<LocalTable>> MakeTable(const TableSpec& spec) {
  std::size_t size = 1;
  for (const std::uint64_t extent : spec.shape) size *= extent;
  return std::make_unique<GradientDescent>(size);
}

// Images that are bright in one row for each class, and noise elsewhere.
Images Stripes(std::size_t n) {
  Images images;
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < n; ++i) {
    images.labels.push_back(i % kClasses);
    for (std::size_t p = 0; p < kPixels; ++p) {
      noise = noise * 1664525 + 1013904223;
      images.pixels.push_back(p / 56 == i % kClasses ? 200 + (noise >> 27) : noise >> 25);
    }
  }
  return images;
}

Settings Small(const char* model) {
  Settings settings;
  settings.model = model;
  settings.workers = 3;
  settings.batch = 10;
  settings.epochs = 2;
  return settings;
}

class ReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceTest, Learns) {
  const Dataset data{Stripes(600), Stripes(100)};
  std::size_t steps_told = 0, points_told = 0;
  Observer observer;
  observer.on_step = [&](std::size_t step, std::size_t steps, double) {
    EXPECT_EQ(step, ++steps_told);
    EXPECT_EQ(steps, 40u);
  };
  observer.on_point = [&](const CurvePoint&) { ++points_told; };
  const auto outcome = TrainReference(Small(GetParam()), data, observer, MakeTable);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(steps_told, 40u);
  EXPECT_EQ(points_told, 2u);
  ASSERT_EQ(outcome->curve.size(), 2u);
  EXPECT_EQ(outcome->curve[0].epoch, 1u);
  EXPECT_EQ(outcome->curve[1].step, 40u);
  EXPECT_LT(outcome->curve[1].train_loss, outcome->curve[0].train_loss);
  EXPECT_EQ(outcome->curve[1].test_accuracy, 1);
}

TEST_P(ReferenceTest, TheSameSeedGivesTheSameBits) {
  const Dataset data{Stripes(100), Stripes(10)};
  Settings settings = Small(GetParam());
  settings.steps = 5;
  const auto a = TrainReference(settings, data, {}, MakeTable);
  const auto b = TrainReference(settings, data, {}, MakeTable);
  settings.seed = 2;
  const auto other = TrainReference(settings, data, {}, MakeTable);
  ASSERT_TRUE(a.ok() && b.ok() && other.ok());
  EXPECT_EQ(a->steps, 5u);
  EXPECT_EQ(a->values, b->values);
  EXPECT_NE(a->values, other->values);
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest, testing::Values("softmax", "mlp"));

TEST(RateTest, FallsEvenlyToNothing) {
  Settings settings;
  EXPECT_EQ(RateAt(settings, 0, 10), std::nullopt);  // the updater's default is unknown here
  settings.updater.parameters["learning_rate"] = 0.5;
  EXPECT_EQ(RateAt(settings, 0, 10), 0.5);
  EXPECT_EQ(RateAt(settings, 5, 10), 0.25);
  EXPECT_GT(RateAt(settings, 9, 10), 0);
  settings.rate_falls = false;
  EXPECT_EQ(RateAt(settings, 5, 10), std::nullopt);
}

TEST(ParametersFileTest, WritesSafetensors) {
  const std::string path = testing::TempDir() + "parameters_file_test.safetensors";
  const std::vector<Parameter> parameters = {{"w", {2, 1}, {}}, {"b", {1}, {}}};
  ASSERT_TRUE(SaveParameters(path, parameters, {{1.0f, 2.0f}, {0.0f}}).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  ASSERT_GT(bytes.size(), 8u);
  const std::size_t header = static_cast<unsigned char>(bytes[0]);
  EXPECT_EQ(header % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + header + 12);
  EXPECT_EQ(bytes.substr(8, bytes.find_last_of('}') - 7),
            R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})");
  EXPECT_EQ(bytes.substr(8 + header, 8), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
}

TEST(ParametersFileTest, SaysWhichFileCannotBeWritten) {
  const absl::Status status = SaveParameters("/nowhere/at/all", {}, {});
  EXPECT_EQ(status.message(), "cannot write /nowhere/at/all");
}

}  // namespace
}  // namespace leeway::fashion_mnist
