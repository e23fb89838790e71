// DeskClient gives commands to the scheduler over a connection of its own: the way of a process to
// the Desk. Link is its interface; the scheduler's own process has a shorter way.
//
// It has a loop of its own. A connection that breaks is made again, and what is not answered is
// asked again, which the scheduler recognises; after Config::scheduler_timeout without it
// everything fails.
#ifndef LEEWAY_COMPAT_CORE_DESK_CLIENT_H_
#define LEEWAY_COMPAT_CORE_DESK_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/van.h"

namespace leeway::compat {

class Link {
 public:
  using Done = absl::AnyInvocable<void(const absl::StatusOr<std::string>& json)>;

  virtual ~Link() = default;
  // Any thread. `done` once, on a thread of the link, with what the scheduler answers; not at all
  // once the link is destroyed.
  virtual void Ask(std::string command, std::vector<std::string> arguments, Done done) = 0;
};

class DeskClient final : public Link, private van::Handler {
 public:
  explicit DeskClient(const Config& config);
  ~DeskClient() override;

  void Ask(std::string command, std::vector<std::string> arguments, Done done) override;

 private:
  struct Pending {
    proto::Admin admin;
    Done done;
  };

  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;

  void Begin(proto::Admin admin, Done done);
  void Connect();
  void Send(const proto::Admin& admin);
  void Ping();
  void Fail(const absl::Status& why);

  const Config config_;
  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  runtime::Loop* const loop_;
  // On the loop:
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  bool up_ = false;
  absl::Time heard_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Pending> pending_;
  std::unique_ptr<runtime::Timer> connect_timer_, ping_timer_;
};

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_DESK_CLIENT_H_
