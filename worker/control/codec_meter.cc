#include "worker/control/codec_meter.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/log/log.h"

namespace leeway::worker {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);
constexpr std::uint64_t kProbeBytes = 256 << 10;
constexpr std::uint64_t kProbeBytesMax = 1 << 20;
// A larger probe follows if the last one took less than this, and if the link seems slower than
// this: only then may the result change the choice.
constexpr absl::Duration kQuickProbe = absl::Milliseconds(10);
constexpr double kFastLink = 1e9;  // bytes a second
// Older measurements of a link do not count.
constexpr absl::Duration kMemory = absl::Seconds(2);
constexpr absl::Duration kCodecsEvery = absl::Seconds(20);
// A report is made if a cost has changed by this share, and otherwise now and then, since a report
// may be lost.
constexpr double kReportedChange = 0.1;
constexpr absl::Duration kReportEvery = absl::Seconds(5);
// The upper bound of a measured speed: a probe may be answered before its start was read.
constexpr double kFastest = 1e11;

}  // namespace

CodecMeter::CodecMeter(World world)
    : world_(std::move(world)), tick_(world_.loop, [this] { Tick(); }) {}

void CodecMeter::Watch(const std::shared_ptr<TableCoding>& table) {
  tables_[table->table_id].coding = table;
  table->sample.wanted = true;
  if (!probe_.empty()) return;
  const std::string zeros(kProbeBytesMax, '\0');
  probe_ = runtime::Buffer::CopyOf(zeros);
  bytes_before_ = world_.bytes_moved();
  tick_before_ = world_.loop->Now();
  tick_.SetBy(tick_before_ + kInterval);
}

void CodecMeter::Tick() {
  const absl::Time now = world_.loop->Now();
  const std::vector<std::uint32_t> living = world_.servers();
  std::erase_if(servers_, [&](const auto& server) {
    return std::find(living.begin(), living.end(), server.first) == living.end();
  });
  // The traffic of training is taken to be spread evenly over all links.
  const std::uint64_t bytes = world_.bytes_moved();
  const double seconds = absl::ToDoubleSeconds(now - std::exchange(tick_before_, now));
  const auto moved = static_cast<double>(bytes - std::exchange(bytes_before_, bytes));
  if (seconds > 0 && !living.empty()) {
    traffic_.push_back({now, moved / seconds / static_cast<double>(living.size())});
  }
  for (const std::uint32_t rank : living) Probe(rank, &servers_[rank]);
  const double link = LinkBytesPerSecond();
  for (auto it = tables_.begin(); it != tables_.end();) {
    const std::shared_ptr<TableCoding> coding = it->second.coding.lock();
    if (coding == nullptr) {
      it = tables_.erase(it);
      continue;
    }
    Measure(coding.get(), &it->second);
    if (link > 0 && !it->second.speeds.empty()) Report(*coding, link, &it->second);
    ++it;
  }
  tick_.SetBy(now + kInterval);
}

// Sends an empty call and then one with many bytes: the difference of the times is that of the
// bytes.
void CodecMeter::Probe(std::uint32_t rank, Server* server) {
  if (server->probe != 0) {
    // The probe under way is an upper bound of the speed.
    const absl::Duration waited = world_.loop->Now() - server->probe_sent;
    if (waited > 2 * kInterval) {
      const std::uint64_t bytes = std::max(server->probe_bytes, kProbeBytes);
      Note(server, static_cast<double>(bytes) / absl::ToDoubleSeconds(waited));
    }
    return;
  }
  server->probe = ++probes_;
  server->probe_bytes = 0;
  Send(rank, server);
}

void CodecMeter::Send(std::uint32_t rank, Server* server) {
  const std::uint64_t number = server->probe;
  server->probe_sent = world_.loop->Now();
  world_.probe(rank, probe_.Part(0, server->probe_bytes),
               [this, rank, number, alive = lifetime_.watch()](const auto& answer) {
                 if (alive) OnProbe(rank, number, answer.ok());
               });
}

