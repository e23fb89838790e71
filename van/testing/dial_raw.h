// DialRaw makes a plain TCP connection, for tests that send what no transport would.
#ifndef LEEWAY_VAN_TESTING_DIAL_RAW_H_
#define LEEWAY_VAN_TESTING_DIAL_RAW_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "runtime/config/address.h"

namespace leeway::van {

// Connects to a tcp:// address of 127.0.0.1 and sends nothing. Returns the descriptor, which the
// caller closes. A test that cannot connect fails.
inline int DialRaw(const std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(runtime::PortOf(address)));
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_DIAL_RAW_H_
