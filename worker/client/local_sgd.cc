#include "leeway/local_sgd.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway {
namespace {

using SteadyClock = std::chrono::steady_clock;

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("LocalSgd: ", what));
}

}  // namespace

struct LocalSgd::State {
  struct Exchanged {
    Part part;
    std::vector<float> anchor;  // the global values that the next outer gradient begins at
    std::vector<float> pulled;
    Ticket result;
    std::optional<std::uint64_t> due;  // the step at which the result is taken; none: none is out
    std::uint64_t next = 0;            // the step of its next exchange
  };

  absl::Status Check() const;
  absl::Status Push(Exchanged* one);
  absl::Status Take(Exchanged* one);
  absl::Status TellSpeed();

  Worker* worker;
  LocalSgdOptions options;
  std::vector<Exchanged> parts;
  bool begun = false;
  std::uint64_t step = 0;
  std::uint64_t exchanges = 0;
  std::uint32_t between = 0;
  Table speeds;
  // Since the last exchange, without the exchanges themselves.
  std::chrono::duration<double> worked_s{0};
  std::uint64_t worked_steps = 0;
  SteadyClock::time_point since;
};

absl::Status LocalSgd::State::Check() const {
  if (options.steps == 0) return Wrong("steps is 0, may be 1 or more");
  if (options.overlap_steps >= options.steps && options.overlap_steps != 0) {
    return Wrong(absl::StrCat("overlap_steps is ", options.overlap_steps, ", may be below steps, ",
                              options.steps));
  }
  if (!(options.mixing >= 0 && options.mixing <= 1)) {
    return Wrong(absl::StrCat("mixing is ", options.mixing, ", may be 0 to 1"));
  }
  if (parts.empty()) return Wrong("there are no parts");
  for (const Exchanged& one : parts) {
    const TableSpec& spec = one.part.table.spec();
    if (spec.kind != TableKind::kDense || spec.dtype != DType::kFloat32) {
      return Wrong(absl::StrCat("table '", spec.name, "' is not dense float32"));
    }
    if (one.part.values.size() != spec.NumElements()) {
      return Wrong(absl::StrCat("table '", spec.name, "' has ", spec.NumElements(),
                                " elements, and its array ", one.part.values.size()));
    }
  }
  return absl::OkStatus();
}

// The outer gradient leaves, and the pull that follows it: where the table's clocks close, once
// this one has.
absl::Status LocalSgd::State::Push(Exchanged* one) {
  std::vector<float>& gradient = one->pulled;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = one->anchor[i] - one->part.values[i];
  }
  Options copied;
  copied.copy = true;  // the pull writes where the gradient lies
  const Ticket pushed = one->part.table.Push(std::span<const float>(gradient), copied);
  LEEWAY_RETURN_IF_ERROR(worker->Clock());
  LEEWAY_RETURN_IF_ERROR(worker->Wait(pushed));
  one->result = one->part.table.Pull(std::span<float>(one->pulled));
  one->due = step + options.overlap_steps;
  one->next = step + between;
  ++exchanges;
  return absl::OkStatus();
}

absl::Status LocalSgd::State::Take(Exchanged* one) {
  LEEWAY_RETURN_IF_ERROR(worker->Wait(one->result));
  one->due.reset();
  const float kept = options.overlap_steps == 0 ? 0 : options.mixing;
  for (std::size_t i = 0; i < one->pulled.size(); ++i) {
    float& value = one->part.values[i];
    value = kept * value + (1 - kept) * one->pulled[i];
  }
  one->anchor = one->pulled;
  return absl::OkStatus();
}

