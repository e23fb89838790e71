#include "van/tcp/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "gtest/gtest.h"
#include "van/address/tcp_address.h"

namespace leeway::van {
namespace {

std::string CongestionControlOf(int fd) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
  return name;
}

void Await(int fd, short event) {
  pollfd waits{fd, event, 0};
  ::poll(&waits, 1, /*timeout_ms=*/10'000);
}

// This holds whatever the system's default congestion control is.
TEST(TcpSocket, BothEndsWithinAMachineAreSetUpForIt) {
  absl::StatusOr<TcpListening> listening = ListenOnTcp("tcp://127.0.0.1:0");
  ASSERT_TRUE(listening.ok()) << listening.status();
  const absl::StatusOr<TcpAddress> address = ParseTcpAddress(listening->advertised);
  ASSERT_TRUE(address.ok()) << address.status();
  const absl::StatusOr<ResolvedHost> host = ResolveToConnect(address->host);
  ASSERT_TRUE(host.ok()) << host.status();
  const absl::StatusOr<UniqueFd> dialled = ConnectTcp(*host, address->port);
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  Await(dialled->get(), POLLOUT);
  ASSERT_TRUE(TcpConnected(dialled->get()).ok());
  Await(listening->fd.get(), POLLIN);
  const TcpAccepted accepted = AcceptTcp(listening->fd.get());
  ASSERT_EQ(accepted.outcome, TcpAccepted::Outcome::kAccepted);
  EXPECT_EQ(CongestionControlOf(dialled->get()), "reno");
  EXPECT_EQ(CongestionControlOf(accepted.fd.get()), "reno");
}

}  // namespace
}  // namespace leeway::van
