#include "cluster/work.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/normal_values.h"
#include "harness/stopwatch.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kBatches = 8;
constexpr std::size_t kBatchKeys = 100'000;
constexpr std::uint64_t kKeySpace = 10'000'000;
constexpr std::uint64_t kRowWidth = 16;

// Starts an operation on tensor or batch `slot`.
using Start = std::function<Ticket(std::size_t operation, std::size_t slot)>;

// Keeps `in_flight` operations under way for `seconds`, then waits for all of them.
absl::Status Keep(Worker* worker, const Command& command, const Start& start, Measured* measured,
                  const Stopwatch& watch) {
  const auto slots = static_cast<std::size_t>(command.in_flight);
  const std::size_t look = command.bytes < 4096 ? slots : 1;  // operations between clock readings
  std::vector<Ticket> tickets(slots);
  std::size_t operation = 0;
  double begun = watch.Seconds();
  for (; operation == 0 || operation % look != 0 || watch.Seconds() < command.seconds;
       ++operation) {
    const std::size_t slot = operation % slots;
    if (slots > 1) LEEWAY_RETURN_IF_ERROR(worker->Wait(tickets[slot]));
    tickets[slot] = start(operation, slot);
    if (slots > 1) continue;
    LEEWAY_RETURN_IF_ERROR(worker->Wait(tickets[slot]));
    const double ended = watch.Seconds();
    measured->latencies_us.push_back(1e6 * (ended - begun));
    begun = ended;
  }
  LEEWAY_RETURN_IF_ERROR(worker->Wait(tickets));
  measured->operations = operation;
  return absl::OkStatus();
}

absl::Status Run(Worker* worker, const std::vector<pid_t>& servers, const Command& command,
                 const Start& start, Measured* measured) {
  Command warm_up = command;
  warm_up.seconds = std::min(0.05, command.seconds / 4);
  Measured ignored;
  LEEWAY_RETURN_IF_ERROR(Keep(worker, warm_up, start, &ignored, Stopwatch()));
  const Stopwatch watch(servers);
  LEEWAY_RETURN_IF_ERROR(Keep(worker, command, start, measured, watch));
  measured->seconds = watch.Seconds();
  measured->cpu_seconds = watch.Cpu();
  measured->bytes = measured->operations * command.bytes;
  return absl::OkStatus();
}

}  // namespace

struct Work::Tensor {
  Table table;
  std::span<const float> values;
  std::vector<float> result;
  std::vector<float> own;  // the values, unless they are in `allocated`
  Array allocated;

  Ticket Push() const { return table.Push(values); }
  Ticket Pull() { return table.Pull(std::span<float>(result)); }
  Ticket Exchange() { return table.PushPull(values, std::span<float>(result)); }
};

struct Work::Batches {
  Table table;
  std::vector<std::vector<std::uint64_t>> keys;
  std::vector<float> values, result;

  Ticket Push(std::size_t batch) const {
    return table.Push(std::span<const std::uint64_t>(keys[batch]), std::span<const float>(values));
  }
  Ticket Pull(std::size_t batch) {
    return table.Pull(std::span<const std::uint64_t>(keys[batch]), std::span<float>(result));
  }
};

Work::Work(Worker* worker, std::vector<pid_t> servers, bool allocates)
    : worker_(worker), servers_(std::move(servers)), allocates_(allocates) {}

Work::~Work() = default;

