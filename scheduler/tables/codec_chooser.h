// Chooses the codecs of tables whose description leaves that to Leeway (TableSpec::codec "auto"),
// from what workers report of their links and of what each codec costs them
// (compress/codec_cost.h).
//
// All workers push with the same codec, so the slowest counts: a codec costs what it costs the
// worker that it costs most. What is chosen has to be better in several looks one after the other.
// Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_CODEC_CHOOSER_H_
#define LEEWAY_SCHEDULER_TABLES_CODEC_CHOOSER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/messages.h"

namespace leeway::scheduler {

inline constexpr int kLooksAlike = 2;  // before a codec is changed

class CodecChooser {
 public:
  void OnReport(std::uint32_t worker, const proto::CodecReport& report);
  // The worker has gone.
  void Forget(std::uint32_t worker);

  struct Choice {
    std::uint32_t choice = 0;
    std::string reason;  // "worker 2 sends 12.1 MB/s: 81.2 ns a byte with none, 3.1 with onebit"
  };
  // What the table should have instead of its codec number `present` of those in `texts`; nothing:
  // it should stay. To be asked at regular intervals. `name` tells a worker for people.
  template <class Name>
  std::optional<Choice> Look(std::uint32_t table, std::uint32_t present,
                             const std::vector<std::string>& texts, const Name& name) {
    const std::optional<Costs> costs = CostsOf(table, texts.size());
    if (!costs.has_value()) return std::nullopt;
    const std::optional<std::uint32_t> better = Better(table, *costs, present);
    if (!better.has_value()) return std::nullopt;
    return Choice{*better, Reason(*costs, present, *better, texts, name(costs->slowest))};
  }

 private:
  struct Costs {
    std::vector<double> by_codec;  // nanoseconds a byte, of the worker that it costs most
    std::uint64_t lossy = 0;
    std::uint32_t slowest = 0;  // worker: of the slowest link
    double link_bytes_per_s = 0;
  };
  struct Table {
    std::map<std::uint32_t, proto::CodecReport> reports;  // by worker
    std::uint32_t wanted = 0;
    int looks = 0;  // that wanted it
  };

  std::optional<Costs> CostsOf(std::uint32_t table, std::size_t codecs) const;
  std::optional<std::uint32_t> Better(std::uint32_t table, const Costs& costs,
                                      std::uint32_t present);
  static std::string Reason(const Costs& costs, std::uint32_t present, std::uint32_t better,
                            const std::vector<std::string>& texts, const std::string& worker);

  std::map<std::uint32_t, Table> tables_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_CODEC_CHOOSER_H_
