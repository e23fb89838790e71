// The meter of what the codecs of tables with codec "auto" would cost this worker; reports the
// costs to the scheduler, which chooses a codec (compress/codec_cost.h).
//
// The speed of a link is the fastest that was seen in the last seconds: by probes, which are calls
// with 256 KiB that a server answers with nothing, and by the traffic of training. Both are needed:
// a probe beside traffic looks slow, and traffic alone does not show the speed of a link that is
// hardly used. A short probe that looks slow has mostly waited for its turn at either end; larger
// probes follow, of which the wait is a smaller part. Codecs are timed on values that were pushed.
//
// Lives on the worker's loop. Nothing happens before a table with codec "auto" is open.
#ifndef LEEWAY_WORKER_CONTROL_CODEC_METER_H_
#define LEEWAY_WORKER_CONTROL_CODEC_METER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "runtime/memory/buffer.h"
#include "worker/control/calls.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {

class CodecMeter {
 public:
  struct World {
    runtime::Loop* loop = nullptr;
    std::function<std::vector<std::uint32_t>()> servers;  // ranks of the living ones
    // Sends bytes to that server, which answers with nothing (proto::kProbeHandler).
    std::function<void(std::uint32_t rank, runtime::Buffer bytes, Calls::Done done)> probe;
    std::function<std::uint64_t()> bytes_moved;                    // payload, in all, both ways
    std::function<void(const proto::CodecReport& report)> report;  // the scheduler
  };
  explicit CodecMeter(World world);

  // Measures the table's codecs from now on, until the table is gone.
  void Watch(const std::shared_ptr<TableCoding>& table);
  void Stop() { tick_.Clear(); }

 private:
  struct Speed {
    absl::Time at;
    double bytes_per_s = 0;
  };
  struct Server {
    std::uint64_t probe = 0;  // number of the unanswered one; 0: none
    absl::Time probe_sent;
    std::uint64_t probe_bytes = 0;
    absl::Duration round_trip = absl::InfiniteDuration();  // the shortest, of an empty call
    std::deque<Speed> speeds;
  };
  struct Table {
    std::weak_ptr<TableCoding> coding;
    std::vector<compress::CodecSpeed> speeds;  // by codec; empty: not measured yet
    absl::Time measured_at = absl::InfinitePast();
    std::vector<double> reported;
    absl::Time reported_at = absl::InfinitePast();
  };

  void Tick();
  void Probe(std::uint32_t rank, Server* server);
  // Sends a probe of `probe_bytes`; of 0 bytes to measure an empty call.
  void Send(std::uint32_t rank, Server* server);
  void OnProbe(std::uint32_t rank, std::uint64_t number, bool ok);
  void Note(Server* server, double bytes_per_s);
  double LinkBytesPerSecond();
  void Measure(TableCoding* coding, Table* table);
  void Report(const TableCoding& coding, double link_bytes_per_s, Table* table);

  const World world_;
  runtime::Timer tick_;
  runtime::Buffer probe_;
  std::map<std::uint32_t, Server> servers_;
  std::map<std::uint32_t, Table> tables_;  // by id
  std::uint64_t probes_ = 0;
  std::uint64_t bytes_before_ = 0;
  absl::Time tick_before_ = absl::InfinitePast();
  std::deque<Speed> traffic_;
  runtime::Lifetime lifetime_;  // for answers to probes
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_CODEC_METER_H_
