#include "runtime/base/mutants.h"

#ifdef LEEWAY_MUTANTS
#include <cstdlib>

namespace leeway::runtime {
namespace {

std::uint64_t NumberFromEnvironment() {
  const char* const name = std::getenv("LEEWAY_MUTANT");
  return name == nullptr || *name == '\0' ? 0 : MutantNumber(name);
}

}  // namespace

std::atomic<std::uint64_t> planted_mutant = NumberFromEnvironment();

}  // namespace leeway::runtime
#endif
