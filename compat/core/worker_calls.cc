// The requests of a worker's KVWorkers and SimpleApps: calls of the servers' handlers, and pushes
// and pulls of tables.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compat/core/call_format.h"
#include "compat/core/customer_state.h"
#include "compat/core/desk.h"
#include "compat/core/frames.h"
#include "compat/core/nodes.h"
#include "compat/core/process.h"
#include "compat/core/server_calls.h"
#include "compat/core/settings.h"
#include "compat/ps/kv_app.h"
#include "runtime/log/log.h"
#include "worker/client/session.h"

namespace ps::internal {
namespace {

using leeway::CallFrames;
using leeway::Ticket;
using leeway::compat::CallHead;
using leeway::compat::CallKind;
using leeway::compat::FailUnlessLeaving;
using leeway::compat::Process;
using leeway::worker::Session;
using State = std::shared_ptr<CustomerState>;

// A handler may take its time: ps-lite waits for it as long as the server lives, and so does this.
constexpr absl::Duration kPatience = absl::Hours(10000);
// A message by way of the scheduler has its body in pieces, each of a few arguments of a command:
// the scheduler takes little at a time from a connection that is not a member's.
constexpr std::size_t kArgumentBytes = 4000;
constexpr std::size_t kArgumentsPerPiece = 8;

leeway::Options Patiently() {
  leeway::Options options;
  options.timeout = kPatience;
  return options;
}

State StateOf(Customer* customer) { return customer->state()->shared_from_this(); }

std::string NameOf(const CustomerState& state) {
  return absl::StrCat("application ", state.app_id, ", customer ", state.customer_id);
}

// ---- what stands behind the servers ----

// The servers' answers, by rank.
struct Handlers {
  std::mutex mutex;
  std::vector<absl::StatusOr<int>> types;
};

std::vector<absl::StatusOr<int>> AskServers(const CustomerState& state, Session& session) {
  CallHead head;
  head.kind = CallKind::kWhichHandler;
  head.app_id = state.app_id;
  head.customer_id = state.customer_id;
  const auto handlers = std::make_shared<Handlers>();
  handlers->types.assign(session.num_servers(), absl::UnknownError("no answer"));
  std::vector<Ticket> tickets;
  for (std::uint32_t server = 0; server < session.num_servers(); ++server) {
    tickets.push_back(session.Call(
        server, leeway::compat::kHandler, CallFrames{leeway::compat::FrameOf(head)},
        [handlers, server](absl::StatusOr<CallFrames> answer) {
          const std::lock_guard lock(handlers->mutex);
          const auto said = answer.ok() ? leeway::compat::HeadOf(*answer) : std::nullopt;
          if (said.has_value()) {
            handlers->types[server] = said->table;
          } else {
            handlers->types[server] =
                answer.ok() ? absl::InternalError("an answer that is none") : answer.status();
          }
        },
        Patiently()));
  }
  if (const absl::Status waited = session.Wait(tickets); absl::IsFailedPrecondition(waited)) {
    Fail(absl::StrCat(NameOf(state), ": the first request cannot be made within a callback: ",
                      std::string(waited.message())));
  }
  const std::lock_guard lock(handlers->mutex);
  return handlers->types;
}

// All living servers have to agree.
int Agreed(const CustomerState& state, const std::vector<absl::StatusOr<int>>& types, int wanted) {
  std::optional<int> agreed;
  absl::Status trouble;
  for (std::size_t server = 0; server < types.size(); ++server) {
    absl::StatusOr<int> type = types[server];
    // A server that is no program of ps-lite, `leeway server`, has tables alone.
    if (absl::IsNotFound(type.status())) type = wanted;
    if (!type.ok()) {
      trouble = type.status();
      continue;
    }
    if (agreed.has_value() && *agreed != *type) {
      Fail(absl::StrCat(NameOf(state), ": the servers have different handlers; server ", server,
                        " has another than those before it"));
    }
    agreed = *type;
  }
  if (!agreed.has_value()) FailUnlessLeaving(NameOf(state), trouble);
  return agreed.value_or(kNoTable);
}

std::shared_ptr<const leeway::worker::TableInfo> OpenTable(CustomerState& state, Session& session,
                                                           ValueType type) {
  absl::StatusOr<leeway::compat::TableSettings> settings = leeway::compat::ReadTableSettings();
  if (!settings.ok()) Fail(std::string(settings.status().message()));
  settings->spec.name = absl::StrCat("ps-lite/", state.app_id);
  settings->spec.dtype = static_cast<leeway::DType>(type);
  state.pushes_per_clock = settings->pushes_per_clock;
  absl::StatusOr<std::shared_ptr<const leeway::worker::TableInfo>> table =
      session.CreateTable(settings->spec);
  if (!table.ok()) {
    Fail(absl::StrCat(NameOf(state), ": ", std::string(table.status().message())));
  }
  return *std::move(table);
}

// ---- calls ----

// A request to several servers, and their answers.
struct Fanned {
  std::mutex mutex;
  std::vector<KVArrays> answers;
  std::size_t missing = 0;
  std::function<void(std::vector<KVArrays>)> done;
};

void TakeAnswer(const State& state, Fanned& fanned, int timestamp, std::size_t index, int server,
                absl::StatusOr<CallFrames> frames) {
  const auto head = frames.ok() ? leeway::compat::HeadOf(*frames) : std::nullopt;
  if (!head.has_value() || !leeway::compat::HasArrays(*head, *frames)) {
    return FailUnlessLeaving(
        absl::StrCat(NameOf(*state), ", request ", timestamp, " to server ", server),
        frames.ok() ? absl::InternalError("an answer that is none") : frames.status());
  }
  bool last = false;
  {
    const std::lock_guard lock(fanned.mutex);
    KVArrays& answer = fanned.answers[index];
    answer.has_lens = head->has_lens != 0;
    const auto share = [](const leeway::CallFrame& frame) {
      Bytes bytes;  // to be copied by `done` and no longer used
      bytes.data = const_cast<std::byte*>(frame.bytes.data());
      bytes.size = frame.bytes.size();
      bytes.owner = std::const_pointer_cast<void>(frame.owner);
      return bytes;
    };
    answer.keys = leeway::compat::BytesOf((*frames)[1]);
    answer.vals = share((*frames)[2]);
    if (answer.has_lens) answer.lens = leeway::compat::BytesOf((*frames)[3]);
    last = --fanned.missing == 0;
  }
  if (last) {
    const std::lock_guard lock(state->callbacks);
    fanned.done(std::move(fanned.answers));
    fanned.done = nullptr;
  }
  state->CountAnswer(timestamp);
}

Ticket CallServer(const State& state, Session& session, const CallHead& head,
                  const std::shared_ptr<Fanned>& fanned, std::size_t index, ServerRequest request) {
  const int server = request.server;
  const int timestamp = head.timestamp;
  return session.Call(
      static_cast<std::uint32_t>(server), leeway::compat::kHandler,
      leeway::compat::FramesOf(head, std::move(request.arrays)),
      [state, fanned, timestamp, index, server](absl::StatusOr<CallFrames> answer) {
        TakeAnswer(state, *fanned, timestamp, index, server, std::move(answer));
      },
      Patiently());
}

}  // namespace

bool UsesTables(Customer* customer, ValueType type) {
  CustomerState& state = *customer->state();
  int behind = state.behind.load(std::memory_order_acquire);
  if (behind == CustomerState::kNotKnown) {
    const std::lock_guard lock(state.asking);
    behind = state.behind.load(std::memory_order_acquire);
    if (behind == CustomerState::kNotKnown) {
      state.session = Process::Get().SessionOf(state.customer_id);
      behind = Agreed(state, AskServers(state, *state.session), type);
      if (behind != kNoTable && behind != type) {
        Fail(absl::StrCat(NameOf(state),
                          ": the KVWorker and the servers' KVServer have different "
                          "types of values"));
      }
      if (behind != kNoTable) state.table = OpenTable(state, *state.session, type);
      state.behind.store(behind, std::memory_order_release);
    }
  }
  return behind != kNoTable;
}

void SendToServers(Customer* customer, const KVHead& head, std::vector<ServerRequest> requests,
                   std::function<void(std::vector<KVArrays>)> done) {
  const State state = StateOf(customer);
  const int servers = static_cast<int>(state->session->num_servers());
  const int skipped = servers - static_cast<int>(requests.size());
  if (requests.empty()) {
    const std::lock_guard lock(state->callbacks);
    done({});
  }
  state->CountAnswer(head.timestamp, skipped);
  CallHead call;
  call.app_id = state->app_id;
  call.customer_id = state->customer_id;
  call.timestamp = head.timestamp;
  call.cmd = head.cmd;
  call.push = head.push ? 1 : 0;
  call.pull = head.pull ? 1 : 0;
  const auto fanned = std::make_shared<Fanned>();
  fanned->answers.resize(requests.size());
  fanned->missing = requests.size();
  fanned->done = std::move(done);
  std::vector<Ticket> tickets;
  tickets.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    call.has_lens = requests[i].arrays.has_lens ? 1 : 0;
    tickets.push_back(CallServer(state, *state->session, call, fanned, i, std::move(requests[i])));
  }
  state->WaitBy(head.timestamp, state->session, std::move(tickets));
}

