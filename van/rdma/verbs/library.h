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

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace leeway::van::verbs {

// Calls F(PREFIX, NAME, VERSION) for each function of libibverbs that is used: PREFIX and NAME make
// its name, VERSION is that of its symbol.
#define LEEWAY_IBVERBS_FUNCTIONS(F)            \
  F(ibv_, get_device_list, "IBVERBS_1.1")      \
  F(ibv_, free_device_list, "IBVERBS_1.1")     \
  F(ibv_, get_device_name, "IBVERBS_1.1")      \
  F(ibv_, open_device, "IBVERBS_1.1")          \
  F(ibv_, close_device, "IBVERBS_1.1")         \
  F(ibv_, query_device, "IBVERBS_1.1")         \
  F(ibv_, query_port, "IBVERBS_1.1")           \
  F(_ibv_, query_gid_table, "IBVERBS_1.11")    \
  F(ibv_, get_async_event, "IBVERBS_1.1")      \
  F(ibv_, ack_async_event, "IBVERBS_1.1")      \
  F(ibv_, alloc_pd, "IBVERBS_1.1")             \
  F(ibv_, dealloc_pd, "IBVERBS_1.1")           \
  F(ibv_, reg_mr, "IBVERBS_1.1")               \
  F(ibv_, dereg_mr, "IBVERBS_1.1")             \
  F(ibv_, create_comp_channel, "IBVERBS_1.0")  \
  F(ibv_, destroy_comp_channel, "IBVERBS_1.0") \
  F(ibv_, create_cq, "IBVERBS_1.1")            \
  F(ibv_, resize_cq, "IBVERBS_1.1")            \
  F(ibv_, destroy_cq, "IBVERBS_1.1")           \
  F(ibv_, get_cq_event, "IBVERBS_1.1")         \
  F(ibv_, ack_cq_events, "IBVERBS_1.1")        \
  F(ibv_, create_srq, "IBVERBS_1.1")           \
  F(ibv_, destroy_srq, "IBVERBS_1.1")          \
  F(ibv_, create_qp, "IBVERBS_1.1")            \
  F(ibv_, modify_qp, "IBVERBS_1.1")            \
  F(ibv_, destroy_qp, "IBVERBS_1.1")           \
  F(ibv_, event_type_str, "IBVERBS_1.1")       \
  F(ibv_, fork_init, "IBVERBS_1.1")            \
  F(ibv_, is_fork_initialized, "IBVERBS_1.13")
// The same for librdmacm.
#define LEEWAY_RDMACM_FUNCTIONS(F)              \
  F(rdma_, create_event_channel, "RDMACM_1.0")  \
  F(rdma_, destroy_event_channel, "RDMACM_1.0") \
  F(rdma_, get_cm_event, "RDMACM_1.0")          \
  F(rdma_, ack_cm_event, "RDMACM_1.0")          \
  F(rdma_, create_id, "RDMACM_1.0")             \
  F(rdma_, destroy_id, "RDMACM_1.0")            \
  F(rdma_, bind_addr, "RDMACM_1.0")             \
  F(rdma_, listen, "RDMACM_1.0")                \
  F(rdma_, get_src_port, "RDMACM_1.0")          \
  F(rdma_, resolve_addr, "RDMACM_1.0")          \
  F(rdma_, resolve_route, "RDMACM_1.0")         \
  F(rdma_, init_qp_attr, "RDMACM_1.2")          \
  F(rdma_, connect, "RDMACM_1.0")               \
  F(rdma_, accept, "RDMACM_1.0")                \
  F(rdma_, establish, "RDMACM_1.2")             \
  F(rdma_, disconnect, "RDMACM_1.0")

// Never unloaded. All functions may be called from any thread.
struct Library {
#define LEEWAY_FIELD(PREFIX, NAME, VERSION) decltype(&::PREFIX##NAME) NAME;
  LEEWAY_IBVERBS_FUNCTIONS(LEEWAY_FIELD)  // for query_port see QueryPort
  LEEWAY_RDMACM_FUNCTIONS(LEEWAY_FIELD)
#undef LEEWAY_FIELD
};

// Queries a port. Returns 0 or an errno.
int QueryPort(const Library& library, ibv_context* context, std::uint8_t port, ibv_port_attr* out);

// The libraries of the system, loaded by the first call, which also enables fork safety where the
// kernel does not provide it. Any thread. NOT_FOUND: a library is not installed, or is too old.
const absl::StatusOr<Library>& SystemLibrary();

// Loads these files. For tests; other code uses SystemLibrary.
absl::StatusOr<Library> LoadLibrary(const char* verbs_file, const char* cm_file);

// Values that devices report, as text and in bytes.
std::string GidText(const ibv_gid& gid);  // "fe80::5054:ff:fe12:3456", "::ffff:10.0.0.7"
// "RoCE v2", "RoCE v1", "InfiniBand"; for an ibv_gid_type.
std::string GidTypeText(std::uint32_t type);
std::string LinkText(std::uint8_t link_layer);    // "InfiniBand", "Ethernet"
std::string PortStateText(ibv_port_state state);  // "ACTIVE", "DOWN", ...
std::uint32_t MtuBytes(ibv_mtu mtu);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_LIBRARY_H_
