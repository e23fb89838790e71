// An Attacker sends malformed messages to a cluster, for proof that none of them harms it.
#ifndef LEEWAY_TESTS_MALFORMED_ATTACKER_H_
#define LEEWAY_TESTS_MALFORMED_ATTACKER_H_

#include <cstdint>
#include <string>

namespace leeway::tests {

// The number of kinds of malformed messages.
int AttackKinds();

class Attacker {
 public:
  explicit Attacker(std::uint64_t seed);
  ~Attacker();
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  // Connects to "tcp://HOST:PORT", sends one malformed message of that kind and closes the
  // connection. False: it could not be sent.
  bool Attack(int kind, const std::string& address);

 private:
  struct State;
  State* state_;
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_MALFORMED_ATTACKER_H_
