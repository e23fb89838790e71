// FakeScheduler and the functions here act as peers that are no processes of Leeway, or of another
// release.
#ifndef LEEWAY_TESTS_COMMANDS_RAW_PEER_H_
#define LEEWAY_TESTS_COMMANDS_RAW_PEER_H_

#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"

namespace leeway::tests {

// The first frame of a process of that role and protocol version.
std::string Greeting(Role role, std::uint32_t protocol);

// Connects to "tcp://HOST:PORT", sends the frame and waits for the rejection: returns its reason.
// OK: no rejection came.
absl::Status RejectionOf(const std::string& address, const std::string& frame);

// Sends bytes over a connection of plain TCP, and closes it.
void SendBytes(const std::string& address, const std::string& bytes);

// Listens, and answers the greeting of a peer with one frame.
class FakeScheduler {
 public:
  FakeScheduler();
  ~FakeScheduler();
  FakeScheduler(const FakeScheduler&) = delete;
  FakeScheduler& operator=(const FakeScheduler&) = delete;

  const std::string& address() const { return address_; }
  // False: no peer came.
  bool AnswerOne(const std::string& frame);

 private:
  const int listener_;
  std::string address_;
  int accepted_ = -1;
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_RAW_PEER_H_
