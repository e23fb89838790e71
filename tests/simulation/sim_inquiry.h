// A SimInquiry asks the scheduler for its status, and then each thread of the living servers in it,
// as `leeway status` does (tools/admin/inquiry.h).
#ifndef LEEWAY_TESTS_SIMULATION_SIM_INQUIRY_H_
#define LEEWAY_TESTS_SIMULATION_SIM_INQUIRY_H_

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "tests/simulation/sim_cluster.h"
#include "van/van.h"

namespace leeway::simulation {

class SimInquiry final : private van::Handler {
 public:
  using Json = nlohmann::json;
  // A server's rank, and the number of its thread.
  using Thread = std::pair<std::uint64_t, std::size_t>;

  SimInquiry(SimCluster* cluster, const std::string& host);
  ~SimInquiry() override;

  bool answered() const { return scheduler_.is_object() && threads_.size() == expected_; }
  // Their answers. An answer that is no JSON object becomes an empty one.
  const Json& scheduler() const { return scheduler_; }
  const std::map<Thread, Json>& threads() const { return threads_; }
  absl::Time asked() const { return asked_; }

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override {}
  void OnMessage(van::PeerId peer, van::Message raw) override;
  void AskThreads();

  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  const absl::Time asked_;
  std::unique_ptr<van::Van> van_;
  std::map<van::PeerId, Thread> asked_threads_;
  Json scheduler_;  // null: it has not answered
  std::map<Thread, Json> threads_;
  std::size_t expected_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_INQUIRY_H_
