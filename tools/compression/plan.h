// PlanVariants lists the variants that `leeway compression` compares: codecs, each with error
// feedback and without.
#ifndef LEEWAY_TOOLS_COMPRESSION_PLAN_H_
#define LEEWAY_TOOLS_COMPRESSION_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/table_spec.h"

namespace leeway::tools {

// All built-in codecs.
inline constexpr char kDefaultCodecs[] =
    "none;zstd;sparse;fp16;bf16;fp8;fp4;int8;qsgd:bits=4;ternary;onebit;topk:0.01;topk:0.001;"
    "bloom:0.01;threshold;randomk:0.1;randomk:0.01;dgc:0.01;dgc:0.001;powersgd:2;sketch";

struct Variant {
  std::string codec;
  ErrorFeedback error_feedback = ErrorFeedback::kOff;
  friend bool operator==(const Variant&, const Variant&) = default;
};

// `codecs` are separated by ';'. Each is planned with the error feedback that the table can use,
// and without, if there are both; none comes first. INVALID_ARGUMENT names --codecs: there is no
// such codec, one of its options is wrong, it cannot carry the table, or it is listed twice.
absl::StatusOr<std::vector<Variant>> PlanVariants(absl::string_view codecs, const TableSpec& table);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_COMPRESSION_PLAN_H_
