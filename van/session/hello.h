// These functions make, compare and check the hello: the message that opens every connection.
#ifndef LEEWAY_VAN_SESSION_HELLO_H_
#define LEEWAY_VAN_SESSION_HELLO_H_

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::van {

proto::Hello HelloFrom(const Identity& identity);
Identity IdentityFrom(const proto::Hello& hello);

// True if both state the same; a repeated hello is not a second one.
bool SameHello(const proto::Hello& a, const proto::Hello& b);

// OK if processes with these hellos have a protocol version in common, else FAILED_PRECONDITION
// naming both versions.
absl::Status CheckVersions(const proto::Hello& mine, const proto::Hello& theirs);

// FAILED_PRECONDITION if both belong to a cluster and it is not the same one; else OK.
absl::Status CheckCluster(const Identity& mine, const proto::Hello& theirs);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_HELLO_H_
