// Planted<"some-name">() tells whether a known bug is switched on: a build with LEEWAY_MUTANTS can
// switch on one at a time, to show that the tests find it.
//
// A known bug stands beside the decision that it breaks:
//   if (epoch == map_->epoch || Planted<"some-name">()) ...
// tests/mutants lists each with the promise that it breaks. In every other build Planted is the
// constant false, and the bug is not compiled.
#ifndef LEEWAY_RUNTIME_BASE_MUTANTS_H_
#define LEEWAY_RUNTIME_BASE_MUTANTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
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

#ifdef LEEWAY_MUTANTS
// The hash of the bug that is switched on in this process; 0: none. At start, the bug that
// LEEWAY_MUTANT names.
extern std::atomic<std::uint64_t> planted_mutant;
template <MutantName name>
bool Planted() {
  return planted_mutant.load(std::memory_order_relaxed) == name.number;
}
// Switches on the bug of that name, and any other one off. Empty: none.
inline void PlantMutant(std::string_view name) {
  planted_mutant = name.empty() ? 0 : MutantNumber(name);
}
#else
template <MutantName name>
constexpr bool Planted() {
  return false;
}
#endif

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_MUTANTS_H_
