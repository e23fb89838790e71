// The shard handler of simulated runs: it pushes rows or a block of counters, and answers with what
// was there before. Servers find it in this process.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_HANDLER_H_
#define LEEWAY_TESTS_SIMULATION_SIM_HANDLER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulation/sim_table.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {

inline constexpr char kSimHandler[] = "push and tell";

// What it is asked for: counters of places of one shard.
struct SimHandlerRequest {
  bool fails = false;                    // in the end, so that nothing is pushed
  std::uint32_t width = 0;               // elements of each place
  std::vector<std::uint64_t> keys = {};  // or the one block
  std::vector<std::int64_t> counts = {};

  std::string ToBytes() const;
  static SimHandlerRequest From(absl::string_view bytes);
};

// Once; later calls do nothing.
void RegisterSimHandler();

// Workers may call it at that table: pushes to it are counters that are applied one by one.
bool TakesHandlers(const SimTable& table);
// The places of a table that are in one shard with `place`, of `places`.
std::uint64_t InOneShard(const SimTable& table, const worker::TableInfo& info, std::uint64_t places,
                         std::uint32_t place);

// Puts the answer into a text.
class TextSink final : public worker::PullSink {
 public:
  explicit TextSink(std::string* text) : text_(text) {}
  absl::Status Take(std::size_t, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    *text_ = std::string(payload[0].text());
    return absl::OkStatus();
  }

 private:
  std::string* const text_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_HANDLER_H_
