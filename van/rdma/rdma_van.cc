#include "van/rdma/rdma_van.h"

#include <utility>

#include "van/address/tcp_address.h"
#include "van/rdma/rdma_transport.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

class RdmaFactory final : public Factory {
 public:
  RdmaFactory(std::shared_ptr<verbs::Provider> provider, const RdmaSizes& sizes)
      : provider_(std::move(provider)), sizes_(sizes) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        NewRdmaTransport(provider_.get(), loop, limits, sizes_));
  }
  std::string AnyAddress(absl::string_view host) const override { return AnyTcpAddress(host); }
  absl::Status Viable() const override { return provider_->Viable(); }

 private:
  const std::shared_ptr<verbs::Provider> provider_;
  const RdmaSizes sizes_;
};

}  // namespace

std::unique_ptr<Transport> NewRdmaTransport(verbs::Provider* provider, runtime::Loop* loop,
                                            const Limits& limits, const RdmaSizes& sizes) {
  absl::StatusOr<std::unique_ptr<verbs::Verbs>> verbs = provider->Open({});
  if (!verbs.ok()) verbs = verbs::NoVerbs(verbs.status());
  return std::make_unique<RdmaTransport>(loop, limits, sizes, *std::move(verbs));
}

std::unique_ptr<Factory> NewRdmaFactory(std::shared_ptr<verbs::Provider> provider,
                                        const RdmaSizes& sizes) {
  return std::make_unique<RdmaFactory>(std::move(provider), sizes);
}

}  // namespace leeway::van
