// Violations of a message's description (proto/messages/fields.h): for each check of a field,
// messages that are wrong in this alone.
#ifndef LEEWAY_PROTO_TESTING_VIOLATIONS_H_
#define LEEWAY_PROTO_TESTING_VIOLATIONS_H_

#include <functional>
#include <string>

#include "proto/messages/messages.h"

namespace leeway::proto {

struct Violation {
  AnyMessage message;
  // How the error begins, that Decode answers with. With `allowed`: how it does not begin, for the
  // field holds the largest or smallest value that it may.
  std::string says;
  bool allowed = false;
};

// Calls `use` with all that `message`, which is valid, can be made into.
void ForEachViolation(const AnyMessage& message, const std::function<void(const Violation&)>& use);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TESTING_VIOLATIONS_H_
