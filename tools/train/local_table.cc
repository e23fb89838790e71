#include "tools/train/local_table.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "leeway/updater.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/buffer.h"

namespace leeway::tools {
namespace {

// A table whose whole tensor is one block of one shard.
class StoreTable final : public fashion_mnist::LocalTable {
 public:
  StoreTable(const TableSpec& spec, std::unique_ptr<Updater> updater)
      : elements_(spec.NumElements()),
        updater_(std::move(updater)),
        store_(ps::NewShardStore(spec,
                                 {.table = 1,
                                  .shard = 0,
                                  .num_shards = 1,
                                  .block_bytes = elements_ * SizeOf(spec.dtype)},
                                 updater_.get())) {}

  absl::Status Push(std::span<const float> gradient, std::optional<double> learning_rate) override {
    ps::PushView push;
    push.values = runtime::Buffer::Unowned(gradient.data(), gradient.size_bytes());
    push.learning_rate = learning_rate.value_or(std::numeric_limits<double>::quiet_NaN());
    return store_->Apply(push);
  }

  absl::Status Pull(std::span<float> values) override {
    ps::PullView pull;
    pull.elements = elements_;
    LEEWAY_ASSIGN_OR_RETURN(const ps::PullResult result, store_->Pull(pull));
    const std::span<const float> held = result.payload[0].as<float>();
    std::copy(held.begin(), held.end(), values.begin());
    return absl::OkStatus();
  }

 private:
  const std::uint64_t elements_;
  const std::unique_ptr<Updater> updater_;
  const std::unique_ptr<ps::ShardStore> store_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<fashion_mnist::LocalTable>> MakeLocalTable(const TableSpec& spec) {
  LEEWAY_RETURN_IF_ERROR(spec.Validate());
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Updater> updater, ps::MakeUpdater(spec));
  return std::make_unique<StoreTable>(spec, std::move(updater));
}

}  // namespace leeway::tools
