// leeway_bench_dedup: measures how many bytes de-duplication by content-defined chunks would save
// in consecutive payloads: a worker's pushes and pulls in two examples. leeway_bench_dedup FOLDER
// …: in these checkpoints instead, oldest first.
//
// The receiver is assumed to remember the chunks of all payloads of a stream so far, which is an
// upper bound of the savings: a real option would have to forget some. A known chunk costs 8 bytes,
// an unknown one its bytes and 2 for their number. With zstd the unknown bytes of a payload go
// through the codec of that name; the numbers and references are sent as they are.
#include <chrono>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/string_view.h"
#include "compress/registry.h"
#include "dedup/chunker.h"
#include "dedup/streams.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kKnownBytes = 8, kNewBytes = 2;
constexpr std::size_t kAverages[] = {64, 256, 1024, 4096};

struct Sizes {
  double bytes = 0, zstd = 0, chunks = 0, chunks_zstd = 0;
  double seconds = 0;  // of cutting, hashing and looking up
};

// The size of float32 values after the codec zstd.
absl::StatusOr<std::size_t> ZstdBytes(const Codec& codec, std::span<const std::byte> payload) {
  std::vector<float> values(payload.size() / sizeof(float));
  if (values.empty()) return 0;
  std::copy(payload.begin(), payload.end(), std::as_writable_bytes(std::span(values)).begin());
  const EncodeTerms terms{.shape = {.elements = values.size()}};
  std::vector<std::byte> out(codec.EncodedBytesMax(terms.shape));
  return codec.Encode(values.data(), terms, out);
}

absl::StatusOr<Sizes> Measure(const Stream& stream, std::size_t average, const Codec& zstd) {
  const Chunker chunker(average);
  std::unordered_set<std::uint64_t> known;
  Sizes sizes;
  bool first = true;
  for (const std::vector<std::byte>& payload : stream.payloads) {
    std::vector<std::byte> fresh;
    std::size_t front = 0;
    const auto start = std::chrono::steady_clock::now();
    for (std::span<const std::byte> rest = payload; !rest.empty();) {
      const auto chunk = rest.first(chunker.Next(rest));
      rest = rest.subspan(chunk.size());
      const absl::string_view text(reinterpret_cast<const char*>(chunk.data()), chunk.size());
      const bool is_new = known.insert(runtime::StableHash(text)).second;
      front += is_new ? kNewBytes : kKnownBytes;
      if (is_new) fresh.insert(fresh.end(), chunk.begin(), chunk.end());
    }
    sizes.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (std::exchange(first, false)) continue;  // no chunk is known before it
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t whole_zstd, ZstdBytes(zstd, payload));
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t fresh_zstd, ZstdBytes(zstd, fresh));
    sizes.bytes += static_cast<double>(payload.size());
    sizes.zstd += static_cast<double>(whole_zstd);
    sizes.chunks += static_cast<double>(front + fresh.size());
    sizes.chunks_zstd += static_cast<double>(front + fresh_zstd);
  }
  return sizes;
}

absl::StatusOr<std::vector<Stream>> StreamsOf(const std::vector<std::string>& folders) {
  if (!folders.empty()) {
    LEEWAY_ASSIGN_OR_RETURN(Stream checkpoints, CheckpointStream(folders));
    return std::vector<Stream>{std::move(checkpoints)};
  }
  LEEWAY_ASSIGN_OR_RETURN(std::vector<Stream> streams, FashionMnistStreams(500, 300));
  LEEWAY_ASSIGN_OR_RETURN(std::vector<Stream> rows, WordNetStreams(700, 500));
  for (Stream& stream : rows) streams.push_back(std::move(stream));
  return streams;
}

absl::Status Run(const std::vector<std::string>& folders) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Stream> streams, StreamsOf(folders));
  LEEWAY_ASSIGN_OR_RETURN(const compress::NamedCodec zstd, compress::MakeCodec("zstd"));
  std::printf("%-20s %8s %8s %8s %8s %8s %8s %8s %8s\n", "stream", "payloads", "MB", "chunk",
              "dedup", "zstd", "both", "saved", "MB/s");
  for (const Stream& stream : streams) {
    for (const std::size_t average : kAverages) {
      LEEWAY_ASSIGN_OR_RETURN(const Sizes sizes, Measure(stream, average, *zstd.codec));
      std::printf("%-20s %8zu %8.1f %8zu %8.4f %8.4f %8.4f %7.2f%% %8.0f\n", stream.name.c_str(),
                  stream.payloads.size(), sizes.bytes / 1e6, average, sizes.chunks / sizes.bytes,
                  sizes.zstd / sizes.bytes, sizes.chunks_zstd / sizes.bytes,
                  100 * (1 - sizes.chunks_zstd / sizes.zstd), sizes.bytes / 1e6 / sizes.seconds);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  const absl::Status status = leeway::bench::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "leeway_bench_dedup: %s\n", std::string(status.message()).c_str());
  return 1;
}