// ---- tables ----

namespace {

// A request to a table, kept until it is done.
struct TableWork {
  TableRequest request;
  std::vector<std::uint32_t> pulled;  // widths of a ragged pull
};

leeway::worker::Access AccessOf(const CustomerState& state, TableWork& work) {
  const TableRequest& request = work.request;
  const std::size_t bytes = leeway::SizeOf(static_cast<leeway::DType>(request.type));
  leeway::worker::Access access;
  access.table = state.table;
  access.kind = state.table->spec.kind;
  access.dtype = static_cast<leeway::DType>(request.type);
  access.op = !request.head.pull  ? leeway::proto::Op::kPush
              : request.head.push ? leeway::proto::Op::kPushPull
                                  : leeway::proto::Op::kPull;
  access.keys = {static_cast<const std::uint64_t*>(request.arrays.keys.data),
                 request.arrays.keys.size / sizeof(std::uint64_t)};
  if (request.head.push) {
    access.values = request.arrays.vals.data;
    access.size = request.arrays.vals.size / bytes;
  }
  if (access.kind == leeway::TableKind::kRagged) {
    access.widths = request.widths;
    if (request.head.pull) {
      access.result_widths = &work.pulled;
      access.resize = [&work](std::size_t elements) {
        return work.request.room(work.pulled, elements);
      };
    }
  } else if (request.head.pull) {
    const std::uint64_t width = state.table->spec.row_width;
    access.result_size = access.keys.size() * width;
    access.result = request.room(
        std::vector<std::uint32_t>(access.keys.size(), static_cast<std::uint32_t>(width)),
        access.result_size);
  }
  return access;
}

void CheckWidths(const CustomerState& state, const TableRequest& request) {
  if (state.table->spec.kind == leeway::TableKind::kRagged) return;
  for (const std::uint32_t width : request.widths) {
    if (width == state.table->spec.row_width) continue;
    Fail(absl::StrCat(NameOf(state), ": a push has ", width,
                      " values of a key, but "
                      "LEEWAY_PS_ROW_WIDTH is ",
                      state.table->spec.row_width));
  }
}

}  // namespace

