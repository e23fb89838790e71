// JSON from files: read without trust.
#ifndef LEEWAY_CHECKPOINT_STRICT_JSON_H_
#define LEEWAY_CHECKPOINT_STRICT_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::checkpoint {

using Json = nlohmann::json;

// INVALID_ARGUMENT where it is no JSON, a name appears twice in one object, or it is nested deeper
// than `depth_max`.
absl::StatusOr<Json> ParseJson(absl::string_view text, int depth_max);

// The members of an object, each asked for once. The first thing that is wrong is remembered, and
// what is asked for afterwards is empty.
class Members {
 public:
  // `what` is named in errors.
  Members(const Json& json, std::string what);

  const Json& Of(const char* name);  // null if there is none
  bool Has(const char* name) const;  // for members that may be missing
  std::uint64_t Number(const char* name);
  std::uint32_t Number32(const char* name);
  double Fraction(const char* name);
  bool Truth(const char* name);
  std::string Text(const char* name);
  // The position of a text among `names`.
  template <class Enum, std::size_t kCount>
  Enum OneOf(const char* name, const absl::string_view (&names)[kCount]) {
    return static_cast<Enum>(IndexOf(name, names, kCount));
  }

  void Fail(const char* name, absl::string_view problem);
  // OK if all was there and right, and there is nothing else.
  absl::Status End() const;

 private:
  std::size_t IndexOf(const char* name, const absl::string_view* names, std::size_t count);

  const Json& json_;
  const std::string what_;
  std::size_t asked_ = 0;
  absl::Status status_;
};

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_STRICT_JSON_H_
