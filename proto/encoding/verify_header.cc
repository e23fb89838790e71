#include "proto/encoding/verify_header.h"

#include "absl/strings/str_cat.h"
#include "leeway_generated.h"
#include "proto/messages/limits.h"

namespace leeway::proto {
namespace {

using flatbuffers::Verifier;

// Header, body, table description, parameter: nothing lies deeper.
constexpr flatbuffers::uoffset_t kDepthMax = 5;
// The largest honest message is a map of the largest cluster.
constexpr flatbuffers::uoffset_t kNestedTablesMax = kServersMax + kWorkersMax + kParametersMax + 8;

Verifier NewVerifier(const std::uint8_t* data, std::size_t size) {
  Verifier::Options options;
  options.max_depth = kDepthMax;
  options.max_tables = kNestedTablesMax;
  return Verifier(data, size, options);
}

// The outlines below verify only as much of a cluster map as is needed to bound the endpoints of
// each server. The full verification walks each server's endpoints, and offsets may be shared: some
// megabytes of header could keep it busy for minutes (thousands of servers that all have the same
// million endpoints). With the bound it takes milliseconds.

struct ServerOutline : flatbuffers::Table {
  bool Verify(Verifier& verifier) const {
    if (!VerifyTableStart(verifier) || !VerifyOffset(verifier, wire::ServerEntry::VT_ENDPOINTS)) {
      return false;
    }
    using Endpoints = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
    const auto* endpoints = GetPointer<const Endpoints*>(wire::ServerEntry::VT_ENDPOINTS);
    return verifier.VerifyVector(endpoints) &&
           (endpoints == nullptr || endpoints->size() <= kServerThreadsMax) && verifier.EndTable();
  }
};

struct MapOutline : flatbuffers::Table {
  bool Verify(Verifier& verifier) const {
    if (!VerifyTableStart(verifier) || !VerifyOffset(verifier, wire::ClusterMap::VT_SERVERS)) {
      return false;
    }
    using Servers = flatbuffers::Vector<flatbuffers::Offset<ServerOutline>>;
    const auto* servers = GetPointer<const Servers*>(wire::ClusterMap::VT_SERVERS);
    return verifier.VerifyVector(servers) && verifier.VerifyVectorOfTables(servers) &&
           verifier.EndTable();
  }
};

struct HeaderOutline : flatbuffers::Table {
  bool Verify(Verifier& verifier) const {
    if (!VerifyTableStart(verifier) ||
        !VerifyField<std::uint8_t>(verifier, wire::Header::VT_BODY_TYPE, 1) ||
        !VerifyOffset(verifier, wire::Header::VT_BODY)) {
      return false;
    }
    const auto type =
        static_cast<wire::Body>(GetField<std::uint8_t>(wire::Header::VT_BODY_TYPE, 0));
    if (type != wire::Body::ClusterMap) return true;
    return verifier.VerifyTable(GetPointer<const MapOutline*>(wire::Header::VT_BODY));
  }
};

}  // namespace

absl::Status CheckHeaderLength(std::size_t size) {
  constexpr std::size_t kHeaderBytesMin = 12;  // the root's offset, the identifier, a table's start
  if (size >= kHeaderBytesMin && size <= kHeaderBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("malformed header: it is ", size,
                                                 " bytes long, may be ", kHeaderBytesMin, " to ",
                                                 kHeaderBytesMax));
}

absl::Status VerifyHeader(const std::uint8_t* data, std::size_t size) {
  if (!wire::HeaderBufferHasIdentifier(data)) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed header: its identifier is not \"", wire::HeaderIdentifier(), "\""));
  }
  Verifier outline = NewVerifier(data, size);
  Verifier whole = NewVerifier(data, size);
  if (outline.VerifyBuffer<HeaderOutline>(nullptr) && wire::VerifyHeaderBuffer(whole)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("malformed header: its structure is broken or over its limits");
}

}  // namespace leeway::proto
