// Readers come, are told of new maps, and go: nobody else hears of it.
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {

// The member or reader that a connection is of, if it has joined.
Node* Scheduler::Impl::NodeOf(const van::Identity& identity) {
  return identity.role == Role::kReader ? readers_.FindIncarnation(identity.incarnation)
                                        : members_.FindIncarnation(identity.incarnation);
}

Node* Scheduler::Impl::FindNode(std::uint32_t id) {
  return id >= kFirstReaderNode ? readers_.Find(id) : members_.Find(id);
}

// It comes to a whole cluster.
void Scheduler::Impl::ReaderJoins(const Sender& sender, const proto::Join& join) {
  if (const absl::Status ready = Ready(); !ready.ok()) return NotYet(sender, ready);
  if (sender.identity.role != Role::kReader) {
    return Refuse(sender, absl::InvalidArgumentError("it joins as a reader, but its hello said "
                                                     "something else"));
  }
  const absl::StatusOr<Node*> admitted = readers_.Admit(sender.identity);
  if (!admitted.ok()) return Refuse(sender, admitted.status());
  Node* const reader = *admitted;
  van_->Admit(sender.peer);
  reader->peer = sender.peer;
  reader->address = join.host.empty() ? van_->AddressOf(sender.peer) : join.host;
  detector_.Heard(reader->id, Now());
  runtime::LogDebug(reader->FullName(), " has joined");
  Welcome(*reader);
  publisher_.OnRejoin(*reader, Now());
}

// Nobody waits for it: with its last connection its place is free. If it lives it joins again.
void Scheduler::Impl::ReaderIsCutOff(const Node& reader) {
  if (running() && reader.peer == 0 && reader.pulse == 0) {
    ForgetReader(reader, "its connections are gone");
  }
}

// If it lives all the same, it finds its connection broken and joins again.
void Scheduler::Impl::ReaderIsSilent(const Node& reader) {
  const van::PeerId peer = reader.peer;
  ForgetReader(reader, "it was not heard for long");
  if (peer != 0) van_->Disconnect(peer, absl::UnavailableError("this reader has to join again"));
}

void Scheduler::Impl::ForgetReader(const Node& reader, const std::string& why) {
  runtime::LogDebug(reader.FullName(), " has gone: ", why);
  const std::uint32_t id = reader.id;
  if (!runtime::Planted<"gone-readers-stay">()) readers_.Forget(id);
  detector_.Forget(id);
  publisher_.Forget(id);
  catalogue_.Forget(id);
}

bool Scheduler::Impl::MayOpenTables(const Sender& sender) {
  return sender.node != nullptr && sender.node->role == Role::kReader
             ? true
             : IsMember(sender, Role::kWorker);
}

}  // namespace leeway::scheduler
