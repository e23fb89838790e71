#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "proto/encoding/check_meaning.h"
#include "proto/encoding/encoding.h"
#include "proto/encoding/read_fields.h"
#include "proto/encoding/take_payload.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto {
namespace {

// Puts the header's bytes at an address that FlatBuffers may read from: a frame may lie anywhere.
class AlignedHeader {
 public:
  explicit AlignedHeader(const runtime::Buffer& header) {
    if (header.aligned_to(kAlignment)) {
      data_ = reinterpret_cast<const std::uint8_t*>(header.data());
      return;
    }
    void* copy = small_;
    if (header.size() > sizeof(small_)) {
      large_.resize(header.size() / kAlignment + 1);
      copy = large_.data();
    }
    std::memcpy(copy, header.data(), header.size());
    data_ = static_cast<const std::uint8_t*>(copy);
  }
  AlignedHeader(const AlignedHeader&) = delete;
  AlignedHeader& operator=(const AlignedHeader&) = delete;

  const std::uint8_t* data() const { return data_; }

 private:
  static constexpr std::size_t kAlignment = 8;
  const std::uint8_t* data_ = nullptr;
  alignas(kAlignment) std::byte small_[512];  // requests and replies fit
  std::vector<std::uint64_t> large_;
};

template <class... Parts>
absl::Status MalformedHeader(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("malformed header: ", parts...));
}

template <class Message>
absl::Status ReadBody(Input& in, const std::uint8_t* body, std::span<runtime::Buffer> payload,
                      AnyMessage* to) {
  Message& message = to->emplace<Message>();
  if (!ReadTable(in, body, &message)) [[unlikely]]
    return in.Error(NameOf(*to));
  absl::Status status = CheckMeaning(message);
  if (status.ok()) status = TakePayload(message, payload);
  if (status.ok()) [[likely]]
    return status;
  return absl::InvalidArgumentError(
      absl::StrCat("malformed ", NameOf(*to), ": ", status.message()));
}

// What reads the body of each type, in the order of AnyMessage.
using Reader = absl::Status (*)(Input&, const std::uint8_t*, std::span<runtime::Buffer>,
                                AnyMessage*);
constexpr std::size_t kTypes = kMessageTypes;
constexpr std::array<Reader, kTypes> kReaders = []<std::size_t... i>(std::index_sequence<i...>) {
  return std::array<Reader, kTypes>{nullptr, &ReadBody<MessageOf<i + 1>>...};
}
(std::make_index_sequence<kTypes - 1>());

// Called before anything else, a copy included.
absl::Status CheckHeaderLength(std::size_t size) {
  constexpr std::size_t kHeaderBytesMin = 12;  // the root's offset, the identifier, a table's start
  if (size >= kHeaderBytesMin && size <= kHeaderBytesMax) return absl::OkStatus();
  return MalformedHeader("it is ", size, " bytes long, may be ", kHeaderBytesMin, " to ",
                         kHeaderBytesMax);
}

}  // namespace

absl::StatusOr<AnyMessage> Decode(const runtime::Buffer& header,
                                  std::span<runtime::Buffer> payload) {
  LEEWAY_RETURN_IF_ERROR(CheckHeaderLength(header.size()));
  const AlignedHeader aligned(header);
  if (!flatbuffers::BufferHasIdentifier(aligned.data(), kHeaderIdentifier)) {
    return MalformedHeader("its identifier is not \"", kHeaderIdentifier, "\"");
  }
  Input in(aligned.data(), header.size());
  const flatbuffers::uoffset_t root = in.verifier.VerifyOffset(0);
  TableReader reader(in, aligned.data() + root);
  std::uint8_t type = 0;
  const std::uint8_t* body = nullptr;
  if (root == 0 || !reader.Begin() || !reader.Take(&type) || !reader.TakePlace(&body)) {
    in.Broken();
    return in.Error("header");
  }
  if (body == nullptr) return MalformedHeader("it has no body");
  if (type == 0 || type >= kTypes) {
    return MalformedHeader("body's type is ", static_cast<int>(type), ", may be 1 to ", kTypes - 1);
  }
  absl::StatusOr<AnyMessage> message{AnyMessage()};
  LEEWAY_RETURN_IF_ERROR(kReaders[type](in, body, payload, &*message));
  return message;
}

}  // namespace leeway::proto
