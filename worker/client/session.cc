#include "worker/client/session.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/tables/table_texts.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "worker/client/leavers.h"
#include "worker/client/loop_driver.h"
#include "worker/control/cluster_status.h"

namespace leeway::worker {
namespace {

// How long the destruction of a worker waits for its pushes and for the scheduler.
constexpr absl::Duration kCloseTimeout = absl::Seconds(5);
// How much longer the end of the process does, so that the scheduler is told (Core::Leave).
constexpr absl::Duration kTellTimeout = absl::Seconds(1);

absl::Status Left() { return absl::FailedPreconditionError("this worker has left its cluster"); }

// The changes as arguments of the scheduler's command `table`.
std::vector<std::string> TextsOf(const TableChange& change) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : change.parameters) {
    texts.push_back(
        absl::StrCat("updater.", name, "=", value.has_value() ? proto::Exact(*value) : "default"));
  }
  if (change.consistency.has_value()) {
    texts.push_back(absl::StrCat("consistency=", change.consistency->ToString()));
  }
  if (change.nonfinite.has_value()) {
    texts.push_back(*change.nonfinite == NonFinite::kCount ? "nonfinite=count"
                                                           : "nonfinite=refuse");
  }
  return texts;
}

absl::Status InChild() {
  return absl::FailedPreconditionError(
      "this worker belongs to the parent of this process: after fork() a child connects a worker "
      "of its own (Worker::Connect)");
}

absl::Status InCallback() {
  return absl::FailedPreconditionError(
      "an operation's callback must not wait: it runs on the thread that would be waited for");
}

absl::Status Interrupted() {
  return absl::CancelledError("the wait was interrupted; what was waited for goes on");
}

// The ticket of an operation that fails at once.
Ticket Failed(const absl::Status& why, const Options& options) {
  std::shared_ptr<Operation> operation = Operation::New();
  operation->result = why;
  if (options.done != nullptr) options.done(why);
  operation->MarkDone(why);
  return Ticket(std::move(operation));
}

absl::StatusOr<Sliced> SliceIfThereIsMemory(Session::Slicing slice,
                                            const std::shared_ptr<Poster>& poster) {
  try {
    return slice(poster);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "there is no memory left in this process for the operation; nothing of it was sent");
  }
}

}  // namespace

Session::Session(const Config& config, World world)
    : config_(config),
      world_(std::move(world)),
      driver_(world_.driver != nullptr
                  ? std::move(world_.driver)
                  : std::make_unique<LoopDriver>(world_.host->Random(),
                                                 absl::Microseconds(config.busy_poll_us),
                                                 config.interrupted)) {
  driver_->DoLocked([this] {
    core_ = std::make_unique<Core>(
        Core::Setup{.config = config_,
                    .host = world_.host,
                    .loop = driver_->loop(),
                    .factory = world_.factory,
                    .on_rank = [this](std::uint32_t rank) { log_name_.SetRank(rank); }});
    poster_ = core_->poster();
  });
}

Session::~Session() { Close(); }

// The threads of an inherited session do not exist here, and what its destruction would say to
// others they would hear from the parent: it stays in memory.
void Session::Deleter::operator()(Session* session) const {
  if (!session->inherited()) {
    delete session;
    return;
  }
  static auto& kept = *new std::vector<Session*>;  // in sight of a leak checker
  kept.push_back(session);
}

absl::Status Session::OfThisProcess() const { return inherited() ? InChild() : absl::OkStatus(); }

absl::StatusOr<std::shared_ptr<Session>> Session::Connect(const Config& config, World world) {
  std::shared_ptr<Session> session(new Session(config, std::move(world)), Deleter());
  absl::Status status =
      session->AskStatus([&](Core& core, Core::Done ready) { core.Start(std::move(ready)); });
  LEEWAY_RETURN_IF_ERROR(status);
  session->driver_->DoLocked([&] {
    session->rank_ = session->core_->rank();
    session->num_workers_ = session->core_->num_workers();
    session->num_servers_ = session->core_->num_servers();
  });
  return session;
}

template <class T>
absl::StatusOr<T> Session::Ask(
    absl::FunctionRef<void(Core&, absl::AnyInvocable<void(absl::StatusOr<T>)>)> start) {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  // Shared with the callback, which may run after a thread that must not wait has returned.
  auto answer = std::make_shared<std::optional<absl::StatusOr<T>>>();
  driver_->Do([&] {
    if (core_ == nullptr) {
      answer->emplace(Left());
      return;
    }
    start(*core_, [this, answer](absl::StatusOr<T> result) {
      answer->emplace(std::move(result));
      driver_->Notify();
    });
  });
  LEEWAY_RETURN_IF_ERROR(WaitUntil([&] { return answer->has_value(); }));
  return std::move(**answer);
}

