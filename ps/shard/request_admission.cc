#include "ps/shard/request_admission.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shard/handlers/handler_run.h"
#include "ps/shard/state/answers.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

RequestClass RequestAdmission::ClassOf(const proto::Request& request) const {
  if (request.op == proto::Op::kCall) return kAtOnce;
  const Table* table = state_->context->tables.Find(request.table);
  return table != nullptr && table->is_bsp() ? kHeld : kAtOnce;
}

ClientSession* RequestAdmission::Take(Inbound inbound) {
  const proto::RequestId id = inbound.request.id;
  const WorkerKey worker{id.worker, id.incarnation};
  const RequestClass kind = ClassOf(inbound.request);
  ClientSession& session = state_->sessions.Of(worker);
  RequestOrder& order = session.orders[kind];
  switch (order.Judge(id.sequence, inbound.request.after)) {
    case RequestOrder::Verdict::kSeen: {
      ++state_->context->counters->duplicates;
      const absl::Status outcome = order.OutcomeOf(id.sequence);
      const bool answered = outcome.ok() || session.answers.Find(id.sequence) != nullptr;
      answered ? AnswerAgain(session, kind, std::move(inbound))
               : RefuseWhenCommitted(*state_, inbound, outcome);
      return nullptr;
    }
    case RequestOrder::Verdict::kEarly:
      KeepEarly(worker, &order, std::move(inbound));
      return nullptr;
    case RequestOrder::Verdict::kNext:
      if (!AdmitNext(&session, kind, std::move(inbound))) return nullptr;
      if (order.keeps_nothing()) break;
      while (std::optional<Inbound> next = order.TakeNext()) {
        if (!AdmitNext(&session, kind, *std::move(next))) break;
      }
  }
  return &session;
}

void RequestAdmission::KeepEarly(const WorkerKey& worker, RequestOrder* order, Inbound inbound) {
  if (order->Keep(std::move(inbound))) {
    ++state_->context->counters->early;
    state_->sessions.NoteEarly(worker);
  } else {
    ++state_->context->counters->early_dropped;
  }
}

void RequestAdmission::AdmitWaiting(Admitted admitted) {
  for (const WorkerKey& worker : state_->sessions.with_early()) {
    ClientSession* const session = state_->sessions.Find(worker);
    if (session == nullptr) continue;
    while (std::optional<Inbound> next = session->orders[kAtOnce].TakeNext()) {
      if (!AdmitNext(session, kAtOnce, *std::move(next))) break;
    }
    admitted(worker, session);
  }
}

bool RequestAdmission::MustWait(const proto::Request& request) const {
  Tables& tables = state_->context->tables;
  if (!tables.any_closes_by_count() || request.op == proto::Op::kCall) return false;
  const Table* const table = tables.Find(request.table);
  return table != nullptr && pushes_->MustWait(*table, request);
}

// False: its clock is not open, so that it waits, and all behind it.
bool RequestAdmission::AdmitNext(ClientSession* session, RequestClass kind, Inbound inbound) {
  const proto::RequestId id = inbound.request.id;
  if (MustWait(inbound.request)) {
    ran_ahead_ =
        state_->clocks.RunsAhead(id.worker, id.incarnation, inbound.request.clock) || ran_ahead_;
    KeepEarly({id.worker, id.incarnation}, &session->orders[kind], std::move(inbound));
    return false;
  }
  const bool pushes = HasPush(inbound.request.op);
  session->orders[kind].Admit(id.sequence);
  if (inbound.request.op == proto::Op::kCall) {
    TakeCall(session, inbound);
    return true;
  }
  absl::Status outcome = Admit(std::move(inbound));
  if (!outcome.ok()) NoteFailure(session, kind, id, pushes, std::move(outcome));
  return true;
}

void RequestAdmission::NoteFailure(ClientSession* session, RequestClass kind,
                                   const proto::RequestId& id, bool pushes, absl::Status outcome) {
  // A worker that is answered UNAVAILABLE asks again in any case: there is nothing to remember.
  if (pushes && !absl::IsUnavailable(outcome) && state_->effects->has_follower()) {
    state_->AppendToLog(RefusalEntry({.worker = id.worker,
                                      .incarnation = id.incarnation,
                                      .sequence = id.sequence,
                                      .held = kind == kHeld,
                                      .status = outcome}));
  }
  session->orders[kind].RememberFailure(id.sequence, std::move(outcome));
}

