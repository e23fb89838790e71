#include "van/rdma/verbs/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace leeway::van::verbs {
namespace {

constexpr char kInstall[] = "(Debian: libibverbs1 librdmacm1 ibverbs-providers)";

class Loader {
 public:
  explicit Loader(const char* name) : name_(name), handle_(::dlopen(name, RTLD_NOW)) {
    if (handle_ == nullptr) {
      status_ = absl::NotFoundError(absl::StrCat(name, " is not installed ", kInstall));
    }
  }
  template <class Function>
  void Find(const char* symbol, Function* function) {
    if (handle_ == nullptr) return;
    *function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
    if (*function == nullptr && status_.ok()) {
      status_ = absl::NotFoundError(absl::StrCat(name_, " is too old: it has no ", symbol));
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const char* const name_;
  void* const handle_;  // never closed
  absl::Status status_;
};

absl::StatusOr<const Library*> Load() {
  static Library library{};
  Loader verbs("libibverbs.so.1");
  verbs.Find("ibv_get_device_list", &library.get_device_list);
  verbs.Find("ibv_free_device_list", &library.free_device_list);
  verbs.Find("ibv_get_device_name", &library.get_device_name);
  verbs.Find("ibv_open_device", &library.open_device);
  verbs.Find("ibv_close_device", &library.close_device);
  verbs.Find("ibv_query_device", &library.query_device);
  verbs.Find("ibv_query_port", &library.query_port);
  verbs.Find("ibv_query_gid", &library.query_gid);
  verbs.Find("ibv_alloc_pd", &library.alloc_pd);
  verbs.Find("ibv_dealloc_pd", &library.dealloc_pd);
  verbs.Find("ibv_reg_mr", &library.reg_mr);
  verbs.Find("ibv_dereg_mr", &library.dereg_mr);
  verbs.Find("ibv_create_comp_channel", &library.create_comp_channel);
  verbs.Find("ibv_destroy_comp_channel", &library.destroy_comp_channel);
  verbs.Find("ibv_create_cq", &library.create_cq);
  verbs.Find("ibv_destroy_cq", &library.destroy_cq);
  verbs.Find("ibv_get_cq_event", &library.get_cq_event);
  verbs.Find("ibv_ack_cq_events", &library.ack_cq_events);
  verbs.Find("ibv_create_srq", &library.create_srq);
  verbs.Find("ibv_destroy_srq", &library.destroy_srq);
  verbs.Find("ibv_modify_qp", &library.modify_qp);
  verbs.Find("ibv_get_async_event", &library.get_async_event);
  verbs.Find("ibv_ack_async_event", &library.ack_async_event);
  verbs.Find("ibv_fork_init", &library.fork_init);
  if (!verbs.status().ok()) return verbs.status();
  Loader cm("librdmacm.so.1");
  cm.Find("rdma_create_event_channel", &library.create_event_channel);
  cm.Find("rdma_destroy_event_channel", &library.destroy_event_channel);
  cm.Find("rdma_create_id", &library.create_id);
  cm.Find("rdma_destroy_id", &library.destroy_id);
  cm.Find("rdma_bind_addr", &library.bind_addr);
  cm.Find("rdma_resolve_addr", &library.resolve_addr);
  cm.Find("rdma_resolve_route", &library.resolve_route);
  cm.Find("rdma_create_qp", &library.create_qp);
  cm.Find("rdma_destroy_qp", &library.destroy_qp);
  cm.Find("rdma_connect", &library.connect);
  cm.Find("rdma_listen", &library.listen);
  cm.Find("rdma_accept", &library.accept);
  cm.Find("rdma_disconnect", &library.disconnect);
  cm.Find("rdma_get_cm_event", &library.get_cm_event);
  cm.Find("rdma_ack_cm_event", &library.ack_cm_event);
  cm.Find("rdma_set_option", &library.set_option);
  cm.Find("rdma_get_src_port", &library.get_src_port);
  if (!cm.status().ok()) return cm.status();
  // Before memory is registered: otherwise a child that this process forks would take its pages
  // away from the device.
  if (library.fork_init() != 0) {
    return absl::UnavailableError("libibverbs cannot be made safe for processes that fork");
  }
  return &library;
}

}  // namespace

absl::StatusOr<const Library*> LoadLibrary() {
  static const absl::StatusOr<const Library*> library = Load();
  return library;
}

}  // namespace leeway::van::verbs
