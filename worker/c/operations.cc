// Operations in C: pushes, pulls, tickets.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "runtime/base/status_macros.h"
#include "worker/c/handles.h"

using leeway::DType;
using leeway::Options;
using leeway::c::CheckArrays;
using leeway::c::CheckNotNull;
using leeway::c::Guarded;
using leeway::c::Known;
using leeway::c::Missing;
using leeway::c::PulledRowsOf;
using leeway::c::TimeoutOf;

namespace {

using Done = void (*)(void* context, leeway_code code, const char* message);

std::function<void(const absl::Status&)> CallbackOf(Done done, void* context) {
  return [done, context](const absl::Status& status) {
    done(context, static_cast<leeway_code>(status.code()), std::string(status.message()).c_str());
  };
}

absl::StatusOr<Options> OptionsOf(const leeway_options* given) {
  Options options;
  if (given == nullptr) return options;
  LEEWAY_ASSIGN_OR_RETURN(const leeway_options known, Known("leeway_options", given));
  options.timeout = TimeoutOf(known.timeout_s);
  if (known.learning_rate != nullptr) options.learning_rate = *known.learning_rate;
  options.priority = known.priority;
  options.copy = known.copy != 0;
  if (known.done != nullptr) options.done = CallbackOf(known.done, known.context);
  return options;
}

// Calls `body` with a value of the type's C++ type.
template <class Body>
absl::Status WithType(leeway_dtype dtype, const Body& body) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat32:
      return body(float());
    case DType::kFloat64:
      return body(double());
    case DType::kFloat16:
      return body(leeway::Float16());
    case DType::kBFloat16:
      return body(leeway::BFloat16());
    case DType::kInt32:
      return body(std::int32_t());
    case DType::kInt64:
      return body(std::int64_t());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype is ", static_cast<int>(dtype), ": it is one of leeway_dtype"));
}

template <class T>
std::span<const T> In(const void* values, std::uint64_t elements) {
  return {static_cast<const T*>(values), elements};
}
template <class T>
std::span<T> Out(void* values, std::uint64_t elements) {
  return {static_cast<T*>(values), elements};
}

// Submits an operation with these arrays: `begin` is called with a value of the element type, the
// options and the new ticket.
template <class Begin>
leeway_error* Submit(const leeway_table* table, leeway_dtype dtype, const leeway_options* given,
                     leeway_ticket** ticket, const absl::Status& arrays, const Begin& begin) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("table", table, "ticket", ticket));
    LEEWAY_RETURN_IF_ERROR(arrays);
    LEEWAY_ASSIGN_OR_RETURN(Options options, OptionsOf(given));
    return WithType(dtype, [&](auto type) {
      auto result = std::make_unique<leeway_ticket>();
      result->ticket = begin(type, std::move(options), result.get());
      *ticket = result.release();
      return absl::OkStatus();
    });
  });
}

// Submits a call of a shard handler: `begin` is called with the request, where the answers are to
// go, and the options.
template <class Begin>
leeway_error* SubmitCall(const leeway_table* table, const char* handler, const void* request,
                         std::size_t bytes, const leeway_options* given, leeway_ticket** ticket,
                         const Begin& begin) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("table", table, "handler", handler, "ticket", ticket));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("request", request, bytes));
    LEEWAY_ASSIGN_OR_RETURN(Options options, OptionsOf(given));
    auto result = std::make_unique<leeway_ticket>();
    result->answers = std::make_shared<std::vector<std::string>>(1);
    options.done = [answers = result->answers,
                    done = std::move(options.done)](const absl::Status& status) {
      if (done != nullptr) done(status);
    };
    result->ticket = begin(absl::string_view(static_cast<const char*>(request), bytes),
                           result->answers.get(), std::move(options));
    *ticket = result.release();
    return absl::OkStatus();
  });
}

// The answers of a call that has completed.
absl::StatusOr<const std::vector<std::string>*> AnswersOf(leeway_worker* worker,
                                                          const leeway_ticket* ticket) {
  LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "ticket", ticket));
  LEEWAY_RETURN_IF_ERROR(worker->worker->Info(ticket->ticket).status());
  if (ticket->answers != nullptr) return ticket->answers.get();
  return absl::FailedPreconditionError("the ticket is not of a call of a shard handler");
}

}  // namespace

