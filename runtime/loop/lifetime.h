// Lifetime is a flag that outlives its owner: it tells a callback whether the object that it points
// to still exists.
//
// The owner holds a Lifetime as a member. A callback, or a function that may destroy the owner on
// its way, holds a Watch and asks it before it touches the owner again. Both on one loop.
#ifndef LEEWAY_RUNTIME_LOOP_LIFETIME_H_
#define LEEWAY_RUNTIME_LOOP_LIFETIME_H_

#include <memory>
#include <utility>

namespace leeway::runtime {

class Lifetime {
 public:
  class Watch {
   public:
    // True while the owner exists and has not called End.
    explicit operator bool() const { return *alive_; }

   private:
    friend class Lifetime;
    explicit Watch(std::shared_ptr<const bool> alive) : alive_(std::move(alive)) {}
    std::shared_ptr<const bool> alive_;
  };

  Lifetime() = default;
  ~Lifetime() { End(); }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Watch watch() const { return Watch(alive_); }
  bool alive() const { return *alive_; }
  // Makes all watches false from now on: for an owner that begins to destroy its parts.
  void End() { *alive_ = false; }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_LIFETIME_H_
