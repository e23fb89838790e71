#include "runtime/memory/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "runtime/testing/temp_folder.h"

namespace leeway::runtime {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMachine = 1000;

class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() { root_ = temp_folder_.path() + "/"; }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  std::uint64_t Bytes() { return MachineMemoryUnder(root_, kMachine).bytes; }

  const runtime::TempFolder temp_folder_;
  std::string root_;
};

TEST_F(MachineMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(Bytes(), kMachine);
  EXPECT_THAT(MachineMemoryUnder(root_, kMachine).from, HasSubstr("machine"));
}

TEST_F(MachineMemoryTest, TheSmallestLimitOfItsGroupAndThoseAboveCounts) {
  Write("proc/self/cgroup", "0::/a/b");
  Write("sys/fs/cgroup/a/b/memory.max", "max");
  EXPECT_EQ(Bytes(), kMachine);
  Write("sys/fs/cgroup/a/memory.max", "700");
  EXPECT_EQ(Bytes(), 700u);
  EXPECT_THAT(MachineMemoryUnder(root_, kMachine).from, HasSubstr("/a/memory.max"));
  Write("sys/fs/cgroup/a/b/memory.max", "800");
  EXPECT_EQ(Bytes(), 700u);
  Write("sys/fs/cgroup/memory.max", "600");
  EXPECT_EQ(Bytes(), 600u);
}

TEST_F(MachineMemoryTest, Version1) {
  Write("proc/self/cgroup", "9:memory:/docker/x\n8:cpu:/");
  Write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Bytes(), kMachine);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500");
  EXPECT_EQ(Bytes(), 500u);
}

TEST_F(MachineMemoryTest, SenselessLimitsLimitNothing) {
  Write("proc/self/cgroup", "nonsense\n0::no-path\n:::\n\n0::/a");
  Write("sys/fs/cgroup/a/memory.max", "-5");
  Write("sys/fs/cgroup/memory.max", "");
  EXPECT_EQ(Bytes(), kMachine);
}

TEST(MachineMemory, OfThisMachineThereIsSome) { EXPECT_GT(MachineMemory().bytes, 1u << 20); }

}  // namespace
}  // namespace leeway::runtime
