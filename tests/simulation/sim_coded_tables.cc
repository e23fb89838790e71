// The coded tables of a simulated run: parameters that are pulled as differences between versions,
// gradients or parameters with encoded pushes alone, and rows. Most may be switched to another
// codec during the run.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kBlocks = 2;
constexpr std::uint32_t kRows = 12;
constexpr std::size_t kShortBlock = 40;
constexpr std::size_t kRowWidth = 16;

// Codecs whose residuals stay small for as long as a run takes, for any pushes.
constexpr absl::string_view kLossy[] = {"onebit", "onebit:group=32", "ternary", "qsgd",
                                        "qsgd:levels=natural"};
constexpr absl::string_view kOfRows[] = {"onebit", "ternary", "qsgd", "qsgd:bits=8,norm=l2"};

// Lossless codecs.
constexpr absl::string_view kLossless[] = {"zstd", "sparse", "none"};

template <std::size_t n>
std::string OneOf(const absl::string_view (&texts)[n], runtime::Random* random) {
  return std::string(texts[random->Below(n)]);
}

SimTable Dense(const std::string& name) {
  SimTable table;
  table.places = kBlocks;
  table.width = kShortBlock;
  table.stride = kBlockBytes / sizeof(float);
  table.spec = TableSpec::Dense(name, {(kBlocks - 1) * table.stride + table.width});
  return table;
}

void ChooseUpdater(TableSpec* spec, runtime::Random* random) {
  if (random->Below(2) == 0) return;  // add
  spec->updater = {"sgd", {{"learning_rate", 1}}};
}

// EF21-P: the workers' copies follow the values.
SimTable ChooseParameters(runtime::Random* random) {
  SimTable table = Dense("coded parameters");
  table.spec.codec = OneOf(kLossy, random);
  table.spec.consistency = ChooseMode(random);
  const ErrorFeedback kinds[] = {ErrorFeedback::kAuto, ErrorFeedback::kBoth,
                                 ErrorFeedback::kServer};
  table.spec.error_feedback = kinds[random->Below(3)];
  table.one_writer = random->Below(2) == 0;
  ChooseUpdater(&table.spec, random);
  return table;
}

SimTable ChooseGradient(runtime::Random* random) {
  SimTable table = Dense("coded gradient");
  table.spec.codec = OneOf(kLossy, random);
  table.spec.consistency = Consistency::Bsp();
  table.spec.updater = {"gradient", {}};
  table.spec.error_feedback = random->Below(4) == 0 ? ErrorFeedback::kServer : ErrorFeedback::kBoth;
  table.one_writer = true;
  return table;
}

// Answered as they are, or losslessly.
SimTable ChoosePushed(runtime::Random* random) {
  SimTable table = Dense("coded pushes");
  table.spec.codec = OneOf(kLossy, random);
  table.spec.error_feedback = random->Below(4) == 0 ? ErrorFeedback::kOff : ErrorFeedback::kWorker;
  table.spec.consistency = ChooseMode(random);
  table.one_writer = random->Below(2) == 0;
  ChooseUpdater(&table.spec, random);
  return table;
}

SimTable ChooseRows(runtime::Random* random) {
  SimTable table;
  table.places = kRows;
  table.stride = table.width = kRowWidth;
  table.spec = TableSpec::Sparse("coded rows", kRowWidth);
  for (std::uint32_t i = 0; i < kRows; ++i) table.keys.push_back(random->Next());
  table.spec.codec = OneOf(kOfRows, random);
  table.spec.consistency = ChooseMode(random);
  table.one_writer = random->Below(2) == 0;
  ChooseUpdater(&table.spec, random);
  return table;
}

// Codecs that the table may be switched to, two to four with its first one, at least one of them
// lossy. Answers that are not encoded have no version: if several workers push to a block their age
// would be unknown, so that there is no `none`, and no codec that hardly makes messages smaller.
void ChooseCodecs(SimTable* table, runtime::Random* random) {
  if (random->Below(5) == 0) return;
  const auto among = [&](const auto& texts) { return OneOf(texts, random); };
  std::vector<std::string> codecs = {table->spec.codec};
  const bool versions = compress::TableCodecOf(table->spec)->versions;
  for (std::uint64_t left = 1 + random->Below(3); left > 0; --left) {
    std::string text = random->Below(2) == 0 ? among(kLossless)
                       : table->dense()      ? among(kLossy)
                                             : among(kOfRows);
    if ((text == "none" || text == "sparse") && versions && !table->one_writer) text = "zstd";
    if (std::ranges::find(codecs, text) == codecs.end()) codecs.push_back(std::move(text));
  }
  table->spec.codec = codecs[random->Below(codecs.size())];
  table->spec.codecs = std::move(codecs);
}

}  // namespace

void AddCodedTables(std::uint32_t num_workers, runtime::Random* random,
                    std::vector<SimTable>* tables) {
  SimTable chosen[] = {ChooseParameters(random),
                       random->Below(2) == 0 ? ChooseGradient(random) : ChoosePushed(random),
                       ChooseRows(random)};
  for (SimTable& table : chosen) {
    ChooseCodecs(&table, random);
    table.index = static_cast<std::uint32_t>(tables->size());
    table.counter = false;
    table.coded = true;
    table.num_workers = num_workers;
    table.codecs = compress::TableCodecsOf(table.spec).value();
    tables->push_back(std::move(table));
  }
}

}  // namespace leeway::simulation
