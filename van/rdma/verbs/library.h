// Library is the table of functions of libibverbs and librdmacm, found at run time, so that one
// program runs with and without these libraries.
//
// The headers are used to compile; the libraries are not linked. Functions that the headers define
// inline (posting, polling, arming) go through a device's context and need no symbol. Each symbol
// is looked up in the version that matches the headers' signature, as the linker would do.
#ifndef LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_
#define LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "absl/status/statusor.h"

namespace leeway::van::verbs {

// Never unloaded. All functions may be called from any thread.
struct Library {
  // libibverbs
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;  // see QueryPort
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_resize_cq) resize_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_srq) create_srq;
  decltype(&::ibv_destroy_srq) destroy_srq;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_event_type_str) event_type_str;
  decltype(&::ibv_fork_init) fork_init;
  decltype(&::ibv_is_fork_initialized) is_fork_initialized;
  // librdmacm
  decltype(&::rdma_create_event_channel) create_event_channel;
  decltype(&::rdma_destroy_event_channel) destroy_event_channel;
  decltype(&::rdma_get_cm_event) get_cm_event;
  decltype(&::rdma_ack_cm_event) ack_cm_event;
  decltype(&::rdma_create_id) create_id;
  decltype(&::rdma_destroy_id) destroy_id;
  decltype(&::rdma_bind_addr) bind_addr;
  decltype(&::rdma_listen) listen;
  decltype(&::rdma_get_src_port) get_src_port;
  decltype(&::rdma_resolve_addr) resolve_addr;
  decltype(&::rdma_resolve_route) resolve_route;
  decltype(&::rdma_init_qp_attr) init_qp_attr;
  decltype(&::rdma_connect) connect;
  decltype(&::rdma_accept) accept;
  decltype(&::rdma_establish) establish;
  decltype(&::rdma_disconnect) disconnect;
};

// Queries a port. Returns 0 or an errno.
int QueryPort(const Library& library, ibv_context* context, std::uint8_t port, ibv_port_attr* out);

// The libraries of the system, loaded by the first call, which also enables fork safety where the
// kernel does not provide it. Any thread. NOT_FOUND: a library is not installed, or is too old.
const absl::StatusOr<Library>& SystemLibrary();

// Loads these files. For tests; other code uses SystemLibrary.
absl::StatusOr<Library> LoadLibrary(const char* verbs_file, const char* cm_file);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_
