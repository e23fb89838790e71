// A SimTable is a table of a checked run. Its pushes are written so that they can be told apart in
// its values.
//
// Counter tables (int64, updater "add") give every push its own digit: three bits of one element,
// to which the push adds 1 in every place (block or row) that it changes. So a read shows for each
// push and place how often the push has been applied. Float tables have one writer for each place,
// so that a place may hold only the states that its writer's pushes lead to in turn.
//
// Coded tables (float32) travel encoded. Small whole numbers are pushed to them, at learning rates
// that are powers of two, so that sums hardly round. Some have one writer for each place, like
// float tables; to the others all workers push everywhere, and their values are checked at the end
// (coded_pushes.h).
//
// A refusing table is a counter table of doubles that refuses values that are not finite: some
// pushes to it are refused, by one shard or by several.
//
// Counters may be floats, with as many digits as these represent exactly. Where pushes have weights
// these are ¼ and ¾, so that what is pushed as 4 counts 1 or 3: a digit that is even has been
// applied twice. A mean of K pushes is of K times the digits.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_TABLE_H_
#define LEEWAY_TESTS_SIMULATION_SIM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "proto/messages/messages.h"
#include "runtime/base/random.h"

namespace leeway::simulation {

inline constexpr std::uint64_t kBlockBytes = 4096;
inline constexpr int kDigitBits = 3;
inline constexpr std::size_t kDigitsPerElement = 21;   // of an int64
inline constexpr std::size_t kElementsPerWorker = 24;  // of the tables of a simulated run

// The digits that an element has exactly.
constexpr std::size_t DigitsIn(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 17;
    case DType::kFloat32:
      return 8;
    case DType::kFloat16:
      return 3;
    case DType::kBFloat16:
      return 2;
    default:
      return kDigitsPerElement;
  }
}

struct SimTable {
  TableSpec spec;
  std::uint32_t index = 0;
  bool counter = true;
  std::uint32_t places = 1;         // blocks or keys; at most 64
  std::size_t width = 0;            // elements of a place that are used
  std::size_t stride = 0;           // elements from one place to the next in the user's array
  std::vector<std::uint64_t> keys;  // sparse: of each place
  std::uint32_t num_workers = 0;
  std::uint32_t created_in = 0;  // the iteration in which workers create it; 0: before the first
  bool small = false;  // of one short block: its pushes leave in one message with those of others
  bool coded = false;
  bool one_writer = false;  // float and coded tables: WriterOf(place) alone pushes to a place
  compress::TableCodecs codecs = {};  // coded tables
  std::uint32_t push_scale = 1;       // counters: what is pushed is multiplied by it
  std::uint32_t mean_of = 1;          // and the sum of collected pushes is divided by it

  bool dense() const { return spec.kind == TableKind::kDense; }
  bool ragged() const { return spec.kind == TableKind::kRagged; }
  // Some pushes are refused.
  bool refuses() const { return spec.nonfinite == NonFinite::kRefuse; }
  // ¼ and ¾.
  bool has_uneven_weights() const { return spec.consistency.weight == Consistency::Weight::kTable; }
  // Counters that are floats, which ToValues and ToCounts convert.
  bool converts() const { return counter && spec.dtype != DType::kInt64; }
  std::size_t digits_per_element() const {
    return counter ? DigitsIn(spec.dtype) : kDigitsPerElement;
  }
  bool bsp() const { return spec.consistency.is_bsp(); }
  // Pushes are collected, by clocks or by their number.
  bool collects() const { return spec.consistency.collects(); }
  bool by_arrivals() const { return collects() && spec.consistency.is_unbounded(); }
  // Clocks do not close while there are too few workers.
  bool waits() const { return spec.consistency.when_short == Consistency::Short::kWait; }
  // Some pushes count nowhere, and their workers are told so.
  bool drops() const {
    return spec.consistency.late == Consistency::Late::kDrop ||
           spec.consistency.weight == Consistency::Weight::kCutOff;
  }
  // The clock whose view of the table an operation asks for (docs/consistency.md).
  std::uint64_t EffectiveClock(proto::Op op, std::uint64_t clock) const {
    return clock + (spec.consistency.closes_clocks() && op == proto::Op::kPushPull ? 1 : 0);
  }
  // Counter tables: the elements of a place for one worker's digits, and the number of these
  // digits.
  std::size_t elements_per_worker() const { return width / num_workers; }
  std::size_t pushes_per_worker_max() const { return elements_per_worker() * digits_per_element(); }
  std::uint64_t AllPlaces() const { return places == 64 ? ~0ull : (1ull << places) - 1; }
  // Replies are differences to a version (worker/slicing/pulled_blocks.h), at least while the table
  // has one of its codecs.
  bool versions() const { return coded && codecs.AnyHas(&compress::TableCodec::versions); }
  bool switches() const { return coded && codecs.choices.size() > 1; }
  // A place holds one of the states that its writer's pushes lead to, and a read shows it.
  bool has_states() const { return !counter && one_writer && !versions(); }
  // The elements of a place that are pushed; of a coded block all of them.
  std::size_t ElementsOf(std::uint32_t place) const {
    return coded && dense() && place + 1 < places ? stride : width;
  }
  // The writer of a place, in tables with one writer for each.
  std::uint32_t WriterOf(std::uint32_t place) const {
    return (dense() ? index : place) % num_workers;
  }
};

