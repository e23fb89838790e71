#include "van/rdma/rdma_format.h"

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

absl::StatusOr<RdmaHead> GetRdmaHead(std::span<const std::byte> packet) {
  if (packet.size() < kRdmaHeadBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a packet of ", packet.size(), " bytes"));
  }
  const auto head = Get<RdmaHead>(packet.data());
  if (head.type < RdmaPacketType::kMessage || head.type > RdmaPacketType::kEnd) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet of unknown type ", static_cast<int>(head.type)));
  }
  if (head.bytes != packet.size() || head.releases > kRdmaReleasesMax ||
      head.grants > kRdmaGrantsMax ||
      packet.size() <
          kRdmaHeadBytes + RdmaReleaseBytes(head.releases) + head.grants * kRdmaGrantBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet of ", packet.size(), " bytes that claims ", head.bytes, ", ",
                     int{head.releases}, " releases and ", head.grants, " grants"));
  }
  return head;
}

}  // namespace leeway::van
