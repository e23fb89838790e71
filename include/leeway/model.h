// Published models: a model is a named set of dense tables, a version of it is what they held at
// one moment. A worker publishes (Worker::Publish), any number of workers and readers
// (Config::read_only) subscribe. docs/publishing.md has the promises, sizes and limits.
//
//   auto reader = leeway::Worker::Connect(config);            // config.read_only = true
//   auto policy = (*reader)->Subscribe("policy");
//   while (policy->Fetch().ok()) {                            // waits for a newer version
//     policy->Apply();                                        // between two steps of the engine
//     use(policy->values<float>(0), policy->version());
//   }
//
// Threads: one thread at a time uses a Subscription. Errors: those of the calls below, and those of
// pulls (leeway/worker.h).
#ifndef LEEWAY_MODEL_H_
#define LEEWAY_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"

namespace leeway {

namespace worker {
class SubscriptionState;
}

// The counters of a subscription.
struct SubscriptionStats {
  std::uint64_t versions_fetched = 0;
  std::uint64_t versions_skipped = 0;  // newer ones were there when they might have been fetched
  std::uint64_t bytes_received = 0;    // payload on the wire
};

// A copy of a published model, which follows its versions. All arrays are of one version, always.
// It keeps its worker's connections; it must not outlive the Worker's Leave.
class Subscription {
 public:
  explicit Subscription(std::unique_ptr<worker::SubscriptionState> state);
  ~Subscription();
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;

  const std::string& model() const;
  std::size_t num_tables() const;
  const TableSpec& spec(std::size_t table) const;  // in the order in which the tables were created

  // Fetches the newest version, which is above version(), beside the arrays, which stay as they
  // are; waits until there is one. Returns its number. Versions in between are skipped. `timeout`
  // (nullopt: Config::request_timeout; 0: does not wait): DEADLINE_EXCEEDED where there is no newer
  // version. NOT_FOUND: it was fetched too slowly, and is not kept any more
  // (LEEWAY_VERSIONS_KEPT). DATA_LOSS: the arrays were not those of version(), by its digest, which
  // is checked here and not in Apply, to keep that short: version() is 0, and the next Fetch
  // fetches everything.
  absl::StatusOr<std::uint64_t> Fetch(std::optional<absl::Duration> timeout = std::nullopt);
  // The arrays become those that Fetch fetched, in one pass over what has changed.
  // FAILED_PRECONDITION: nothing is fetched.
  absl::Status Apply();

  // The version of the arrays, which counts from 1; 0: nothing was applied yet.
  std::uint64_t version() const;
  // The clock of the worker that published it.
  std::uint64_t clock() const;
  // A digest of all arrays of the version, by which copies of it can be compared.
  std::uint64_t digest() const;
  // An array, row-major; valid as long as the subscription, and changed by Apply alone.
  std::span<const std::byte> bytes(std::size_t table) const;
  template <class T>
  std::span<const T> values(std::size_t table) const {
    const std::span<const std::byte> all = bytes(table);
    return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
  }

  SubscriptionStats stats() const;

 private:
  std::unique_ptr<worker::SubscriptionState> state_;
};

}  // namespace leeway

#endif  // LEEWAY_MODEL_H_
