#include "scheduler/state/state.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {

absl::Status CheckStateFits(const State& state, const Config& config) {
  const auto check = [](absl::string_view setting, std::uint64_t ours, std::uint64_t its) {
    if (ours == its) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        setting, "=", ours, ", but the cluster that is kept there was started with ", its));
  };
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_NUM_SERVERS", config.num_servers, state.num_servers));
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_NUM_WORKERS", config.num_workers, state.num_workers));
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_REPLICATION", config.replication, state.replication));
  return check("LEEWAY_BLOCK_BYTES", config.block_bytes, state.block_bytes);
}

}  // namespace leeway::scheduler
