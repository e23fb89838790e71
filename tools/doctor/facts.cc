#include "tools/doctor/facts.h"

#include <sys/resource.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ps/endpoints.h"
#include "van/rdma/verbs/locked_memory.h"
#include "van/shm/shm_segment.h"
#include "van/tcp_address.h"

namespace leeway::tools {
namespace {

// As a server does it (ps/endpoints.h): a card or an address to bind, and what is said of it.
void FindAddress(DoctorFacts* facts) {
  const Config& config = facts->config;
  const std::string bind = ps::BindHost(config);
  const absl::StatusOr<van::ResolvedHost> host = van::ResolveToBind(bind);
  if (!host.ok()) {
    facts->address_status = host.status();
    return;
  }
  facts->address = config.host.empty() ? host->advertised : config.host;
  if (!config.host.empty()) {
    facts->address_from = "LEEWAY_HOST";
    facts->address_status = van::CheckAnnouncedHost(config.host);
  } else if (!config.interface.empty()) {
    facts->address_from = absl::StrCat("LEEWAY_INTERFACE, which is ", config.interface);
  } else if (!bind.empty()) {
    facts->address_from = "LEEWAY_SCHEDULER, which is on the loopback";
  } else {
    facts->address_from = "the first network card that is up";
  }
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
  facts.rdma_usable = van::verbs::Usable();
  facts.locked_bytes = van::verbs::LockedMemoryLimit();
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) facts.descriptors = descriptors.rlim_cur;
  return facts;
}

}  // namespace leeway::tools
