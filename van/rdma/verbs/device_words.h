// These functions convert values that rdma devices report to text and bytes.
#ifndef LEEWAY_VAN_RDMA_VERBS_DEVICE_WORDS_H_
#define LEEWAY_VAN_RDMA_VERBS_DEVICE_WORDS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace leeway::van::verbs {

// "fe80::5054:ff:fe12:3456", "::ffff:10.0.0.7".
std::string GidText(const ibv_gid& gid);
// "RoCE v2", "RoCE v1", "InfiniBand"; for an ibv_gid_type.
std::string GidTypeText(std::uint32_t type);
// "InfiniBand", "Ethernet".
std::string LinkText(std::uint8_t link_layer);
// "ACTIVE", "DOWN", ...
std::string PortStateText(ibv_port_state state);
std::uint32_t MtuBytes(ibv_mtu mtu);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_DEVICE_WORDS_H_
