// Cluster is a cluster of real processes, with checks of commands that fail beside it.
#ifndef LEEWAY_TESTS_COMMANDS_CLUSTER_H_
#define LEEWAY_TESTS_COMMANDS_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/command.h"

namespace leeway::tests {

// A scheduler on a port that it chooses itself, and servers that have joined it.
class Cluster {
 public:
  explicit Cluster(int servers = 1, int workers = 1, const Environment& more = {});

  // The environment of all its processes; LEEWAY_SCHEDULER is the scheduler's address.
  const Environment& environment() const { return environment_; }
  Environment With(const Environment& more) const;
  const std::string& scheduler_address() const { return environment_.at("LEEWAY_SCHEDULER"); }
  Command* scheduler() { return scheduler_.get(); }
  Command* server(std::size_t rank) { return servers_[rank].get(); }
  // The output of `leeway status`.
  nlohmann::json Status() const;
  // Expects all processes to end by themselves, with success.
  void ExpectEndInOrder();

 private:
  Environment environment_;
  std::unique_ptr<Command> scheduler_;
  std::vector<std::unique_ptr<Command>> servers_;
};

// A port of this machine that is taken by a socket that never answers. With `listens` false,
// connections are refused.
class TakenPort {
 public:
  explicit TakenPort(bool listens);
  ~TakenPort();
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string address() const;

 private:
  int fd_;
  int port_ = 0;
};

// Expects that it has ended in time with this code, and with exactly one line of complaint, which
// contains all of these parts.
void ExpectComplaint(const Ended& ended, int code, const std::vector<std::string>& parts);

// Checks that no process is left when a test ends.
class CommandsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(NothingRuns()); }
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_CLUSTER_H_
