// Devices are lost during training: it goes on over tcp, and no operation fails.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "van/address/tcp_address.h"
#include "van/mixed/mixed_transport.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/session/session_van.h"

namespace leeway::tests {
namespace {

// As LEEWAY_VAN=auto between machines: rdma if both ends have a device, else tcp.
class BetweenMachines final : public van::Factory {
 public:
  explicit BetweenMachines(std::shared_ptr<van::verbs::Provider> provider)
      : provider_(std::move(provider)) {}
  std::unique_ptr<van::Van> New(runtime::Loop* loop, const van::Identity& identity,
                                const van::Limits& limits, van::Handler* handler) override {
    return std::make_unique<van::SessionVan>(
        loop, identity, limits, handler,
        std::make_unique<van::MixedTransport>(
            loop, std::make_unique<van::TcpTransport>(loop, limits), nullptr,
            van::NewRdmaTransport(provider_.get(), loop, limits, van::RdmaSizes()),
            van::MixedTransport::Only::kAny));
  }
  std::string AnyAddress(absl::string_view host) const override { return van::AnyTcpAddress(host); }

 private:
  const std::shared_ptr<van::verbs::Provider> provider_;
};

TEST(DeviceLossTest, TrainingGoesOnOverTcp) {
  constexpr std::uint64_t kElements = 100'000;
  constexpr int kPushes = 60, kWaitAfter = 20, kLostAfter = 30;
  van::verbs::FakeFabric fabric;
  LocalCluster::Setup setup;
  setup.net = LocalCluster::Net::kTcp;
  setup.servers = 2;
  setup.config.replication = 2;
  setup.config.resend_interval = absl::Milliseconds(100);
  setup.wrap = [&fabric](std::unique_ptr<van::Factory>) {
    return std::make_unique<BetweenMachines>(van::verbs::NewFakeProvider(fabric));
  };
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    TableSpec spec = TableSpec::Dense("counts", {kElements}, DType::kInt64);
    spec.consistency = Consistency::Asp();
    const absl::StatusOr<Table> table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    const std::vector<std::int64_t> ones(kElements, 1);
    std::vector<Ticket> tickets;
    for (int i = 0; i < kPushes; ++i) {
      if (i == kWaitAfter) {
        const absl::Status before = worker->Wait(tickets);
        EXPECT_TRUE(before.ok()) << before;
        EXPECT_GT(fabric.counters().written_bytes, kWaitAfter * kElements);
        tickets.clear();
      }
      if (i == kLostAfter) fabric.LoseDevices(/*stay_lost=*/true);  // with pushes under way
      tickets.push_back(table->Push(std::span<const std::int64_t>(ones)));
    }
    const std::uint64_t written = fabric.counters().written_bytes;
    const absl::Status pushed = worker->Wait(tickets);
    EXPECT_TRUE(pushed.ok()) << pushed;
    std::vector<std::int64_t> values(kElements);
    const absl::Status pulled = worker->Wait(table->Pull(std::span<std::int64_t>(values)));
    EXPECT_TRUE(pulled.ok()) << pulled;
    EXPECT_EQ(values, std::vector<std::int64_t>(kElements, kPushes));
    EXPECT_EQ(fabric.counters().written_bytes, written) << "over a device that was lost";
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_TRUE((*cluster)->Finish().ok());
}

}  // namespace
}  // namespace leeway::tests
