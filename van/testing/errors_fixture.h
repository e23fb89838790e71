// A fixture with a server, a client of it, and raw peers that misbehave.
#ifndef LEEWAY_VAN_TESTING_ERRORS_FIXTURE_H_
#define LEEWAY_VAN_TESTING_ERRORS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "van/testing/server_and_client.h"

namespace leeway::van {

class VanErrorsTest : public testing::TestWithParam<NetKind>, protected ServerAndClient {
 protected:
  VanErrorsTest() : ServerAndClient(GetParam()) {}
  void StartServer(const Limits& limits = {}) {
    Identity identity = IdentityOf(Role::kServer, 2);
    identity.cluster = 0xc1;
    ServerAndClient::StartServer(limits, identity);
  }
  RawPeer NewRaw() {
    const int process = world_->NewProcess();
    return RawPeer(world_->NewTransport(process, {}));
  }
  proto::Hello GoodHello() {
    proto::Hello hello;
    hello.role = Role::kWorker;
    hello.node = 99;
    hello.incarnation = 1;
    hello.cluster = kTestCluster;
    return hello;
  }
  // With a payload that fits all limits.
  void ExpectClientUnharmed() { ServerAndClient::ExpectClientUnharmed({}); }
  // Expects that the offender is told why, and is disconnected if it does not disconnect itself.
  void ExpectBanned(RawPeer* raw, absl::StatusCode code, const std::string& why) {
    ASSERT_TRUE(RunUntil([&] { return !raw->Rejection().ok(); }));
    EXPECT_EQ(raw->Rejection().code(), code) << raw->Rejection();
    EXPECT_THAT(std::string(raw->Rejection().message()), testing::HasSubstr(why));
    if (GetParam() != NetKind::kInproc) {
      EXPECT_TRUE(RunUntil([&] { return !raw->closed.empty(); }));
    }
    ExpectClientUnharmed();
  }
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_ERRORS_FIXTURE_H_
