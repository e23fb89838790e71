// The hello that opens every connection, and what is refused about one.
#ifndef LEEWAY_VAN_SESSION_HELLO_H_
#define LEEWAY_VAN_SESSION_HELLO_H_

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::van {

proto::Hello HelloFrom(const Identity& identity);
Identity IdentityFrom(const proto::Hello& hello);

// Whether both say the same; a repeated hello is no second one.
bool SameHello(const proto::Hello& a, const proto::Hello& b);

// OK if two processes that say these understand each other, else FAILED_PRECONDITION naming both
// versions.
absl::Status CheckVersions(const proto::Hello& mine, const proto::Hello& theirs);

// OK unless both belong to a cluster and it is not the same.
absl::Status CheckCluster(const Identity& mine, const proto::Hello& theirs);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_HELLO_H_
