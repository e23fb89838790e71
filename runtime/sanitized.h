// Whether this program was built with a sanitizer: everything takes 5 to 20 times as long then.
// For tests that would rather try less than run into their time limit.
#pragma once

namespace leeway::runtime {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;  // the slowest of them
#else
inline constexpr bool kThreadSanitized = false;
#endif

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

}  // namespace leeway::runtime
