// A server with its own updater and request handler. It takes its settings from the environment, as
// `leeway server` does.
#include "leeway/server.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

namespace {

// Steps of constant size against the sign of the gradient.
class Signs final : public leeway::Updater {
 public:
  explicit Signs(double step) : step_(static_cast<float>(step)) {}
  bool Supports(leeway::DType dtype) const override { return dtype == leeway::DType::kFloat32; }
  void Update(const leeway::UpdateRun<float>& run) const override {
    for (std::size_t i = 0; i < run.size; ++i) {
      if (run.gradient[i] != 0) run.value[i] -= std::copysign(step_, run.gradient[i]);
    }
  }

 private:
  const float step_;
};

absl::StatusOr<std::unique_ptr<leeway::Updater>> NewSigns(
    const leeway::UpdaterParameters& parameters) {
  const auto step = parameters.find("step");
  if (step == parameters.end() || !(step->second > 0)) {
    return absl::InvalidArgumentError("updater 'signs' needs a positive 'step'");
  }
  return std::make_unique<Signs>(step->second);
}

absl::Status Run() {
  absl::Status status = leeway::RegisterUpdater("signs", NewSigns);
  if (!status.ok()) return status;
  status =
      leeway::RegisterHandler("greet", [](const leeway::HandlerContext&, absl::string_view who) {
        return absl::StatusOr<std::string>("hello, " + std::string(who));
      });
  if (!status.ok()) return status;
  const absl::StatusOr<leeway::Config> config = leeway::Config::FromEnvironment();
  return config.ok() ? leeway::RunServer(*config) : config.status();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
