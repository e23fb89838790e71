// The promises of `leeway train`, seen from outside: whole clusters of processes over tcp.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/memory/sanitized.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::tests {
namespace {

using Json = nlohmann::json;

class TrainingTest : public testing::Test {
 protected:
  // Runs the command; its exit code is expected to be 0.
  void Train(const std::string& arguments) const {
    const std::string command = absl::StrCat(LEEWAY_BINARY, " train --quiet ", arguments, " 2>&1");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string Bytes(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json ReadJson(const std::string& name) const { return Json::parse(Bytes(name)); }

 private:
  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
};

struct Weights {
  Json header;
  std::vector<float> values;
};

Weights ParseSafetensors(const std::string& bytes) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  Weights weights{Json::parse(bytes.substr(8, header_bytes)), {}};
  weights.values.resize((bytes.size() - 8 - header_bytes) / sizeof(float));
  std::memcpy(weights.values.data(), bytes.data() + 8 + header_bytes,
              weights.values.size() * sizeof(float));
  return weights;
}

// Real training takes minutes under TSan, which finds races and not wrong results.
constexpr const char* kSteps = runtime::kSanitized ? " --steps 30" : " --steps 200";

// ‖a − b‖ / ‖b‖ of one tensor's part.
double RelativeDistance(const Weights& a, const Weights& b, const Json& tensor) {
  const std::size_t begin = tensor["data_offsets"][0].get<std::size_t>() / sizeof(float);
  const std::size_t end = tensor["data_offsets"][1].get<std::size_t>() / sizeof(float);
  double difference = 0, norm = 0;
  for (std::size_t i = begin; i < end; ++i) {
    difference += std::pow(double{a.values[i]} - double{b.values[i]}, 2);
    norm += std::pow(double{b.values[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

TEST_F(TrainingTest, BspEqualsOneProcessWithTheWholeBatch) {
  for (const char* model : {"softmax", "mlp"}) {
    const std::string common = absl::StrCat("--model ", model,
                                            " --updater sgd --mode bsp --workers 4 --servers 2"
                                            " --batch 16",
                                            kSteps, " --save ");
    Train(common + Path("cluster"));
    Train(common + Path("reference") + " --reference");
    const Weights cluster = ParseSafetensors(Bytes("cluster"));
    const Weights reference = ParseSafetensors(Bytes("reference"));
    ASSERT_EQ(cluster.header, reference.header);
    for (const auto& [name, tensor] : reference.header.items()) {
      EXPECT_LE(RelativeDistance(cluster, reference, tensor), 1e-4) << model << " " << name;
    }
  }
}

TEST_F(TrainingTest, BspGivesTheSameBitsEveryTime) {
  const std::string common =
      absl::StrCat("--mode bsp --workers 4 --servers 2 --batch 16", kSteps, " --save ");
  Train(common + Path("first"));
  Train(common + Path("second"));
  EXPECT_FALSE(Bytes("first").empty());
  EXPECT_EQ(Bytes("first"), Bytes("second"));
}

TEST_F(TrainingTest, TablesTravelEncoded) {
  const std::string common =
      "--model softmax --workers 2 --servers 2 --batch 16 --steps 40 --json ";
  Train(common + Path("plain"));
  Train(common + Path("encoded") + " --codec onebit --error-feedback both");
  const Json plain = ReadJson("plain"), encoded = ReadJson("encoded");
  EXPECT_EQ(plain["codec"], "none");
  EXPECT_EQ(encoded["codec"], "onebit");
  EXPECT_EQ(encoded["error_feedback"], "both");
  // 784 × 10 weights and 10 biases of 4 bytes.
  EXPECT_EQ(plain["bytes_pushed_per_worker_step"], 31400);
  EXPECT_EQ(plain["bytes_pulled_per_worker_step"], 31400);
  EXPECT_EQ(plain["bytes_pushed"], 31400 * 2 * 40);
  EXPECT_LT(encoded["bytes_pushed_per_worker_step"], 31400 / 28.0);
  // The first pull of each worker is whole.
  EXPECT_LT(encoded["bytes_pulled_per_worker_step"], 31400 / 28.0 + 31400 / 40.0);
  // Error feedback makes up for the dropped part: it learns.
  EXPECT_GT(encoded["test_accuracy"], runtime::kSanitized ? 0.0 : 0.6);
}

// tests/simulation/straggler_test.cc tests how long the others wait for it: on a busy machine real
// seconds say little.
TEST_F(TrainingTest, AStragglerIsNotOutrunByMoreThanTheModeAllows) {
  for (const auto& [mode, bound] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"bsp", 0}, {"ssp:1", 1}, {"ssp:3", 3}, {"ssp:8", 8}, {"asp", ~0ull}}) {
    Train(absl::StrCat("--model softmax --workers 4 --servers 2 --batch 16 --steps 40",
                       " --slow 0:50 --mode ", mode, " --json ", Path("run.json")));
    const Json run = ReadJson("run.json");
    EXPECT_LE(run["max_staleness"].get<std::uint64_t>(), bound) << mode;
    if (mode == "asp") {
      EXPECT_GT(run["max_staleness"].get<std::uint64_t>(), 8u);
    }
  }
}

}  // namespace
}  // namespace leeway::tests
