#include "van/rdma/verbs/inventory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "van/rdma/verbs/library.h"

namespace leeway::van::verbs {
namespace {

using testing::HasSubstr;
using testing::Not;

// What the parent has opened is its own.
TEST(SystemLibraryTest, AChildHasNone) {
  if (!SystemLibrary().ok()) GTEST_SKIP() << SystemLibrary().status();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(SystemLibrary().status().code() == absl::StatusCode::kFailedPrecondition ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_TRUE(SystemLibrary().ok());
}

FoundDevice DeviceWith(bool up) {
  FoundPort port;
  port.up = up;
  port.state = up ? "ACTIVE" : "DOWN";
  FoundDevice device;
  device.name = "mlx5_0";
  device.ports.push_back(port);
  return device;
}

TEST(InventoryTest, OnePortThatIsUpSuffices) {
  Inventory inventory;
  inventory.devices = {DeviceWith(false), DeviceWith(true)};
  EXPECT_TRUE(UsableBy(inventory, kNoLimit).ok());
  EXPECT_TRUE(UsableBy(inventory, kLockedBytesMin).ok());
}

TEST(InventoryTest, SaysWhichPortIsDown) {
  Inventory inventory;
  inventory.devices = {DeviceWith(false)};
  const absl::Status status = UsableBy(inventory, kNoLimit);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("mlx5_0 port 1 is DOWN"));
  EXPECT_THAT(status.message(), HasSubstr("ip link set dev"));
}

TEST(InventoryTest, SaysHowToRaiseTheLimit) {
  Inventory inventory;
  inventory.devices = {DeviceWith(true)};
  const absl::Status status = UsableBy(inventory, 8 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(status.message(), HasSubstr("8388608 bytes"));
  EXPECT_THAT(status.message(), HasSubstr("ulimit -l unlimited"));
  EXPECT_THAT(status.message(), HasSubstr("LimitMEMLOCK="));
}

TEST(InventoryTest, SaysHowToGetADevice) {
  const absl::Status status = UsableBy(Inventory(), kNoLimit);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("modprobe"));
}

TEST(InventoryTest, ADeviceThatCannotBeOpened) {
  Inventory inventory;
  FoundDevice closed;
  closed.name = "mlx5_0";
  closed.opens = absl::UnavailableError("cannot open the rdma device mlx5_0: Permission denied");
  inventory.devices = {closed};
  EXPECT_THAT(UsableBy(inventory, kNoLimit).message(), HasSubstr("Permission denied"));
}

TEST(InventoryTest, ALibraryThatIsMissingIsNamedWithItsPackage) {
  const absl::Status status = LoadLibrary("libnosuchverbs.so.1", "librdmacm.so.1").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("libnosuchverbs.so.1 is not installed"));
  EXPECT_THAT(status.message(), HasSubstr("apt install libibverbs1"));
}

TEST(InventoryTest, ALibraryOfAnotherKindIsTooOld) {
  const absl::Status status = LoadLibrary("libc.so.6", "libc.so.6").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("rdma-core 35 or newer"));
}

TEST(InventoryTest, OnlyThePathThatIsSetCounts) {
  Inventory inventory;
  inventory.devices = {DeviceWith(false), DeviceWith(true)};
  inventory.devices[1].name = "mlx5_1";
  inventory.devices[1].ports[0].gids = {{0, "fe80::1", "RoCE v1", "eth1"},
                                        {3, "::ffff:192.0.2.7", "RoCE v2", "eth1"}};
  Path path;
  path.device = "mlx5_1";
  EXPECT_TRUE(UsableBy(inventory, kNoLimit, path).ok());
  EXPECT_EQ(SourceOf(inventory, path), "192.0.2.7");
  path.gid_index = 3;
  EXPECT_TRUE(UsableBy(inventory, kNoLimit, path).ok());
  path.gid_index = 4;
  absl::Status status = UsableBy(inventory, kNoLimit, path);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("LEEWAY_RDMA_DEVICE=mlx5_1 LEEWAY_RDMA_GID_INDEX=4"));
  path = {};
  path.device = "mlx5_0";
  EXPECT_THAT(UsableBy(inventory, kNoLimit, path).message(), HasSubstr("mlx5_0 port 1 is DOWN"));
  path.port = 2;
  EXPECT_THAT(UsableBy(inventory, kNoLimit, path).message(), HasSubstr("it has mlx5_0, mlx5_1"));
  EXPECT_EQ(SourceOf(inventory, {}), "");
}

// On every machine the result is one line and no crash.
TEST(InventoryTest, ThisMachine) {
  const absl::Status viable = NewSystemProvider()->Viable();
  EXPECT_THAT(viable.message(), Not(HasSubstr("\n")));
  const auto opened = NewSystemProvider()->Open({});
  EXPECT_EQ(opened.ok(), viable.ok()) << opened.status() << " but " << viable;
}

}  // namespace
}  // namespace leeway::van::verbs
