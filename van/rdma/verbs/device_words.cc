#include "van/rdma/verbs/device_words.h"

#include <arpa/inet.h>

namespace leeway::van::verbs {

std::string GidText(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(AF_INET6, gid.raw, text, sizeof(text)) == nullptr ? "" : text;
}

std::string GidTypeText(std::uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "InfiniBand";
  }
}

std::string LinkText(std::uint8_t link_layer) {
  return link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

std::string PortStateText(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    default:
      return "NOP";
  }
}

std::uint32_t MtuBytes(ibv_mtu mtu) { return 128u << static_cast<unsigned>(mtu); }

}  // namespace leeway::van::verbs
