#include "leeway/local_sgd.h"

#include <algorithm>
#include <chrono>
#include <cmath>
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
  // How far an exchange has come: one that fails goes on from there at the next call.
  enum class Phase : std::uint8_t {
    kNone,
    kPushed,   // the outer gradient was taken
    kClocked,  // and the clock has ended
    kPulling,  // and `result` is under way
  };
  struct Exchanged {
    Part part;
    std::vector<float> anchor;  // the global values that the next outer gradient begins at
    std::vector<float> pulled;
    Phase phase = Phase::kNone;
    Ticket result;
    std::uint64_t due = 0;   // the step at which the result is taken
    std::uint64_t next = 0;  // the step of its next exchange
    bool last = false;       // Finish has begun the last one
  };

  absl::Status Check() const;
  absl::Status Begin();
  absl::Status Push(Exchanged* one);
  absl::Status GoOn(Exchanged* one);
  absl::Status Take(Exchanged* one, float kept);
  absl::Status Exchange(Exchanged* one);
  absl::Status TellSpeed();
  float kept() const { return options.overlap_steps == 0 ? 0 : options.mixing; }
  void Await();
  std::vector<Exchanged*> InTurn();

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

// The outer gradient leaves. One whose outcome is not known is not pushed again: it may be taken
// yet.
absl::Status LocalSgd::State::Push(Exchanged* one) {
  std::vector<float>& gradient = one->pulled;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = one->anchor[i] - one->part.values[i];
  }
  Options copied;
  copied.copy = true;  // the pull writes where the gradient lies
  const absl::Status pushed =
      worker->Wait(one->part.table.Push(std::span<const float>(gradient), copied));
  if (!pushed.ok() && !absl::IsUnknown(pushed)) return pushed;
  one->phase = Phase::kPushed;
  one->due = step + options.overlap_steps;
  one->next += between;
  ++exchanges;
  return pushed;
}

// The pull follows the push: where the table's clocks close, once this one has.
absl::Status LocalSgd::State::GoOn(Exchanged* one) {
  if (one->phase == Phase::kPushed) {
    const absl::Status ended = worker->Clock();
    if (ended.ok() || absl::IsDataLoss(ended)) one->phase = Phase::kClocked;  // as Clock() says
    LEEWAY_RETURN_IF_ERROR(ended);
  }
  if (one->phase == Phase::kClocked) {
    one->result = one->part.table.Pull(std::span<float>(one->pulled));
    one->phase = Phase::kPulling;
  }
  return absl::OkStatus();
}

absl::Status LocalSgd::State::Take(Exchanged* one, float kept) {
  LEEWAY_RETURN_IF_ERROR(GoOn(one));
  one->phase = Phase::kClocked;  // to be pulled again if this fails
  LEEWAY_RETURN_IF_ERROR(worker->Wait(one->result));
  one->phase = Phase::kNone;
  for (std::size_t i = 0; i < one->pulled.size(); ++i) {
    float& value = one->part.values[i];
    value = kept * value + (1 - kept) * one->pulled[i];
  }
  one->anchor = one->pulled;
  return absl::OkStatus();
}

absl::Status LocalSgd::State::Exchange(Exchanged* one) {
  if (one->phase != Phase::kNone) LEEWAY_RETURN_IF_ERROR(Take(one, kept()));
  LEEWAY_RETURN_IF_ERROR(Push(one));
  return GoOn(one);
}

// What is under way writes into `pulled`.
void LocalSgd::State::Await() {
  for (Exchanged& one : parts) {
    if (one.phase == Phase::kPulling) worker->Wait(one.result).IgnoreError();
    one.phase = Phase::kNone;
  }
}

// In the order in which they are exchanged, which is the same at all workers: one that failed
// before comes before those that were due after it.
std::vector<LocalSgd::State::Exchanged*> LocalSgd::State::InTurn() {
  std::vector<Exchanged*> all;
  for (Exchanged& one : parts) all.push_back(&one);
  std::ranges::stable_sort(all, {}, &Exchanged::next);
  return all;
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

LocalSgd::~LocalSgd() { state_->Await(); }

absl::Status LocalSgd::State::Begin() {
  begun = false;
  LEEWAY_RETURN_IF_ERROR(Check());
  Await();
  if (options.by_speed) {
    TableSpec spec =
        TableSpec::Sparse(absl::StrCat(parts.front().part.table.spec().name, "/speeds"), 1);
    spec.updater.name = "assign";
    spec.consistency = Consistency::Asp();
    LEEWAY_ASSIGN_OR_RETURN(speeds, worker->CreateTable(spec));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Exchanged& one = parts[p];
    LEEWAY_RETURN_IF_ERROR(worker->Wait(one.part.table.Pull(one.part.values)));
    one.anchor.assign(one.part.values.begin(), one.part.values.end());
    one.pulled.resize(one.anchor.size());
    one.next = options.steps - p * options.steps / parts.size();
    one.last = false;
  }
  step = exchanges = worked_steps = 0;
  between = options.steps;
  worked_s = worked_s.zero();
  begun = true;
  since = SteadyClock::now();
  return absl::OkStatus();
}

absl::Status LocalSgd::Begin() { return state_->Begin(); }

absl::Status LocalSgd::Step() {
  State& state = *state_;
  if (!state.begun) return absl::FailedPreconditionError("LocalSgd: Step before Begin");
  state.worked_s += SteadyClock::now() - state.since;
  ++state.worked_steps;
  ++state.step;
  bool any = false;
  for (State::Exchanged* const one : state.InTurn()) {
    one->last = false;
    if (one->next <= state.step) {
      LEEWAY_RETURN_IF_ERROR(state.Exchange(one));
      any = true;
    }
    if (one->phase == State::Phase::kNone) continue;
    LEEWAY_RETURN_IF_ERROR(state.GoOn(one));
    if (one->due <= state.step) LEEWAY_RETURN_IF_ERROR(state.Take(one, state.kept()));
  }
  if (any) LEEWAY_RETURN_IF_ERROR(state.TellSpeed());
  state.since = SteadyClock::now();
  return absl::OkStatus();
}

absl::Status LocalSgd::Finish() {
  State& state = *state_;
  if (!state.begun) return absl::FailedPreconditionError("LocalSgd: Finish before Begin");
  for (State::Exchanged* const one : state.InTurn()) {
    if (one->last) continue;
    const std::uint64_t before = state.exchanges;
    const absl::Status exchanged = state.Exchange(one);
    if (state.exchanges != before) {
      one->last = true;
      one->next = state.step + state.between;
    }
    LEEWAY_RETURN_IF_ERROR(exchanged);
  }
  for (State::Exchanged& one : state.parts) {
    if (one.phase != State::Phase::kNone) LEEWAY_RETURN_IF_ERROR(state.Take(&one, 0));
  }
  for (State::Exchanged& one : state.parts) one.last = false;
  return absl::OkStatus();
}

std::uint64_t LocalSgd::step() const { return state_->step; }
bool LocalSgd::due() const {
  const auto due = [next = state_->step + 1](const State::Exchanged& one) {
    return one.next <= next || (one.phase != State::Phase::kNone && one.due <= next);
  };
  return std::ranges::any_of(state_->parts, due);
}
std::uint64_t LocalSgd::exchanges() const { return state_->exchanges; }
std::uint32_t LocalSgd::steps_between() const { return state_->between; }

}  // namespace leeway
