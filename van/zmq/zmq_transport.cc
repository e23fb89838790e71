#include "van/zmq/zmq_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/session/session_van.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {
namespace {

// How long a closing transport waits for exported memory; a little longer than sockets linger.
constexpr absl::Duration kReturnWait = absl::Milliseconds(kLingerMs + 1000);

}  // namespace

ZmqTransport::ZmqTransport(std::shared_ptr<ZmqContext> context, runtime::Loop* loop,
                           const Limits& limits) {
  shared_.context = std::move(context);
  shared_.loop = loop;
  shared_.limits = limits;
}

ZmqTransport::~ZmqTransport() {
  shared_.lifetime.End();
  owed_source_.reset();
  dialled_.clear();
  shut_.clear();
  listeners_.clear();
  if (!shared_.exports->WaitForAll(kReturnWait)) {
    runtime::LogWarning("ZeroMQ did not return all memory in time when a van was closed");
  }
  for (auto& ticket : shared_.exports->Take()) std::move(ticket->done)(ticket->status);
}

void ZmqTransport::Start(TransportEvents* events) {
  shared_.events = events;
  owed_source_ = std::make_unique<ZmqSource>(shared_.loop, shared_.exports->fd(),
                                             [this] { return PollOwed(); });
}

absl::StatusOr<std::string> ZmqTransport::Listen(absl::string_view address) {
  auto listener = std::make_unique<ZmqListener>(&shared_);
  LEEWAY_ASSIGN_OR_RETURN(std::string advertised, listener->Open(address));
  listeners_.push_back(std::move(listener));
  return advertised;
}

absl::StatusOr<ConnId> ZmqTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const ZmqAddress parsed, ParseZmqAddress(address));
  std::string endpoint(address);
  bool v6 = false;
  if (parsed.scheme == ZmqScheme::kTcp) {
    LEEWAY_RETURN_IF_ERROR(CheckDialable(address, parsed.host, parsed.port));
    LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToConnect(parsed.host));
    endpoint = absl::StrCat("tcp://", host.number, ":", parsed.port);
    v6 = host.v6;
  }
  const ConnId conn = shared_.next_conn++;
  if (parsed.scheme == ZmqScheme::kInproc && !shared_.context->HasInproc(parsed.name)) {
    failed_dials_.emplace_back(conn, absl::UnavailableError("no process listens there"));
    return conn;
  }
  auto dialled = std::make_unique<ZmqDialled>(&shared_, conn, std::string(address));
  const absl::Status opened = dialled->Open(endpoint, parsed.scheme == ZmqScheme::kInproc, v6);
  if (!opened.ok()) {
    failed_dials_.emplace_back(conn, opened);
  } else {
    dialled_[conn] = std::move(dialled);
  }
  return conn;
}

ZmqListener* ZmqTransport::ListenerOf(ConnId conn) const {
  for (const auto& listener : listeners_) {
    if (listener->Has(conn)) return listener.get();
  }
  return nullptr;
}

void ZmqTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  ZmqExports::Ticket* ticket = nullptr;
  if (done) {
    ticket = new ZmqExports::Ticket;
    ticket->done = std::move(done);
  }
  ZmqSent sent = ZmqSent::kUnreachable;
  if (const auto found = dialled_.find(conn); found != dialled_.end()) {
    sent = found->second->Send(prefix, message, ticket);
  } else if (ZmqListener* listener = ListenerOf(conn); listener != nullptr) {
    sent = listener->Send(conn, prefix, message, ticket);
  }
  if (sent != ZmqSent::kSent && ticket != nullptr) {
    ticket->status =
        absl::UnavailableError(absl::StrCat(AddressOf(conn), ": the connection broke"));
  }
  shared_.exports->Finish(ticket);
}

void ZmqTransport::Close(ConnId conn) {
  std::erase_if(failed_dials_, [conn](const auto& failed) { return failed.first == conn; });
  if (const auto found = dialled_.find(conn); found != dialled_.end()) {
    found->second->Shut();
    shut_.push_back(std::move(found->second));
    dialled_.erase(found);
  } else if (ZmqListener* listener = ListenerOf(conn); listener != nullptr) {
    listener->Close(conn);
  }
}

std::string ZmqTransport::AddressOf(ConnId conn) const {
  if (const auto found = dialled_.find(conn); found != dialled_.end()) {
    return found->second->address();
  }
  const ZmqListener* listener = ListenerOf(conn);
  return listener == nullptr ? std::string() : listener->AddressOf(conn);
}

bool ZmqTransport::taken(ConnId conn) const {
  const auto found = dialled_.find(conn);
  return found != dialled_.end() && found->second->taken();
}

bool ZmqTransport::PollOwed() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  shut_.clear();
  for (const ConnId conn : std::exchange(shared_.ended, {})) dialled_.erase(conn);
  bool any = false;
  for (const auto& [conn, why] : std::exchange(failed_dials_, {})) {
    any = true;
    shared_.events->OnClosed(conn, why);
    if (!alive) return true;
  }
  DoneList ended;
  for (auto& ticket : shared_.exports->Take()) {
    any = true;
    ended.Add(std::move(ticket->done), std::move(ticket->status));
  }
  ended.RunAll();
  return any;
}

std::unique_ptr<Factory> NewZmqFactory(ZmqScheme scheme, int io_threads) {
  return NewZmqFactoryOn(std::make_shared<ZmqContext>(io_threads), scheme);
}

std::unique_ptr<Factory> NewZmqFactoryOn(std::shared_ptr<ZmqContext> context, ZmqScheme scheme) {
  return NewSessionFactory(
      [context](runtime::Loop* loop, const Limits& limits) {
        return std::make_unique<ZmqTransport>(context, loop, limits);
      },
      [context, scheme](absl::string_view host) {
        if (scheme == ZmqScheme::kIpc) return absl::StrCat("ipc://", context->NewIpcPath());
        if (scheme == ZmqScheme::kTcp) return AnyTcpAddress(host);
        return absl::StrCat("inproc://leeway.", context->NextNumber());
      },
      [context] {
        LEEWAY_RETURN_IF_ERROR(LoadZmq());
        return context->get() != nullptr
                   ? absl::OkStatus()
                   : absl::UnavailableError(
                         "ZeroMQ could not start (out of memory or file descriptors)");
      });
}

}  // namespace leeway::van
