// A plugin as a user would write one: one updater, one request handler, one codec.
#include <algorithm>
#include <memory>
#include <string>

#include "leeway/codec.h"
#include "leeway/server.h"
#include "leeway/updater.h"

namespace {

// value ← −gradient
class Negate final : public leeway::Updater {
 public:
  void Update(const leeway::UpdateRun<float>& run) const override {
    for (std::size_t i = 0; i < run.size; ++i) run.value[i] = -run.gradient[i];
  }
  bool Supports(leeway::DType dtype) const override { return dtype == leeway::DType::kFloat32; }
};

absl::StatusOr<std::string> Reverse(const leeway::HandlerContext&, absl::string_view request) {
  return std::string(request.rbegin(), request.rend());
}

// Every value is 1.
class Ones final : public leeway::Codec {
 public:
  bool Supports(leeway::DType dtype) const override { return dtype == leeway::DType::kFloat32; }
  bool lossless() const override { return false; }
  std::size_t EncodedBytesMax(const leeway::CodecShape&) const override { return 1; }
  absl::StatusOr<std::size_t> Encode(const void*, const leeway::EncodeTerms&,
                                     std::span<std::byte> out) const override {
    out[0] = std::byte{1};
    return 1;
  }
  absl::Status Decode(std::span<const std::byte> encoded, const leeway::CodecShape& shape,
                      void* values) const override {
    if (encoded.size() != 1) return absl::InvalidArgumentError("it has one byte");
    std::fill_n(static_cast<float*>(values), shape.elements, 1.0f);
    return absl::OkStatus();
  }
};

}  // namespace

extern "C" void LeewayRegisterCodecs() {
  leeway::RegisterCodec(
      "plugin_ones",
      [](const leeway::CodecOptions&) -> absl::StatusOr<std::unique_ptr<leeway::Codec>> {
        return std::make_unique<Ones>();
      })
      .IgnoreError();
}

extern "C" void LeewayRegister() {
  leeway::RegisterUpdater(
      "plugin_negate",
      [](const leeway::UpdaterParameters&) -> absl::StatusOr<std::unique_ptr<leeway::Updater>> {
        return std::make_unique<Negate>();
      })
      .IgnoreError();
  leeway::RegisterHandler("plugin_reverse", Reverse).IgnoreError();
}
