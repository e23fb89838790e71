// Tests that the digits of counters that are floats tell how often a push was applied.
#include "tests/simulation/sim_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::simulation {
namespace {

SimTable TableOf(DType dtype, std::uint32_t push_scale) {
  SimTable table;
  table.num_workers = 2;
  table.width = table.stride = 2 * kElementsPerWorker;
  table.spec = TableSpec::Dense("t", {table.width}, dtype);
  table.push_scale = push_scale;
  return table;
}

TEST(SimTableTest, EveryPushHasADigitOfItsOwnInEveryType) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint32_t scale : {1, 4, 8}) {
      const SimTable table = TableOf(dtype, scale);
      for (std::size_t number = 0; number < table.pushes_per_worker_max(); ++number) {
        std::vector<std::int64_t> push(table.width);
        AddPush(table, push, 1, number);
        const std::vector<std::byte> values = ToValues(table, push);
        EXPECT_EQ(values.size(), table.width * SizeOf(dtype));
        EXPECT_EQ(ToCounts(table, dtype, values, scale), push);
      }
    }
  }
}

TEST(SimTableTest, WithWeightsAnEvenDigitWasAppliedTwice) {
  SimTable table = TableOf(DType::kFloat64, 4);
  table.spec.consistency = *Consistency::Parse("asp,weight=table:0.25/0.75");
  // ¼ and ¾ of 4; both; all of 4; nothing; thrice.
  const std::vector<double> element = {1 + 3 * 8 + 4 * 64 + 4 * 512 + 0 * 4096 + 5 * 32768};
  const std::vector<std::int64_t> counts =
      ToCounts(table, DType::kFloat64, std::as_bytes(std::span(element)));
  const int times[] = {1, 1, 2, 2, 0, 3};
  for (std::size_t number = 0; number < std::size(times); ++number) {
    EXPECT_EQ(TimesApplied(table, counts, 0, number), times[number]) << number;
  }
}

TEST(SimTableTest, ValuesThatNoPushLeadsToAreAllOnes) {
  const SimTable table = TableOf(DType::kFloat64, 1);
  const std::vector<double> wrong = {0.5, -1, 1e300};
  for (const std::int64_t count :
       ToCounts(table, DType::kFloat64, std::as_bytes(std::span(wrong)))) {
    EXPECT_EQ(count, -1);
  }
}

}  // namespace
}  // namespace leeway::simulation
