// The versions of one dense block that workers have been told of, and the messages that lead from
// one to the next.
#ifndef LEEWAY_PS_STORE_DENSE_VERSIONS_H_
#define LEEWAY_PS_STORE_DENSE_VERSIONS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "proto/messages/limits.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

// Of each block as few messages are kept as fit the bytes of the block, and at most so many: a
// reader that lacks more gets the block.
inline constexpr std::size_t kMessagesMax = 16;
static_assert(kMessagesMax <= proto::kReplyPartsMax);

// A version is due for whom holds the newest one after so many rounds of updates, at the latest: a
// round is one update for each living worker.
inline constexpr std::uint64_t kRoundsMax = 2;
// The clocks that an answer may be staler than its table.
inline constexpr std::uint64_t kLagMax = 1;

class Versions {
 public:
  // The newest one, and how far the slowest worker was when it was made.
  std::uint64_t version() const { return version_; }
  std::uint64_t slowest() const { return slowest_; }

  // The slowest clock of the version is not known: the next reader gets a new one.
  void ForgetSlowest() {
    slowest_ = 0;
    forgotten_ = true;
  }

  // A version that does not follow from the one before by a message.
  void StartAt(std::uint64_t version, std::uint64_t slowest);
  // `message`, of that codec, leads from the newest version to this one; `bytes_max`: of all that
  // are kept.
  void Append(std::uint64_t version, std::uint64_t slowest, std::uint32_t codec,
              runtime::Buffer message, std::uint64_t bytes_max);

  // Whether there should be a newer one, for a reader that may do without.
  //
  // Everyone is sent every version, so one for each round of updates is what bytes allow. It is
  // made where it makes answers less stale: when the slowest worker has gone on since the newest
  // one. Where that one stands, or nobody's clock goes on, it is made for each kRoundsMax rounds of
  // updates, or of pulls that were answered without a message.
  struct Since {
    std::uint64_t updates = 0;  // that the newest version lacks
    std::uint64_t slowest = 0;  // how far the slowest worker is now
    std::uint64_t workers = 1;  // that live
    bool reader_holds = false;  // the newest version: it would get no message
  };
  bool IsDue(const Since& since) const;
  // A reader that held the newest version got no message, though there were updates since.
  void NoteInVain() { ++in_vain_; }
  // Of the messages that are kept.
  std::uint64_t bytes() const { return bytes_; }

  // The messages that lead from version `have` to the newest, if all are here: their parts, and the
  // messages themselves. False: they are not, or are `bytes_max` bytes or more.
  bool MessagesSince(std::uint64_t have, std::uint64_t bytes_max,
                     std::vector<proto::ReplyPart>* parts,
                     std::vector<runtime::Buffer>* messages) const;

 private:
  struct Message {
    std::uint64_t from = 0;
    std::uint64_t version = 0;
    std::uint32_t codec = 0;
    runtime::Buffer bytes;
  };
  std::uint64_t version_ = 1;  // of a block that nobody has pushed to: what all begin with
  std::uint64_t slowest_ = 0;
  bool forgotten_ = false;
  std::uint64_t in_vain_ = 0;     // NoteInVain since it was made
  std::deque<Message> messages_;  // each begins where the one before ends; the newest is the last
  std::uint64_t bytes_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_DENSE_VERSIONS_H_
