// A node's connection to the scheduler: decodes its messages, and connects again when it breaks, at
// the addresses that the scheduler has or had. Its owner decides what is sent, and when to give up.
#ifndef LEEWAY_NODE_SCHEDULER_LINK_H_
#define LEEWAY_NODE_SCHEDULER_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/van.h"

namespace leeway::node {

// Lives on one loop.
class SchedulerLink final : private van::Handler {
 public:
  // None of these is called after Close. An owner may call Close within any of them.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Connected, to a scheduler.
    virtual void OnLinkUp() = 0;
    // The connection broke, or has not come up; OK: the scheduler said goodbye. The owner calls
    // ConnectAgain.
    virtual void OnLinkDown(const absl::Status& why) = 0;
    // Connected, to something else.
    virtual void OnNoScheduler(const absl::Status& what) = 0;
    virtual void OnHeard(proto::AnyMessage message, absl::string_view text) = 0;
    // How long connecting may take from now on.
    virtual absl::Duration Patience() const = 0;
  };

  // `owner` outlives it.
  SchedulerLink(std::string url, runtime::Loop* loop, Owner* owner);

  void Start(van::Factory* factory, const van::Identity& identity, const van::Limits& limits);
  // Connects at once, or, if the last connection failed or broke soon, after a pause, which grows,
  // and at the next address in turn. Between several addresses a pause is no longer than connecting
  // may take.
  void ConnectAgain();
  // It is connected to something that is not the scheduler.
  void DropAndConnectAgain(const absl::Status& why);
  // If it is up but has brought nothing for that long.
  void ConnectAnewIfSilentFor(absl::Duration patience);
  // If it tries to connect, and has done so since before `limit`: tries anew, at that address.
  void ConnectAnewIfTryingSinceBefore(absl::Time limit, const std::string& url);
  // The scheduler may be at that address: tries it at once, or, if it is connected to a scheduler,
  // when that connection has broken.
  void TryAt(const std::string& url);
  // For good. Messages that were sent still go out.
  void Close();

  absl::Status Send(const proto::AnyMessage& message);
  // Likewise, without an error: for messages that are resent until they are answered.
  void SendQuietly(const proto::AnyMessage& message);
  // The hello of later connections.
  void SetIdentity(const van::Identity& identity) { van_->SetIdentity(identity); }

  bool up() const { return up_; }
  // The address that it is connected to, or tries.
  const std::string& url() const { return urls_.front(); }
  std::size_t addresses() const { return urls_.size(); }  // that it tries in turn
  van::Identity identity() const { return van_->identity(); }
  // The incarnation of the scheduler that it is or was last connected to.
  std::uint64_t scheduler_incarnation() const { return scheduler_incarnation_; }
  // When the last message came.
  absl::Time heard() const { return heard_; }
  // Why it was last down.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Connect();
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message raw) override;
  void Down(const absl::Status& why);
  absl::Status Garbled(const absl::Status& why);

  const std::string home_;         // the scheduler's first address
  std::vector<std::string> urls_;  // the current one first
  runtime::Loop* const loop_;
  Owner* const owner_;
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  std::uint64_t scheduler_incarnation_ = 0;
  bool up_ = false;
  bool flapping_ = false;  // it broke sooner than kSteady after it came up
  absl::Duration pause_;
  bool closed_ = false;
  std::uint64_t garbled_ = 0;  // connections that ended because of undecodable bytes
  int garbled_before_hello_ = 0;
  absl::Time trying_since_, up_since_, heard_;
  absl::Status trouble_;
  runtime::Timer connect_timer_;
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_SCHEDULER_LINK_H_
