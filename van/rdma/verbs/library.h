// libibverbs and librdmacm, loaded at run time: one binary works with them and without.
//
// Only functions that the libraries export are here; ibv_post_send and the like are inline and go
// through the device's own table. Their headers are needed to build, the libraries are not.
#ifndef LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_
#define LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "absl/status/statusor.h"

// These are macros over inline functions that need the library to link.
#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

namespace leeway::van::verbs {

struct Library {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  int (*query_port)(ibv_context*, std::uint8_t, void*);
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_srq) create_srq;
  decltype(&::ibv_destroy_srq) destroy_srq;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_fork_init) fork_init;

  decltype(&::rdma_create_event_channel) create_event_channel;
  decltype(&::rdma_destroy_event_channel) destroy_event_channel;
  decltype(&::rdma_create_id) create_id;
  decltype(&::rdma_destroy_id) destroy_id;
  decltype(&::rdma_bind_addr) bind_addr;
  decltype(&::rdma_resolve_addr) resolve_addr;
  decltype(&::rdma_resolve_route) resolve_route;
  decltype(&::rdma_create_qp) create_qp;
  decltype(&::rdma_destroy_qp) destroy_qp;
  decltype(&::rdma_connect) connect;
  decltype(&::rdma_listen) listen;
  decltype(&::rdma_accept) accept;
  decltype(&::rdma_disconnect) disconnect;
  decltype(&::rdma_get_cm_event) get_cm_event;
  decltype(&::rdma_ack_cm_event) ack_cm_event;
  decltype(&::rdma_set_option) set_option;
  decltype(&::rdma_get_src_port) get_src_port;
};

// The process's, loaded by the first call; NOT_FOUND says what to install. Any thread.
absl::StatusOr<const Library*> LoadLibrary();

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_
