// ShmLink is both segments of a connection and the socket beside them, with the protocol of waking
// each other.
//
// A side that is about to sleep says so in its own segment and then checks the other segment once
// more; a side that has written something new checks afterwards whether the other one sleeps. Both
// put a full barrier between the two steps, so at least one of them sees the other. A sleeping side
// is woken once: no second byte is sent for the same value of its word.
#ifndef LEEWAY_VAN_SHM_SHM_LINK_H_
#define LEEWAY_VAN_SHM_SHM_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/loop/loop.h"
#include "van/shm/memory/shm_segment.h"
#include "van/shm/shm_socket.h"

namespace leeway::van {

// Shared by the connection and all received frames. Any thread.
class ShmLink {
 public:
  ShmLink(std::shared_ptr<ShmOwnSegment> own_segment, std::shared_ptr<ShmPeerSegment> peer_segment,
          std::shared_ptr<ShmSocket> link_socket)
      : own(std::move(own_segment)),
        peer(std::move(peer_segment)),
        socket(std::move(link_socket)) {}

  const std::shared_ptr<ShmOwnSegment> own;
  const std::shared_ptr<ShmPeerSegment> peer;
  const std::shared_ptr<ShmSocket> socket;

  // To be called after writing a message, and after making room for one.
  void WakeForMessage() { WakeFor(peer->control().wants_message, &woken_for_message_); }
  void WakeForRoom() {
    own->control().freed.fetch_add(1, std::memory_order_release);
    WakeFor(peer->control().wants_room, &woken_for_room_);
  }

  // To be called after giving back an export of the other side.
  void WakeForExports() {
    own->control().gave_back.fetch_add(1, std::memory_order_release);
    WakeFor(peer->control().wants_back, &woken_for_exports_);
  }

  // True if there is a record to read, or room or an export that this side waits for.
  bool Ready() const {
    if (!deaf_.load(std::memory_order_relaxed) &&
        peer->control().tail.load(std::memory_order_acquire) !=
            own->control().head.load(std::memory_order_relaxed)) {
      return true;
    }
    return Differs(peer->control().freed, waits_) || Differs(peer->control().gave_back, exported_);
  }

  // Waits for room: until the other side's `freed` differs from this value.
  void WaitForRoom(std::uint64_t freed) {
    waits_.store(freed, std::memory_order_relaxed);
    Ask(&own->control().wants_room);
  }
  void WaitNoMore() {
    if (waits_.exchange(kWaitsForNothing, std::memory_order_relaxed) != kWaitsForNothing) {
      TakeBack(&own->control().wants_room);
    }
  }

  // Waits for exports to come back, likewise. False: it waits already, and none has come since.
  bool WaitForExports(std::uint64_t gave_back) {
    if (exported_.load(std::memory_order_relaxed) == gave_back) return false;
    exported_.store(gave_back, std::memory_order_relaxed);
    Ask(&own->control().wants_back);
    return true;
  }
  void WaitForNoExports() {
    if (exported_.exchange(kWaitsForNothing, std::memory_order_relaxed) != kWaitsForNothing) {
      TakeBack(&own->control().wants_back);
    }
  }

  // This side reads no more records.
  void Deafen() { deaf_.store(true, std::memory_order_relaxed); }

  void AskForMessages() { Ask(&own->control().wants_message); }
  void TakeBackAsking() { TakeBack(&own->control().wants_message); }

 private:
  static constexpr std::uint64_t kWaitsForNothing = ~0ull;

  static bool Differs(const std::atomic<std::uint64_t>& word,
                      const std::atomic<std::uint64_t>& waits) {
    const std::uint64_t last = waits.load(std::memory_order_relaxed);
    return last != kWaitsForNothing && word.load(std::memory_order_acquire) != last;
  }
  // Sets a new odd value.
  static void Ask(std::atomic<std::uint32_t>* word) {
    const std::uint32_t now = word->load(std::memory_order_relaxed);
    word->store(now + 1 + now % 2, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  static void TakeBack(std::atomic<std::uint32_t>* word) {
    const std::uint32_t now = word->load(std::memory_order_relaxed);
    word->store(now + now % 2, std::memory_order_relaxed);
  }
  void WakeFor(const std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>* woken) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t wants = word.load(std::memory_order_relaxed);
    if (wants % 2 == 0 || woken->load(std::memory_order_relaxed) == wants) return;
    woken->store(wants, std::memory_order_relaxed);
    socket->Wake();
  }

  std::atomic<std::uint64_t> waits_{kWaitsForNothing};
  std::atomic<std::uint64_t> exported_{kWaitsForNothing};
  std::atomic<bool> deaf_{false};
  std::atomic<std::uint32_t> woken_for_message_{0};
  std::atomic<std::uint32_t> woken_for_room_{0};
  std::atomic<std::uint32_t> woken_for_exports_{0};
};

// ShmBusyPoll is the links of all connections of a transport, for a thread that is about to sleep.
// Any thread.
class ShmBusyPoll final : public runtime::BusyPollSource {
 public:
  bool Ready() const override;
  void BeginSleep() override;
  void EndSleep() override;

  void Add(std::shared_ptr<ShmLink> link);
  void Remove(const ShmLink* link);
  // A byte that woke this side has been read, perhaps by another thread than the one that sleeps.
  void Woken(ShmLink* link);
  // True if a thread has slept since the last call: only then can there be wake-up bytes on the
  // sockets.
  bool TakeSlept() { return slept_.exchange(false, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ShmLink>> links_;
  int sleepers_ = 0;
  std::atomic<bool> slept_{true};
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_LINK_H_
