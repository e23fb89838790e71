// A Pace is the time that workers sleep in each step, which can be changed while they run: so a
// training lasts as long as the storm around it.
#ifndef LEEWAY_TESTS_STORM_PACE_H_
#define LEEWAY_TESTS_STORM_PACE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace leeway::storm {

// A number in a file that several processes see.
class Pace {
 public:
  // Creates the file if it is missing.
  static absl::StatusOr<Pace> Open(const std::string& path);
  ~Pace();
  Pace(Pace&& other) noexcept;
  Pace& operator=(Pace&&) = delete;

  void Set(absl::Duration a_step);
  absl::Duration Get() const;

 private:
  explicit Pace(std::uint64_t* microseconds) : microseconds_(microseconds) {}
  std::uint64_t* microseconds_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_PACE_H_
