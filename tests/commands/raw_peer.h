// Peers that are no leeway processes, or not of this release.
#ifndef LEEWAY_TESTS_COMMANDS_RAW_PEER_H_
#define LEEWAY_TESTS_COMMANDS_RAW_PEER_H_

#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"

namespace leeway::tests {

// The frame with which a process of that role and protocol version greets.
std::string Greeting(Role role, std::uint32_t protocol);

// Connects to "tcp://HOST:PORT", sends the frame and waits for the rejection: its reason. OK: none
// came.
absl::Status RejectionOf(const std::string& address, const std::string& frame);

// Sends bytes over a connection of plain TCP, and closes it.
void SendBytes(const std::string& address, const std::string& bytes);

// Listens, and greets whoever greets it with one frame.
class FakeScheduler {
 public:
  FakeScheduler();
  ~FakeScheduler();
  FakeScheduler(const FakeScheduler&) = delete;
  FakeScheduler& operator=(const FakeScheduler&) = delete;

  const std::string& address() const { return address_; }
  // False: nobody came.
  bool AnswerOne(const std::string& frame);

 private:
  const int listener_;
  std::string address_;
  int accepted_ = -1;
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_RAW_PEER_H_
