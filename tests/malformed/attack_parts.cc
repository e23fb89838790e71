#include "tests/malformed/attack_parts.h"

#include "proto/encoding/encoding.h"

namespace leeway::tests {
namespace {

std::string Prefixed(van::Kind kind, std::size_t frames, const proto::AnyMessage& message) {
  van::Prefix prefix;
  prefix.kind = kind;
  prefix.frames = static_cast<std::uint16_t>(frames);
  std::string frame(van::kPrefixBytes, '\0');
  van::PutPrefix(prefix, reinterpret_cast<std::byte*>(frame.data()));
  const runtime::Buffer header = proto::Encode(message);
  return frame.append(header.text().data(), header.size());
}

}  // namespace

std::string Hello(proto::Hello hello) {
  if (hello.role == Role::kUnknown) hello.role = Role::kWorker;
  if (hello.incarnation == 0) {
    hello.node = 9;
    hello.incarnation = 99;
  }
  return Prefixed(van::Kind::kSession, 1, hello);
}

std::string Data(const proto::AnyMessage& message, std::size_t payload_frames) {
  return Prefixed(van::Kind::kData, 1 + payload_frames, message);
}

}  // namespace leeway::tests
