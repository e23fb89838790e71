#include "compress/codec.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::compress {
namespace {

// Values travel as they are, in the sender's own memory.
class NoCodec final : public Codec {
 public:
  bool Supports(DType) const override { return true; }
  bool lossless() const override { return true; }

  absl::StatusOr<runtime::Buffer> Encode(DType, runtime::Buffer values) const override {
    return values;
  }

  absl::StatusOr<runtime::Buffer> Decode(DType dtype, std::uint64_t elements,
                                         runtime::Buffer encoded) const override {
    if (encoded.size() / SizeOf(dtype) != elements || encoded.size() % SizeOf(dtype) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("codec none: ", encoded.size(),
                                                     " bytes are not ", elements, " elements of ",
                                                     Name(dtype)));
    }
    return encoded;
  }
};

}  // namespace

absl::StatusOr<const Codec*> FindCodec(absl::string_view name) {
  static const NoCodec* const none = new NoCodec;
  if (name == "none") return none;
  return absl::NotFoundError(absl::StrCat("no codec '", name, "'; there is: none"));
}

}  // namespace leeway::compress
