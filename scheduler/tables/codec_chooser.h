// The choice of codecs for tables whose description leaves it to Leeway (TableSpec::codec "auto"),
// by the workers' reports on their links and on the cost of each codec (compress/codec_cost.h).
//
// All workers push with the same codec, so the slowest counts: the cost of a codec is the highest
// that any worker reports. A codec is chosen when it is better in kLooksAlike looks in a row. Lives
// on the scheduler's loop.
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
  // Of a table that there is.
  void OnReport(std::uint32_t worker, const proto::CodecReport& report);
  // The worker has gone.
  void Forget(std::uint32_t worker);

  struct Choice {
    std::uint32_t choice = 0;
    std::string reason;  // "worker 2 sends 12.1 MB/s: 81.2 ns a byte with none, 3.1 with onebit"
  };
  // The codec that the table should have in place of number `present` of those in `texts`; nullopt:
  // that one. To be called at regular intervals. `name` names a worker for people.
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
