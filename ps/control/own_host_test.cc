#include "ps/control/own_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ps/control/endpoints.h"

namespace leeway::ps {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Config Of(const std::string& scheduler) {
  Config config;
  config.scheduler = scheduler;
  return config;
}

TEST(OwnHost, IsTheSourceOfTheRouteToTheScheduler) {
  // This machine's own: the route leads over the loopback, and not to 127.0.0.1.
  const auto first = FindOwnHost(Of(""));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->host, "");
  const absl::StatusOr<van::Route> route = van::RouteTo("127.0.0.2", 9000);
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->source, "127.0.0.1");
  EXPECT_EQ(route->to, "127.0.0.2");
  EXPECT_EQ(route->card, "lo");
  EXPECT_FALSE(route->v6);
}

TEST(OwnHost, ASettingComesFirst) {
  Config config = Of("192.0.2.1:9000");
  config.host = "127.0.0.3";
  EXPECT_EQ(FindOwnHost(config)->host, "127.0.0.3");
  config.host = "::1";
  ASSERT_TRUE(FindOwnHost(config).ok());
  EXPECT_EQ(FindOwnHost(config)->host, "::1");
  config.host = "";
  config.interface = "lo";
  EXPECT_EQ(FindOwnHost(config)->host, "");
  EXPECT_EQ(FindOwnHost(config)->interface, "lo");
}

TEST(OwnHost, ALoopbackSchedulerNeedsNoRoute) {
  const auto own = FindOwnHost(Of("tcp://localhost:9000"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->host, "");
  EXPECT_EQ(own->interface, "");
}

TEST(OwnHost, AnUnknownNameIsWaitedForUntilTheDeadline) {
  Config config = Of("nowhere.invalid:9000");
  EXPECT_EQ(FindOwnHost(config).status().code(), absl::StatusCode::kNotFound);
  config.connect_timeout = absl::Milliseconds(1);
  const absl::Status status = AwaitOwnHost(&config);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("nowhere.invalid"), HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS")));
}

TEST(ListenWithin, TakesTheFirstFreePort) {
  Config config = Of("10.0.0.1:9000");
  config.server_threads = 2;
  std::vector<std::string> asked;
  const auto busy_below = [&](int first_free) {
    asked.clear();
    return ListenWithin(config, "tcp://[::]:0",
                        [&](const std::string& address) -> absl::StatusOr<std::string> {
                          asked.push_back(address);
                          if (static_cast<int>(asked.size()) < first_free) {
                            return absl::AlreadyExistsError("in use");
                          }
                          return address;
                        });
  };
  EXPECT_EQ(busy_below(1).value(), "tcp://[::]:0");
  config.ports = {9100, 9102};
  EXPECT_EQ(busy_below(1).value(), "tcp://[::]:9100");
  EXPECT_EQ(busy_below(3).value(), "tcp://[::]:9102");
  const absl::Status none = busy_below(99).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.message()),
              AllOf(HasSubstr("LEEWAY_PORT=9100-9102"), HasSubstr("LEEWAY_SERVER_THREADS is 2")));
  EXPECT_EQ(asked.size(), 3u);
  // What is not about the port is not tried at the others.
  const auto refused = ListenWithin(config, "tcp://0.0.0.0:0", [&](const std::string&) {
    return absl::StatusOr<std::string>(absl::NotFoundError("no such card"));
  });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace leeway::ps
