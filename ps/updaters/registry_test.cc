#include "ps/updaters/registry.h"

#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Nothing : public Updater {};

UpdaterFactory MakesNothing() {
  return [](const UpdaterParameters&) -> absl::StatusOr<std::unique_ptr<Updater>> {
    return std::make_unique<Nothing>();
  };
}

absl::Status Refusal(const std::string& name, const UpdaterParameters& parameters) {
  return (*FindUpdater(name))(parameters).status();
}

TEST(Registry, KnowsTheBuiltInOnes) {
  EXPECT_THAT(UpdaterNames(),
              testing::IsSupersetOf({"adagrad", "adam", "adamw", "add", "assign", "ftrl",
                                     "momentum", "nesterov", "rmsprop", "sgd"}));
  for (const std::string& name : UpdaterNames()) EXPECT_TRUE(FindUpdater(name).ok()) << name;
}

TEST(Registry, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const absl::Status status = FindUpdater("adamm").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'adamm'; there are adagrad, adam, adamw, add, assign, "
                        "delayed_nesterov, ftrl"));
}

TEST(Registry, TakesAnotherUpdaterOnce) {
  EXPECT_TRUE(RegisterUpdater("registry_test", MakesNothing()).ok());
  EXPECT_TRUE((*FindUpdater("registry_test"))({}).ok());
  EXPECT_EQ(RegisterUpdater("registry_test", MakesNothing()).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RegisterUpdater("sgd", MakesNothing()).code(), absl::StatusCode::kAlreadyExists);
}

TEST(Registry, RefusesWhatCannotBeUsed) {
  EXPECT_EQ(RegisterUpdater("", MakesNothing()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterUpdater(std::string(256, 'x'), MakesNothing()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterUpdater("empty", nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(FindUpdater("empty").ok());
}

TEST(Registry, IsForAnyThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 50; ++j) {
        EXPECT_TRUE(RegisterUpdater(absl::StrCat("thread_", i, "_", j), MakesNothing()).ok());
        EXPECT_TRUE(FindUpdater(absl::StrCat("thread_", i, "_", j)).ok());
        EXPECT_GE(UpdaterNames().size(), 10u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Parameters, AnUnknownOneIsAnsweredWithTheKnownOnes) {
  const absl::Status status = Refusal("sgd", {{"learning_rat", 0.1}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "updater 'sgd' has no hyper-parameter 'learning_rat'; it has learning_rate, "
            "weight_decay");
  EXPECT_EQ(Refusal("add", {{"learning_rate", 0.1}}).message(),
            "updater 'add' has no hyper-parameter 'learning_rate'; it has none");
}

TEST(Parameters, AValueOutOfRangeIsAnsweredWithTheRange) {
  EXPECT_EQ(Refusal("momentum", {{"momentum", 1}}).message(),
            "updater 'momentum': momentum is 1, but must be in [0, 1)");
  EXPECT_EQ(Refusal("ftrl", {{"learning_rate", 0}}).message(),
            "updater 'ftrl': learning_rate is 0, but must be in (0, inf)");
  EXPECT_EQ(Refusal("sgd", {{"learning_rate", -0.5}}).message(),
            "updater 'sgd': learning_rate is -0.5, but must be in [0, inf)");
}

TEST(Parameters, InfiniteAndNaNAreNeverInRange) {
  for (const std::string& name : UpdaterNames()) {
    if (!(*FindUpdater(name))({{"learning_rate", 0.1}}).ok()) continue;
    for (const double value :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_EQ(Refusal(name, {{"learning_rate", value}}).code(),
                name.starts_with("thread_") || name == "registry_test"
                    ? absl::StatusCode::kOk
                    : absl::StatusCode::kInvalidArgument)
          << name;
    }
  }
}

}  // namespace
}  // namespace leeway::ps
