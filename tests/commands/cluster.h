// Real processes that make a cluster, and what is expected of commands that go wrong beside them.
#ifndef LEEWAY_TESTS_COMMANDS_CLUSTER_H_
#define LEEWAY_TESTS_COMMANDS_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/command.h"

namespace leeway::tests {

// A scheduler on a port of its own choice, and servers that have joined it.
class Cluster {
 public:
  explicit Cluster(int servers = 1, int workers = 1, const Environment& more = {});

  // Of everyone in it; LEEWAY_SCHEDULER is where the scheduler listens.
  const Environment& environment() const { return environment_; }
  Environment With(const Environment& more) const;
  const std::string& scheduler_address() const { return environment_.at("LEEWAY_SCHEDULER"); }
  Command* scheduler() { return scheduler_.get(); }
  Command* server(std::size_t rank) { return servers_[rank].get(); }
  // What `leeway status` prints.
  nlohmann::json Status() const;
  // Expects everyone to end by themselves, with success.
  void ExpectEndInOrder();

 private:
  Environment environment_;
  std::unique_ptr<Command> scheduler_;
  std::vector<std::unique_ptr<Command>> servers_;
};

// A port of this machine that is taken, by nobody who answers. Where `listens` is false
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

// It has ended with this code, in time, and with exactly one line of complaint that has all of
// these in it.
void ExpectComplaint(const Ended& ended, int code, const std::vector<std::string>& parts);

// Nothing may run any more when a test ends.
class CommandsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(NothingRuns()); }
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_CLUSTER_H_