absl::StatusOr<std::vector<Work::Tensor>*> Work::Tensors(const std::string& codec,
                                                         std::uint64_t bytes, int count) {
  std::vector<Tensor>& tensors = tensors_[{codec, bytes, count}];
  while (tensors.size() < static_cast<std::size_t>(count)) {
    const std::uint64_t elements = std::max<std::uint64_t>(1, bytes / sizeof(float));
    TableSpec spec = TableSpec::Dense(
        absl::StrCat("dense ", codec, " ", bytes, " ", count, " ", tensors.size()), {elements});
    spec.consistency = Consistency::Asp();
    spec.codec = codec;
    LEEWAY_ASSIGN_OR_RETURN(const Table table, worker_->CreateTable(spec));
    Tensor& tensor = tensors.emplace_back();
    tensor.table = table;
    tensor.result.resize(elements);
    std::span<float> values;
    if (allocates_) {
      LEEWAY_ASSIGN_OR_RETURN(tensor.allocated, worker_->Allocate(elements * sizeof(float)));
      values = tensor.allocated.as<float>();
    } else {
      tensor.own.resize(elements);
      values = tensor.own;
    }
    if (codec == "none") {
      std::fill(values.begin(), values.end(), 1e-3f);
    } else {
      std::ranges::copy(NormalValues(elements, 1), values.begin());
    }
    tensor.values = values;
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(tensors.back().Push()));
  }
  return &tensors;
}

absl::StatusOr<Work::Batches*> Work::SparseBatches() {
  if (batches_ != nullptr) return batches_.get();
  TableSpec spec = TableSpec::Sparse("sparse", kRowWidth);
  spec.consistency = Consistency::Asp();
  auto batches = std::make_unique<Batches>();
  LEEWAY_ASSIGN_OR_RETURN(batches->table, worker_->CreateTable(spec));
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < kBatches; ++i) {
    std::vector<std::uint64_t> keys;
    while (keys.size() < kBatchKeys) {
      keys.push_back(random() % kKeySpace);
      if (keys.size() < kBatchKeys) continue;
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    batches->keys.push_back(std::move(keys));
  }
  batches->values.assign(kBatchKeys * kRowWidth, 1e-3f);
  batches->result.resize(kBatchKeys * kRowWidth);
  for (std::size_t i = 0; i < kBatches; ++i) {
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(batches->Push(i)));
  }
  batches_ = std::move(batches);
  return batches_.get();
}

Measured Work::Measure(const Command& command) {
  Measured measured;
  const auto run = [&]() -> absl::Status {
    if (command.op == "sparse_push" || command.op == "sparse_pull") {
      LEEWAY_ASSIGN_OR_RETURN(Batches* const batches, SparseBatches());
      Command sparse = command;
      sparse.bytes = kBatchKeys * (sizeof(std::uint64_t) + kRowWidth * sizeof(float));
      const bool push = command.op == "sparse_push";
      return Run(
          worker_, servers_, sparse,
          [&](std::size_t operation, std::size_t) {
            return push ? batches->Push(operation % kBatches) : batches->Pull(operation % kBatches);
          },
          &measured);
    }
    const std::size_t colon = command.op.find(':');
    const std::string op = command.op.substr(0, colon);
    const std::string codec = colon == std::string::npos ? "none" : command.op.substr(colon + 1);
    LEEWAY_ASSIGN_OR_RETURN(std::vector<Tensor>* const tensors,
                            Tensors(codec, command.bytes, command.in_flight));
    Start start;
    if (op == "push") {
      start = [&](std::size_t, std::size_t slot) { return (*tensors)[slot].Push(); };
    } else if (op == "pull") {
      start = [&](std::size_t, std::size_t slot) { return (*tensors)[slot].Pull(); };
    } else if (op == "exchange") {
      start = [&](std::size_t, std::size_t slot) { return (*tensors)[slot].Exchange(); };
    } else if (op == "rtt") {
      start = [&](std::size_t operation, std::size_t slot) {
        return operation % 2 == 0 ? (*tensors)[slot].Push() : (*tensors)[slot].Pull();
      };
    } else {
      return absl::InvalidArgumentError(absl::StrCat("no work is called ", command.op));
    }
    return Run(worker_, servers_, command, start, &measured);
  };
  if (const absl::Status status = run(); !status.ok()) measured.error = status.ToString();
  return measured;
}

}  // namespace leeway::bench
