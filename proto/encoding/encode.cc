#include <variant>

#include "proto/encoding/encoding.h"
#include "proto/encoding/write_fields.h"
#include "runtime/memory/thread_object.h"

namespace leeway::proto {
namespace {

// A builder larger than this frees its memory: one large map should not occupy it for the thread's
// life.
constexpr std::size_t kKeptBytes = 64 << 10;

runtime::Buffer EncodeWith(Builder& out, const AnyMessage& message) {
  TableWriter header(out);
  std::visit(
      [&]<class Message>(const Message& m) {
        if constexpr (std::is_same_v<Message, std::monostate>)
          return;
        else {
          const Place body = WriteTable(out, m);
          header("body_type", static_cast<std::uint8_t>(message.index()));
          header.Put(body);
        }
      },
      message);
  out.Finish(header.Finish(), kHeaderIdentifier);
  runtime::Buffer result = runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize());
  if (out.GetSize() > kKeptBytes) {
    out.Reset();
  } else {
    out.Clear();
  }
  return result;
}

}  // namespace

runtime::Buffer Encode(const AnyMessage& message) {
  // One builder a thread: after the first few messages only the result is allocated.
  const runtime::ThreadObject<Builder> kept;
  return EncodeWith(*kept, message);
}

runtime::Buffer EncodeAsIs(const AnyMessage& message) {
  Builder out;
  out.mend = false;
  return EncodeWith(out, message);
}

absl::string_view NameOf(const AnyMessage& message) {
  return std::visit(
      []<class Message>(const Message&) {
        return std::is_same_v<Message, std::monostate> ? "nothing" : TypeName<Message>();
      },
      message);
}

}  // namespace leeway::proto
