// Helpers that the tests of the stores share.
#ifndef LEEWAY_PS_STORE_TESTING_STORE_TEST_UTIL_H_
#define LEEWAY_PS_STORE_TESTING_STORE_TEST_UTIL_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

inline constexpr double kNoRate = std::numeric_limits<double>::quiet_NaN();

template <class T>
runtime::Buffer BufferOf(const std::vector<T>& values) {
  return runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> ValuesOf(const runtime::Buffer& buffer) {
  const auto values = buffer.as<T>();
  return {values.begin(), values.end()};
}

template <class T>
PushView DensePush(std::uint64_t block, const std::vector<T>& values, double rate = kNoRate) {
  return {.block = block, .values = BufferOf(values), .learning_rate = rate};
}

template <class T>
PushView SparsePush(const std::vector<std::uint64_t>& keys, const std::vector<T>& values,
                    double rate = kNoRate) {
  return {.keys = BufferOf(keys), .values = BufferOf(values), .learning_rate = rate};
}

template <class T>
PushView RaggedPush(const std::vector<std::uint64_t>& keys,
                    const std::vector<std::uint32_t>& widths, const std::vector<T>& values,
                    double rate = kNoRate) {
  return {.keys = BufferOf(keys),
          .widths = BufferOf(widths),
          .values = BufferOf(values),
          .learning_rate = rate};
}

inline PullView KeysPull(const std::vector<std::uint64_t>& keys) {
  return {.keys = BufferOf(keys)};
}

inline TableSpec WithUpdater(TableSpec spec, const std::string& name,
                             std::map<std::string, double> parameters = {}) {
  spec.updater = {name, std::move(parameters)};
  return spec;
}

// A store and its updater.
class Shard {
 public:
  explicit Shard(const TableSpec& spec, const StoreContext& context = {.block_bytes = 1 << 20}) {
    absl::StatusOr<std::unique_ptr<Updater>> updater = MakeUpdater(spec);
    EXPECT_TRUE(updater.ok()) << updater.status();
    updater_ = *std::move(updater);
    store_ = NewShardStore(spec, context, updater_.get());
  }
  ShardStore* operator->() const { return store_.get(); }
  const Updater& updater() const { return *updater_; }

  // The values of a pull: of a dense table a whole block, of a sparse one the rows.
  template <class T>
  std::vector<T> Block(std::uint64_t block, std::uint64_t elements) const {
    const auto result = store_->Pull({.block = block, .elements = elements});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->payload.size(), 1u);
    EXPECT_EQ(result->elements, elements);
    return ValuesOf<T>(result->payload[0]);
  }
  template <class T>
  std::vector<T> Rows(const std::vector<std::uint64_t>& keys) const {
    const auto result = store_->Pull(KeysPull(keys));
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->payload.size(), 1u);
    EXPECT_EQ(result->keys, keys.size());
    return ValuesOf<T>(result->payload[0]);
  }

 private:
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ShardStore> store_;
};

// "CODE: part of the message".
inline void ExpectError(const absl::Status& status, absl::StatusCode code,
                        const std::string& part) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(part));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_TESTING_STORE_TEST_UTIL_H_
