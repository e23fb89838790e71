#include "tools/doctor/facts.h"

#include <sys/resource.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ps/control/endpoints.h"
#include "ps/control/own_host.h"
#include "van/address/tcp_address.h"
#include "van/mixed/mixed_van.h"
#include "van/rdma/verbs/inventory.h"
#include "van/shm/memory/shm_segment.h"

namespace leeway::tools {
namespace {

// As a server does it (ps/control/own_host.h): an address or a card to bind, and the address that
// others are told.
void FindAddress(DoctorFacts* facts) {
  Config config = facts->config;
  const absl::StatusOr<ps::OwnHost> own = ps::FindOwnHost(config);
  if (own.ok()) {
    facts->address_from = own->from;
    config.host = own->host;
    config.interface = own->interface;
  } else {
    facts->address_status = own.status();
    return;
  }
  const absl::StatusOr<van::ResolvedHost> host = van::ResolveToBind(ps::BindHost(config));
  if (!host.ok()) {
    facts->address_status = host.status();
    return;
  }
  facts->address = config.host.empty() ? host->advertised : config.host;
}

}  // namespace

DoctorFacts GatherFacts() {
  DoctorFacts facts;
  absl::StatusOr<Config> config = Config::FromEnvironment();
  if (config.ok()) {
    facts.config = *std::move(config);
  } else {
    facts.settings = config.status();
  }
  FindAddress(&facts);
  facts.shm = van::ShmViable();
  facts.rdma = van::verbs::TakeInventory();
  facts.rdma_usable = van::verbs::Usable(van::RdmaPathOf(facts.config));
  facts.locked_bytes = van::verbs::LockedMemoryLimit();
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) facts.descriptors = descriptors.rlim_cur;
  return facts;
}

}  // namespace leeway::tools
