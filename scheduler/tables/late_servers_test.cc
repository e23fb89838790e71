#include "scheduler/tables/late_servers.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::scheduler::late_servers_test {
namespace {

constexpr std::uint32_t kNode = 7, kTable = 3;

class LateServersTest : public testing::Test, private LateServers::Owner {
 protected:
  LateServersTest() {
    const TableCatalogue::Entry table{.id = kTable,
                                      .spec = TableSpec::Dense("w", {8}),
                                      .combine = Updater::Combine::kLast,
                                      .installed = true};
    late_.Begin(kNode, {table}, absl::UnixEpoch());
  }

  LateServers late_{absl::Seconds(1), this};
  std::vector<std::uint32_t> prepared_;
  std::vector<absl::Status> unfit_;

 private:
  void SendTo(std::uint32_t, const proto::InstallTable&) override {}
  void OnPrepared(std::uint32_t node) override { prepared_.push_back(node); }
  void OnUnfit(std::uint32_t, const absl::Status& why) override { unfit_.push_back(why); }
};

TEST_F(LateServersTest, OneThatUpdatesAsTheOthersDoIsPrepared) {
  late_.OnInstalled(kNode, {.table = kTable, .combine = Updater::Combine::kLast});
  EXPECT_EQ(prepared_, std::vector<std::uint32_t>{kNode});
}

// Replicas would differ.
TEST_F(LateServersTest, OneWhoseUpdaterCombinesOtherwiseIsOfNoUse) {
  late_.OnInstalled(kNode, {.table = kTable, .combine = Updater::Combine::kSum});
  EXPECT_TRUE(prepared_.empty());
  ASSERT_EQ(unfit_.size(), 1u);
  EXPECT_EQ(unfit_[0].code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace leeway::scheduler::late_servers_test
