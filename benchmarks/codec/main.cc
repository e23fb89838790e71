// leeway_bench_codec CODEC: measures the speed of a codec over blocks of floats, beside a copy of
// the same arrays. Bytes are those of the floats, not of the message.
#include <cstdio>
#include <memory>
#include <string>

#include "codec/blocks.h"
#include "harness/serve_commands.h"
#include "harness/stopwatch.h"

namespace leeway::bench {
namespace {

constexpr int kNotThere = 3;  // driver/subject.py

absl::Status Do(const std::string& op, std::size_t block, Blocks& blocks) {
  if (op == "codec_encode") return blocks.Encode(block);
  if (op == "codec_decode") return blocks.Decode(block);
  if (op == "codec_decode_add") return blocks.DecodeAdd(block);
  if (op == "codec_copy") {
    blocks.Copy(block);
  } else if (op == "codec_add") {
    blocks.Add(block);
  } else {
    return absl::InvalidArgumentError(
        "a codec knows codec_encode, codec_decode, codec_decode_add, codec_copy and codec_add");
  }
  return absl::OkStatus();
}

// Whole passes over all blocks.
Measured Measure(const Command& command, Blocks& blocks) {
  Measured measured;
  blocks.Fill();  // removes the sums of earlier passes
  const Stopwatch watch;
  do {
    for (std::size_t i = 0; i < Blocks::kCount; ++i) {
      if (const absl::Status done = Do(command.op, i, blocks); !done.ok()) {
        measured.error = std::string(done.message());
        return measured;
      }
    }
    measured.operations += Blocks::kCount;
  } while (watch.Seconds() < command.seconds);
  measured.seconds = watch.Seconds();
  measured.cpu_seconds = watch.Cpu();
  measured.bytes = measured.operations * Blocks::kBytes;
  return measured;
}

int Main(const std::string& codec) {
  const auto blocks = Blocks::Make(codec);
  if (!blocks.ok()) {
    std::fprintf(stderr, "%s\n", std::string(blocks.status().message()).c_str());
    return absl::IsNotFound(blocks.status()) ? kNotThere : 1;
  }
  ServeCommands([&](const Command& command) { return Measure(command, **blocks); });
  return 0;
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: leeway_bench_codec CODEC\n");
    return 2;
  }
  return leeway::bench::Main(argv[1]);
}
