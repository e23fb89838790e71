// Forks of this process: how an object notices that it was inherited from a parent, and which
// descriptors a child closes.
//
// A child has a copy of the parent's memory and none of its threads. What an object shares with
// others (connections, numbers of requests) still belongs to the parent, so an inherited object
// must not use it. Any thread.
#ifndef LEEWAY_RUNTIME_BASE_FORK_H_
#define LEEWAY_RUNTIME_BASE_FORK_H_

#include <cstdint>

namespace leeway::runtime {

// Grows in each child that fork() makes: an object that notes it when it is made is inherited where
// it is different later. The first call of the program must come before the forks that it counts.
std::uint64_t ForkCount();

// Whether children close the descriptor as soon as they are made. A connection that a child holds
// open would hide the parent's end from its peers. Descriptors from 65,536 on stay open.
//
// The number stays in use in the child, for /dev/null: whoever inherited it may still use or close
// it there, and must not meet a descriptor that the child has opened since.
void SetClosedInChildren(int fd, bool closed);

// Marks a descriptor that something else owns, for as long as this lives. The owner may close it
// before that: children keep another file that has been opened under its number since.
class ClosedInChildren {
 public:
  explicit ClosedInChildren(int fd);
  ~ClosedInChildren();
  ClosedInChildren(const ClosedInChildren&) = delete;
  ClosedInChildren& operator=(const ClosedInChildren&) = delete;

 private:
  const int fd_;
  const std::uint64_t file_;  // which file it is; 0: it is not open
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_FORK_H_
