// codec_fuzz_corpus FOLDER: writes the seeds of codec_fuzz, FOLDER/NAME/*, for every codec among
// CodecSamples(); other files there stay. codec_fuzz_corpus --list: these codecs, a text a line.
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compress/fuzz/codec_input.h"
#include "compress/registry.h"
#include "compress/testing/codec_samples.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace {

constexpr std::size_t kSeedBytesMax = 1023;

struct Seed {
  const char* name;
  CodecShape shape;
  bool zeros = false;
  std::uint8_t flags = 0;
};

const Seed kSeeds[] = {
    {.name = "empty", .shape = {.elements = 0, .columns = 8}},
    {.name = "one", .shape = {.elements = 1, .columns = 0}},
    {.name = "odd", .shape = {.elements = 33, .columns = 0}, .flags = 1 << kInputOffsetShift},
    {.name = "matrix", .shape = {.elements = 91, .columns = 9}, .flags = kInputSubtract},
    {.name = "zeros", .shape = {.elements = 70, .columns = 10}, .zeros = true},
    {.name = "rows", .shape = {.elements = 60, .columns = 20, .separate_rows = true}},
    {.name = "long", .shape = {.elements = 200, .columns = 25}},
};

std::vector<float> ValuesOf(const Seed& seed) {
  std::vector<float> values(seed.shape.elements);
  for (std::size_t i = 0; i < values.size() && !seed.zeros; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(1, seed.shape.elements, i));
  }
  return values;
}

std::vector<std::byte> InputOf(const Seed& seed, const Codec& codec) {
  const CodecShape& shape = seed.shape;
  const std::uint8_t rows = shape.separate_rows ? kInputSeparateRows : 0;
  std::vector<std::byte> input = {static_cast<std::byte>(shape.elements % 256),
                                  static_cast<std::byte>(shape.elements / 256),
                                  static_cast<std::byte>(shape.columns),
                                  static_cast<std::byte>(seed.flags | rows), std::byte{0}};
  const std::vector<float> values = ValuesOf(seed);
  std::vector<float> state(codec.StateElements(shape));
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  const auto bytes =
      codec.Encode(values.data(), {.shape = shape, .seed = 1, .step = 0, .state = state}, out);
  if (!bytes.ok()) return {};
  input.insert(input.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*bytes));
  return input;
}

bool Write(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return !file.fail();
}

// The options part of a file's name: "topk:0.01,exact=1" gives "0.01-exact-1-".
std::string OptionsIn(const std::string& text, const std::string& name) {
  std::string options;
  for (const char c : text.substr(name.size())) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.') {
      options += c;
    } else if (!options.empty()) {
      options += '-';
    }
  }
  return options.empty() ? "" : options + '-';
}

int WriteAll(const std::filesystem::path& folder) {
  for (const CodecSample& sample : CodecSamples()) {
    const auto made = MakeCodec(sample.text);
    if (!made.ok()) {
      std::fprintf(stderr, "%s\n", made.status().ToString().c_str());
      return 1;
    }
    const std::filesystem::path of_codec = folder / made->name;
    std::filesystem::create_directories(of_codec);
    for (const Seed& seed : kSeeds) {
      if (seed.shape.separate_rows && made->codec->StateElements(seed.shape) > 0) continue;
      const std::vector<std::byte> input = InputOf(seed, *made->codec);
      if (input.empty() || input.size() > kSeedBytesMax) continue;
      const auto path = of_codec / (OptionsIn(sample.text, made->name) + seed.name);
      if (!Write(path, input)) {
        std::fprintf(stderr, "cannot write %s\n", path.c_str());
        return 1;
      }
    }
  }
  return 0;
}

int Main(const std::string& argument) {
  if (argument.empty()) {
    std::fprintf(stderr, "usage: codec_fuzz_corpus FOLDER | --list\n");
    return 2;
  }
  if (argument != "--list") return WriteAll(argument);
  for (const CodecSample& sample : CodecSamples()) std::puts(sample.text.c_str());
  return 0;
}

}  // namespace
}  // namespace leeway::compress

int main(int argc, char** argv) { return leeway::compress::Main(argc == 2 ? argv[1] : ""); }
