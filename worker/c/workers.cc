// Workers in C: what concerns the cluster, and no table.
#include <optional>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "worker/c/handles.h"

using leeway::c::CheckArrays;
using leeway::c::CheckNotNull;
using leeway::c::CopyOut;
using leeway::c::Guarded;
using leeway::c::Known;
using leeway::c::Missing;
using leeway::c::TextOrNone;
using leeway::c::TimeoutOf;

extern "C" {

uint32_t leeway_c_version(void) { return LEEWAY_C_VERSION; }
const char* leeway_version(void) { return LEEWAY_VERSION; }

leeway_error* leeway_connect(const leeway_setting* settings, size_t count, leeway_worker** worker) {
  return leeway_connect_with(settings, count, nullptr, worker);
}
leeway_error* leeway_connect_with(const leeway_setting* settings, size_t count,
                                  const leeway_hooks* hooks, leeway_worker** worker) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker));
    LEEWAY_ASSIGN_OR_RETURN(leeway::Config config, leeway::c::ConfigOf(settings, count));
    if (hooks != nullptr) {
      LEEWAY_ASSIGN_OR_RETURN(const leeway_hooks known, Known("leeway_hooks", hooks));
      if (known.interrupted != nullptr) {
        config.interrupted = [known] { return known.interrupted(known.context) != 0; };
      }
    }
    LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<leeway::Worker> connected,
                            leeway::Worker::Connect(config));
    *worker = new leeway_worker{std::move(connected)};
    return absl::OkStatus();
  });
}
void leeway_worker_free(leeway_worker* worker) { delete worker; }
leeway_error* leeway_leave(leeway_worker* worker, double timeout_s) {
  return Guarded([&] {
    return worker == nullptr ? Missing("worker") : worker->worker->Leave(TimeoutOf(timeout_s));
  });
}
uint32_t leeway_rank(const leeway_worker* worker) {
  return worker == nullptr ? 0 : worker->worker->rank();
}
uint32_t leeway_num_workers(const leeway_worker* worker) {
  return worker == nullptr ? 0 : worker->worker->num_workers();
}
uint32_t leeway_num_servers(const leeway_worker* worker) {
  return worker == nullptr ? 0 : worker->worker->num_servers();
}
leeway_error* leeway_clock(leeway_worker* worker) {
  return Guarded([&] { return worker == nullptr ? Missing("worker") : worker->worker->Clock(); });
}
uint64_t leeway_clocks_ended(const leeway_worker* worker) {
  return worker == nullptr ? 0 : worker->worker->clock();
}
leeway_error* leeway_barrier(leeway_worker* worker, leeway_group group, const char* name,
                             double timeout_s) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker));
    if (group != LEEWAY_WORKERS && group != LEEWAY_ALL) {
      return absl::InvalidArgumentError(absl::StrCat("group is ", static_cast<int>(group),
                                                     ": it is LEEWAY_WORKERS or LEEWAY_ALL"));
    }
    return worker->worker->Barrier(static_cast<leeway::Group>(group), TextOrNone(name),
                                   TimeoutOf(timeout_s));
  });
}
leeway_error* leeway_stats(const leeway_worker* worker, char** json) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "json", json));
    const leeway::WorkerStats stats = worker->worker->stats();
    nlohmann::ordered_json out;
    auto& histogram = out["staleness_histogram"] = nlohmann::ordered_json::object();
    for (const auto& [clocks, replies] : stats.staleness_histogram) {
      histogram[std::to_string(clocks)] = replies;
    }
    out["max_staleness"] = stats.max_staleness;
    out["staleness_violations"] = stats.staleness_violations;
    out["bytes_pushed"] = stats.bytes_pushed;
    out["bytes_pulled"] = stats.bytes_pulled;
    out["resends"] = stats.resends;
    out["parts_dropped"] = stats.parts_dropped;
    out["residual_norms"] = nlohmann::ordered_json::object();
    for (const auto& [table, norm] : stats.residual_norms) out["residual_norms"][table] = norm;
    out["waited_s"] = absl::ToDoubleSeconds(stats.waited);
    return CopyOut(out.dump(), json);
  });
}

leeway_error* leeway_allocate(const leeway_worker* worker, uint64_t bytes, leeway_array** array) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "array", array));
    LEEWAY_ASSIGN_OR_RETURN(leeway::Array allocated, worker->worker->Allocate(bytes));
    *array = new leeway_array{std::move(allocated)};
    return absl::OkStatus();
  });
}
void* leeway_array_data(const leeway_array* array) {
  return array == nullptr ? nullptr : array->array.data();
}
uint64_t leeway_array_bytes(const leeway_array* array) {
  return array == nullptr ? 0 : array->array.bytes();
}
void leeway_array_free(leeway_array* array) { delete array; }

leeway_error* leeway_call(leeway_worker* worker, uint32_t server_rank, const char* handler,
                          const void* request, size_t request_bytes, double timeout_s,
                          char** answer, size_t* answer_bytes) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "handler", handler, "answer", answer));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("request", request, request_bytes));
    leeway::Options options;
    options.timeout = TimeoutOf(timeout_s);
    LEEWAY_ASSIGN_OR_RETURN(
        const std::string said,
        worker->worker->Call(server_rank, handler,
                             {static_cast<const char*>(request), request_bytes}, options));
    LEEWAY_RETURN_IF_ERROR(CopyOut(said, answer));
    if (answer_bytes != nullptr) *answer_bytes = said.size();
    return absl::OkStatus();
  });
}
leeway_error* leeway_checkpoint(leeway_worker* worker, const char* directory, double timeout_s,
                                char** folder) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker));
    LEEWAY_ASSIGN_OR_RETURN(
        const std::string saved,
        worker->worker->Checkpoint(TextOrNone(directory), TimeoutOf(timeout_s)));
    return folder == nullptr ? absl::OkStatus() : CopyOut(saved, folder);
  });
}
leeway_error* leeway_save_residuals(leeway_worker* worker, const char* directory) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "directory", directory));
    return worker->worker->SaveResiduals(directory);
  });
}
leeway_error* leeway_load_residuals(leeway_worker* worker, const char* directory,
                                    const uint32_t* rank) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "directory", directory));
    return worker->worker->LoadResiduals(
        directory, rank == nullptr ? std::nullopt : std::optional<std::uint32_t>(*rank));
  });
}

}  // extern "C"
