#include "tools/doctor/findings.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

// A machine without faults and without rdma.
DoctorFacts Plain() {
  DoctorFacts facts;
  facts.address = "192.0.2.7";
  facts.address_from = "the first network card that is up";
  facts.locked_bytes = 8 << 20;
  facts.descriptors = 65536;
  facts.rdma_usable = absl::UnavailableError("this machine has no rdma device: modprobe");
  return facts;
}

DoctorFacts WithDevice() {
  DoctorFacts facts = Plain();
  van::verbs::FoundPort port;
  port.up = true;
  port.state = "ACTIVE";
  port.link = "Ethernet";
  port.mtu_bytes = 4096;
  port.gids = {{0, "fe80::1", "RoCE v1", "eth0"}, {3, "::ffff:192.0.2.7", "RoCE v2", "eth0"}};
  van::verbs::FoundDevice device;
  device.name = "mlx5_0";
  device.ports = {port};
  facts.rdma.devices = {device};
  facts.rdma.kernel_has_devices = true;
  facts.rdma_usable = absl::OkStatus();
  facts.locked_bytes = van::verbs::kNoLimit;
  return facts;
}

Finding Find(const DoctorFacts& facts, const std::string& what) {
  for (const Finding& finding : Findings(facts)) {
    if (finding.what == what) return finding;
  }
  ADD_FAILURE() << "nothing is said of " << what;
  return {};
}

int Count(const DoctorFacts& facts, Mark mark) {
  int count = 0;
  for (const Finding& finding : Findings(facts)) count += finding.mark == mark ? 1 : 0;
  return count;
}

TEST(DoctorTest, AllIsWellWithoutRdma) {
  EXPECT_EQ(Count(Plain(), Mark::kWarn), 0);
  EXPECT_EQ(DoctorCode(Findings(Plain())), 0);
  EXPECT_EQ(OnThisMachine(Plain()).transport, "shm");
  EXPECT_EQ(OnOthers(Plain()).transport, "tcp");
  EXPECT_EQ(OnOthers(Plain()).why, "this machine has no rdma device");
}

TEST(DoctorTest, ADeviceIsShownWithPortAndGids) {
  const DoctorFacts facts = WithDevice();
  EXPECT_EQ(Count(facts, Mark::kOk), static_cast<int>(Findings(facts).size()));
  const std::string found = Find(facts, "rdma device mlx5_0, port 1").found;
  EXPECT_EQ(found,
            "ACTIVE, Ethernet, MTU 4096, GIDs: 0 fe80::1 (RoCE v1, eth0); 3 ::ffff:192.0.2.7 "
            "(RoCE v2, eth0)");
  EXPECT_EQ(OnOthers(facts).transport, "rdma");
  EXPECT_EQ(OnThisMachine(facts).transport, "shm");
}

TEST(DoctorTest, APortThatIsDown) {
  DoctorFacts facts = WithDevice();
  facts.rdma.devices[0].ports[0].up = false;
  facts.rdma.devices[0].ports[0].state = "DOWN";
  facts.rdma_usable = absl::UnavailableError("no port is up");
  EXPECT_EQ(Find(facts, "rdma").mark, Mark::kWarn);
  EXPECT_EQ(Find(facts, "rdma").mend, "no port is up");
  EXPECT_THAT(Find(facts, "rdma device mlx5_0, port 1").mend, HasSubstr("ip link set"));
  EXPECT_EQ(OnOthers(facts).transport, "tcp");
  EXPECT_EQ(OnOthers(facts).why, "rdma cannot be used");
}

TEST(DoctorTest, TooLittleMayBeLockedWhereThereIsADevice) {
  DoctorFacts facts = WithDevice();
  facts.locked_bytes = 8 << 20;
  const Finding finding = Find(facts, "locked memory");
  EXPECT_EQ(finding.mark, Mark::kWarn);
  EXPECT_EQ(finding.found, "8388608 bytes");
  EXPECT_THAT(finding.mend, HasSubstr("ulimit -l unlimited"));
}

