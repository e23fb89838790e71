// HandOver and TakeOver mark for ThreadSanitizer what ZeroMQ passes from one thread to another,
// because ZeroMQ is not built with it. In other builds they do nothing.
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

// Everything that this thread has done so far happens before …
inline void HandOver([[maybe_unused]] const void* address) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(address));
#endif
}

// … everything that a thread does after TakeOver of the same address.
inline void TakeOver([[maybe_unused]] const void* address) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(address));
#endif
}

// While such an object exists, this thread reads data that ZeroMQ's own threads have made, such as
// a peer's address. Whether ThreadSanitizer reports that depends on which copy of std::string
// ZeroMQ is linked with.
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
