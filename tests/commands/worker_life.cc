// A worker whose process lives and ends as users' programs do: worker_life WAY. It pushes ones to a
// table, and says on standard output what is in the table afterwards ("sum 50"), where it can.
// Errors go to standard error, on one line, and make the exit code 1.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "leeway/worker.h"

namespace {

using leeway::Table;
using leeway::TableSpec;
using leeway::Worker;

constexpr std::size_t kElements = 4096;
constexpr int kForks = 20;
constexpr int kPushesBetween = 5;

std::unique_ptr<Worker> global_worker;

[[noreturn]] void Fail(const absl::Status& why) {
  std::fprintf(stderr, "%s\n", why.ToString().c_str());
  std::_Exit(1);
}

template <class T>
T Good(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}
void MustBe(bool holds, const std::string& what) {
  if (!holds) Fail(absl::InternalError(what));
}

std::unique_ptr<Worker> Connect() { return Good(Worker::Connect()); }

Table Open(Worker* worker, leeway::Consistency consistency = leeway::Consistency::Asp()) {
  TableSpec spec = TableSpec::Dense("weights", {kElements});
  spec.consistency = consistency;
  return Good(worker->CreateTable(spec));
}

const std::vector<float>& Ones() {
  static const auto* const ones = new std::vector<float>(kElements, 1.0f);
  return *ones;
}
leeway::Ticket PushOnes(const Table& table) { return table.Push(std::span<const float>(Ones())); }
void Push(Worker* worker, const Table& table) {
  if (const absl::Status pushed = worker->Wait(PushOnes(table)); !pushed.ok()) Fail(pushed);
}

void SaySum(Worker* worker, const Table& table) {
  std::vector<float> values(kElements);
  const absl::Status pulled = worker->Wait(table.Pull(std::span<float>(values)));
  if (!pulled.ok()) Fail(pulled);
  for (const float value : values) MustBe(value == values[0], "the elements differ");
  std::printf("sum %g\n", static_cast<double>(values[0]));
  std::fflush(stdout);
}

// ---- ends ----

void UseGlobal() {
  global_worker = Connect();
  const Table table = Open(global_worker.get());
  Push(global_worker.get(), table);
  PushOnes(table);  // which the destruction waits for
}

void InStaticStorage() { UseGlobal(); }

void InAFunctionsStatic() {
  static const std::unique_ptr<Worker> worker = Connect();
  Push(worker.get(), Open(worker.get()));
}

void DestroyedAtExit() {
  std::atexit([] { global_worker.reset(); });
  UseGlobal();
}

void Exits() {
  const std::unique_ptr<Worker> worker = Connect();
  Push(worker.get(), Open(worker.get()));
  std::exit(0);
}

void Leaks() {
  static Worker* leaked;  // in sight of a leak checker
  leaked = Connect().release();
  Push(leaked, Open(leaked));
}

void ExitsAtOnce() {
  const std::unique_ptr<Worker> worker = Connect();
  Push(worker.get(), Open(worker.get()));
  std::_Exit(0);
}

// ---- callbacks and waits ----

// The worker leaves though its process goes on.
void DestroyedInACallback() {
  global_worker = Connect();
  const Table table = Open(global_worker.get());
  leeway::Options options;
  options.done = [](const absl::Status& status) {
    if (!status.ok()) Fail(status);
    global_worker.reset();
    std::printf("destroyed\n");
    std::fflush(stdout);
  };
  table.Push(std::span<const float>(Ones()), options);  // no wait: it would be of a dead object
  while (true) pause();
}

// Pushes ones to the table of `global_worker`, and destroys it within the callback; then `next`.
void PushAndDestroy(void (*next)()) {
  global_worker = Connect();
  const Table table = Open(global_worker.get());
  leeway::Options options;
  options.done = [next](const absl::Status& status) {
    if (!status.ok()) Fail(status);
    global_worker.reset();
    next();
  };
  table.Push(std::span<const float>(Ones()), options);
}

// main returns while the worker leaves.
void DestroyedJustBeforeTheEnd() {
  static std::atomic<bool> destroyed = false;
  PushAndDestroy([] {
    destroyed = true;
    destroyed.notify_all();
  });
  destroyed.wait(false);
}

// The callback runs on a thread of the library's.
void CallbackExits() {
  PushAndDestroy([] { std::exit(0); });
  while (true) pause();
}

// The worker in static storage is destroyed within the callback by the end of the process. The
// callback runs on the thread that waits.
void CallbackOfAWaitExits() {
  global_worker = Connect();
  const Table table = Open(global_worker.get());
  leeway::Options options;
  options.done = [](const absl::Status&) { std::exit(0); };
  const absl::Status waited =
      global_worker->Wait(table.Push(std::span<const float>(Ones()), options));
  Fail(absl::InternalError(absl::StrCat("the callback returned: ", waited.ToString())));
}

// Waits for a push-pull before the end of the clock that it is answered after, and frees the arrays
// when that fails.
void WaitsBeforeClock() {
  const std::unique_ptr<Worker> worker = Connect();
  const Table table = Open(worker.get(), leeway::Consistency::Bsp());
  for (int i = 0; i < 10; ++i) {
    auto result = std::make_unique<std::vector<float>>(kElements);
    const absl::Status status =
        worker->Wait(table.PushPull(std::span<const float>(Ones()), std::span<float>(*result)));
    MustBe(absl::IsUnknown(status) || absl::IsFailedPrecondition(status), status.ToString());
    MustBe(status.message().find("Clock()") != std::string::npos, status.ToString());
    result.reset();
    if (const absl::Status over = worker->Clock(); !over.ok()) Fail(over);
  }
  std::vector<float> values(kElements);
  const leeway::Ticket last =
      table.PushPull(std::span<const float>(Ones()), std::span<float>(values));
  if (const absl::Status over = worker->Clock(); !over.ok()) Fail(over);
  if (const absl::Status waited = worker->Wait(last); !waited.ok()) Fail(waited);
}

// ---- forks ----

void ChildExits(const Table&) { std::exit(0); }

void ChildDestroys(const Table&) {
  global_worker.reset();
  std::_Exit(0);
}

void ChildCalls(const Table& table) {
  Worker* const worker = global_worker.get();
  const auto refused = [](const absl::Status& status) {
    MustBe(absl::IsFailedPrecondition(status), absl::StrCat("a child's call: ", status.ToString()));
    MustBe(status.message().find("fork()") != std::string::npos, status.ToString());
  };
  std::vector<float> values(kElements);
  refused(worker->Wait(PushOnes(table)));
  refused(worker->Wait(table.Pull(std::span<float>(values))));
  refused(worker->Clock());
  refused(worker->Barrier(leeway::Group::kWorkers, "b"));
  refused(worker->CreateTable(TableSpec::Dense("other", {4})).status());
  refused(worker->OpenTable("weights").status());
  refused(worker->SetCodec("weights", "none").status());
  refused(worker->Call(0, "handler", "x").status());
  refused(worker->Leave());
  MustBe(worker->Done(PushOnes(table)), "a child's ticket is not done");
  worker->stats();
  worker->clock();
  std::exit(0);
}

// It is a worker beside the parent.
void ChildConnects(const Table&) {
  leeway::Config config = Good(leeway::Config::FromEnvironment());
  config.elastic = true;
  const std::unique_ptr<Worker> own = Good(Worker::Connect(config));
  const Table table = Good(own->OpenTable("weights"));
  Push(own.get(), table);
  if (const absl::Status left = own->Leave(); !left.ok()) Fail(left);
  std::exit(0);
}

void ParentEnds() {
  const std::unique_ptr<Worker> worker = Connect();
  Push(worker.get(), Open(worker.get()));
  const pid_t pid = fork();
  if (pid < 0) Fail(absl::InternalError("fork"));
  while (pid == 0) pause();
  std::_Exit(0);
}

// The parent trains on while its children live and end.
void Forks(void (*child)(const Table&)) {
  global_worker = Connect();
  const Table table = Open(global_worker.get());
  Push(global_worker.get(), table);
  for (int i = 0; i < kForks; ++i) {
    std::vector<leeway::Ticket> tickets;
    for (int push = 0; push < kPushesBetween; ++push) tickets.push_back(PushOnes(table));
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
    // Its allocator has locks that fork() does not take: a child of a process whose other threads
    // allocate at that moment may wait for one forever.
    if (const absl::Status pushed = global_worker->Wait(tickets); !pushed.ok()) Fail(pushed);
#endif
    const pid_t pid = fork();
    if (pid < 0) Fail(absl::InternalError("fork"));
    if (pid == 0) child(table);
    for (int push = 0; push < kPushesBetween; ++push) tickets.push_back(PushOnes(table));
    if (const absl::Status pushed = global_worker->Wait(tickets); !pushed.ok()) Fail(pushed);
    int how = 0;
    MustBe(waitpid(pid, &how, 0) == pid, "waitpid");
    MustBe(how == 0, absl::StrCat("child ", i, " ended with ", how));
  }
  SaySum(global_worker.get(), table);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> ways = {
      {"static", InStaticStorage},
      {"function-static", InAFunctionsStatic},
      {"atexit", DestroyedAtExit},
      {"exit", Exits},
      {"leak", Leaks},
      {"exit-at-once", ExitsAtOnce},
      {"callback", DestroyedInACallback},
      {"callback-before-end", DestroyedJustBeforeTheEnd},
      {"callback-exits", CallbackExits},
      {"callback-exits-in-wait", CallbackOfAWaitExits},
      {"wait-before-clock", WaitsBeforeClock},
      {"fork-exit", [] { Forks(ChildExits); }},
      {"fork-destroy", [] { Forks(ChildDestroys); }},
      {"fork-call", [] { Forks(ChildCalls); }},
      {"fork-connect", [] { Forks(ChildConnects); }},
      {"fork-end", ParentEnds}};
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) Fail(absl::InvalidArgumentError("worker_life WAY"));
  way->second();
  return 0;
}
