// Memory of a handler's that a payload frame is received straight into, rather than copied there.
//
// The transport asks for it when a large frame begins to come, and may be in the midst of it when
// the memory is wanted back. Both sides live on one loop, so that a grant that has been revoked is
// not written to any more: what still comes of the frame goes elsewhere.
#ifndef LEEWAY_VAN_LANDING_H_
#define LEEWAY_VAN_LANDING_H_

#include <cstddef>
#include <memory>
#include <utility>

namespace leeway::van {

// The transport's side.
class Landing {
 public:
  explicit Landing(std::byte* to) : to_(to) {}
  // Null once it is revoked.
  std::byte* to() const { return to_; }

 private:
  friend class LandingGrant;
  std::byte* to_;
};

// The handler's side. Revokes what it has granted when it goes.
class LandingGrant {
 public:
  LandingGrant() = default;
  ~LandingGrant() { Revoke(); }
  LandingGrant(const LandingGrant&) = delete;
  LandingGrant& operator=(const LandingGrant&) = delete;

  // Null while a transport still has what was granted before: of a message that has begun to come,
  // over a connection that may yet prove to be the right one, nothing may be missing.
  std::shared_ptr<const Landing> Give(std::byte* to) {
    if (landing_ != nullptr && landing_.use_count() > 1) return nullptr;
    return landing_ = std::make_shared<Landing>(to);
  }
  void Revoke() {
    if (landing_ != nullptr) std::exchange(landing_, nullptr)->to_ = nullptr;
  }

 private:
  std::shared_ptr<Landing> landing_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_LANDING_H_