void CodecMeter::OnProbe(std::uint32_t rank, std::uint64_t number, bool ok) {
  const auto found = servers_.find(rank);
  if (found == servers_.end() || found->second.probe != number) return;
  Server& server = found->second;
  const absl::Duration took = world_.loop->Now() - server.probe_sent;
  if (!ok) {
    server.probe = 0;
    return;
  }
  if (server.probe_bytes == 0) {
    server.round_trip = std::min(server.round_trip, took);
    server.probe_bytes = kProbeBytes;
    return Send(rank, &server);
  }
  const auto bytes = static_cast<double>(server.probe_bytes);
  const double seconds = absl::ToDoubleSeconds(took - std::min(server.round_trip, took * 0.9));
  const double bytes_per_s = bytes / std::max(seconds, bytes / kFastest);
  Note(&server, bytes_per_s);
  if (took < kQuickProbe && bytes_per_s < kFastLink && server.probe_bytes < kProbeBytesMax) {
    server.probe_bytes *= 2;
    return Send(rank, &server);
  }
  server.probe = 0;
}

void CodecMeter::Note(Server* server, double bytes_per_s) {
  server->speeds.push_back({world_.loop->Now(), bytes_per_s});
}

// The speed of the link to the slowest server; 0: not known yet.
double CodecMeter::LinkBytesPerSecond() {
  const absl::Time old = world_.loop->Now() - kMemory;
  const auto fastest = [&](std::deque<Speed>* speeds) {
    while (speeds->size() > 1 && speeds->front().at < old) speeds->pop_front();
    double most = 0;
    for (const Speed& speed : *speeds) most = std::max(most, speed.bytes_per_s);
    return most;
  };
  const double traffic = fastest(&traffic_);
  double slowest = 0;
  for (auto& [rank, server] : servers_) {
    if (server.speeds.empty()) continue;
    const double speed = std::max(traffic, fastest(&server.speeds));
    if (slowest == 0 || speed < slowest) slowest = speed;
  }
  return slowest;
}

// Times the codecs one after the other on values that were pushed since; takes some milliseconds.
void CodecMeter::Measure(TableCoding* coding, Table* table) {
  const absl::Time now = world_.loop->Now();
  if (now - table->measured_at < kCodecsEvery) return;
  ValueSample& sample = coding->sample;
  sample.wanted = true;
  if (sample.values.empty()) return;
  std::vector<compress::CodecSpeed> speeds;
  for (const compress::TableCodec& codec : coding->codecs.choices) {
    compress::CodecSpeed speed;
    if (codec.encodes()) {
      const auto measured = coding->MeasureSample(codec, [this] { return world_.loop->Now(); });
      // Values that the codec cannot carry would be sent unchanged.
      if (measured.ok()) speed = *measured;
    }
    speeds.push_back(speed);
  }
  table->speeds = std::move(speeds);
  table->measured_at = now;
  sample = {};
}

void CodecMeter::Report(const TableCoding& coding, double link_bytes_per_s, Table* table) {
  const absl::Time now = world_.loop->Now();
  proto::CodecReport report{.table = coding.table_id, .link_bytes_per_s = link_bytes_per_s};
  bool changed = table->reported.empty() || now - table->reported_at >= kReportEvery;
  for (std::size_t i = 0; i < table->speeds.size(); ++i) {
    const compress::TableCodec& codec = coding.codecs.choices[i];
    if (codec.encodes() && !codec.codec->lossless()) report.lossy |= std::uint64_t{1} << i;
    const double cost = compress::NanosecondsPerByte(table->speeds[i], link_bytes_per_s);
    report.costs.push_back(cost);
    changed = changed || std::abs(cost - table->reported[i]) > kReportedChange * table->reported[i];
  }
  if (!changed) return;
  table->reported = report.costs;
  table->reported_at = now;
  world_.report(report);
}

}  // namespace leeway::worker
