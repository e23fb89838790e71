// LocalSgd trains by many steps on each worker between two exchanges: local SGD (Stich, ICLR 2019),
// DiLoCo (Douillard et al., 2023, arXiv 2311.08105) and its streaming and asynchronous forms.
//
//     auto spec = leeway::TableSpec::Dense("w", {n});
//     spec.updater = {"nesterov", {{"learning_rate", 0.7}, {"momentum", 0.9}}};  // the outer step
//     spec.aggregate = leeway::Aggregate::kMean;                                 // BSP
//     leeway::LocalSgd local(worker, {{table, weights}}, {.steps = 100});
//     status = local.Begin();
//     for (…) { … one step of an inner optimiser on `weights` …; status = local.Step(); }
//     status = local.Finish();
//
// A part of the model is a dense float32 table and the worker's array of its values. Each `steps`
// steps the worker pushes the outer gradient of a part, θ − θ_w: what it began with less what it
// has now. The table's updater makes the outer step of it, and the worker goes on from what it
// pulls then. With `sgd` of rate 1 that is plain averaging.
//
// With several parts (fragments) their exchanges are spread over the steps evenly: part p of P at
// the steps t with t + p·steps/P divisible by `steps` (Streaming DiLoCo, Douillard et al., 2025,
// arXiv 2501.18512, section 2.2). `overlap_steps`: the worker goes on while a part is exchanged,
// and takes the result so many steps later, mixed with what it has then (section 2.3).
//
// A worker that joins later takes part in BSP if it exchanges the same part in the same clock as
// the others. From Begin on clock number c exchanges the part P − 1 − c mod P; so one that begins k
// such clocks later has part j at the place j + k mod P.
//
// Codecs compress the outer gradients as all pushes: `qsgd`, or `fp4` as Streaming DiLoCo does.
//
// Asynchronous: tables with the consistency `asp` and the updater `delayed_nesterov`, `delay` being
// the number of workers (Liu et al., 2024, arXiv 2401.09135, algorithm 3); `by_speed` gives slower
// workers fewer steps (their Dynamic Local Updates).
#ifndef LEEWAY_LOCAL_SGD_H_
#define LEEWAY_LOCAL_SGD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "leeway/worker.h"

namespace leeway {

struct LocalSgdOptions {
  std::uint32_t steps = 100;  // between two exchanges of a part; 1 or more
  // Steps between the push of a part and the use of its result; below `steps`. 0: it waits.
  std::uint32_t overlap_steps = 0;
  // Of the worker's own values that are kept when a result comes `overlap_steps` later: α in
  // θ_w ← α θ_w + (1 − α) θ. 0 to 1. Finish keeps none.
  float mixing = 0;
  // Steps between exchanges in proportion to this worker's speed: `steps` for the fastest one.
  // Workers tell each other their speeds in a table, "<the first part's name>/speeds".
  bool by_speed = false;
};

// Used on one thread; outlived by the worker and the arrays.
class LocalSgd {
 public:
  struct Part {
    Table table;
    std::span<float> values;  // all of the table's, row-major
  };

  LocalSgd(Worker* worker, std::vector<Part> parts, LocalSgdOptions options = {});
  ~LocalSgd();
  LocalSgd(const LocalSgd&) = delete;
  LocalSgd& operator=(const LocalSgd&) = delete;

  // Fills the arrays with the tables' values. Again: begins anew, at step 0; an exchange that is
  // under way is forgotten. INVALID_ARGUMENT: an option is out of range, or a part is not as
  // described.
  absl::Status Begin();
  // After each inner step: exchanges the parts that are due, and ends the worker's clock when one
  // was pushed. FAILED_PRECONDITION: before Begin.
  //
  // Any other error: an exchange has failed, and the step counts all the same. The next call goes
  // on with it before it begins another: it pushes the outer gradient, as it is then, if the table
  // has not taken it, or else pulls (also after UNKNOWN, where the table may not have it). So one
  // may go on training, until it succeeds, or stop. With `overlap_steps` 0 what was trained since
  // the push is lost then, as the table's values replace it.
  absl::Status Step();
  // After the last one: exchanges all parts, and waits for the results. The arrays have the tables'
  // values then, whatever `mixing` is: in BSP the same at every worker. After an error it may be
  // called again, and goes on.
  absl::Status Finish();

  std::uint64_t step() const;
  // Whether the next Step exchanges a part or takes a result, and so reads or writes the arrays.
  bool due() const;
  // Exchanges of parts since Begin.
  std::uint64_t exchanges() const;
  // Steps between two exchanges of a part now (`by_speed`).
  std::uint32_t steps_between() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace leeway

#endif  // LEEWAY_LOCAL_SGD_H_
