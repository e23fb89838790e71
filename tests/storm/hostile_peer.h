// A HostilePeer is one connection of an attacker, which says what it likes over TCP. Blocks.
#ifndef LEEWAY_TESTS_STORM_HOSTILE_PEER_H_
#define LEEWAY_TESTS_STORM_HOSTILE_PEER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/base/unique_fd.h"
#include "tests/malformed/attack_parts.h"

namespace leeway::storm {

// How an attacker introduces itself.
struct Guise {
  Role role = Role::kTool;
  std::uint64_t cluster = 0;  // the id that it says
  bool joins = false;         // at the scheduler, as a reader
};

// A message as it goes over TCP: its frames, without checksums.
std::string Framed(const tests::Frames& frames);
inline std::string Framed(const proto::AnyMessage& message) {
  return Framed({tests::Data(message, 0)});
}

// Different for each call in any process: each connection is another node's.
std::uint64_t NewIncarnation();
// The greeting and the hello. Whoever joins does so in the next message.
std::string Opening(const Guise& as, std::uint64_t incarnation);

// `address`: "tcp://HOST:PORT". The connection may still be under way, or fail.
runtime::UniqueFd Dial(const std::string& address);

class HostilePeer {
 public:
  HostilePeer(const std::string& address, const Guise& as, std::uint64_t incarnation);

  // False: it was dropped.
  bool Say(const std::string& bytes);
  int fd() const { return fd_.get(); }
  // Reads what has come. False: it was dropped.
  bool Read();
  // The next message that has been read. monostate: it cannot be decoded.
  std::optional<proto::AnyMessage> Take();
  // The next message of that type, within the time.
  template <class M>
  std::optional<M> Await(absl::Duration patience) {
    std::optional<M> found;
    AwaitAny(patience, [&](const proto::AnyMessage& message) {
      if (const auto* const it = std::get_if<M>(&message)) found = *it;
      return found.has_value();
    });
    return found;
  }

 private:
  void AwaitAny(absl::Duration patience,
                const std::function<bool(const proto::AnyMessage&)>& wanted);

  runtime::UniqueFd fd_;
  std::string heard_;
  bool greeted_ = false;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HOSTILE_PEER_H_
