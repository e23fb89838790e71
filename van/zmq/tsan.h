// ThreadSanitizer does not see the synchronisation inside ZeroMQ, which is not built with it. What
// goes in at one end of it and comes out at the other is marked here; in other builds these are
// nothing.
#ifndef LEEWAY_VAN_ZMQ_TSAN_H_
#define LEEWAY_VAN_ZMQ_TSAN_H_

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway::van {

// What this thread did so far happens before…
inline void HandOver([[maybe_unused]] const void* address) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(const_cast<void*>(address));
#endif
}

// …what the thread does that takes the same address over.
inline void TakeOver([[maybe_unused]] const void* address) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(const_cast<void*>(address));
#endif
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_TSAN_H_
