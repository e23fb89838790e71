// A SimTool gives the scheduler a command that takes a while, as `leeway drain` does, and repeats
// it until there is an answer.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_TOOL_H_
#define LEEWAY_TESTS_SIMULATION_SIM_TOOL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "tests/simulation/sim_cluster.h"
#include "van/van.h"

namespace leeway::simulation {

class SimTool final : private van::Handler {
 public:
  // `done` is called once, and may destroy nothing.
  SimTool(SimCluster* cluster, const std::string& host, std::string command,
          std::vector<std::string> arguments, std::function<void(const absl::Status&)> done);
  ~SimTool() override;

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& scheduler) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message raw) override;
  void Connect();
  void Say();

  SimCluster* const cluster_;  // has the scheduler's address, as users know it
  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  const proto::Admin admin_;
  std::function<void(const absl::Status&)> done_;  // null once it has been called
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  bool up_ = false;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_TOOL_H_
