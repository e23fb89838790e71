// A plugin as a user would write one: one updater, one request handler.
#include <algorithm>
#include <memory>
#include <string>

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

}  // namespace

extern "C" void LeewayRegister() {
  leeway::RegisterUpdater(
      "plugin_negate",
      [](const leeway::UpdaterParameters&) -> absl::StatusOr<std::unique_ptr<leeway::Updater>> {
        return std::make_unique<Negate>();
      })
      .IgnoreError();
  leeway::RegisterHandler("plugin_reverse", Reverse).IgnoreError();
}
