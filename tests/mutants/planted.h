// Planted<"some-name">() tells whether a known bug is switched on, one at a time, to show that the
// tests find it. Only sources that tests/mutants/edits.py has put the bugs into include this.
#ifndef LEEWAY_TESTS_MUTANTS_PLANTED_H_
#define LEEWAY_TESTS_MUTANTS_PLANTED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace leeway::runtime {

// FNV-1a hash of a name, never 0. Names are compared by their hashes because Planted is called for
// every message.
constexpr std::uint64_t MutantNumber(std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash == 0 ? 1 : hash;
}

template <std::size_t size>
struct MutantName {
  consteval MutantName(const char (&text)[size]) : number(MutantNumber({text, size - 1})) {}
  std::uint64_t number;
};

inline std::uint64_t MutantOfEnvironment() {
  const char* const name = std::getenv("LEEWAY_MUTANT");
  return name == nullptr || *name == '\0' ? 0 : MutantNumber(name);
}

// The hash of the bug that is switched on in this process; 0: none. At start, the bug that
// LEEWAY_MUTANT names.
inline std::atomic<std::uint64_t> planted_mutant = MutantOfEnvironment();

template <MutantName name>
bool Planted() {
  return planted_mutant.load(std::memory_order_relaxed) == name.number;
}

// Switches on the bug of that name, and any other one off. Empty: none.
inline void PlantMutant(std::string_view name) {
  planted_mutant = name.empty() ? 0 : MutantNumber(name);
}

}  // namespace leeway::runtime

#endif  // LEEWAY_TESTS_MUTANTS_PLANTED_H_