void SendToTable(Customer* customer, TableRequest given) {
  const State state = StateOf(customer);
  const auto work = std::make_shared<TableWork>();
  work->request = std::move(given);
  const KVHead head = work->request.head;
  const int servers = static_cast<int>(state->session->num_servers());
  if (work->request.arrays.keys.size == 0) {
    if (head.pull) work->request.room({}, 0);
    const std::lock_guard lock(state->callbacks);
    work->request.done();
    return state->CountAnswer(head.timestamp, servers);
  }
  CheckWidths(*state, work->request);
  leeway::Options options;
  options.priority = work->request.priority;
  options.done = [state, work, head, servers](const absl::Status& status) {
    if (!status.ok()) {
      return FailUnlessLeaving(absl::StrCat(NameOf(*state), ", request ", head.timestamp), status);
    }
    {
      const std::lock_guard lock(state->callbacks);
      work->request.done();
    }
    state->CountAnswer(head.timestamp, servers);
  };
  const Ticket ticket = state->session->Submit(AccessOf(*state, *work), std::move(options));
  state->WaitBy(head.timestamp, state->session, {ticket});
  if (!head.push || state->pushes_per_clock == 0) return;
  if (++state->pushes % state->pushes_per_clock == 0) {
    const absl::Status ended = state->session->Clock();
    if (!ended.ok()) FailUnlessLeaving(absl::StrCat(NameOf(*state), ", a clock"), ended);
  }
}

// ---- SimpleApp ----

