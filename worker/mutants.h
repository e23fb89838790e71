// Known bugs of workers that can be planted one at a time, as ps/mutants.h has the servers'.
#ifndef LEEWAY_WORKER_MUTANTS_H_
#define LEEWAY_WORKER_MUTANTS_H_

#include <cstdint>

namespace leeway::worker {

enum class Mutant : std::uint8_t {
  kNone = 0,
  kEncodesAgain,       // a push that is sent again is encoded again: its residual counts twice
  kLateAnswerApplied,  // an answer's differences are added to a later version than they follow on
  kWholeNotTaken,      // what is held of a block stays where an answer has the whole block
  kSendsUndecided,     // pushes of clocks whose codec is being decided have the codec before
  kResidualDropped,    // what is kept of a block is lost where its table gets another codec
};

#ifdef LEEWAY_MUTANTS
inline bool Is(Mutant planted, Mutant asked) { return planted == asked; }
#else
constexpr bool Is(Mutant, Mutant) { return false; }
#endif

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_MUTANTS_H_