extern "C" {

leeway_error* leeway_push(const leeway_table* table, leeway_dtype dtype, const void* values,
                          uint64_t elements, const leeway_options* options,
                          leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("values", values, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.Push(In<T>(values, elements), std::move(with));
                });
}
leeway_error* leeway_pull(const leeway_table* table, leeway_dtype dtype, void* values,
                          uint64_t elements, const leeway_options* options,
                          leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("values", values, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.Pull(Out<T>(values, elements), std::move(with));
                });
}
leeway_error* leeway_push_pull(const leeway_table* table, leeway_dtype dtype, const void* values,
                               void* result, uint64_t elements, const leeway_options* options,
                               leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("values", values, elements, "result", result, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.PushPull(In<T>(values, elements), Out<T>(result, elements),
                                               std::move(with));
                });
}
leeway_error* leeway_push_rows(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                               leeway_dtype dtype, const void* values, uint64_t elements,
                               const leeway_options* options, leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("keys", keys, num_keys, "values", values, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.Push(std::span(keys, num_keys), In<T>(values, elements),
                                           std::move(with));
                });
}
leeway_error* leeway_pull_rows(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                               leeway_dtype dtype, void* values, uint64_t elements,
                               const leeway_options* options, leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("keys", keys, num_keys, "values", values, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.Pull(std::span(keys, num_keys), Out<T>(values, elements),
                                           std::move(with));
                });
}
leeway_error* leeway_push_pull_rows(const leeway_table* table, const uint64_t* keys,
                                    uint64_t num_keys, leeway_dtype dtype, const void* values,
                                    void* result, uint64_t elements, const leeway_options* options,
                                    leeway_ticket** ticket) {
  const absl::Status arrays =
      CheckArrays("keys", keys, num_keys, "values", values, elements, "result", result, elements);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket*) {
                  return table->table.PushPull(std::span(keys, num_keys), In<T>(values, elements),
                                               Out<T>(result, elements), std::move(with));
                });
}
leeway_error* leeway_push_ragged(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                                 const uint32_t* widths, leeway_dtype dtype, const void* values,
                                 uint64_t elements, const leeway_options* options,
                                 leeway_ticket** ticket) {
  const absl::Status arrays =
      CheckArrays("keys", keys, num_keys, "widths", widths, num_keys, "values", values, elements);
  return Submit(
      table, dtype, options, ticket, arrays, [&]<class T>(T, Options&& with, leeway_ticket*) {
        return table->table.PushRagged(std::span(keys, num_keys), std::span(widths, num_keys),
                                       In<T>(values, elements), std::move(with));
      });
}
leeway_error* leeway_pull_ragged(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                                 leeway_dtype dtype, const leeway_options* options,
                                 leeway_ticket** ticket) {
  const absl::Status arrays = CheckArrays("keys", keys, num_keys);
  return Submit(table, dtype, options, ticket, arrays,
                [&]<class T>(T, Options&& with, leeway_ticket* result) {
                  auto rows = std::make_shared<PulledRowsOf<T>>();
                  result->rows = rows;
                  with.done = [rows, done = std::move(with.done)](const absl::Status& status) {
                    if (done != nullptr) done(status);
                  };
                  return table->table.PullRagged(std::span(keys, num_keys), &rows->widths,
                                                 &rows->values, std::move(with));
                });
}
leeway_error* leeway_pulled_rows(leeway_worker* worker, const leeway_ticket* ticket,
                                 const uint32_t** widths, const void** values, uint64_t* elements) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "ticket", ticket, "widths", widths,
                                        "values", values, "elements", elements));
    LEEWAY_RETURN_IF_ERROR(worker->worker->Info(ticket->ticket).status());
    if (ticket->rows == nullptr) {
      return absl::FailedPreconditionError("the ticket is not of a ragged pull");
    }
    *widths = ticket->rows->widths.data();
    *values = ticket->rows->data();
    *elements = ticket->rows->elements();
    return absl::OkStatus();
  });
}
leeway_error* leeway_call_shard(const leeway_table* table, uint64_t key, const char* handler,
                                const void* request, size_t request_bytes,
                                const leeway_options* options, leeway_ticket** ticket) {
  return SubmitCall(table, handler, request, request_bytes, options, ticket,
                    [&](absl::string_view text, std::vector<std::string>* answers, Options&& with) {
                      return table->table.Call(key, handler, text, answers->data(),
                                               std::move(with));
                    });
}
leeway_error* leeway_call_shards(const leeway_table* table, const char* handler,
                                 const void* request, size_t request_bytes,
                                 const leeway_options* options, leeway_ticket** ticket) {
  return SubmitCall(table, handler, request, request_bytes, options, ticket,
                    [&](absl::string_view text, std::vector<std::string>* answers, Options&& with) {
                      return table->table.CallAll(handler, text, answers, std::move(with));
                    });
}
leeway_error* leeway_num_answers(leeway_worker* worker, const leeway_ticket* ticket,
                                 size_t* count) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("count", count));
    LEEWAY_ASSIGN_OR_RETURN(const auto* const answers, AnswersOf(worker, ticket));
    *count = answers->size();
    return absl::OkStatus();
  });
}
leeway_error* leeway_get_answer(leeway_worker* worker, const leeway_ticket* ticket, size_t index,
                                const char** answer, size_t* answer_bytes) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("answer", answer, "answer_bytes", answer_bytes));
    LEEWAY_ASSIGN_OR_RETURN(const auto* const answers, AnswersOf(worker, ticket));
    if (index >= answers->size()) {
      return absl::OutOfRangeError(
          absl::StrCat("answer ", index, " of a call with ", answers->size()));
    }
    *answer = (*answers)[index].c_str();
    *answer_bytes = (*answers)[index].size();
    return absl::OkStatus();
  });
}
leeway_error* leeway_wait(leeway_worker* worker, const leeway_ticket* ticket) {
  return leeway_wait_all(worker, &ticket, 1);
}
leeway_error* leeway_wait_all(leeway_worker* worker, const leeway_ticket* const* tickets,
                              size_t count) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("tickets", tickets, count));
    absl::Status result;
    for (size_t i = 0; i < count; ++i) {
      result.Update(tickets[i] == nullptr ? Missing("a ticket")
                                          : worker->worker->Wait(tickets[i]->ticket));
    }
    return result;
  });
}
int leeway_done(const leeway_worker* worker, const leeway_ticket* ticket) {
  if (worker == nullptr || ticket == nullptr) return 1;
  return worker->worker->Done(ticket->ticket) ? 1 : 0;
}
leeway_error* leeway_when_done(leeway_worker* worker, const leeway_ticket* ticket,
                               void (*done)(void*, leeway_code, const char*), void* context) {
  return Guarded([&]() -> absl::Status {
    if (done == nullptr) return absl::InvalidArgumentError("done is a null pointer");
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "ticket", ticket));
    worker->worker->WhenDone(ticket->ticket, CallbackOf(done, context));
    return absl::OkStatus();
  });
}
void leeway_ticket_free(leeway_ticket* ticket) { delete ticket; }
leeway_error* leeway_get_info(const leeway_worker* worker, const leeway_ticket* ticket,
                              leeway_info* info) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "ticket", ticket, "info", info));
    if (info->struct_bytes < sizeof(std::size_t)) {
      return absl::InvalidArgumentError(absl::StrCat("leeway_info::struct_bytes is ",
                                                     info->struct_bytes, ": set it to its size"));
    }
    LEEWAY_ASSIGN_OR_RETURN(const leeway::PullInfo found, worker->worker->Info(ticket->ticket));
    const leeway_info known = {info->struct_bytes, found.clock, found.version, found.parts_dropped};
    std::memcpy(info, &known, std::min(info->struct_bytes, sizeof(known)));
    return absl::OkStatus();
  });
}

}  // extern "C"