absl::Status Session::WaitUntil(absl::FunctionRef<bool()> done) {
  switch (driver_->WaitUntil(done)) {
    case Driver::Waited::kDone:
      return absl::OkStatus();
    case Driver::Waited::kInCallback:
      return InCallback();
    case Driver::Waited::kInterrupted:
      return Interrupted();
  }
  return absl::OkStatus();
}

absl::Status Session::AskStatus(absl::FunctionRef<void(Core&, Core::Done)> start) {
  struct Nothing {};
  return Ask<Nothing>([&](Core& core, absl::AnyInvocable<void(absl::StatusOr<Nothing>)> done) {
           start(core, [done = std::move(done)](const absl::Status& status) mutable {
             status.ok() ? done(Nothing{}) : done(status);
           });
         })
      .status();
}

absl::StatusOr<std::shared_ptr<const TableInfo>> Session::CreateTable(const TableSpec& spec) {
  return Ask<std::shared_ptr<const TableInfo>>([&](Core& core, Core::TableDone done) {
    core.CreateTable(spec, config_.request_timeout, std::move(done));
  });
}

absl::StatusOr<std::shared_ptr<const TableInfo>> Session::OpenTable(absl::string_view name) {
  return Ask<std::shared_ptr<const TableInfo>>([&](Core& core, Core::TableDone done) {
    core.OpenTable(std::string(name), config_.request_timeout, std::move(done));
  });
}

Ticket Session::Submit(Slicing slice, Options options) {
  if (absl::Status here = OfThisProcess(); !here.ok()) return Failed(here, options);
  absl::StatusOr<Sliced> sliced = SliceIfThereIsMemory(slice, poster_);
  const Core::Terms terms{.timeout = options.timeout,
                          .learning_rate = options.learning_rate,
                          .priority = options.priority};
  Operation::Completion completion = [this](const std::shared_ptr<Operation>& operation) {
    operation->MarkDone(operation->result);
    CallThoseWhoWait(operation);
    driver_->Notify();
  };
  if (options.done != nullptr) {
    completion = [this, done = std::move(options.done)](
                     const std::shared_ptr<Operation>& operation) mutable {
      // Waiters return only after the callback has run.
      driver_->CallUnlocked([this, operation, done = std::move(done)] {
        done(operation->result);
        operation->MarkDone(operation->result);
        driver_->DoLocked([&] { CallThoseWhoWait(operation); });
      });
    };
  }
  std::shared_ptr<Operation> operation;
  driver_->DoOneOfMany([&] {
    if (core_ != nullptr) {
      operation = core_->Submit(std::move(sliced), terms, std::move(completion));
    } else {
      operation = Operation::New();
      operation->result = Left();
      completion(operation);
    }
  });
  return Ticket(std::move(operation));
}

absl::Status Session::Wait(std::span<const Ticket> tickets) {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  const auto all_done = [&] {
    return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& ticket) {
      return ticket.operation() == nullptr || ticket.operation()->done();
    });
  };
  if (!all_done()) {
    const absl::Time start = driver_->loop()->Now();
    driver_->Do([&] { GiveUpThoseOfThisClock(tickets); });
    const absl::Status waited = WaitUntil(all_done);
    CountWait(start);
    LEEWAY_RETURN_IF_ERROR(waited);
  }
  for (const Ticket& ticket : tickets) {
    if (ticket.operation() != nullptr) LEEWAY_RETURN_IF_ERROR(ticket.operation()->status());
  }
  return absl::OkStatus();
}

// A push-pull of a BSP table is answered after Clock(), which a thread that waits for it does not
// call. It ends here: a program whose Wait has failed may free the arrays.
void Session::GiveUpThoseOfThisClock(std::span<const Ticket> tickets) {
  if (core_ == nullptr || driver_->InCallback()) return;
  for (const Ticket& ticket : tickets) {
    const std::shared_ptr<Operation>& operation = ticket.operation();
    if (operation == nullptr || operation->done() || operation->clock_needed <= core_->clock()) {
      continue;
    }
    core_->GiveUp(operation,
                  absl::FailedPreconditionError(absl::StrCat(
                      operation->Describe(), " is answered after Clock(): call it before Wait() (",
                      "this worker is at clock ", core_->clock(), ")")));
  }
}

// Runs what is ready, so that a program that only polls makes progress. In a child nothing goes on.
bool Session::Done(const Ticket& ticket) {
  if (ticket.operation() == nullptr || ticket.operation()->done() || inherited()) return true;
  driver_->Do([] {});
  return ticket.operation()->done();
}