// The memory for a pull of a ragged table: rows without pushes have no elements.
struct RaggedRows {
  std::vector<std::uint32_t> widths;
  std::vector<std::int64_t> values;
  // Makes room for the values of a pull (worker::Access::resize).
  void* Resize(std::size_t elements) {
    values.resize(elements);
    return values.data();
  }
  // Rows of `table`'s width one after the other, with zeros for missing rows. Empty: a row has a
  // width that no push had.
  std::vector<std::int64_t> Spread(const SimTable& table) const;
};

Consistency ChooseMode(runtime::Random* random);

// The tables of one run: counters and floats, dense and sparse, each in a mode of its own.
// `ragged`: the counters that would be sparse are in a ragged table.
std::vector<SimTable> ChooseTables(std::uint32_t num_workers, bool ragged, runtime::Random* random);

// The coded tables of a run, which are added behind the ones above (sim_coded_tables.cc).
void AddCodedTables(std::uint32_t num_workers, runtime::Random* random,
                    std::vector<SimTable>* tables);

// Two small tables of one dtype, to be added behind the others, of which one alone is in BSP: so
// pushes that wait for their clock and pushes that do not leave in one message.
void AddSmallTables(std::uint32_t num_workers, runtime::Random* random,
                    std::vector<SimTable>* tables);

// A table that comes in mid-run, in that iteration, to be added behind the others.
SimTable LateTable(std::uint32_t index, std::uint32_t num_workers, std::uint32_t iteration,
                   runtime::Random* random);

// A table of counters with one of the other consistencies: pushes are collected, or pulls do not
// wait for the slowest worker; or whose pushes have weights, or are floats. To be added behind the
// others. `workers_return`: every worker that is gone does.
SimTable PolicyTable(std::uint32_t index, std::uint32_t num_workers, bool workers_return,
                     runtime::Random* random);

// A table whose pushes may be refused, to be added behind all others.
SimTable RefusingTable(std::uint32_t index, std::uint32_t num_workers, runtime::Random* random);

// Converts between counters and the values of a table that `converts`, as they are pushed; or as
// they are in it, of that type, or `scale` times as large. A value that no push can lead to becomes
// all ones.
std::vector<std::byte> ToValues(const SimTable& table, std::span<const std::int64_t> counts);
std::vector<std::int64_t> ToCounts(const SimTable& table, DType dtype,
                                   std::span<const std::byte> values, std::uint32_t scale = 1);

// The places that are refused if a push to `places` has values that are not finite in `bad`: all
// that travel in one request with one of these.
std::uint64_t RefusedPlaces(const SimTable& table, std::uint32_t num_shards, std::uint64_t places,
                            std::uint32_t bad);

// The place of a block or row; nullopt: no worker pushes to it.
std::optional<std::uint32_t> PlaceOf(const SimTable& table, std::uint64_t key);

// How often push `number` of worker `rank` has been applied to a place of a counter table.
int TimesApplied(const SimTable& table, std::span<const std::int64_t> place, std::uint32_t rank,
                 std::size_t number);
// True if no push of worker `rank` from `number` on has been applied.
bool NoneAppliedFrom(const SimTable& table, std::span<const std::int64_t> place, std::uint32_t rank,
                     std::size_t number);
void AddPush(const SimTable& table, std::span<std::int64_t> place, std::uint32_t rank,
             std::size_t number);
// "digit 3 of element 27": the position of that push's digit.
std::string DescribeDigit(const SimTable& table, std::uint32_t rank, std::size_t number);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_TABLE_H_
