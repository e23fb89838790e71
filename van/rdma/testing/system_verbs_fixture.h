// SystemVerbsTest is a fixture with two ends over the system's verbs on a device of this machine,
// in one process. Tests are skipped if there is no such device. RDMA_TEST_HOST is an address of the
// device to use; otherwise it is found by its GIDs.
#ifndef LEEWAY_VAN_RDMA_TESTING_SYSTEM_VERBS_FIXTURE_H_
#define LEEWAY_VAN_RDMA_TESTING_SYSTEM_VERBS_FIXTURE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "van/rdma/verbs/inventory.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {
using SteadyClock = std::chrono::steady_clock;

inline constexpr auto kPatience = std::chrono::seconds(30);

// The first IPv4 address of a port that is up; empty: there is none.
inline std::string FoundHost() {
  for (const FoundDevice& device : TakeInventory().devices) {
    for (const FoundPort& port : device.ports) {
      for (const FoundGid& gid : port.gids) {
        absl::string_view address = gid.gid;
        if (port.up && absl::ConsumePrefix(&address, "::ffff:")) return std::string(address);
      }
    }
  }
  return "";
}

inline sockaddr_storage AddressOf(const std::string& host, std::uint16_t port) {
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr_in*>(&storage);
  address->sin_family = AF_INET;
  address->sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address->sin_addr), 1) << host;
  return storage;
}

// Memory with its registration.
struct Registered {
  Registered(Device* device, std::size_t bytes, bool remote_write = false) : memory(bytes) {
    auto made = device->Register(memory.data(), bytes, remote_write);
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) region = *std::move(made);
  }
  Segment All() const { return Part(0, memory.size()); }
  Segment Part(std::size_t offset, std::size_t bytes) const {
    return {memory.data() + offset, static_cast<std::uint32_t>(bytes), region->local_key()};
  }
  void Fill(const std::string& text) { std::memcpy(memory.data(), text.data(), text.size()); }
  std::string Text(std::size_t bytes) const {
    return {reinterpret_cast<const char*>(memory.data()), bytes};
  }

  std::vector<std::byte> memory;
  std::unique_ptr<MemoryRegion> region;
};

inline std::vector<std::byte> Bytes(const std::string& text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

class SystemVerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status viable = provider_->Viable(); !viable.ok()) {
      GTEST_SKIP() << "no rdma here: " << viable.message();
    }
    const char* const told = std::getenv("RDMA_TEST_HOST");
    host_ = told != nullptr ? told : FoundHost();
    ASSERT_NE(host_, "") << "no IPv4 address on any rdma device; set RDMA_TEST_HOST";
    server_ = Open({});
    client_ = Open({});
    const absl::StatusOr<std::uint16_t> port = server_->Listen(AddressOf(host_, 0));
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
  }

  std::unique_ptr<Verbs> Open(const Options& options) {
    auto opened = provider_->Open(options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  // Waits for the descriptors until `done` is true.
  template <class Done>
  bool Until(Done done) {
    const auto until = SteadyClock::now() + kPatience;
    while (!done()) {
      if (SteadyClock::now() > until) return false;
      pollfd any[2] = {{server_->fd(), POLLIN, 0}, {client_->fd(), POLLIN, 0}};
      ::poll(any, 2, 100);
    }
    return true;
  }

  // The next event of one side, while both make progress.
  Event Next(Verbs* verbs) {
    Event event;
    EXPECT_TRUE(Until([&] { return verbs->NextEvent(&event); })) << "no event";
    return event;
  }

  absl::StatusOr<std::unique_ptr<Connection>> DialServer() {
    return client_->Dial(AddressOf(host_, port_));
  }

  // Dials, up to the connect request at the other side.
  void Request() {
    auto dialled = DialServer();
    ASSERT_TRUE(dialled.ok()) << dialled.status();
    dialled_ = *std::move(dialled);
    Event resolved = Next(client_.get());
    ASSERT_EQ(resolved.kind, EventKind::kResolved) << resolved.why;
    ASSERT_EQ(resolved.connection, dialled_.get());
    ASSERT_TRUE(dialled_->Connect(Bytes("from the client")).ok());
    Event request = Next(server_.get());
    ASSERT_EQ(request.kind, EventKind::kRequest);
    asked_ = request.private_data;
    accepted_ = std::move(request.accepted);
  }

  void Establish() {
    Request();
    if (HasFatalFailure()) return;
    const absl::Status accepted = accepted_->Accept(Bytes("from the server"));
    ASSERT_TRUE(accepted.ok()) << accepted;
    Event established = Next(client_.get());
    ASSERT_EQ(established.kind, EventKind::kEstablished) << established.why;
    answered_ = established.private_data;
    Event there = Next(server_.get());
    ASSERT_EQ(there.kind, EventKind::kEstablished) << there.why;
  }

  Completion NextCompletion(Device* device) {
    Completion completion;
    const bool found = Until([&] {
      if (device->Poll({&completion, 1}) == 1) return true;
      device->Arm();
      return device->Poll({&completion, 1}) == 1;
    });
    EXPECT_TRUE(found) << "no completion";
    return completion;
  }

  absl::Status Send(Connection* connection, std::uint64_t id, const Segment& segment,
                    bool signalled = true) {
    SendRequest request;
    request.id = id;
    request.segments = {&segment, 1};
    request.signalled = signalled;
    return connection->Post({&request, 1});
  }

  absl::Status Write(Connection* connection, std::uint64_t id, const Segment& segment,
                     const Registered& to) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kWrite;
    request.segments = {&segment, 1};
    request.remote_address = reinterpret_cast<std::uintptr_t>(to.memory.data());
    request.remote_key = to.region->remote_key();
    request.signalled = true;
    return connection->Post({&request, 1});
  }

  const std::unique_ptr<Provider> provider_ = NewSystemProvider();
  std::string host_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Verbs> server_, client_;
  std::unique_ptr<Connection> dialled_, accepted_;
  std::vector<std::byte> asked_, answered_;
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_SYSTEM_VERBS_FIXTURE_H_
