// ThreadSanitizer does not see the synchronisation inside ZeroMQ, which is not built with it. What
// goes in at one end of it and comes out at the other is marked here; in other builds these are
// nothing.
#ifndef LEEWAY_VAN_ZMQ_TSAN_H_
#define LEEWAY_VAN_ZMQ_TSAN_H_

#include "absl/base/config.h"

#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace leeway::van {

// What this thread did so far happens before…
inline void HandOver([[maybe_unused]] const void* address) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(address));
#endif
}

// …what the thread does that takes the same address over.
inline void TakeOver([[maybe_unused]] const void* address) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(address));
#endif
}

// While one lives, this thread reads what ZeroMQ's own threads have made, such as a peer's address.
// Whether that is seen as unsynchronised depends on whose copy of std::string ZeroMQ is linked to.
class ReadingFromZmq {
 public:
  ReadingFromZmq() {
#ifdef ABSL_HAVE_THREAD_SANITIZER
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#endif
  }
  ~ReadingFromZmq() {
#ifdef ABSL_HAVE_THREAD_SANITIZER
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  ReadingFromZmq(const ReadingFromZmq&) = delete;
  ReadingFromZmq& operator=(const ReadingFromZmq&) = delete;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_TSAN_H_
