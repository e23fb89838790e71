// Published models in C.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "leeway/model.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "worker/c/handles.h"

using leeway::c::CheckArrays;
using leeway::c::CheckNotNull;
using leeway::c::CopyOut;
using leeway::c::Guarded;
using leeway::c::Missing;
using leeway::c::TimeoutOf;

struct leeway_subscription {
  leeway::Subscription subscription;
  std::vector<leeway_table> tables;  // by place
};

extern "C" {

leeway_error* leeway_publish(leeway_worker* worker, const char* model,
                             const leeway_table* const* tables, size_t count, double timeout_s,
                             uint64_t* version) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "model", model));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("tables", tables, count));
    std::vector<leeway::Table> all;
    for (const leeway_table* const table : std::span(tables, count)) {
      LEEWAY_RETURN_IF_ERROR(CheckNotNull("a table", table));
      all.push_back(table->table);
    }
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t made,
                            worker->worker->Publish(model, all, TimeoutOf(timeout_s)));
    if (version != nullptr) *version = made;
    return absl::OkStatus();
  });
}
leeway_error* leeway_subscribe(leeway_worker* worker, const char* model,
                               leeway_subscription** subscription) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(
        CheckNotNull("worker", worker, "model", model, "subscription", subscription));
    LEEWAY_ASSIGN_OR_RETURN(leeway::Subscription made, worker->worker->Subscribe(model));
    std::vector<leeway_table> tables;
    for (std::size_t i = 0; i < made.num_tables(); ++i) {
      LEEWAY_ASSIGN_OR_RETURN(leeway::Table table, worker->worker->OpenTable(made.spec(i).name));
      tables.push_back({std::move(table)});
    }
    *subscription = new leeway_subscription{std::move(made), std::move(tables)};
    return absl::OkStatus();
  });
}
void leeway_subscription_free(leeway_subscription* subscription) { delete subscription; }
leeway_error* leeway_fetch(leeway_subscription* subscription, double timeout_s, uint64_t* version) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("subscription", subscription));
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t fetched,
                            subscription->subscription.Fetch(TimeoutOf(timeout_s)));
    if (version != nullptr) *version = fetched;
    return absl::OkStatus();
  });
}
leeway_error* leeway_apply(leeway_subscription* subscription) {
  return Guarded([&] {
    return subscription == nullptr ? Missing("subscription") : subscription->subscription.Apply();
  });
}

uint64_t leeway_subscription_version(const leeway_subscription* subscription) {
  return subscription == nullptr ? 0 : subscription->subscription.version();
}
uint64_t leeway_subscription_clock(const leeway_subscription* subscription) {
  return subscription == nullptr ? 0 : subscription->subscription.clock();
}
uint64_t leeway_subscription_digest(const leeway_subscription* subscription) {
  return subscription == nullptr ? 0 : subscription->subscription.digest();
}
size_t leeway_subscription_tables(const leeway_subscription* subscription) {
  return subscription == nullptr ? 0 : subscription->tables.size();
}
const leeway_table* leeway_subscription_table(const leeway_subscription* subscription,
                                              size_t place) {
  return place < leeway_subscription_tables(subscription) ? &subscription->tables[place] : nullptr;
}
const void* leeway_subscription_values(const leeway_subscription* subscription, size_t place,
                                       uint64_t* bytes) {
  std::span<const std::byte> values;
  if (place < leeway_subscription_tables(subscription)) {
    values = subscription->subscription.bytes(place);
  }
  if (bytes != nullptr) *bytes = values.size();
  return values.data();
}
leeway_error* leeway_subscription_stats(const leeway_subscription* subscription, char** json) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("subscription", subscription, "json", json));
    const leeway::SubscriptionStats stats = subscription->subscription.stats();
    const nlohmann::ordered_json out = {{"versions_fetched", stats.versions_fetched},
                                        {"versions_skipped", stats.versions_skipped},
                                        {"bytes_received", stats.bytes_received}};
    return CopyOut(out.dump(), json);
  });
}

}  // extern "C"
