// A coverage-guided fuzzer of the messages of differences: `./dev fuzz differences`.
// difference_input.h describes the input. compress_differences_test gives it messages with flipped
// bits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "compress/differences/difference.h"
#include "compress/differences/fuzz/difference_input.h"

namespace leeway::compress {
namespace {

// Ends the process if a property does not hold, so that the fuzzer keeps the input.
void Require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "difference: %s\n", promise);
  std::abort();
}

void Run(std::span<const std::byte> message, std::size_t width, std::uint64_t elements) {
  std::vector<std::byte> before(elements * width);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<std::byte>(i * 37);
  std::vector<std::byte> after = before, merged;
  const bool sound = CheckDifference(message, width, elements).ok();
  Require(ApplyDifference(message, width, after).ok() == sound, "Check and Apply do not agree");
  Require(sound || after == before, "values were changed, and the message refused");
  const auto shorter = MergeDifferences({&message, 1}, width, elements, &merged);
  Require(shorter.ok() == sound, "Check and Merge do not agree");
  if (!shorter.ok() || !*shorter) return;
  std::vector<std::byte> again = before;
  Require(ApplyDifference(merged, width, again).ok(), "what was merged is malformed");
  Require(again == after, "what was merged gives something else");
}

}  // namespace
}  // namespace leeway::compress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leeway::compress;  // NOLINT(google-build-using-namespace)
  if (size < kDifferenceHeaderBytes) return 0;
  const std::uint64_t elements =
      (data[0] | std::uint64_t{data[1]} << 8) % (kDifferenceElementsMax + 1);
  // In memory of exactly its size.
  const std::size_t bytes = size - kDifferenceHeaderBytes;
  const auto message = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::transform(data + kDifferenceHeaderBytes, data + size, message.get(),
                 [](std::uint8_t byte) { return static_cast<std::byte>(byte); });
  Run({message.get(), bytes}, std::size_t{1} << data[2] % 4, elements);
  return 0;
}
