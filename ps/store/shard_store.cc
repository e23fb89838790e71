#include "ps/store/shard_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compress/kernels/kernels.h"
#include "compress/table_codec.h"
#include "ps/store/checks.h"
#include "ps/store/feedback.h"
#include "ps/updaters/registry.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

constexpr int kStateSlotsMax = 16;  // state values an element

absl::Status OfTable(const TableSpec& spec, const absl::Status& status) {
  return runtime::Prefixed(absl::StrCat("table '", spec.name, "'"), status);
}

template <class T>
bool Any(compress::NonFiniteKernel<T> kernel, std::span<const std::byte> values) {
  return kernel(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T));
}

// The first push of a block sets its values; to the updater the second one is the first
// (Initializer::Pushed).
class AfterTheValues final : public Updater {
 public:
  explicit AfterTheValues(std::unique_ptr<Updater> updater) : updater_(std::move(updater)) {}

  int state_slots() const override { return updater_->state_slots(); }
  double initial_state(int slot) const override { return updater_->initial_state(slot); }
  bool Supports(DType dtype) const override { return updater_->Supports(dtype); }
  Combine combine() const override { return updater_->combine(); }
  void Update(const UpdateRun<float>& run) const override { UpdateRunOf(run); }
  void Update(const UpdateRun<double>& run) const override { UpdateRunOf(run); }
  void Update(const UpdateRun<std::int32_t>& run) const override { UpdateRunOf(run); }
  void Update(const UpdateRun<std::int64_t>& run) const override { UpdateRunOf(run); }

 private:
  template <class T>
  void UpdateRunOf(UpdateRun<T> run) const {
    if (run.step == 1) {
      std::copy_n(run.gradient, run.size, run.value);
    } else {
      --run.step;
      updater_->Update(run);
    }
  }

  const std::unique_ptr<Updater> updater_;
};

}  // namespace

absl::StatusOr<FeedbackBlock> ShardStore::OpenFeedback(std::uint64_t, bool) {
  return absl::FailedPreconditionError("only dense tables have blocks with feedback");
}

absl::StatusOr<runtime::Buffer> ShardStore::FeedbackView(std::uint64_t) {
  return absl::FailedPreconditionError("only dense tables have blocks with feedback");
}

absl::StatusOr<std::unique_ptr<Updater>> MakeUpdater(const TableSpec& spec) {
  // A server that cannot decode a table's pushes does not take the table.
  LEEWAY_ASSIGN_OR_RETURN(const compress::TableCodecs codecs, compress::TableCodecsOf(spec));
  absl::StatusOr<UpdaterFactory> factory = FindUpdater(spec.updater.name);
  if (!factory.ok()) return OfTable(spec, factory.status());
  absl::StatusOr<std::unique_ptr<Updater>> updater = (*factory)(spec.updater.parameters);
  if (!updater.ok()) return OfTable(spec, updater.status());
  if (*updater == nullptr) {
    return absl::InternalError(absl::StrCat("table '", spec.name, "': the factory of updater '",
                                            spec.updater.name, "' made none"));
  }
  if (!(*updater)->Supports(spec.dtype)) {
    return Invalid(spec, "updater '", spec.updater.name, "' does not support ", Name(spec.dtype));
  }
  if ((*updater)->combine() == Updater::Combine::kLast &&
      codecs.AnyHas(&compress::TableCodec::worker_feedback)) {
    return Invalid(spec, "updater '", spec.updater.name,
                   "' stores the last push, where error feedback would add up values: use a "
                   "lossless codec, or error_feedback off");
  }
  const int slots = (*updater)->state_slots() + static_cast<int>(FeedbackSlots(spec));
  if (slots < 0 || slots > kStateSlotsMax) {
    return Invalid(spec, "updater '", spec.updater.name, "' wants ", slots,
                   " state values an element, but may have 0 to ", kStateSlotsMax);
  }
  if (spec.initializer.kind != Initializer::Kind::kPushed) return updater;
  return std::make_unique<AfterTheValues>(*std::move(updater));
}

bool HasNonFinite(DType dtype, std::span<const std::byte> values) {
  const auto& any = compress::ChosenKernels().any_non_finite;
  switch (dtype) {
    case DType::kFloat32:
      return Any<float>(any.Of<float>(), values);
    case DType::kFloat64:
      return Any<double>(any.Of<double>(), values);
    case DType::kFloat16:
      return Any<Float16>(any.Of<Float16>(), values);
    case DType::kBFloat16:
      return Any<BFloat16>(any.Of<BFloat16>(), values);
    case DType::kInt32:
    case DType::kInt64:
      return false;
  }
  return false;
}

}  // namespace leeway::ps
