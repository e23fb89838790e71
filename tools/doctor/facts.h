// What `leeway doctor` looks at: this machine and process, as they are now.
#ifndef LEEWAY_TOOLS_DOCTOR_FACTS_H_
#define LEEWAY_TOOLS_DOCTOR_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::tools {

struct DoctorFacts {
  absl::Status settings;  // why the environment's make no sense; `config` is then the default
  Config config;

  // The address that others are told to reach this node at, and what it comes from.
  absl::Status address_status;
  std::string address;
  std::string address_from;

  absl::Status shm;  // whether processes of this machine can share memory

  van::verbs::Inventory rdma;
  absl::Status rdma_usable;
  std::uint64_t locked_bytes = 0;  // that may be; verbs::kNoLimit

  std::uint64_t descriptors = 0;  // that may be open
};

DoctorFacts GatherFacts();

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_DOCTOR_FACTS_H_
