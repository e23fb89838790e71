// Allocates memory for the user's tensors that servers on the same host can read, where possible.
#include "leeway/array.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "leeway/worker.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/shared_memory.h"
#include "worker/client/client.h"

namespace leeway {
namespace {

// Smaller arrays cost no more to copy than to export.
constexpr std::uint64_t kSharedBytesMin = 16 << 10;

}  // namespace

absl::StatusOr<Array> Worker::Allocate(std::uint64_t bytes) const {
  if (bytes == 0) return Array();
  if (bytes >= kSharedBytesMin && client_->session()->may_share_memory()) {
    absl::StatusOr<std::shared_ptr<runtime::SharedMemory>> shared =
        runtime::SharedMemory::New(bytes);
    if (shared.ok()) {
      std::byte* const data = (*shared)->data();
      return Array(std::shared_ptr<void>(*std::move(shared), data), bytes);
    }
  }
  LEEWAY_ASSIGN_OR_RETURN(runtime::MemoryMapping mapping, runtime::MemoryMapping::Private(bytes));
  auto memory = std::make_shared<runtime::MemoryMapping>(std::move(mapping));
  std::byte* const data = memory->data();
  return Array(std::shared_ptr<void>(std::move(memory), data), bytes);
}

}  // namespace leeway
