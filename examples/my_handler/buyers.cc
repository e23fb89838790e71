// A worker's program: buys seats of one show from the handler of seats.cc until it is sold out.
#include <cstdio>
#include <string>

#include "leeway/worker.h"

namespace {

absl::Status Buy(leeway::Worker& worker) {
  leeway::TableSpec spec = leeway::TableSpec::Sparse("sold", 1, leeway::DType::kInt64);
  spec.updater.name = "add";
  spec.consistency = leeway::Consistency::Asp();  // handlers cannot update BSP tables
  const absl::StatusOr<leeway::Table> sold = worker.CreateTable(spec);
  if (!sold.ok()) return sold.status();
  int bought = 0;
  std::string seat;
  for (;;) {
    const absl::Status status = worker.Wait(sold->Call(/*key=*/7, "sell", "7", &seat));
    if (absl::IsOutOfRange(status)) break;
    if (!status.ok()) return status;
    ++bought;
  }
  std::printf("worker %u has bought %d seats, the last one is %s\n", worker.rank(), bought,
              bought == 0 ? "none" : seat.c_str());
  return absl::OkStatus();
}

}  // namespace

int main() {
  // Settings from the environment (LEEWAY_SCHEDULER, ...).
  const absl::StatusOr<std::unique_ptr<leeway::Worker>> worker = leeway::Worker::Connect();
  const absl::Status status = worker.ok() ? Buy(**worker) : worker.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
