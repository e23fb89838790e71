// FabricWorld is a TestWorld whose processes are on one fabric of fake verbs, for tests that check
// what devices did or make them fail.
#ifndef LEEWAY_VAN_RDMA_TESTING_FABRIC_WORLD_H_
#define LEEWAY_VAN_RDMA_TESTING_FABRIC_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/loop/real_loop.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/testing/test_world.h"

namespace leeway::van {

// All processes are run by the test's thread.
class FabricWorld final : public TestWorld {
 public:
  explicit FabricWorld(const RdmaSizes& sizes = {})
      : TestWorld(NetKind::kRdma),
        sizes_(sizes),
        provider_(verbs::NewFakeProvider(fabric)),
        factory_(NewRdmaFactory(provider_, sizes)) {}

  int NewProcess() override {
    loops_.push_back(std::make_unique<runtime::RealLoop>(loops_.size() + 1));
    return static_cast<int>(loops_.size()) - 1;
  }
  runtime::Loop* loop(int process) override { return loops_[process].get(); }
  Factory* factory(int) override { return factory_.get(); }
  std::unique_ptr<Transport> NewTransport(int process, const Limits& limits) override {
    return NewRdmaTransport(provider_.get(), loop(process), limits, sizes_);
  }
  std::string AnyAddress(int) override { return factory_->AnyAddress("127.0.0.1"); }
  bool RunUntil(const std::function<bool()>& done,
                absl::Duration limit = absl::Seconds(20)) override {
    const absl::Time until = loops_[0]->Now() + limit;
    while (!done()) {
      if (loops_[0]->Now() >= until) return false;
      for (const auto& loop : loops_) loop->RunReady();
    }
    return true;
  }
  void RunFor(absl::Duration duration) override {
    RunUntil([] { return false; }, duration);
  }
  void Freeze(int) override {}
  void Thaw(int) override {}

  verbs::FakeFabric fabric;
  verbs::Provider& provider() { return *provider_; }

 private:
  const RdmaSizes sizes_;
  std::vector<std::unique_ptr<runtime::RealLoop>> loops_;
  std::shared_ptr<verbs::Provider> provider_;
  std::unique_ptr<Factory> factory_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_TESTING_FABRIC_WORLD_H_
