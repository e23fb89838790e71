// C functions over C++ ones: errors, checks of arguments, texts. For the files that implement
// leeway/c.h.
#ifndef LEEWAY_RUNTIME_C_C_INTERFACE_H_
#define LEEWAY_RUNTIME_C_C_INTERFACE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/c.h"
#include "leeway/config.h"

struct leeway_error {
  leeway_code code;
  std::string message;
};

namespace leeway::c {

// nullptr if it is OK.
inline leeway_error* Error(const absl::Status& status) {
  if (status.ok()) return nullptr;
  return new leeway_error{static_cast<leeway_code>(status.code()), std::string(status.message())};
}

// Runs `body`; what it throws (only for want of memory) becomes an error.
template <class Body>
leeway_error* Guarded(const Body& body) {
  try {
    return Error(body());
  } catch (const std::bad_alloc&) {
    return Error(absl::ResourceExhaustedError("this process has too little memory"));
  } catch (const std::exception& error) {
    return Error(absl::InternalError(error.what()));
  }
}

inline absl::Status Missing(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is a null pointer"));
}

// Checks pointers that must not be null, given as name and pointer in turn.
inline absl::Status CheckNotNull() { return absl::OkStatus(); }
template <class... More>
absl::Status CheckNotNull(absl::string_view name, const void* pointer, const More&... more) {
  return pointer == nullptr ? Missing(name) : CheckNotNull(more...);
}

// Checks arrays, given as name, address and size in turn: one may be null if it has no elements.
inline absl::Status CheckArrays() { return absl::OkStatus(); }
template <class... More>
absl::Status CheckArrays(absl::string_view name, const void* array, std::uint64_t elements,
                         const More&... more) {
  return array == nullptr && elements > 0 ? Missing(name) : CheckArrays(more...);
}

// A structure that the caller fills. One of a program built with an older header has fewer fields,
// one with a newer header more.
template <class T>
absl::StatusOr<T> Known(absl::string_view name, const T* given) {
  T known = {};
  if (given->struct_bytes < sizeof(std::size_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "::struct_bytes is ", given->struct_bytes, ": set it to its size"));
  }
  std::memcpy(&known, given, std::min(given->struct_bytes, sizeof(known)));
  return known;
}

inline absl::Status CheckSettings(const leeway_setting* settings, std::size_t count) {
  absl::Status result = CheckArrays("settings", settings, count);
  for (std::size_t i = 0; i < count && result.ok(); ++i) {
    result = CheckNotNull("the name of a setting", settings[i].name, "the value of a setting",
                          settings[i].value);
  }
  return result;
}

// 0: the worker's request timeout. NaN: no time at all.
inline std::optional<absl::Duration> TimeoutOf(double timeout_s) {
  if (timeout_s == 0) return std::nullopt;
  return std::isnan(timeout_s) ? absl::ZeroDuration() : absl::Seconds(timeout_s);
}

// `what` as a text of the caller's, by malloc.
inline absl::Status CopyOut(absl::string_view what, char** text) {
  char* const copy = static_cast<char*>(std::malloc(what.size() + 1));
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a text of ", what.size()));
  }
  std::memcpy(copy, what.data(), what.size());
  copy[what.size()] = 0;
  *text = copy;
  return absl::OkStatus();
}

// Settings, which come before those of the environment. INVALID_ARGUMENT: there is none of that
// name, or its value is wrong.
absl::StatusOr<Config> ConfigOf(const leeway_setting* settings, std::size_t count);

inline std::string TextOrNone(const char* text) { return text == nullptr ? "" : text; }

}  // namespace leeway::c

#endif  // LEEWAY_RUNTIME_C_C_INTERFACE_H_