// ---- calls of handlers ----

// What a handler says, an error too, may tell of what it has read: it waits until that is on all
// replicas.
void RequestAdmission::TakeCall(ClientSession* session, const Inbound& inbound) {
  ++state_->context->counters->calls;
  session->answers.ForgetBelow(inbound.request.settled);
  const absl::StatusOr<runtime::Buffer> answer = Call(*session, inbound);
  if (!answer.ok()) {
    NoteFailure(session, kAtOnce, inbound.request.id, /*pushes=*/true, answer.status());
    return RefuseWhenCommitted(*state_, inbound, answer.status());
  }
  session->answers.Keep(inbound.request.id.sequence, *answer);
  AnswerCall(*state_, inbound, *answer);
}

// Runs the handler, and takes its updates.
absl::StatusOr<runtime::Buffer> RequestAdmission::Call(const ClientSession& session,
                                                       const Inbound& inbound) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const table, TableFor(inbound.request));
  LEEWAY_RETURN_IF_ERROR(session.answers.CheckRoom(0));
  HandlerRun run(state_, *table, inbound);
  LEEWAY_ASSIGN_OR_RETURN(const runtime::Buffer answer, run.Run());
  LEEWAY_RETURN_IF_ERROR(session.answers.CheckRoom(answer.size()));
  LEEWAY_RETURN_IF_ERROR(pushes_->TakeCall(run.pushes(), CallEntry(inbound.request, answer)));
  return answer;
}

// ---- pushes and pulls ----

// Takes the request's effect, and answers it, now or later. The status is what the same request is
// to be told should it be sent again.
absl::Status RequestAdmission::Admit(Inbound inbound) {
  absl::StatusOr<const Table*> table = TableFor(inbound.request);
  absl::Status status = table.status();
  bool held = false;
  if (status.ok() && HasPush(inbound.request.op)) {
    // A pull that cannot wait is refused before the push that comes with it is applied.
    if (HasPull(inbound.request.op)) status = pulls_->CheckRoom(**table, inbound);
    if (status.ok()) status = pushes_->Take(**table, inbound, &held);
  }
  if (!status.ok()) {
    Refuse(*state_, inbound, status);
  } else if (HasPull(inbound.request.op)) {
    pulls_->ServeOrHold(**table, std::move(inbound));
  } else {
    Acknowledge(*state_, inbound, held);
  }
  return status;
}

// A request that was admitted before, without failing, here or at an earlier head of the chain.
void RequestAdmission::AnswerAgain(const ClientSession& session, RequestClass kind,
                                   Inbound inbound) {
  if (pulls_->Redirect(inbound.request.id, inbound.peer)) return;
  if (inbound.request.op == proto::Op::kCall) {
    const runtime::Buffer* const kept = session.answers.Find(inbound.request.id.sequence);
    if (kept != nullptr) return AnswerCall(*state_, inbound, *kept);
    return Refuse(*state_, inbound,
                  absl::UnknownError("the answer to this call is not kept any more"));
  }
  absl::StatusOr<const Table*> table = TableFor(inbound.request);
  if (!table.ok()) return Refuse(*state_, inbound, table.status());
  // Refusals of an earlier head are not known here, but the reason can be found again.
  if (HasPush(inbound.request.op) && inbound.request.id.sequence <= session.inherited[kind]) {
    const absl::Status fits = pushes_->CheckAgain(**table, inbound);
    if (!fits.ok()) {
      return Refuse(*state_, inbound, fits);
    }
  }
  if (HasPull(inbound.request.op)) {
    pulls_->ServeOrHold(**table, std::move(inbound));
  } else {
    const bool held = kind == kHeld && inbound.request.id.sequence > session.in_state;
    Acknowledge(*state_, inbound, held);
  }
}

absl::StatusOr<const Table*> RequestAdmission::TableFor(const proto::Request& request) const {
  Table* table = state_->context->tables.Find(request.table);
  if (table == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("table ", request.table, " is not installed on this server"));
  }
  if (request.clock >= kClockMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("clock ", request.clock, " is beyond what a clock may be, ", kClockMax));
  }
  LEEWAY_RETURN_IF_ERROR(table->Fits(request, state_->context->message_bytes_max));
  table->NoteAskedFor();
  return table;
}

}  // namespace leeway::ps
