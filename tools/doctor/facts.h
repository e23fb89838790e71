// DoctorFacts is what `leeway doctor` reads from this machine and process.
#ifndef LEEWAY_TOOLS_DOCTOR_FACTS_H_
#define LEEWAY_TOOLS_DOCTOR_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::tools {

struct DoctorFacts {
  absl::Status settings;  // the error of the environment's settings; `config` is then the default
  Config config;

  // The address at which others reach this node, and its source.
  absl::Status address_status;
  std::string address;
  std::string address_from;

  absl::Status shm;  // OK: processes of this machine can share memory

  van::verbs::Inventory rdma;
  absl::Status rdma_usable;
  std::uint64_t locked_bytes = 0;  // limit of locked memory; verbs::kNoLimit

  std::uint64_t descriptors = 0;  // limit of open file descriptors
};

DoctorFacts GatherFacts();

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_DOCTOR_FACTS_H_
