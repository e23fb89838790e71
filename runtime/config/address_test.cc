#include "runtime/config/address.h"

#include <gtest/gtest.h>

#include <string>

namespace leeway::runtime {
namespace {

TEST(AddressTest, OneSpellingForEach) {
  const struct {
    const char* text;
    const char* normal;
  } cases[] = {
      {"10.0.0.7:9000", "tcp://10.0.0.7:9000"},
      {"tcp://10.0.0.7:9000", "tcp://10.0.0.7:9000"},
      {"node-1:9000", "tcp://node-1:9000"},
      {"node_1.rack2:09000", "tcp://node_1.rack2:9000"},
      {"train-7f9c-scheduler-0.train-7f9c.team-recommender-eu-west-4.svc.cluster.local:29500",
       "tcp://"
       "train-7f9c-scheduler-0.train-7f9c.team-recommender-eu-west-4.svc.cluster.local:29500"},
      {"[::1]:9000", "tcp://[::1]:9000"},
      {"tcp://[fe80::1%eth0]:9000", "tcp://[fe80::1%eth0]:9000"},
      {"0.0.0.0:0", "tcp://0.0.0.0:0"},
      {"ipc:///tmp/leeway", "ipc:///tmp/leeway"},
      {"inproc://scheduler", "inproc://scheduler"},
      {"sim://host/scheduler", "sim://host/scheduler"},
  };
  for (const auto& [text, normal] : cases) {
    const auto address = NormalizeAddress(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status();
    EXPECT_EQ(*address, normal);
    EXPECT_EQ(*NormalizeAddress(*address), normal) << "a second time";
  }
}

TEST(AddressTest, SaysWhatItMustBe) {
  const char* const kForms =
      "it must be host:port, tcp://host:port, ipc://path, inproc://name or sim://host/name";
  const char* const kPort = "its port must be a whole number from 0 to 65535";
  const char* const kHost = "its host must be a host name, an IPv4 or an IPv6 address";
  const struct {
    std::string text;
    std::string error;
  } cases[] = {
      {"", kForms},
      {"a b:9000", kForms},
      {"a\n:9000", kForms},
      {"http://a:9000", kForms},
      {"://a:9000", kForms},
      {"ipc://", kForms},
      {"inproc://", kForms},
      {"sim://host", kForms},
      {"sim:///name", kForms},
      {"sim://host/", kForms},
      {"host", "it must be host:port, and has no port"},
      {"[::1]", "it must be host:port, and has no port"},
      {"tcp://host", "it must be host:port, and has no port"},
      {"host:", kPort},
      {"host:http", kPort},
      {"host:65536", kPort},
      {"host:-1", kPort},
      {"host:+1", kPort},
      {"host:99999999999999999999", kPort},
      {"::1:9000", "an IPv6 address must stand in brackets, like [::1]:9000"},
      {":9000", kHost},
      {"*:9000", kHost},
      {"-a:9000", kHost},
      {"[::x]:9000", kHost},
      {"[10.0.0.7]:9000", kHost},
      {std::string(254, 'a') + ":9000", kHost},
      {"ipc:///" + std::string(107, 'a'), "what follows ipc:// must not be longer than 107 bytes"},
      {"inproc://" + std::string(256, 'a'),
       "what follows inproc:// must not be longer than 255 bytes"},
  };
  for (const auto& [text, error] : cases) {
    const auto address = NormalizeAddress(text);
    ASSERT_FALSE(address.ok()) << text << " gave " << *address;
    EXPECT_EQ(address.status().message(), error) << text;
  }
}

TEST(AddressTest, Ports) {
  EXPECT_EQ(PortOf("tcp://host:9000"), 9000);
  EXPECT_EQ(PortOf("tcp://[::1]:0"), 0);
  EXPECT_EQ(PortOf("ipc:///tmp/a:12"), -1);
}

TEST(AddressTest, HostsGetTheirBrackets) {
  EXPECT_EQ(*NormalizeHost("::1"), "[::1]");
  EXPECT_EQ(*NormalizeHost("[::1]"), "[::1]");
  EXPECT_EQ(*NormalizeHost("node-1"), "node-1");
  EXPECT_FALSE(NormalizeHost("node-1:9000").ok());
  EXPECT_FALSE(NormalizeHost("").ok());
}

}  // namespace
}  // namespace leeway::runtime
