// Children are processes whose lines are read while they run.
#ifndef LEEWAY_TESTS_STORM_CHILDREN_H_
#define LEEWAY_TESTS_STORM_CHILDREN_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/launch/lines.h"
#include "tools/launch/process.h"
#include "tools/launch/supervisor.h"

namespace leeway::storm {

class Child {
 public:
  using OnLine = std::function<void(launch::Stream, absl::string_view)>;

  Child(std::string name, const launch::Process& process, OnLine on_line);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  bool running() const { return !exit_code_.has_value(); }
  int exit_code() const { return exit_code_.value_or(-1); }      // 128 + N: killed by signal N
  const std::string& last_words() const { return last_words_; }  // last line of standard error
  void Signal(int signal);

 private:
  friend class Children;

  struct Channel {
    int fd;
    launch::Lines lines;
  };

  void Read(bool to_the_end);
  // True if it has ended by now.
  bool Reap();

  const std::string name_;
  const pid_t pid_;
  OnLine on_line_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::optional<int> exit_code_;
  std::string last_words_;
};

class Children {
 public:
  Children() { launch::AdoptOrphans(); }

  // It sees no LEEWAY_* and DMLC_* but those of `spec`.
  absl::StatusOr<Child*> Start(launch::ProcessSpec spec, Child::OnLine on_line);
  // Reads what they have written, and waits for events at most for `patience`.
  void Poll(absl::Duration patience);
  // Kills it if it still runs, and destroys it.
  void Forget(const Child* child);

  const std::vector<std::unique_ptr<Child>>& all() const { return children_; }

 private:
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_CHILDREN_H_
