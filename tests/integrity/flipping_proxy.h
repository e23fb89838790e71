// FlippingProxy is a TCP proxy in front of every listener of a cluster, which can change one bit of
// the bytes that cross it.
//
// ProxiedFactory makes vans whose Listen returns the proxy's address instead of their own, so that
// workers, servers and the scheduler reach each other only through it.
#ifndef LEEWAY_TESTS_INTEGRITY_FLIPPING_PROXY_H_
#define LEEWAY_TESTS_INTEGRITY_FLIPPING_PROXY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "van/van.h"

namespace leeway::tests {

// Any thread.
class FlippingProxy {
 public:
  FlippingProxy();
  ~FlippingProxy();
  FlippingProxy(const FlippingProxy&) = delete;
  FlippingProxy& operator=(const FlippingProxy&) = delete;

  // The proxy's own address in front of `address` ("tcp://HOST:PORT").
  std::string InFrontOf(const std::string& address);

  // Changes bit `bit` (0 to 7) of the byte that crosses after `offset` others, counted from now on
  // over all connections and both directions.
  void FlipAfter(std::uint64_t offset, int bit);
  // The bytes that have crossed since then.
  std::uint64_t crossed_bytes() const { return crossed_.load(); }
  bool flipped() const { return flipped_.load(); }
  // The place of the changed byte: its offset in its connection's stream, and the direction.
  std::string Where() const;

 private:
  struct Listener {
    runtime::UniqueFd fd;
    std::string host;
    int port = 0;
  };
  struct Direction {
    int from = -1, to = -1;
    std::string waiting = "";  // read, and not yet written
    std::uint64_t passed = 0;
    bool read_end = false, write_end = false;
  };
  struct Link {
    runtime::UniqueFd client, server;
    Direction forth, back;
  };

  void Run();
  void Accept(const Listener& listener);
  // False: the link has ended.
  bool Pump(Direction* direction);
  void Count(Direction* direction, std::string* bytes);

  mutable std::mutex mutex_;
  std::vector<Listener> listeners_;
  std::vector<std::unique_ptr<Link>> links_;  // owned by the thread
  std::string where_;
  std::uint64_t flip_after_ = ~std::uint64_t{0};
  int bit_ = 0;
  std::atomic<std::uint64_t> crossed_{0};
  std::atomic<bool> flipped_{false};
  std::atomic<bool> over_{false};
  runtime::UniqueFd wake_;
  std::thread thread_;
};

// The counters of all vans of a factory that have ended.
struct VanTotals {
  std::atomic<std::uint64_t> checksums_failed{0}, handshakes_failed{0};
};

// `proxy` and `totals` outlive the factory and its vans.
std::unique_ptr<van::Factory> NewProxiedFactory(std::unique_ptr<van::Factory> inner,
                                                FlippingProxy* proxy, VanTotals* totals);

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_INTEGRITY_FLIPPING_PROXY_H_
