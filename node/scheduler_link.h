// A node's connection to the scheduler: turns it into messages, and makes it again when it breaks.
// What is said over it, and when enough is enough, is its owner's to know.
#ifndef LEEWAY_NODE_SCHEDULER_LINK_H_
#define LEEWAY_NODE_SCHEDULER_LINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages.h"
#include "runtime/loop.h"
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
    // It broke, or has not come up; OK: the scheduler said goodbye. ConnectAgain is the owner's to
    // call.
    virtual void OnLinkDown(const absl::Status& why) = 0;
    // Connected, to something else.
    virtual void OnNoScheduler(const absl::Status& what) = 0;
    virtual void OnHeard(proto::AnyMessage message) = 0;
    // How long connecting may take from now on.
    virtual absl::Duration Patience() const = 0;
  };

  // `owner` outlives it.
  SchedulerLink(std::string url, runtime::Loop* loop, Owner* owner);
  ~SchedulerLink() override;

  void Start(van::Factory* factory, const van::Identity& identity, const van::Limits& limits);
  // At once, or after a pause if it came to nothing or broke as soon as it stood.
  void ConnectAgain();
  // For good. What was sent goes out.
  void Close();

  absl::Status Send(const proto::AnyMessage& message);
  // For what is said again until it is answered.
  void SendQuietly(const proto::AnyMessage& message);
  // What later connections say of this node.
  void SetIdentity(const van::Identity& identity) { van_->SetIdentity(identity); }

  bool up() const { return up_; }
  const std::string& url() const { return url_; }
  van::Identity identity() const { return van_->identity(); }
  // When the scheduler last said something.
  absl::Time heard() const { return heard_; }
  // Why it was last down.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Connect();
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message raw) override;
  void Down(const absl::Status& why);

  const std::string url_;
  runtime::Loop* const loop_;
  Owner* const owner_;
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  bool up_ = false;
  bool flapping_ = false;  // it broke sooner than kReconnectPause after it came up
  bool closed_ = false;
  absl::Time up_since_, heard_;
  absl::Status trouble_;
  runtime::TimerId connect_timer_ = runtime::TimerId::kNone;
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_SCHEDULER_LINK_H_
