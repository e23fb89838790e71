#include "leeway/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "runtime/config/config_names.h"

namespace leeway {
namespace {

using Environment = std::map<std::string, std::string>;

absl::StatusOr<Config> Parse(const Environment& environment) {
  return Config::From([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

TEST(ConfigTest, EveryVariableIsRead) {
  const absl::StatusOr<Config> config = Parse({
      {"LEEWAY_ROLE", "server"},
      {"LEEWAY_SCHEDULER", "node-0:9000"},
      {"LEEWAY_NUM_SERVERS", "3"},
      {"LEEWAY_NUM_WORKERS", "5"},
      {"LEEWAY_RANK", "2"},
      {"LEEWAY_INTERFACE", "eth1"},
      {"LEEWAY_HOST", "node-7"},
      {"LEEWAY_PORT", "9000-9015"},
      {"LEEWAY_SERVER_THREADS", "4"},
      {"LEEWAY_NUM_SHARDS", "96"},
      {"LEEWAY_BLOCK_BYTES", "65536"},
      {"LEEWAY_REPLICATION", "3"},
      {"LEEWAY_ELASTIC", "1"},
      {"LEEWAY_READ_ONLY", "1"},
      {"LEEWAY_SCHEDULER_STATE", "/var/lib/leeway"},
      {"LEEWAY_RESTORE", "/ckpt/ckpt-7"},
      {"LEEWAY_SUSPICION_MS", "700"},
      {"LEEWAY_SCHEDULER_TIMEOUT_MS", "90000"},
      {"LEEWAY_PLUGINS", "/lib/a.so::/lib/b.so:"},
      {"LEEWAY_HEARTBEAT_INTERVAL_MS", "250"},
      {"LEEWAY_FAILURE_TIMEOUT_MS", "3000"},
      {"LEEWAY_CONNECT_TIMEOUT_MS", "20000"},
      {"LEEWAY_REQUEST_TIMEOUT_MS", "30000"},
      {"LEEWAY_RESEND_INTERVAL_MS", "400"},
      {"LEEWAY_CHECKPOINT_DIR", "/ckpt"},
      {"LEEWAY_CHECKPOINT_AT_END", "1"},
      {"LEEWAY_VAN", "shm"},
      {"LEEWAY_CHECKSUM", "on"},
      {"LEEWAY_SHM_BYTES", "8000000"},
      {"LEEWAY_RDMA_BYTES", "9000000"},
      {"LEEWAY_RDMA_DEVICE", "mlx5_1"},
      {"LEEWAY_RDMA_PORT", "2"},
      {"LEEWAY_RDMA_GID_INDEX", "3"},
      {"LEEWAY_RDMA_MTU", "1024"},
      {"LEEWAY_BUSY_POLL_US", "5000"},
      {"LEEWAY_SEND_WINDOW_BYTES", "1000000"},
      {"LEEWAY_PUSH_WINDOW_BYTES", "1500000"},
      {"LEEWAY_SEND_QUEUE_BYTES_MAX", "4000000"},
      {"LEEWAY_MESSAGE_BYTES_MAX", "2000000"},
      {"LEEWAY_HELD_BYTES_MAX", "3000000"},
      {"LEEWAY_LOG", "debug"},
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->role, Role::kServer);
  EXPECT_EQ(config->scheduler, "tcp://node-0:9000");
  EXPECT_EQ(config->num_servers, 3u);
  EXPECT_EQ(config->num_workers, 5u);
  EXPECT_EQ(config->rank, 2u);
  EXPECT_EQ(config->interface, "eth1");
  EXPECT_EQ(config->host, "node-7");
  EXPECT_EQ(config->ports, (PortRange{9000, 9015}));
  EXPECT_EQ(config->server_threads, 4u);
  EXPECT_EQ(config->num_shards, 96u);
  EXPECT_EQ(config->block_bytes, 65536u);
  EXPECT_EQ(config->plugins, (std::vector<std::string>{"/lib/a.so", "/lib/b.so"}));
  EXPECT_EQ(config->heartbeat_interval, absl::Milliseconds(250));
  EXPECT_EQ(config->failure_timeout, absl::Seconds(3));
  EXPECT_EQ(config->connect_timeout, absl::Seconds(20));
  EXPECT_EQ(config->replication, 3u);
  EXPECT_TRUE(config->elastic);
  EXPECT_TRUE(config->read_only);
  EXPECT_EQ(config->scheduler_state, "/var/lib/leeway");
  EXPECT_EQ(config->restore, "/ckpt/ckpt-7");
  EXPECT_EQ(config->suspicion, absl::Milliseconds(700));
  EXPECT_EQ(config->scheduler_timeout, absl::Milliseconds(90000));
  EXPECT_EQ(config->request_timeout, absl::Seconds(30));
  EXPECT_EQ(config->resend_interval, absl::Milliseconds(400));
  EXPECT_TRUE(config->checkpoint_at_end);
  EXPECT_EQ(config->van, "shm");
  EXPECT_EQ(config->checksum, "on");
  EXPECT_EQ(config->shm_bytes, 8'000'000u);
  EXPECT_EQ(config->rdma_bytes, 9'000'000u);
  EXPECT_EQ(config->rdma_device, "mlx5_1");
  EXPECT_EQ(config->rdma_port, 2u);
  EXPECT_EQ(config->rdma_gid_index, 3u);
  EXPECT_EQ(config->rdma_mtu_bytes, 1024u);
  EXPECT_EQ(config->busy_poll_us, 5000u);
  EXPECT_EQ(config->send_window_bytes, 1'000'000u);
  EXPECT_EQ(config->push_window_bytes, 1'500'000u);
  EXPECT_EQ(config->send_queue_bytes_max, 4'000'000u);
  EXPECT_EQ(config->message_bytes_max, 2'000'000u);
  EXPECT_EQ(config->held_bytes_max, 3'000'000u);
  EXPECT_EQ(config->log_level, "debug");
  EXPECT_TRUE(config->Validate().ok()) << config->Validate();
}

TEST(ConfigTest, PsLitesNamesAreUnderstood) {
  const absl::StatusOr<Config> config = Parse({
      {"DMLC_ROLE", "worker"},
      {"DMLC_PS_ROOT_URI", "10.0.0.1"},
      {"DMLC_PS_ROOT_PORT", "8001"},
      {"DMLC_NUM_SERVER", "2"},
      {"DMLC_NUM_WORKER", "7"},
      {"DMLC_INTERFACE", "ib0"},
      {"DMLC_NODE_HOST", "fd00::7"},
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->role, Role::kWorker);
  EXPECT_EQ(config->scheduler, "tcp://10.0.0.1:8001");
  EXPECT_EQ(config->num_servers, 2u);
  EXPECT_EQ(config->num_workers, 7u);
  EXPECT_EQ(config->interface, "ib0");
  EXPECT_EQ(config->host, "[fd00::7]");
  EXPECT_TRUE(config->Validate().ok()) << config->Validate();
}

TEST(ConfigTest, AnUnbracketedRootUriMayBeIpv6) {
  const auto config = Parse({{"DMLC_PS_ROOT_URI", "fd00::1"}, {"DMLC_PS_ROOT_PORT", "8001"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->scheduler, "tcp://[fd00::1]:8001");
}

TEST(ConfigTest, NothingSetGivesTheDefaults) {
  const absl::StatusOr<Config> config = Parse({});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->role, Role::kUnknown);
  EXPECT_EQ(config->scheduler, "");
  EXPECT_EQ(config->num_servers, 1u);
  EXPECT_EQ(config->rank, std::nullopt);
}

TEST(ConfigTest, EmptyMeansNotSet) {
  const absl::StatusOr<Config> config = Parse({{"LEEWAY_INTERFACE", ""},
                                               {"LEEWAY_NUM_SERVERS", ""},
                                               {"DMLC_NUM_SERVER", "4"},
                                               {"LEEWAY_RANK", ""}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_servers, 4u);
}

TEST(ConfigTest, BothNamesMayBeSetAlike) {
  const absl::StatusOr<Config> config = Parse({{"LEEWAY_ROLE", "worker"},
                                               {"DMLC_ROLE", "worker"},
                                               {"LEEWAY_SCHEDULER", "tcp://node-0:9000"},
                                               {"DMLC_PS_ROOT_URI", "node-0"},
                                               {"DMLC_PS_ROOT_PORT", "9000"},
                                               {"LEEWAY_NUM_WORKERS", "8"},
                                               {"DMLC_NUM_WORKER", "08"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_workers, 8u);
}

struct Refused {
  Environment environment;
  const char* error;
};

TEST(ConfigTest, ContradictionsAreRefused) {
  const Refused cases[] = {
      {{{"LEEWAY_ROLE", "worker"}, {"DMLC_ROLE", "server"}},
       R"(LEEWAY_ROLE is "worker" but DMLC_ROLE is "server": unset one of them, or make them equal)"},
      {{{"LEEWAY_NUM_SERVERS", "2"}, {"DMLC_NUM_SERVER", "3"}},
       R"(LEEWAY_NUM_SERVERS is "2" but DMLC_NUM_SERVER is "3": unset one of them, or make them equal)"},
      {{{"LEEWAY_NUM_WORKERS", "2"}, {"DMLC_NUM_WORKER", "3"}},
       R"(LEEWAY_NUM_WORKERS is "2" but DMLC_NUM_WORKER is "3": unset one of them, or make them equal)"},
      {{{"LEEWAY_INTERFACE", "eth0"}, {"DMLC_INTERFACE", "eth1"}},
       R"(LEEWAY_INTERFACE is "eth0" but DMLC_INTERFACE is "eth1": unset one of them, or make them equal)"},
      {{{"LEEWAY_HOST", "a"}, {"DMLC_NODE_HOST", "b"}},
       R"(LEEWAY_HOST is "a" but DMLC_NODE_HOST is "b": unset one of them, or make them equal)"},
      {{{"LEEWAY_SCHEDULER", "a:1"}, {"DMLC_PS_ROOT_URI", "a"}, {"DMLC_PS_ROOT_PORT", "2"}},
       R"(LEEWAY_SCHEDULER is "a:1" but DMLC_PS_ROOT_URI:DMLC_PS_ROOT_PORT is "a:2": unset one of them, or make them equal)"},
      {{{"DMLC_PS_ROOT_URI", "a"}},
       R"(DMLC_PS_ROOT_URI is "a" but DMLC_PS_ROOT_PORT is not set: set both, or LEEWAY_SCHEDULER instead)"},
      {{{"DMLC_PS_ROOT_PORT", "9000"}},
       R"(DMLC_PS_ROOT_PORT is "9000" but DMLC_PS_ROOT_URI is not set: set both, or LEEWAY_SCHEDULER instead)"},
  };
  for (const auto& [environment, error] : cases) {
    const absl::StatusOr<Config> config = Parse(environment);
    EXPECT_EQ(config.status(), absl::InvalidArgumentError(error));
  }
}

TEST(ConfigTest, BadValuesAreRefused) {
  const Refused cases[] = {
      {{{"LEEWAY_ROLE", "Server"}},
       R"(LEEWAY_ROLE is "Server": it must be scheduler, server or worker)"},
      {{{"DMLC_ROLE", "joint"}}, R"(DMLC_ROLE is "joint": it must be scheduler, server or worker)"},
      {{{"LEEWAY_NUM_SERVERS", "two"}},
       R"(LEEWAY_NUM_SERVERS is "two": it must be a whole number from 1 to 4096)"},
      {{{"LEEWAY_NUM_SERVERS", "4097"}},
       R"(LEEWAY_NUM_SERVERS is "4097": it must be a whole number from 1 to 4096)"},
      {{{"DMLC_NUM_SERVER", "0"}},
       R"(DMLC_NUM_SERVER is "0": it must be a whole number from 1 to 4096)"},
      {{{"LEEWAY_NUM_WORKERS", "0"}},
       R"(LEEWAY_NUM_WORKERS is "0": it must be a whole number from 1 to 65536)"},
      {{{"LEEWAY_NUM_WORKERS", "-1"}},
       R"(LEEWAY_NUM_WORKERS is "-1": it must be a whole number from 1 to 65536)"},
      {{{"LEEWAY_NUM_WORKERS", "99999999999999999999"}},
       R"(LEEWAY_NUM_WORKERS is "99999999999999999999": it must be a whole number from 1 to 65536)"},
      {{{"LEEWAY_RANK", "first"}},
       R"(LEEWAY_RANK is "first": it must be a whole number from 0 to 65535)"},
      {{{"LEEWAY_SERVER_THREADS", "257"}},
       R"(LEEWAY_SERVER_THREADS is "257": it must be a whole number from 1 to 256)"},
      {{{"LEEWAY_NUM_SHARDS", "1048577"}},
       R"(LEEWAY_NUM_SHARDS is "1048577": it must be a whole number from 0 to 1048576)"},
      {{{"LEEWAY_BLOCK_BYTES", "1024"}},
       R"(LEEWAY_BLOCK_BYTES is "1024": it must be a whole number of bytes from 4096 to 268435456)"},
      {{{"LEEWAY_BLOCK_BYTES", "1M"}},
       R"(LEEWAY_BLOCK_BYTES is "1M": it must be a whole number of bytes from 4096 to 268435456)"},
      {{{"LEEWAY_REPLICATION", "0"}},
       R"(LEEWAY_REPLICATION is "0": it must be a whole number from 1 to 8)"},
      {{{"LEEWAY_ELASTIC", "yes"}}, R"(LEEWAY_ELASTIC is "yes": it must be 0 or 1)"},
      {{{"LEEWAY_READ_ONLY", "2"}}, R"(LEEWAY_READ_ONLY is "2": it must be 0 or 1)"},
      {{{"LEEWAY_SUSPICION_MS", "0"}},
       R"(LEEWAY_SUSPICION_MS is "0": it must be a whole number of milliseconds from 1 to 604800000)"},
      {{{"LEEWAY_SCHEDULER_TIMEOUT_MS", "x"}},
       R"(LEEWAY_SCHEDULER_TIMEOUT_MS is "x": it must be a whole number of milliseconds from 1 to 604800000)"},
      {{{"LEEWAY_HEARTBEAT_INTERVAL_MS", "0"}},
       R"(LEEWAY_HEARTBEAT_INTERVAL_MS is "0": it must be a whole number of milliseconds from 1 to 3600000)"},
      {{{"LEEWAY_FAILURE_TIMEOUT_MS", "1.5"}},
       R"(LEEWAY_FAILURE_TIMEOUT_MS is "1.5": it must be a whole number of milliseconds from 2 to 604800000)"},
      {{{"LEEWAY_CONNECT_TIMEOUT_MS", "never"}},
       R"(LEEWAY_CONNECT_TIMEOUT_MS is "never": it must be a whole number of milliseconds from 1 to 604800000)"},
      {{{"LEEWAY_REQUEST_TIMEOUT_MS", "0"}},
       R"(LEEWAY_REQUEST_TIMEOUT_MS is "0": it must be a whole number of milliseconds from 1 to 604800000)"},
      {{{"LEEWAY_RESEND_INTERVAL_MS", "0"}},
       R"(LEEWAY_RESEND_INTERVAL_MS is "0": it must be a whole number of milliseconds from 1 to 3600000)"},
      {{{"LEEWAY_SEND_WINDOW_BYTES", "1"}},
       R"(LEEWAY_SEND_WINDOW_BYTES is "1": it must be a whole number of bytes from 4096 to 1099511627776)"},
      {{{"LEEWAY_RDMA_MTU", "1500"}},
       R"(LEEWAY_RDMA_MTU is "1500": it must be 0, 256, 512, 1024, 2048 or 4096)"},
      {{{"LEEWAY_RDMA_DEVICE", "mlx5 0"}},
       R"(LEEWAY_RDMA_DEVICE is "mlx5 0": it must be the name of an rdma device, like mlx5_0)"},
      {{{"LEEWAY_VAN", "ib"}}, R"(LEEWAY_VAN is "ib": it must be auto, shm, tcp, rdma or zmq)"},
      {{{"LEEWAY_CHECKSUM", "crc"}}, R"(LEEWAY_CHECKSUM is "crc": it must be auto, on or off)"},
      {{{"LEEWAY_BUSY_POLL_US", "1000001"}},
       R"(LEEWAY_BUSY_POLL_US is "1000001": it must be a whole number of microseconds from 0 to 1000000)"},
      {{{"LEEWAY_SHM_BYTES", "1"}},
       R"(LEEWAY_SHM_BYTES is "1": it must be a whole number of bytes from 1048576 to 268435456)"},
      {{{"LEEWAY_MESSAGE_BYTES_MAX", "1"}},
       R"(LEEWAY_MESSAGE_BYTES_MAX is "1": it must be a whole number of bytes from 65536 to 1099511627776)"},
      {{{"LEEWAY_HELD_BYTES_MAX", "0"}},
       R"(LEEWAY_HELD_BYTES_MAX is "0": it must be a whole number of bytes from 1 to 1099511627776)"},
      {{{"LEEWAY_SCHEDULER", "node-0:70000"}},
       R"(LEEWAY_SCHEDULER is "node-0:70000": its port must be a whole number from 0 to 65535)"},
      {{{"LEEWAY_SCHEDULER", "node-0"}},
       R"(LEEWAY_SCHEDULER is "node-0": it must be host:port, and has no port)"},
      {{{"DMLC_PS_ROOT_URI", "a b"}, {"DMLC_PS_ROOT_PORT", "1"}},
       R"(DMLC_PS_ROOT_URI is "a b": its host must be a host name, an IPv4 or an IPv6 address)"},
      {{{"DMLC_PS_ROOT_URI", "a"}, {"DMLC_PS_ROOT_PORT", "65536"}},
       R"(DMLC_PS_ROOT_PORT is "65536": it must be a whole number from 0 to 65535)"},
      {{{"LEEWAY_HOST", "a:1"}},
       R"(LEEWAY_HOST is "a:1": its host must be a host name, an IPv4 or an IPv6 address)"},
      {{{"LEEWAY_PORT", "0"}},
       R"(LEEWAY_PORT is "0": it must be a port from 1 to 65535, or two with a - between them, like 9000-9015)"},
      {{{"LEEWAY_PORT", "9001-9000"}},
       R"(LEEWAY_PORT is "9001-9000": it must be a port from 1 to 65535, or two with a - between them, like 9000-9015)"},
      {{{"LEEWAY_PORT", "9000-65536"}},
       R"(LEEWAY_PORT is "9000-65536": it must be a port from 1 to 65535, or two with a - between them, like 9000-9015)"},
      {{{"DMLC_INTERFACE", "eth0 eth1"}},
       R"(DMLC_INTERFACE is "eth0 eth1": it must be the name of a network card, like eth0)"},
      {{{"LEEWAY_LOG", "loud\n"}},
       R"(LEEWAY_LOG is "loud\n": it must be debug, info, warning, error or off)"},
  };
  for (const auto& [environment, error] : cases) {
    EXPECT_EQ(Parse(environment).status(), absl::InvalidArgumentError(error));
  }
}

TEST(ConfigTest, LongValuesAreCutInMessages) {
  const absl::Status status = Parse({{"LEEWAY_LOG", std::string(10'000, 'x')}}).status();
  EXPECT_LT(status.message().size(), 250u);
}

Config Valid(Role role) {
  Config config;
  config.role = role;
  config.scheduler = "node-0:9000";
  return config;
}

struct Misfit {
  void (*change)(Config*);
  const char* error;
};

TEST(ConfigTest, SettingsInCodeAreCheckedToo) {
  const Misfit cases[] = {
      {[](Config* c) { c->role = Role::kUnknown; },
       "LEEWAY_ROLE is not set: set it to scheduler, server or worker"},
      {[](Config* c) { c->scheduler = ""; },
       "LEEWAY_SCHEDULER is not set: set it to the scheduler's address, host:port"},
      {[](Config* c) { c->scheduler = "http://x"; },
       R"(LEEWAY_SCHEDULER is "http://x": it must be host:port, tcp://host:port, ipc://path, inproc://name or sim://host/name)"},
      {[](Config* c) { c->scheduler = "node-0:0"; },
       R"(LEEWAY_SCHEDULER is "node-0:0": its port must be the one the scheduler listens on, not 0)"},
      {[](Config* c) { c->num_workers = 0; },
       "LEEWAY_NUM_WORKERS is 0: it must be a whole number from 1 to 65536"},
      {[](Config* c) { c->num_servers = 5000; },
       "LEEWAY_NUM_SERVERS is 5000: it must be a whole number from 1 to 4096"},
      {[](Config* c) { c->rank = 1; },
       "LEEWAY_RANK is 1: it must be less than LEEWAY_NUM_WORKERS, which is 1"},
      {[](Config* c) { c->host = "a b"; },
       R"(LEEWAY_HOST is "a b": its host must be a host name, an IPv4 or an IPv6 address)"},
      {[](Config* c) { c->van = "pigeon"; },
       R"(LEEWAY_VAN is "pigeon": it must be auto, shm, tcp, rdma or zmq)"},
      {[](Config* c) { c->checksum = ""; }, R"(LEEWAY_CHECKSUM is "": it must be auto, on or off)"},
      {[](Config* c) { c->checkpoint_at_end = true; },
       "LEEWAY_CHECKPOINT_AT_END is set, but LEEWAY_CHECKPOINT_DIR does not say where to save"},
      {[](Config* c) { c->log_level = ""; },
       R"(LEEWAY_LOG is "": it must be debug, info, warning, error or off)"},
      {[](Config* c) { c->restore = "/a\xff"; },
       R"(LEEWAY_RESTORE is "/a\377": it must be UTF-8 without control characters)"},
      {[](Config* c) { c->checkpoint_dir = "/a\x1b]0;x"; },
       R"(LEEWAY_CHECKPOINT_DIR is "/a\033]0;x": it must be UTF-8 without control characters)"},
      {[](Config* c) { c->heartbeat_interval = absl::Microseconds(500); },
       "LEEWAY_HEARTBEAT_INTERVAL_MS is 0.5: it must be a whole number of milliseconds from 1 to "
       "3600000"},
      {[](Config* c) { c->request_timeout = absl::InfiniteDuration(); },
       "LEEWAY_REQUEST_TIMEOUT_MS is inf: it must be a whole number of milliseconds from 1 to "
       "604800000"},
      {[](Config* c) { c->failure_timeout = absl::Milliseconds(1999); },
       "LEEWAY_FAILURE_TIMEOUT_MS is 1999: it must be at least twice LEEWAY_HEARTBEAT_INTERVAL_MS, "
       "which is 1000"},
      {[](Config* c) { c->message_bytes_max = 500'000; },
       "LEEWAY_MESSAGE_BYTES_MAX is 500000: it must be at least LEEWAY_BLOCK_BYTES, which is "
       "524288"},
      {[](Config* c) {
         c->num_servers = 4096;
         c->server_threads = 256;
       },
       "LEEWAY_NUM_SHARDS is 0: with 1048576 data threads it must be set, to a whole number from "
       "1 to 1048576"},
  };
  EXPECT_TRUE(Valid(Role::kWorker).Validate().ok());
  for (const auto& [change, error] : cases) {
    Config config = Valid(Role::kWorker);
    change(&config);
    EXPECT_EQ(config.Validate(), absl::InvalidArgumentError(error));
  }
}

TEST(ConfigTest, RanksCountWithinTheirRole) {
  Config config = Valid(Role::kServer);
  config.num_workers = 8;
  config.rank = 1;
  EXPECT_EQ(config.Validate().message(),
            "LEEWAY_RANK is 1: it must be less than LEEWAY_NUM_SERVERS, which is 1");
  config.elastic = true;
  EXPECT_TRUE(config.Validate().ok());
  config.elastic = false;
  config.role = Role::kScheduler;
  EXPECT_TRUE(config.Validate().ok());
}

TEST(ConfigTest, TheSchedulerMayLeaveItsPortToTheSystem) {
  Config config = Valid(Role::kScheduler);
  config.scheduler = "tcp://0.0.0.0:0";
  EXPECT_TRUE(config.Validate().ok());
}

TEST(ConfigTest, TheProcesssEnvironmentIsRead) {
  ::setenv("LEEWAY_NUM_WORKERS", "11", 1);
  const absl::StatusOr<Config> config = Config::FromEnvironment();
  ::unsetenv("LEEWAY_NUM_WORKERS");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_workers, 11u);
}

TEST(ConfigTest, RolesHaveNames) {
  EXPECT_EQ(Name(Role::kScheduler), "scheduler");
  EXPECT_EQ(Name(Role::kServer), "server");
  EXPECT_EQ(Name(Role::kWorker), "worker");
  EXPECT_EQ(Name(Role::kTool), "tool");
  EXPECT_EQ(Name(static_cast<Role>(77)), "unknown");
}

TEST(ConfigTest, MisspeltSettingsAreToldWithTheOneThatIsLikeThem) {
  EXPECT_THAT(runtime::UnknownSettings({"PATH", "LEEWAY_NUM_WORKERS", "LEEWAY_LOG", "DMLC_JOB_ID"}),
              testing::IsEmpty());
  EXPECT_THAT(
      runtime::UnknownSettings({"LEEWAY_NUM_WORKER", "LEEWAY_BLOCKBYTE", "LEEWAY_OF_LIFE_AND_ALL"}),
      testing::ElementsAre(
          "\"LEEWAY_NUM_WORKER\" is set, but there is no such setting; did you mean "
          "LEEWAY_NUM_WORKERS",
          "\"LEEWAY_BLOCKBYTE\" is set, but there is no such setting; did you mean "
          "LEEWAY_BLOCK_BYTES",
          "\"LEEWAY_OF_LIFE_AND_ALL\" is set, but there is no such setting"));
}

}  // namespace
}  // namespace leeway
