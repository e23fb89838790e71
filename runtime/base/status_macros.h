// LEEWAY_RETURN_IF_ERROR and LEEWAY_ASSIGN_OR_RETURN return from the enclosing function where an
// expression fails.
#ifndef LEEWAY_RUNTIME_BASE_STATUS_MACROS_H_
#define LEEWAY_RUNTIME_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the absl::Status that `expression` gives if it is not OK.
#define LEEWAY_RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                           \
    if (absl::Status leeway_status_ = (expression); !leeway_status_.ok()) return leeway_status_; \
  } while (false)

#define LEEWAY_CONCAT_INNER_(a, b) a##b
#define LEEWAY_CONCAT_(a, b) LEEWAY_CONCAT_INNER_(a, b)
// Assigns the value of an absl::StatusOr to `lhs`, which may be a declaration, or returns its
// error.
#define LEEWAY_ASSIGN_OR_RETURN(lhs, expression) \
  LEEWAY_ASSIGN_OR_RETURN_(LEEWAY_CONCAT_(leeway_statusor_, __LINE__), lhs, expression)
#define LEEWAY_ASSIGN_OR_RETURN_(statusor, lhs, expression) \
  auto statusor = (expression);                             \
  if (!statusor.ok()) return std::move(statusor).status();  \
  lhs = *std::move(statusor)

#endif  // LEEWAY_RUNTIME_BASE_STATUS_MACROS_H_
