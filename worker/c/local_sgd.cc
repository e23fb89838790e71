// Local SGD in C.
#include "leeway/local_sgd.h"

#include <span>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "worker/c/handles.h"

using leeway::c::CheckArrays;
using leeway::c::CheckNotNull;
using leeway::c::Guarded;
using leeway::c::Known;
using leeway::c::Missing;

struct leeway_local_sgd {
  leeway::LocalSgd local;
};

extern "C" {

leeway_error* leeway_local_sgd_new(leeway_worker* worker, const leeway_part* parts, size_t count,
                                   const leeway_local_sgd_options* options,
                                   leeway_local_sgd** local) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "options", options, "local", local));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("parts", parts, count));
    LEEWAY_ASSIGN_OR_RETURN(const leeway_local_sgd_options known,
                            Known("leeway_local_sgd_options", options));
    std::vector<leeway::LocalSgd::Part> all;
    for (const leeway_part& part : std::span(parts, count)) {
      LEEWAY_RETURN_IF_ERROR(CheckNotNull("the table of a part", part.table));
      LEEWAY_RETURN_IF_ERROR(CheckArrays("the values of a part", part.values, part.elements));
      all.push_back({part.table->table, std::span(part.values, part.elements)});
    }
    *local = new leeway_local_sgd{{worker->worker.get(),
                                   std::move(all),
                                   {.steps = known.steps,
                                    .overlap_steps = known.overlap_steps,
                                    .mixing = known.mixing,
                                    .by_speed = known.by_speed != 0}}};
    return absl::OkStatus();
  });
}
void leeway_local_sgd_free(leeway_local_sgd* local) { delete local; }
leeway_error* leeway_local_sgd_begin(leeway_local_sgd* local) {
  return Guarded([&] { return local == nullptr ? Missing("local") : local->local.Begin(); });
}
leeway_error* leeway_local_sgd_step(leeway_local_sgd* local) {
  return Guarded([&] { return local == nullptr ? Missing("local") : local->local.Step(); });
}
leeway_error* leeway_local_sgd_finish(leeway_local_sgd* local) {
  return Guarded([&] { return local == nullptr ? Missing("local") : local->local.Finish(); });
}
int leeway_local_sgd_due(const leeway_local_sgd* local) {
  return local != nullptr && local->local.due() ? 1 : 0;
}
uint64_t leeway_local_sgd_steps(const leeway_local_sgd* local) {
  return local == nullptr ? 0 : local->local.step();
}
uint64_t leeway_local_sgd_exchanges(const leeway_local_sgd* local) {
  return local == nullptr ? 0 : local->local.exchanges();
}
uint32_t leeway_local_sgd_steps_between(const leeway_local_sgd* local) {
  return local == nullptr ? 0 : local->local.steps_between();
}

}  // extern "C"
