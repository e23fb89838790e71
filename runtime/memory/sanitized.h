// kSanitized and kThreadSanitized tell whether this program was built with a sanitizer, with which
// everything takes 5 to 20 times as long: for tests that then do fewer rounds rather than exceed
// their time limit.
#pragma once

#include "absl/base/config.h"

namespace leeway::runtime {

#ifdef ABSL_HAVE_THREAD_SANITIZER
inline constexpr bool kThreadSanitized = true;  // the slowest of them
#else
inline constexpr bool kThreadSanitized = false;
#endif

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

}  // namespace leeway::runtime
