#include "ps/store/testing/store_test_util.h"

namespace leeway::ps {
namespace {

absl::Status Refusal(const TableSpec& spec) { return MakeUpdater(spec).status(); }

class ManyStates : public Updater {
 public:
  explicit ManyStates(int slots) : slots_(slots) {}
  int state_slots() const override { return slots_; }

 private:
  const int slots_;
};

TEST(MakeUpdater, MakesWhatTheTableAsksFor) {
  const auto updater = MakeUpdater(WithUpdater(TableSpec::Dense("w", {4}), "adam"));
  ASSERT_TRUE(updater.ok()) << updater.status();
  EXPECT_EQ((*updater)->state_slots(), 2);
}

TEST(MakeUpdater, NamesTheTableAndWhatIsWrong) {
  ExpectError(Refusal(WithUpdater(TableSpec::Dense("w", {4}), "adma")), absl::StatusCode::kNotFound,
              "table 'w': there is no updater named 'adma'; there");
  ExpectError(Refusal(WithUpdater(TableSpec::Dense("w", {4}), "adam", {{"beta3", 0.5}})),
              absl::StatusCode::kInvalidArgument,
              "table 'w': updater 'adam' has no hyper-parameter 'beta3'; it has learning_rate");
  ExpectError(Refusal(WithUpdater(TableSpec::Dense("w", {4}), "adam", {{"beta1", 1.5}})),
              absl::StatusCode::kInvalidArgument, "beta1 is 1.5, but must be in [0, 1)");
}

TEST(MakeUpdater, IntegersAreForAssignAndAdd) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    EXPECT_TRUE(MakeUpdater(WithUpdater(TableSpec::Dense("n", {4}, dtype), "add")).ok());
    EXPECT_TRUE(MakeUpdater(WithUpdater(TableSpec::Dense("n", {4}, dtype), "assign")).ok());
    ExpectError(Refusal(WithUpdater(TableSpec::Dense("n", {4}, dtype), "sgd")),
                absl::StatusCode::kInvalidArgument,
                "table 'n': updater 'sgd' does not support int");
  }
}

TEST(MakeUpdater, DoesNotTrustRegisteredFactories) {
  ASSERT_TRUE(RegisterUpdater("null", [](const UpdaterParameters&) {
                return std::unique_ptr<Updater>();
              }).ok());
  ExpectError(Refusal(WithUpdater(TableSpec::Dense("w", {4}), "null")), absl::StatusCode::kInternal,
              "the factory of updater 'null' made none");
  for (const int slots : {-1, 17}) {
    const std::string name = slots < 0 ? "too few states" : "too many states";
    ASSERT_TRUE(RegisterUpdater(name, [slots](const UpdaterParameters&) {
                  return std::make_unique<ManyStates>(slots);
                }).ok());
    ExpectError(Refusal(WithUpdater(TableSpec::Dense("w", {4}), name)),
                absl::StatusCode::kInvalidArgument, "but may have 0 to 16");
  }
}

}  // namespace
}  // namespace leeway::ps
