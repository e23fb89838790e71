#include "van/rdma/memory/rdma_format.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "van/little_endian.h"

namespace leeway::van {
namespace {

constexpr char kMagic[] = "LWYrdma\n";
constexpr std::size_t kMagicBytes = 8;

}  // namespace

std::array<std::byte, kRdmaGreetingBytes> PutRdmaGreeting(const RdmaGreeting& greeting) {
  std::array<std::byte, kRdmaGreetingBytes> bytes{};
  std::memcpy(bytes.data(), kMagic, kMagicBytes);
  Put(kRdmaVersion, bytes.data() + 8);
  Put(greeting.slot_bytes, bytes.data() + 12);
  Put(greeting.packets, bytes.data() + 16);
  return bytes;
}

absl::StatusOr<RdmaGreeting> GetRdmaGreeting(std::span<const std::byte> bytes) {
  if (bytes.size() < kRdmaGreetingBytes || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0) {
    return absl::FailedPreconditionError("it does not speak our protocol over rdma");
  }
  const auto version = Get<std::uint32_t>(bytes.data() + 8);
  if (version != kRdmaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("it speaks version ", version,
                                                      " of our protocol over rdma, and this is "
                                                      "version ",
                                                      kRdmaVersion));
  }
  RdmaGreeting greeting;
  greeting.slot_bytes = Get<std::uint32_t>(bytes.data() + 12);
  greeting.packets = Get<std::uint32_t>(bytes.data() + 16);
  if (greeting.slot_bytes < kRdmaSlotBytesMin || greeting.slot_bytes > kRdmaSlotBytesMax ||
      greeting.packets < kRdmaPacketsMin || greeting.packets > kRdmaPacketsMax) {
    return absl::InvalidArgumentError(absl::StrCat("its greeting announces ", greeting.packets,
                                                   " receives of ", greeting.slot_bytes, " bytes"));
  }
  return greeting;
}

void PutRdmaHead(const RdmaHead& head, std::byte* out) {
  Put(head.taken, out);
  Put(static_cast<std::uint8_t>(head.type), out + 4);
  Put(head.releases, out + 5);
  Put(head.frames, out + 6);
  Put(head.bytes, out + 8);
  Put(std::uint32_t{head.grants}, out + 12);
}

absl::StatusOr<RdmaHead> GetRdmaHead(std::span<const std::byte> packet) {
  if (packet.size() < kRdmaHeadBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a packet of ", packet.size(), " bytes"));
  }
  RdmaHead head;
  head.taken = Get<std::uint32_t>(packet.data());
  const auto type = Get<std::uint8_t>(packet.data() + 4);
  head.type = static_cast<RdmaPacketType>(type);
  head.releases = Get<std::uint8_t>(packet.data() + 5);
  head.frames = Get<std::uint16_t>(packet.data() + 6);
  head.bytes = Get<std::uint32_t>(packet.data() + 8);
  if (type < static_cast<std::uint8_t>(RdmaPacketType::kMessage) ||
      type > static_cast<std::uint8_t>(RdmaPacketType::kEnd)) {
    return absl::InvalidArgumentError(absl::StrCat("a packet of unknown type ", int{type}));
  }
  const auto grants = Get<std::uint32_t>(packet.data() + 12);
  if (head.bytes != packet.size() || head.releases > kRdmaReleasesMax || grants > kRdmaGrantsMax ||
      packet.size() < kRdmaHeadBytes + RdmaReleaseBytes(head.releases) + grants * kRdmaGrantBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet of ", packet.size(), " bytes that claims ", head.bytes, ", ",
                     int{head.releases}, " releases and ", grants, " grants"));
  }
  head.grants = static_cast<std::uint8_t>(grants);
  return head;
}

void PutRdmaPlace(const RdmaPlace& place, std::byte* out) {
  Put(place.bytes, out);
  Put(place.unit, out + 8);
  Put(static_cast<std::uint32_t>(place.kind), out + 12);
}

void PutRdmaGrant(const RdmaGrant& grant, std::byte* out) {
  Put(grant.token, out);
  Put(grant.address, out + 8);
  Put(grant.bytes, out + 16);
  Put(grant.key, out + 24);
  Put(grant.number, out + 28);
}

RdmaGrant GetRdmaGrant(const std::byte* in) {
  RdmaGrant grant;
  grant.token = Get<std::uint64_t>(in);
  grant.address = Get<std::uint64_t>(in + 8);
  grant.bytes = Get<std::uint64_t>(in + 16);
  grant.key = Get<std::uint32_t>(in + 24);
  grant.number = Get<std::uint32_t>(in + 28);
  return grant;
}

RdmaPlace GetRdmaPlace(const std::byte* in) {
  RdmaPlace place;
  place.bytes = Get<std::uint64_t>(in);
  place.unit = Get<std::uint32_t>(in + 8);
  place.kind = static_cast<RdmaPlaceKind>(Get<std::uint32_t>(in + 12));
  return place;
}

}  // namespace leeway::van
