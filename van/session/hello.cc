#include "van/session/hello.h"

#include "absl/strings/str_cat.h"

namespace leeway::van {

proto::Hello HelloFrom(const Identity& identity) {
  proto::Hello hello;
  hello.capabilities = identity.capabilities;
  hello.role = identity.role;
  hello.node = identity.node;
  hello.incarnation = identity.incarnation;
  hello.cluster = identity.cluster;
  hello.build = "leeway";
  return hello;
}

Identity IdentityFrom(const proto::Hello& hello) {
  Identity identity;
  identity.role = hello.role;
  identity.node = hello.node;
  identity.incarnation = hello.incarnation;
  identity.cluster = hello.cluster;
  identity.capabilities = hello.capabilities;
  return identity;
}

bool SameHello(const proto::Hello& a, const proto::Hello& b) {
  return a.protocol == b.protocol && a.protocol_min == b.protocol_min &&
         a.capabilities == b.capabilities && a.role == b.role && a.node == b.node &&
         a.incarnation == b.incarnation && a.cluster == b.cluster;
}

absl::Status CheckVersions(const proto::Hello& mine, const proto::Hello& theirs) {
  if (theirs.protocol >= mine.protocol_min && mine.protocol >= theirs.protocol_min) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("protocol version ", theirs.protocol, " (understands ", theirs.protocol_min,
                   " and newer) meets version ", mine.protocol, " (understands ", mine.protocol_min,
                   " and newer); run the same release of leeway on both sides"));
}

absl::Status CheckCluster(const Identity& mine, const proto::Hello& theirs) {
  if (mine.cluster == 0 || theirs.cluster == 0 || mine.cluster == theirs.cluster) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("belongs to cluster ", absl::Hex(theirs.cluster),
                   ", this process to another one; check LEEWAY_SCHEDULER on both sides"));
}

}  // namespace leeway::van