TEST(DoctorTest, TheNodesAddressIsOfNoDevice) {
  DoctorFacts facts = WithDevice();
  facts.address = "198.51.100.1";
  const Finding finding = Find(facts, "rdma at this node's address");
  EXPECT_EQ(finding.mark, Mark::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("198.51.100.1"));
  EXPECT_THAT(finding.mend, HasSubstr("192.0.2.7"));
  EXPECT_THAT(finding.mend, Not(HasSubstr("fe80")));
}

TEST(DoctorTest, RdmaIsAskedForAndNotThere) {
  DoctorFacts facts = Plain();
  facts.config.van = "rdma";
  EXPECT_EQ(Find(facts, "rdma").mark, Mark::kBad);
  EXPECT_EQ(OnThisMachine(facts).transport, "nothing");
  EXPECT_EQ(OnOthers(facts).transport, "nothing");
  EXPECT_EQ(DoctorCode(Findings(facts)), 1);
}

TEST(DoctorTest, WithoutSharedMemory) {
  DoctorFacts facts = Plain();
  facts.shm = absl::UnavailableError("no shared memory: memfd_create fails");
  EXPECT_EQ(OnThisMachine(facts).transport, "tcp");
  EXPECT_EQ(DoctorCode(Findings(facts)), 0);
  facts.config.van = "shm";
  EXPECT_EQ(OnThisMachine(facts).transport, "nothing");
  EXPECT_EQ(DoctorCode(Findings(facts)), 1);
}

TEST(DoctorTest, AClusterOfOneMachineIsNotBad) {
  DoctorFacts facts = Plain();
  facts.config.van = "shm";
  EXPECT_EQ(OnOthers(facts).transport, "nothing");
  EXPECT_EQ(DoctorCode(Findings(facts)), 0);
}

TEST(DoctorTest, SettingsAreObeyed) {
  for (const char* van : {"tcp", "zmq"}) {
    DoctorFacts facts = WithDevice();
    facts.config.van = van;
    EXPECT_EQ(OnThisMachine(facts).transport, van);
    EXPECT_EQ(OnOthers(facts).transport, van);
  }
}

TEST(DoctorTest, OnlyTheLoopbackIsLeft) {
  DoctorFacts facts = Plain();
  facts.address = "127.0.0.1";
  EXPECT_EQ(Find(facts, "address of this node").mark, Mark::kWarn);
  facts.address_from = "LEEWAY_SCHEDULER, which is on the loopback";
  EXPECT_EQ(Find(facts, "address of this node").mark, Mark::kOk);
}

TEST(DoctorTest, SettingsThatMakeNoSense) {
  DoctorFacts facts = Plain();
  facts.settings = absl::InvalidArgumentError("LEEWAY_NUM_SERVERS is 'x'");
  EXPECT_EQ(Find(facts, "settings").mark, Mark::kBad);
  EXPECT_EQ(DoctorCode(Findings(facts)), 1);
}

TEST(DoctorTest, HowToMendStandsBelow) {
  EXPECT_EQ(DoctorText({{Mark::kOk, "shared memory", "there is", ""},
                        {Mark::kWarn, "locked memory", "8 bytes", "`ulimit -l unlimited`"}}),
            "ok    shared memory  there is\n"
            "warn  locked memory  8 bytes\n"
            "      mend: `ulimit -l unlimited`\n");
}

TEST(DoctorTest, JsonHasItAll) {
  const DoctorFacts facts = WithDevice();
  const auto json = nlohmann::json::parse(DoctorJson(facts, Findings(facts)));
  EXPECT_EQ(json["other_machines"]["transport"], "rdma");
  EXPECT_EQ(json["rdma_devices"][0]["ports"][0]["gids"][1]["gid"], "::ffff:192.0.2.7");
  EXPECT_TRUE(json["locked_bytes_max"].is_null());
  EXPECT_EQ(json["findings"].size(), Findings(facts).size());
}

// On this machine, whatever it is like.
TEST(DoctorTest, ThisMachine) {
  const DoctorFacts facts = GatherFacts();
  EXPECT_THAT(DoctorText(Findings(facts)), HasSubstr("to peers on other machines"));
}

}  // namespace
}  // namespace leeway::tools
