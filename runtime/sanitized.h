// Whether this program was built with a sanitizer: everything takes 5 to 20 times as long then.
// For tests that would rather try less than run into their time limit.
#pragma once

namespace leeway::runtime {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace leeway::runtime
