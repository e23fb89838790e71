#include "proto/encoding/decode_parts.h"

#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

constexpr int kLastStatusCode = static_cast<int>(absl::StatusCode::kUnauthenticated);

}  // namespace

absl::Status ReadText(absl::string_view field, const flatbuffers::String* text, std::size_t min,
                      std::size_t max, Input& in, std::string* to, Lines lines) {
  const absl::string_view view =
      text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
  LEEWAY_RETURN_IF_ERROR(CheckText(field, view, min, max, lines));
  // Beside its bytes a text has its length, its end and the offset that leads to it: 9 bytes.
  const std::size_t used = text == nullptr ? 0 : view.size() + 9;
  if (used > in.text_bytes_left) {
    return Wrong(field, " is one text too many: all texts together exceed the header's length");
  }
  in.text_bytes_left -= used;
  to->assign(view.data(), view.size());
  return absl::OkStatus();
}

absl::Status ReadName(absl::string_view field, const flatbuffers::String* text, Input& in,
                      std::string* to) {
  return ReadText(field, text, 1, kNameBytesMax, in, to);
}

absl::Status ReadParameters(
    const flatbuffers::Vector<flatbuffers::Offset<wire::Parameter>>* parameters, Input& in,
    std::map<std::string, double>* to) {
  const std::size_t size = SizeOrZero(parameters);
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of parameters", size, 0, kParametersMax));
  for (std::size_t i = 0; i < size; ++i) {
    const wire::Parameter& parameter = *parameters->Get(static_cast<std::uint32_t>(i));
    std::string name;
    LEEWAY_RETURN_IF_ERROR(ReadName("a parameter's name", parameter.name(), in, &name));
    if (!to->emplace(name, parameter.value()).second) {
      return Wrong("parameter ", Quoted(name), " is given twice");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadReason(const flatbuffers::String* text, Input& in, std::string* to) {
  return ReadText("reason", text, 0, kReasonBytesMax, in, to, Lines::kMany);
}

absl::Status ReadStatus(int code, const flatbuffers::String* reason, Input& in, absl::Status* to) {
  if (code < 0 || code > kLastStatusCode) {
    return Wrong("code is ", code, ", may be 0 to ", kLastStatusCode);
  }
  std::string text;
  LEEWAY_RETURN_IF_ERROR(ReadReason(reason, in, &text));
  *to = absl::Status(static_cast<absl::StatusCode>(code), text);
  return absl::OkStatus();
}

absl::Status ReadEndpoints(const Texts* endpoints, std::size_t min, std::size_t max, Input& in,
                           std::vector<std::string>* to) {
  const std::size_t size = SizeOrZero(endpoints);
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of endpoints", size, min, max));
  to->resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto* text = endpoints->Get(static_cast<flatbuffers::uoffset_t>(i));
    LEEWAY_RETURN_IF_ERROR(ReadText("endpoint", text, 1, kAddressBytesMax, in, &(*to)[i]));
  }
  return absl::OkStatus();
}

}  // namespace leeway::proto::decode
