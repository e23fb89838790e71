#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "van/tcp/tcp_conn.h"

namespace leeway::van {
namespace {

std::string Told(const std::string& bytes) {
  const absl::Status status = ForeignProtocol(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(ForeignProtocol, IsNamedWhereItIsKnown) {
  using testing::HasSubstr;
  EXPECT_THAT(Told("GET / HTTP/1.1\r\nHost"), HasSubstr("it speaks HTTP"));
  EXPECT_THAT(Told("POST /api HTTP/1.0\r\n"), HasSubstr("it speaks HTTP"));
  EXPECT_THAT(Told("PRI * HTTP/2.0\r\n\r\n"), HasSubstr("it speaks HTTP"));
  EXPECT_THAT(Told(std::string("\x16\x03\x01\x02\x00\x01", 6)), HasSubstr("it speaks TLS"));
  EXPECT_THAT(Told(std::string("\xff\0\0\0", 4)), HasSubstr("ZeroMQ's"));
}

TEST(ForeignProtocol, IsLeftUnnamedOtherwise) {
  for (const std::string bytes : {"G", "GETTING", "\x16", "SSH-2.0-OpenSSH", "LWYshm\r\n"}) {
    EXPECT_EQ(Told(bytes),
              "it does not speak our protocol over TCP: both ends must have the same LEEWAY_VAN")
        << bytes;
  }
}

}  // namespace
}  // namespace leeway::van
