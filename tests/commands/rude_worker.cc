// A worker that does one thing wrong: rude_worker WHAT [COMMAND…]. If it goes on after that, it
// runs the command before it leaves. Errors go to standard error, on one line.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leeway/worker.h"

namespace {

using leeway::Table;
using leeway::TableSpec;
using leeway::Worker;

absl::StatusOr<Table> Dense(Worker* worker, const TableSpec& more = {}) {
  TableSpec spec = TableSpec::Dense("weights", {10});
  spec.consistency = leeway::Consistency::Asp();
  spec.nonfinite = more.nonfinite;
  spec.updater = more.updater;
  return worker->CreateTable(spec);
}

absl::Status WrongLength(Worker* worker) {
  const auto table = Dense(worker);
  if (!table.ok()) return table.status();
  const std::vector<float> values(9);
  return worker->Wait(table->Push(std::span<const float>(values)));
}

absl::Status WrongDType(Worker* worker) {
  const auto table = Dense(worker);
  if (!table.ok()) return table.status();
  const std::vector<double> values(10);
  return worker->Wait(table->Push(std::span<const double>(values)));
}

absl::Status KeysOfADenseTable(Worker* worker) {
  const auto table = Dense(worker);
  if (!table.ok()) return table.status();
  const std::vector<std::uint64_t> keys = {3, 11};
  const std::vector<float> values(2);
  return worker->Wait(
      table->Push(std::span<const std::uint64_t>(keys), std::span<const float>(values)));
}

absl::Status PushNan(Worker* worker, leeway::NonFinite nonfinite) {
  TableSpec more;
  more.nonfinite = nonfinite;
  const auto table = Dense(worker, more);
  if (!table.ok()) return table.status();
  const std::vector<float> values(10, std::numeric_limits<float>::quiet_NaN());
  return worker->Wait(table->Push(std::span<const float>(values)));
}

absl::Status CountedNan(Worker* worker) { return PushNan(worker, leeway::NonFinite::kCount); }
absl::Status RefusedNan(Worker* worker) { return PushNan(worker, leeway::NonFinite::kRefuse); }

absl::Status OtherTableOfThatName(Worker* worker) {
  const auto table = Dense(worker);
  if (!table.ok()) return table.status();
  return worker->CreateTable(TableSpec::Sparse("weights", 4)).status();
}

// The updater and the handler of ps/testdata/plugin.cc.
absl::Status UsePlugin(Worker* worker) {
  TableSpec more;
  more.updater.name = "plugin_negate";
  const auto table = Dense(worker, more);
  if (!table.ok()) return table.status();
  std::vector<float> values(10, 2.5f);
  if (auto pushed = worker->Wait(table->Push(std::span<const float>(values))); !pushed.ok()) {
    return pushed;
  }
  if (auto pulled = worker->Wait(table->Pull(std::span<float>(values))); !pulled.ok()) {
    return pulled;
  }
  const auto answer = worker->Call(0, "plugin_reverse", "abc");
  if (!answer.ok()) return answer.status();
  std::printf("pulled %g, answered %s\n", static_cast<double>(values[9]), answer->c_str());
  return absl::OkStatus();
}

absl::Status StayForEver(Worker*) {
  std::printf("connected\n");
  std::fflush(stdout);
  while (true) pause();
}

int Fail(const absl::Status& why) {
  std::fprintf(stderr, "%s\n", why.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, absl::Status (*)(Worker*)> ways = {
      {"length", WrongLength}, {"dtype", WrongDType},       {"keys", KeysOfADenseTable},
      {"nan", CountedNan},     {"refused-nan", RefusedNan}, {"table", OtherTableOfThatName},
      {"plugin", UsePlugin},   {"stay", StayForEver}};
  const auto way = argc > 1 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) return Fail(absl::InvalidArgumentError("rude_worker WHAT [COMMAND]"));
  absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Connect();
  if (!worker.ok()) return Fail(worker.status());
  const absl::Status status = way->second(worker->get());
  if (argc > 2 && std::system(argv[2]) != 0) return Fail(absl::InternalError(argv[2]));
  return status.ok() ? 0 : Fail(status);
}
