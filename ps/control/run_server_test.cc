// The production wiring: real loops, tcp and signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "leeway/server.h"
#include "ps/control/stop_signals.h"

namespace leeway {
namespace {

using testing::HasSubstr;

Config NobodyThere() {
  Config config;
  config.role = Role::kServer;
  config.scheduler = "127.0.0.1:1";  // nobody listens on tcpmux
  config.server_threads = 2;
  return config;
}

TEST(RunServer, GivesUpOnASchedulerThatIsNotThere) {
  Config config = NobodyThere();
  config.connect_timeout = absl::Milliseconds(300);
  const absl::Status status = RunServer(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(status.message(), HasSubstr("LEEWAY_SCHEDULER"));
}

TEST(RunServer, SaysWhichPluginCannotBeLoaded) {
  Config config = NobodyThere();
  config.plugins = {"/no/such/plugin.so"};
  EXPECT_THAT(RunServer(config).message(), HasSubstr("/no/such/plugin.so"));
}

TEST(RunServer, SaysWhatItCannotBindTo) {
  Config config = NobodyThere();
  config.interface = "nosuchcard0";
  const absl::Status status = RunServer(config);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("nosuchcard0"));
}

// Whether somebody has taken SIGTERM over.
bool SigtermIsTaken() {
  struct sigaction now = {};
  sigaction(SIGTERM, nullptr, &now);
  return now.sa_handler != SIG_DFL;
}

TEST(RunServer, EndsInOrderOnSigterm) {
  ASSERT_FALSE(SigtermIsTaken());
  absl::Status status;
  std::thread server([&status] { status = RunServer(NobodyThere()); });
  while (!SigtermIsTaken()) std::this_thread::yield();
  kill(getpid(), SIGTERM);
  server.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_THAT(status.message(), HasSubstr("SIGTERM"));
  EXPECT_FALSE(SigtermIsTaken());
}

TEST(StopSignals, OneAtATime) {
  auto first = ps::StopSignals::Install([](int) {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ps::StopSignals::Install([](int) {}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE((*first)->Poll());
}

}  // namespace
}  // namespace leeway
