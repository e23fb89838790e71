// What a data thread does when there is no more memory for its tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <numeric>

#include "ps/data/data_thread.h"
#include "ps/testing/test_support.h"
#include "runtime/memory/sanitized.h"

namespace leeway::ps {
namespace {

using ::absl::StatusCode;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint64_t kBlockBytes = Bench::kBlock * sizeof(float);

class TableBytesMax : public testing::TestWithParam<Consistency> {};

TEST_P(TableBytesMax, RefusesNewBlocksAndServesWhatIsThere) {
  // "add" keeps no state, so there is room for three of the blocks of two tables.
  Bench bench({.num_workers = 1, .table_bytes_max = 3 * kBlockBytes});
  const std::uint32_t other = bench.Install(AddTable("v", GetParam()));
  const std::uint32_t table = bench.Install(AddTable("w", GetParam()));
  for (const std::uint64_t block : {0u, 1u}) {
    EXPECT_TRUE(bench.PushNow(0, other, 0, 7, block).ok());
  }
  EXPECT_TRUE(bench.PushNow(0, table, 0, 7, 0).ok());
  bench.Tick(0, 1);
  bench.Take(0);
  const absl::Status refused = bench.PushNow(0, table, 1, 7, 1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("table 'w'"), HasSubstr("LEEWAY_TABLE_BYTES_MAX=192")));
  EXPECT_TRUE(bench.PushNow(0, table, 1, 1, 0).ok());
  bench.Tick(0, 2);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 2, 0), Each(8));
}
INSTANTIATE_TEST_SUITE_P(Consistencies, TableBytesMax,
                         testing::Values(Consistency::Bsp(), Consistency::Ssp(1),
                                         Consistency::Asp()));

TEST(TableBytesMaxTest, ADenseTableThatIsLargerIsNotCreated) {
  Bench bench({.table_bytes_max = 1000});
  const TableSpec spec = TableSpec::Dense("large", {251});
  const absl::Status installed = bench.thread().InstallTable(1, spec, *MakeUpdater(spec));
  EXPECT_EQ(installed.code(), StatusCode::kResourceExhausted) << installed;
  EXPECT_THAT(std::string(installed.message()), HasSubstr("'large' would take 1004 bytes more"));
  const TableSpec less = TableSpec::Dense("less", {250});
  EXPECT_TRUE(bench.thread().InstallTable(1, less, *MakeUpdater(less)).ok());
}

// ---- where the system itself has no more ----

std::uint64_t AddressSpaceBytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// Rows of 64 KiB each until one does not fit. Exits with 0 if everything is as it should be.
void PushUntilThereIsNoMemory() {
  constexpr std::uint64_t kWidth = 16 << 10, kRows = 64;
  Bench bench({.num_shards = 1, .message_bytes_max = 64 << 20});
  TableSpec spec = TableSpec::Sparse("e", kWidth);
  spec.consistency = Consistency::Asp();
  const std::uint32_t table = bench.Install(spec);
  const Payload values = Bench::Values(std::vector<float>(kRows * kWidth, 1));
  const rlimit most = {AddressSpaceBytes() + (256 << 20), RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &most);
  const auto push = [&](std::uint64_t first) {
    std::vector<std::uint64_t> keys(kRows);
    std::iota(keys.begin(), keys.end(), first);
    proto::Request request = bench.DensePush(0, table, 0);
    request.kind = TableKind::kSparse;
    request.keys = kRows;
    request.elements = kRows * kWidth;
    bench.Send(0, request, {Bench::Keys(keys)[0], values[0]});
    return bench.TakeReply(0).reply().result;
  };
  absl::Status last;
  std::uint64_t pushes = 0;
  while (last.ok() && pushes < 1000) last = push(pushes++ * kRows);
  const bool said = last.code() == StatusCode::kUnknown || absl::IsResourceExhausted(last);
  const bool goes_on = push(0).ok();
  std::fprintf(stderr, "%llu pushes, then %s; %s\n", static_cast<unsigned long long>(pushes),
               last.ToString().c_str(), goes_on ? "goes on" : "does not go on");
  std::exit(said && goes_on ? 0 : 1);
}

TEST(OutOfMemoryDeathTest, FailsThePushAndNotTheProcess) {
  if (runtime::kSanitized) GTEST_SKIP() << "sanitizers take address space of their own";
  testing::FLAGS_gtest_death_test_style = "fast";
  EXPECT_EXIT(PushUntilThereIsNoMemory(), testing::ExitedWithCode(0),
              "there is no memory left on this server");
}

}  // namespace
}  // namespace leeway::ps
