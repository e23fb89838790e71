#include "tests/mutants/catalogue.h"

namespace leeway::mutants {
namespace {

constexpr KnownBug kKnownBugs[] = {
#include "tests/mutants/known_bugs.inc"
};

}  // namespace

std::span<const KnownBug> Catalogue() { return kKnownBugs; }

}  // namespace leeway::mutants