// Under the lock, once the operation is done.
void Session::CallThoseWhoWait(const std::shared_ptr<Operation>& operation) {
  for (auto& done : std::exchange(operation->when_done, {})) {
    driver_->CallUnlocked([operation, done = std::move(done)] { done(operation->status()); });
  }
}

void Session::WhenDone(const Ticket& ticket, std::function<void(const absl::Status&)> done) {
  const std::shared_ptr<Operation>& operation = ticket.operation();
  if (operation == nullptr) return done(absl::OkStatus());
  bool now = inherited();
  if (!now) {
    driver_->Do([&] {
      now = operation->done();
      if (!now) operation->when_done.push_back(std::move(done));
    });
  }
  if (now) done(operation->done() ? operation->status() : InChild());
}

absl::Status Session::Clock() {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  const absl::Time start = driver_->loop()->Now();
  absl::Status status;
  driver_->Do([&] { status = core_ == nullptr ? Left() : core_->Clock(); });
  CountWait(start);
  return status;
}

std::uint64_t Session::clock() const {
  std::uint64_t clock = 0;
  if (inherited()) return clock;
  driver_->DoLocked([&] { clock = core_ == nullptr ? last_clock_ : core_->clock(); });
  return clock;
}

absl::Status Session::Barrier(Group group, absl::string_view name,
                              std::optional<absl::Duration> timeout) {
  const absl::Time start = driver_->loop()->Now();
  const absl::Status status = AskStatus([&](Core& core, Core::Done done) {
    core.Barrier(group, std::string(name), timeout.value_or(config_.request_timeout),
                 std::move(done));
  });
  CountWait(start);
  return status;
}

absl::StatusOr<std::string> Session::Call(std::uint32_t server_rank, absl::string_view handler,
                                          absl::string_view request, const Options& options) {
  absl::StatusOr<Calls::Frames> reply = Ask<Calls::Frames>([&](Core& core, Calls::Done done) {
    core.Call(server_rank, std::string(handler), {runtime::Buffer::CopyOf(request)},
              options.timeout.value_or(config_.request_timeout), std::move(done));
  });
  if (options.done != nullptr) options.done(reply.status());
  LEEWAY_RETURN_IF_ERROR(reply.status());
  return std::string((*reply)[0].text());
}

Ticket Session::Call(std::uint32_t server_rank, std::string handler, CallFrames request,
                     CallDone done, Options options) {
  std::shared_ptr<Operation> operation = Operation::New();
  auto finish = [operation, done = std::move(done),
                 also = std::move(options.done)](absl::StatusOr<Calls::Frames> answer) {
    const absl::Status status = answer.status();
    if (done != nullptr) {
      done(answer.ok() ? absl::StatusOr<CallFrames>(node::FramesOf(*answer)) : status);
    }
    if (also != nullptr) also(status);
    operation->MarkDone(status);
  };
  absl::Status begun = OfThisProcess();
  if (begun.ok()) begun = node::CheckFrames(request);
  if (!begun.ok()) {
    finish(begun);
    return Ticket(std::move(operation));
  }
  driver_->DoOneOfMany([&] {
    // Waiters return only after the callback has run.
    auto later = [this, operation,
                  finish = std::move(finish)](absl::StatusOr<Calls::Frames> answer) mutable {
      driver_->CallUnlocked(
          [this, operation, finish = std::move(finish), answer = std::move(answer)]() mutable {
            finish(std::move(answer));
            driver_->DoLocked([&] { CallThoseWhoWait(operation); });
          });
    };
    if (core_ == nullptr) return later(Left());
    core_->Call(server_rank, handler, node::BuffersOf(std::move(request)),
                options.timeout.value_or(config_.request_timeout), std::move(later));
  });
  return Ticket(std::move(operation));
}

absl::StatusOr<std::string> Session::AskText(
    absl::FunctionRef<void(Core&, SchedulerRequests::TextDone)> start) {
  const absl::Time since = driver_->loop()->Now();
  absl::StatusOr<std::string> text = Ask<std::string>(start);
  CountWait(since);
  return text;
}

absl::StatusOr<std::uint64_t> Session::SetCodec(absl::string_view table, absl::string_view codec,
                                                std::optional<absl::Duration> timeout) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string json, AskText([&](Core& core, auto done) {
                            core.SetCodec(std::string(table), std::string(codec),
                                          TimeoutOf(timeout), std::move(done));
                          }));
  return ClockOfSwitch(json);
}

absl::StatusOr<std::uint64_t> Session::ChangeTable(absl::string_view table,
                                                   const TableChange& change,
                                                   std::optional<absl::Duration> timeout) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string json, AskText([&](Core& core, auto done) {
                            core.ChangeTable(std::string(table), TextsOf(change),
                                             TimeoutOf(timeout), std::move(done));
                          }));
  return ClockOfSwitch(json);
}

