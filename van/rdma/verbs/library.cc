#include "van/rdma/verbs/library.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/fork.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::van::verbs {
namespace {

constexpr char kVerbsFile[] = "libibverbs.so.1";
constexpr char kCmFile[] = "librdmacm.so.1";

// Opens a library for good: what it has allocated and registered stays in use.
absl::StatusOr<void*> OpenFile(const char* file) {
  void* const handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) return handle;
  const char* const why = ::dlerror();
  return absl::NotFoundError(
      absl::StrCat(file,
                   " is not installed (Debian: apt install libibverbs1 librdmacm1 "
                   "ibverbs-providers): ",
                   why == nullptr ? "" : why));
}

// Looks up functions of one library. Remembers the first that is missing.
class Symbols {
 public:
  Symbols(const char* file, void* handle) : file_(file), handle_(handle) {}

  template <class Function>
  void Take(const char* name, const char* version, Function* function) {
    void* const symbol = ::dlvsym(handle_, name, version);
    if (symbol == nullptr && status_.ok()) {
      status_ = absl::NotFoundError(
          absl::StrCat(file_, " has no ", name, "@", version, ": rdma-core 35 or newer is needed"));
    }
    static_assert(sizeof(*function) == sizeof(symbol));
    std::memcpy(function, &symbol, sizeof(symbol));
  }
  const absl::Status& status() const { return status_; }

 private:
  const char* const file_;
  void* const handle_;
  absl::Status status_;
};

absl::Status TakeVerbs(const char* file, Library* library) {
  LEEWAY_ASSIGN_OR_RETURN(void* const handle, OpenFile(file));
  Symbols symbols(file, handle);
  constexpr char kV10[] = "IBVERBS_1.0", kV11[] = "IBVERBS_1.1";
  symbols.Take("ibv_get_device_list", kV11, &library->get_device_list);
  symbols.Take("ibv_free_device_list", kV11, &library->free_device_list);
  symbols.Take("ibv_get_device_name", kV11, &library->get_device_name);
  symbols.Take("ibv_open_device", kV11, &library->open_device);
  symbols.Take("ibv_close_device", kV11, &library->close_device);
  symbols.Take("ibv_query_device", kV11, &library->query_device);
  symbols.Take("ibv_query_port", kV11, &library->query_port);
  symbols.Take("_ibv_query_gid_table", "IBVERBS_1.11", &library->query_gid_table);
  symbols.Take("ibv_get_async_event", kV11, &library->get_async_event);
  symbols.Take("ibv_ack_async_event", kV11, &library->ack_async_event);
  symbols.Take("ibv_alloc_pd", kV11, &library->alloc_pd);
  symbols.Take("ibv_dealloc_pd", kV11, &library->dealloc_pd);
  symbols.Take("ibv_reg_mr", kV11, &library->reg_mr);
  symbols.Take("ibv_dereg_mr", kV11, &library->dereg_mr);
  symbols.Take("ibv_create_comp_channel", kV10, &library->create_comp_channel);
  symbols.Take("ibv_destroy_comp_channel", kV10, &library->destroy_comp_channel);
  symbols.Take("ibv_create_cq", kV11, &library->create_cq);
  symbols.Take("ibv_resize_cq", kV11, &library->resize_cq);
  symbols.Take("ibv_destroy_cq", kV11, &library->destroy_cq);
  symbols.Take("ibv_get_cq_event", kV11, &library->get_cq_event);
  symbols.Take("ibv_ack_cq_events", kV11, &library->ack_cq_events);
  symbols.Take("ibv_create_srq", kV11, &library->create_srq);
  symbols.Take("ibv_destroy_srq", kV11, &library->destroy_srq);
  symbols.Take("ibv_create_qp", kV11, &library->create_qp);
  symbols.Take("ibv_modify_qp", kV11, &library->modify_qp);
  symbols.Take("ibv_destroy_qp", kV11, &library->destroy_qp);
  symbols.Take("ibv_event_type_str", kV11, &library->event_type_str);
  symbols.Take("ibv_fork_init", kV11, &library->fork_init);
  symbols.Take("ibv_is_fork_initialized", "IBVERBS_1.13", &library->is_fork_initialized);
  return symbols.status();
}

absl::Status TakeCm(const char* file, Library* library) {
  LEEWAY_ASSIGN_OR_RETURN(void* const handle, OpenFile(file));
  Symbols symbols(file, handle);
  constexpr char kV10[] = "RDMACM_1.0";
  symbols.Take("rdma_create_event_channel", kV10, &library->create_event_channel);
  symbols.Take("rdma_destroy_event_channel", kV10, &library->destroy_event_channel);
  symbols.Take("rdma_get_cm_event", kV10, &library->get_cm_event);
  symbols.Take("rdma_ack_cm_event", kV10, &library->ack_cm_event);
  symbols.Take("rdma_create_id", kV10, &library->create_id);
  symbols.Take("rdma_destroy_id", kV10, &library->destroy_id);
  symbols.Take("rdma_bind_addr", kV10, &library->bind_addr);
  symbols.Take("rdma_listen", kV10, &library->listen);
  symbols.Take("rdma_get_src_port", kV10, &library->get_src_port);
  symbols.Take("rdma_resolve_addr", kV10, &library->resolve_addr);
  symbols.Take("rdma_resolve_route", kV10, &library->resolve_route);
  symbols.Take("rdma_init_qp_attr", "RDMACM_1.2", &library->init_qp_attr);
  symbols.Take("rdma_connect", kV10, &library->connect);
  symbols.Take("rdma_accept", kV10, &library->accept);
  symbols.Take("rdma_establish", "RDMACM_1.2", &library->establish);
  symbols.Take("rdma_disconnect", kV10, &library->disconnect);
  return symbols.status();
}

// Without fork safety, on kernels before 5.12, a forked child may take pages away from the device.
// It has to be enabled before any memory is registered.
void AskForForkSafety(const Library& library) {
  if (library.is_fork_initialized() != IBV_FORK_DISABLED) return;
  if (const int error = library.fork_init(); error != 0) {
    runtime::LogWarning("rdma: this process must not fork: ibv_fork_init fails (",
                        std::strerror(error), ")");
  }
}

}  // namespace

// The library exports this function with an older structure, of which the headers' structure is an
// extension; its further fields stay zero.
int QueryPort(const Library& library, ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
  *out = {};
  return library.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(out));
}

absl::StatusOr<Library> LoadLibrary(const char* verbs_file, const char* cm_file) {
  Library library{};
  LEEWAY_RETURN_IF_ERROR(TakeVerbs(verbs_file, &library));
  LEEWAY_RETURN_IF_ERROR(TakeCm(cm_file, &library));
  return library;
}

// What the libraries have opened belongs to the parent, also in their own memory, and the device's
// pages are not in the child: so a child has none, neither to use nor to destroy anything with.
const absl::StatusOr<Library>& SystemLibrary() {
  // Never destroyed: objects with static lifetime may use it.
  static const auto* const library = [] {
    auto* const loaded = new absl::StatusOr<Library>(LoadLibrary(kVerbsFile, kCmFile));
    if (loaded->ok()) AskForForkSafety(**loaded);
    return loaded;
  }();
  static const std::uint64_t forks = runtime::ForkCount();
  static const auto* const of_the_parent = new absl::StatusOr<
      Library>(absl::FailedPreconditionError(
      "this process was forked by one that has loaded the libraries of rdma, which its children "
      "cannot use"));
  return library->ok() && forks != runtime::ForkCount() ? *of_the_parent : *library;
}

}  // namespace leeway::van::verbs
