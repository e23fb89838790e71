// An Attack is a hostile peer: a process that knows only an address of a cluster.
#ifndef LEEWAY_TESTS_STORM_ATTACK_H_
#define LEEWAY_TESTS_STORM_ATTACK_H_

#include <string>
#include <vector>

namespace leeway::storm {

struct Attack {
  const char* name;
  const char* help;
  // It opens connections as fast as it can: new ones of others, also of `leeway status`, wait.
  bool floods_connections = false;
};

const std::vector<Attack>& Attacks();

// The line on standard error with which an attack begins, when it knows all that it has to.
inline constexpr char kAttacks[] = "attacks";

// Attacks each of the addresses ("tcp://HOST:PORT"; the scheduler's first, then servers') until it
// is killed. Returns an exit code only if there is no such attack, or the cluster tells too little.
int RunAttack(const std::string& name, const std::vector<std::string>& addresses);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_ATTACK_H_