namespace {

void SendByDesk(const State& state, const SimpleMessage& message, int to,
                leeway::compat::Link::Done done) {
  const std::string body = absl::Base64Escape(message.body);
  const std::shared_ptr<leeway::compat::Link> link = Process::Get().link();
  std::size_t sent = 0;
  while (true) {
    std::vector<std::string> arguments = {
        absl::StrCat(to),
        absl::StrCat(message.sender),
        message.request ? leeway::compat::kRequest : leeway::compat::kResponse,
        absl::StrCat(state->app_id),
        absl::StrCat(message.customer_id),
        absl::StrCat(message.head),
        absl::StrCat(message.timestamp),
        "last",
    };
    const std::size_t end = std::min(body.size(), sent + kArgumentsPerPiece * kArgumentBytes);
    for (; sent < end; sent += kArgumentBytes) {
      arguments.push_back(body.substr(sent, std::min(kArgumentBytes, end - sent)));
    }
    sent = end;
    if (sent == body.size()) {
      return link->Ask(leeway::compat::kSendCommand, std::move(arguments), std::move(done));
    }
    arguments[7] = "more";
    link->Ask(leeway::compat::kSendCommand, std::move(arguments),
              [](const absl::StatusOr<std::string>&) {});
  }
}

// A node that has died is not waited for.
void NoteUnsent(const State& state, int timestamp, int to, const absl::Status& why) {
  if (!absl::IsUnavailable(why)) {
    return FailUnlessLeaving(absl::StrCat(NameOf(*state), ", a message to node ", to), why);
  }
  leeway::runtime::LogWarning("ps: ", NameOf(*state), ": node ", to,
                              " has died and does not respond: ", why.message());
  state->CountAnswer(timestamp);
}

Ticket CallSimple(const State& state, Session& session, const SimpleMessage& message, int to) {
  CallHead head;
  head.kind = CallKind::kSimple;
  head.app_id = state->app_id;
  head.customer_id = state->customer_id;
  head.timestamp = message.timestamp;
  head.cmd = message.head;
  const int timestamp = message.timestamp;
  return session.Call(
      leeway::compat::RankOf(to), leeway::compat::kHandler,
      CallFrames{leeway::compat::FrameOf(head), leeway::CallFrame::Of(message.body)},
      [state, timestamp, to](absl::StatusOr<CallFrames> answer) {
        if (!answer.ok()) return NoteUnsent(state, timestamp, to, answer.status());
        const auto said = leeway::compat::HeadOf(*answer);
        SimpleMessage response;
        response.head = said.has_value() ? said->cmd : 0;
        if (answer->size() > 1) response.body = leeway::compat::TextOf((*answer)[1]);
        response.sender = to;
        response.timestamp = timestamp;
        response.customer_id = state->customer_id;
        state->turns->Add(leeway::compat::MessageKind::kSimple,
                          [state, response = std::move(response)] {
                            state->on_message(response);
                            state->CountAnswer(response.timestamp);
                          });
      },
      Patiently());
}

}  // namespace

void SendSimple(Customer* customer, int timestamp, int head, const std::string& body, int to) {
  const State state = StateOf(customer);
  Process& process = Process::Get();
  SimpleMessage message;
  message.request = true;
  message.head = head;
  message.body = body;
  message.sender = process.NodeOf(state->customer_id);
  message.timestamp = timestamp;
  message.customer_id = state->customer_id;
  const bool is_worker = process.role() == leeway::Role::kWorker;
  std::shared_ptr<Session> session;
  std::vector<Ticket> tickets;
  for (const int node : leeway::compat::NodesOf(to, process.num_servers(), process.num_workers())) {
    if (is_worker && leeway::compat::IsServerNode(node)) {
      if (session == nullptr) session = process.SessionOf(state->customer_id);
      tickets.push_back(CallSimple(state, *session, message, node));
      continue;
    }
    SendByDesk(state, message, node,
               [state, timestamp, node](const absl::StatusOr<std::string>& sent) {
                 if (!sent.ok()) NoteUnsent(state, timestamp, node, sent.status());
               });
  }
  if (!tickets.empty()) state->WaitBy(timestamp, session, std::move(tickets));
}

void RespondSimple(Customer* customer, const SimpleMessage& to, const std::string& body) {
  if (RespondByCall(customer, to, body)) return;
  const State state = StateOf(customer);
  SimpleMessage response = to;
  response.request = false;
  response.body = body;
  response.sender = Process::Get().NodeOf(state->customer_id);
  SendByDesk(state, response, to.sender, [](const absl::StatusOr<std::string>&) {});
}

void BeReady(Customer* customer) {
  customer->state()->turns->Open(leeway::compat::MessageKind::kSimple);
}

}  // namespace ps::internal