// Dynamic Local Updates: steps in proportion to speed, `steps` for the fastest worker that is
// known.
absl::Status LocalSgd::State::TellSpeed() {
  if (!options.by_speed || worked_steps == 0 || worked_s.count() <= 0) return absl::OkStatus();
  const auto own = static_cast<float>(static_cast<double>(worked_steps) / worked_s.count());
  worked_s = worked_s.zero();
  worked_steps = 0;
  const std::uint64_t key = worker->rank();
  LEEWAY_RETURN_IF_ERROR(worker->Wait(
      speeds.Push(std::span<const std::uint64_t>(&key, 1), std::span<const float>(&own, 1))));
  std::vector<std::uint64_t> ranks(std::max(worker->num_workers(), worker->rank() + 1));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  std::vector<float> all(ranks.size());
  LEEWAY_RETURN_IF_ERROR(
      worker->Wait(speeds.Pull(std::span<const std::uint64_t>(ranks), std::span<float>(all))));
  const float fastest = std::max(own, *std::max_element(all.begin(), all.end()));
  between = static_cast<std::uint32_t>(
      std::max(1.0, std::floor(static_cast<double>(own / fastest) * options.steps)));
  between = std::max(between, options.overlap_steps + 1);
  return absl::OkStatus();
}

LocalSgd::LocalSgd(Worker* worker, std::vector<Part> parts, LocalSgdOptions options)
    : state_(std::make_unique<State>()) {
  state_->worker = worker;
  state_->options = options;
  state_->between = options.steps;
  for (Part& part : parts) state_->parts.emplace_back().part = std::move(part);
}

LocalSgd::~LocalSgd() {
  // What is under way writes into the arrays here.
  for (State::Exchanged& one : state_->parts) {
    if (one.due.has_value()) state_->worker->Wait(one.result).IgnoreError();
  }
}

absl::Status LocalSgd::Begin() {
  LEEWAY_RETURN_IF_ERROR(state_->Check());
  if (state_->options.by_speed) {
    TableSpec spec =
        TableSpec::Sparse(absl::StrCat(state_->parts.front().part.table.spec().name, "/speeds"), 1);
    spec.updater.name = "assign";
    spec.consistency = Consistency::Asp();
    LEEWAY_ASSIGN_OR_RETURN(state_->speeds, state_->worker->CreateTable(spec));
  }
  const std::size_t parts = state_->parts.size();
  for (std::size_t p = 0; p < parts; ++p) {
    State::Exchanged& one = state_->parts[p];
    LEEWAY_RETURN_IF_ERROR(state_->worker->Wait(one.part.table.Pull(one.part.values)));
    one.anchor.assign(one.part.values.begin(), one.part.values.end());
    one.pulled.resize(one.anchor.size());
    one.next = state_->options.steps - p * state_->options.steps / parts;
  }
  state_->begun = true;
  state_->since = SteadyClock::now();
  return absl::OkStatus();
}

absl::Status LocalSgd::Step() {
  State& state = *state_;
  if (!state.begun) return absl::FailedPreconditionError("LocalSgd: Step before Begin");
  state.worked_s += SteadyClock::now() - state.since;
  ++state.worked_steps;
  ++state.step;
  bool any = false;
  for (State::Exchanged& one : state.parts) {
    if (one.next == state.step) {
      if (one.due.has_value()) LEEWAY_RETURN_IF_ERROR(state.Take(&one));
      LEEWAY_RETURN_IF_ERROR(state.Push(&one));
      any = true;
    }
    if (one.due.has_value() && *one.due <= state.step) LEEWAY_RETURN_IF_ERROR(state.Take(&one));
  }
  if (any) LEEWAY_RETURN_IF_ERROR(state.TellSpeed());
  state.since = SteadyClock::now();
  return absl::OkStatus();
}

absl::Status LocalSgd::Finish() {
  State& state = *state_;
  if (!state.begun) return absl::FailedPreconditionError("LocalSgd: Finish before Begin");
  for (State::Exchanged& one : state.parts) {
    if (one.due.has_value()) LEEWAY_RETURN_IF_ERROR(state.Take(&one));
    LEEWAY_RETURN_IF_ERROR(state.Push(&one));
  }
  for (State::Exchanged& one : state.parts) LEEWAY_RETURN_IF_ERROR(state.Take(&one));
  return absl::OkStatus();
}

std::uint64_t LocalSgd::step() const { return state_->step; }
std::uint64_t LocalSgd::exchanges() const { return state_->exchanges; }
std::uint32_t LocalSgd::steps_between() const { return state_->between; }

}  // namespace leeway
