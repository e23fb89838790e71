// The rates of a data thread: its pushes, pulls and bytes per second, over the last seconds.
#ifndef LEEWAY_PS_DATA_RATES_H_
#define LEEWAY_PS_DATA_RATES_H_

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "ps/table/counters.h"
#include "van/van.h"

namespace leeway::ps {

// Lives on the data thread's loop, and takes its times from it.
class Rates {
 public:
  // The time that rates are computed over, about.
  static constexpr absl::Duration kWindow = absl::Seconds(5);

  struct PerSecond {
    double seconds = 0;  // that they are of; 0: too few to tell, and the rest is 0
    double pushes = 0, pulls = 0, bytes_in = 0, bytes_out = 0;
  };

  // The counters as they are now; to be called about once a second.
  void Note(absl::Time now, const Counters& counters, const van::Counters& van) {
    samples_.push_back(SampleOf(now, counters, van));
    // The newest sample that is as old as the window stays.
    while (samples_.size() > 2 && now - samples_[1].at >= kWindow) samples_.pop_front();
  }

  // Between the oldest sample that is kept and now.
  PerSecond Of(absl::Time now, const Counters& counters, const van::Counters& van) const {
    PerSecond rates;
    if (samples_.empty()) return rates;
    const Sample& from = samples_.front();
    const Sample to = SampleOf(now, counters, van);
    const double seconds = absl::ToDoubleSeconds(to.at - from.at);
    if (seconds < kSecondsMin) return rates;
    const auto rate = [seconds](std::uint64_t before, std::uint64_t after) {
      return static_cast<double>(after - before) / seconds;
    };
    return {.seconds = seconds,
            .pushes = rate(from.pushes, to.pushes),
            .pulls = rate(from.pulls, to.pulls),
            .bytes_in = rate(from.bytes_in, to.bytes_in),
            .bytes_out = rate(from.bytes_out, to.bytes_out)};
  }

 private:
  static constexpr double kSecondsMin = 0.1;
  struct Sample {
    absl::Time at;
    std::uint64_t pushes = 0, pulls = 0, bytes_in = 0, bytes_out = 0;
  };
  static Sample SampleOf(absl::Time now, const Counters& counters, const van::Counters& van) {
    return {.at = now,
            .pushes = counters.pushes_applied,
            .pulls = counters.pulls_served,
            .bytes_in = van.bytes_received,
            .bytes_out = van.bytes_sent};
  }

  std::deque<Sample> samples_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_RATES_H_
