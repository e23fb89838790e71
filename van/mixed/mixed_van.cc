#include "van/mixed/mixed_van.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"
#include "van/address/tcp_address.h"
#include "van/mixed/mixed_transport.h"
#include "van/rdma/rdma_format.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/verbs/verbs.h"
#include "van/session/session_van.h"
#include "van/tcp/tcp_transport.h"
#include "van/zmq/zmq_transport.h"

namespace leeway::van {
namespace {

using Only = MixedTransport::Only;

constexpr std::uint32_t kGidIndexAny = 256;  // Config::rdma_gid_index

// `shm`: whether shared memory is used. `rdma`: null: rdma is not used.
std::unique_ptr<Factory> NewMixedFactory(const ShmSizes& sizes, bool shm,
                                         std::shared_ptr<verbs::Provider> rdma,
                                         const RdmaSizes& rdma_sizes, Only only) {
  return NewSessionFactory(
      [=](runtime::Loop* loop, const Limits& limits) {
        return std::make_unique<MixedTransport>(
            loop, std::make_unique<TcpTransport>(loop, limits),
            shm ? std::make_unique<ShmTransport>(loop, limits, sizes) : nullptr,
            rdma != nullptr ? NewRdmaTransport(rdma.get(), loop, limits, rdma_sizes) : nullptr,
            only);
      },
      AnyTcpAddress,
      [=] {
        if (only == Only::kAny) return absl::OkStatus();
        const absl::Status there = only == Only::kShm ? ShmViable() : rdma->Viable();
        if (there.ok()) return there;
        return absl::Status(
            there.code(), absl::StrCat("LEEWAY_VAN is \"",
                                       only == Only::kShm ? "shm\", but there is " : "rdma\", but ",
                                       std::string(there.message())));
      });
}

}  // namespace

verbs::Path RdmaPathOf(const Config& config) {
  verbs::Path path;
  path.device = config.rdma_device;
  path.port = static_cast<std::uint8_t>(config.rdma_port);
  if (config.rdma_gid_index < kGidIndexAny)
    path.gid_index = static_cast<int>(config.rdma_gid_index);
  path.mtu_bytes = config.rdma_mtu_bytes;
  return path;
}

std::unique_ptr<Factory> NewFactory(const Config& config) {
  return NewFactory(config, verbs::NewSystemProvider(RdmaPathOf(config)));
}

std::unique_ptr<Factory> NewFactory(const Config& config,
                                    std::shared_ptr<verbs::Provider> provider) {
  if (config.van == "zmq") return NewZmqFactory();
  if (config.van == "tcp") return NewTcpFactory();
  ShmSizes sizes;
  sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(config.shm_bytes / kShmUnitBytes, 1, kShmUnitsMax));
  RdmaSizes rdma_sizes;
  rdma_sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(config.rdma_bytes / kRdmaUnitBytes, 1, kRdmaUnitsMax));
  if (config.van == "rdma") {
    return NewMixedFactory(sizes, false, std::move(provider), rdma_sizes, Only::kRdma);
  }
  if (config.van == "shm") {
    return NewMixedFactory(sizes, true, nullptr, RdmaSizes(), Only::kShm);
  }
  const absl::Status shm = ShmViable(), rdma = provider->Viable();
  if (!shm.ok()) {
    runtime::LogInfo("processes of this machine connect over tcp: ", std::string(shm.message()));
  }
  runtime::LogDebug("rdma: ",
                    rdma.ok() ? "to machines that have it, too" : std::string(rdma.message()));
  if (!rdma.ok()) provider = nullptr;
  if (!shm.ok() && provider == nullptr) return NewTcpFactory();
  return NewMixedFactory(sizes, shm.ok(), std::move(provider), rdma_sizes, Only::kAny);
}

std::unique_ptr<Factory> NewToolFactory(const Config& config) {
  return config.van == "zmq" ? NewZmqFactory() : NewTcpFactory();
}

}  // namespace leeway::van
