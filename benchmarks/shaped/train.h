// CodedModels measures training steps of a model whose tables have a codec: the time of a step over
// a slow link, with each codec and without.
#ifndef LEEWAY_BENCHMARKS_SHAPED_TRAIN_H_
#define LEEWAY_BENCHMARKS_SHAPED_TRAIN_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/measured.h"
#include "leeway/worker.h"

namespace leeway::bench {

// 2.5 million float32 in five dense BSP tables. A step pulls all of them, waits, pushes gradients
// for all of them and calls Clock(). Nothing is computed, so that a step takes as long as its
// messages.
class CodedModels {
 public:
  explicit CodedModels(Worker* worker) : worker_(worker) {}
  ~CodedModels();  // waits for operations under way, which read and write the models' arrays
  CodedModels(const CodedModels&) = delete;
  CodedModels& operator=(const CodedModels&) = delete;

  // "train:CODEC", e.g. "train:topk:0.01" or "train:none": at least `in_flight` steps, and
  // `seconds` of them, after two that do not count: the first pull of a codec's model returns all
  // its values. With codec "auto" Leeway chooses among none, zstd and onebit.
  Measured Measure(const Command& command);

  // "switch:RATE[,BURST]": gives the link that rate by `reshape`, and measures the time until the
  // model with codec auto, which is trained meanwhile, has another codec. At most `seconds`.
  Measured MeasureSwitch(const Command& command, const std::function<absl::Status()>& reshape);

 private:
  struct Layer {
    Table table;
    std::vector<float> parameters, gradient;
    Ticket pushed;
  };
  using Model = std::vector<Layer>;

  absl::StatusOr<Model*> ModelOf(const std::string& codec);
  absl::Status Step(Model* model);

  Worker* const worker_;
  std::map<std::string, Model> models_;  // by codec
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_SHAPED_TRAIN_H_