absl::StatusOr<std::string> Session::Checkpoint(absl::string_view directory,
                                                std::optional<absl::Duration> timeout) {
  LEEWAY_ASSIGN_OR_RETURN(const SavedResiduals residuals, Residuals());
  LEEWAY_ASSIGN_OR_RETURN(const std::string path, AskText([&](Core& core, auto done) {
                            core.Checkpoint(std::string(directory), TimeoutOf(timeout),
                                            std::move(done));
                          }));
  if (residuals.empty()) return path;
  LEEWAY_RETURN_IF_ERROR(WriteResiduals(runtime::RealFileSystem(), path, rank_, residuals));
  return path;
}

absl::StatusOr<proto::Published> Session::WhenNewer(const std::string& model, std::uint64_t version,
                                                    absl::Duration timeout) {
  return Ask<proto::Published>([&](Core& core, PublishedModels::Done done) {
    if (absl::Status usable = core.Usable(); !usable.ok()) return done(usable);
    core.models().WhenNewer(model, version, timeout, std::move(done));
  });
}

absl::StatusOr<SavedResiduals> Session::Residuals() {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  absl::StatusOr<SavedResiduals> residuals = Left();
  driver_->Do([&] {
    if (core_ != nullptr) residuals = core_->Residuals();
  });
  return residuals;
}

// A reader pushes nothing and has no residuals.
absl::Status Session::MayKeepResiduals() {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  absl::Status status = Left();
  driver_->Do([&] {
    if (core_ != nullptr) status = core_->MayDo("saving and loading residuals");
  });
  return status;
}

absl::Status Session::SaveResiduals(const std::string& directory) {
  LEEWAY_RETURN_IF_ERROR(MayKeepResiduals());
  LEEWAY_ASSIGN_OR_RETURN(const SavedResiduals residuals, Residuals());
  return WriteResiduals(runtime::RealFileSystem(), directory, rank_, residuals);
}

absl::Status Session::LoadResiduals(const std::string& directory,
                                    std::optional<std::uint32_t> rank) {
  LEEWAY_RETURN_IF_ERROR(MayKeepResiduals());
  LEEWAY_ASSIGN_OR_RETURN(
      const SavedResiduals residuals,
      ReadResiduals(runtime::RealFileSystem(), directory, rank.value_or(rank_)));
  absl::Status status = Left();
  driver_->Do([&] {
    if (core_ != nullptr) status = core_->TakeResiduals(residuals);
  });
  return status;
}

absl::Status Session::Leave(absl::Duration timeout) {
  LEEWAY_RETURN_IF_ERROR(OfThisProcess());
  return AskStatus([&](Core& core, Core::Done done) { core.Leave(timeout, std::move(done)); });
}

void Session::Close() {
  if (inherited()) return;
  if (driver_->InCallback()) return CloseLater();
  bool open = false;
  driver_->DoLocked([&] { open = core_ != nullptr; });
  if (!open) return;
  LeaveAndEnd();
  Destroy();
}

absl::Duration Session::CloseTimeout() const {
  return std::min(kCloseTimeout, config_.request_timeout);
}

void Session::LeaveAndEnd() {
  const absl::Status left = Leave(CloseTimeout());
  if (!left.ok()) runtime::LogWarning("left the cluster, but not in order: ", left.message());
  driver_->Do([&] {
    core_->Stop();
    last_stats_ = core_->stats();
    last_clock_ = core_->clock();
    core_.reset();
    driver_->Notify();
  });
}

void Session::Destroy() {
  driver_->Stop();
  // The network releases the last of the user's memory.
  world_.owned_factory.reset();
  world_.owned_host.reset();
  log_name_.Clear();
}

// The thread that runs the callback is needed to leave the cluster.
void Session::CloseLater() {
  runtime::LogInfo(
      "a worker is destroyed within an operation's callback: it leaves the cluster "
      "on a thread of its own");
  const std::shared_ptr<Session> self = shared_from_this();
  StartLeaver(
      CloseTimeout() + kTellTimeout, [self] { self->LeaveAndEnd(); }, [self] { self->Destroy(); });
}

void Session::CountWait(absl::Time since) {
  if (inherited()) return;
  const absl::Duration waited = driver_->loop()->Now() - since;
  driver_->DoLocked([&] { waited_ += waited; });
}

WorkerStats Session::stats() const {
  WorkerStats stats;
  if (inherited()) return stats;
  driver_->DoLocked([&] {
    stats = core_ == nullptr ? last_stats_ : core_->stats();
    stats.waited = waited_;
  });
  return stats;
}

}  // namespace leeway::worker
