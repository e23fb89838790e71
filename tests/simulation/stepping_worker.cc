#include "tests/simulation/stepping_worker.h"

#include <algorithm>
#include <utility>

#include "worker/slicing/slice.h"

namespace leeway::simulation {

SteppingWorker::Arrays::Arrays(const std::vector<Table>& tables) {
  std::size_t bytes = 0;
  for (const Table& table : tables) {
    bytes = std::max<std::size_t>(bytes, table->spec.NumElements() * SizeOf(table->spec.dtype));
  }
  values.resize(bytes);
  pulled.resize(bytes);
}

SteppingWorker::SteppingWorker(runtime::SimWorld* world, worker::Core* core, int steps,
                               absl::Duration compute, OnStep on_step)
    : world_(world), core_(core), steps_(steps), compute_(compute), on_step_(std::move(on_step)) {}

void SteppingWorker::Run(std::vector<Table> tables, std::shared_ptr<Arrays> arrays) {
  tables_ = std::move(tables);
  arrays_ = std::move(arrays);
  Pull();
}

void SteppingWorker::Submit(const Table& table, proto::Op op, std::function<void()> then) {
  worker::Access access;
  access.table = table;
  access.op = op;
  access.dtype = table->spec.dtype;
  const std::size_t elements = table->spec.NumElements();
  if (proto::HasPush(op)) access.values = arrays_->values.data(), access.size = elements;
  if (proto::HasPull(op)) access.result = arrays_->pulled.data(), access.result_size = elements;
  core_->Submit(
      worker::Slice(access, core_->poster()), {},
      [this, then = std::move(then)](const std::shared_ptr<worker::Operation>& operation) {
        if (!operation->result.ok()) return Fail(operation->result);
        if (status_.ok()) then();
      });
}

void SteppingWorker::Fail(const absl::Status& why) {
  if (!status_.ok()) return;
  status_ = why;
  on_step_(why, ended_);
}

void SteppingWorker::Pull() {
  pulling_ = tables_.size();
  pulling_since_ = world_->Now();
  for (const Table& table : tables_) {
    Submit(table, proto::Op::kPull, [this] {
      if (--pulling_ == 0) OnPulled();
    });
  }
}

void SteppingWorker::OnPulled() {
  waited_ += world_->Now() - pulling_since_;
  if (++ended_ > 0) on_step_(absl::OkStatus(), ended_ - 1);
  if (ended_ < steps_) world_->Schedule(compute_, [this] { EndIteration(); });
}

void SteppingWorker::EndIteration() {
  for (const Table& table : tables_) Submit(table, proto::Op::kPush, [] {});
  if (const absl::Status ticked = core_->Clock(); !ticked.ok()) return Fail(ticked);
  if (status_.ok()) Pull();
}

}  // namespace leeway::simulation
