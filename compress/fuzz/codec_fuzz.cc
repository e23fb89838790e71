// A coverage-guided fuzzer of the codecs' decoders: `./dev fuzz NAME`, NAME a codec's, or
// `./dev fuzz codecs` for all. codec_input.h describes the input.
//
// Its seeds are in compress/fuzz/corpus/NAME, and compress_fuzz_corpus_test replays them. After a
// codec was added or its message has changed, write them anew:
//
//     ./dev build release --target codec_fuzz_corpus
//     build/release/compress/codec_fuzz_corpus compress/fuzz/corpus
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compress/fuzz/codec_input.h"
#include "compress/registry.h"
#include "compress/testing/codec_samples.h"

namespace leeway::compress {
namespace {

// Ends the process if a property does not hold, so that the fuzzer keeps the input.
void Expect(bool kept, const std::string& codec, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "codec %s: %s\n", codec.c_str(), promise);
  std::abort();
}

struct Tested {
  std::string text;
  std::shared_ptr<const Codec> codec;
  bool finite = false;  // decoded values are never NaN or infinite
};

std::string NameOf(const std::string& text) { return text.substr(0, text.find(':')); }

// The codec of a text, which need not be among the samples if another text of that codec is.
const Tested& TestedOf(const std::string& text) {
  static auto* const made = new std::map<std::string, Tested>;
  if (const auto found = made->find(text); found != made->end()) return found->second;
  const auto codec = MakeCodec(text);
  if (!codec.ok()) {
    std::fprintf(stderr, "%s: %s\n", kFuzzCodecVariable, codec.status().ToString().c_str());
    std::exit(1);
  }
  bool finite = false;
  for (const CodecSample& sample : CodecSamples()) {
    if (NameOf(sample.text) == codec->name) finite = sample.non_finite != OnNonFinite::kPassed;
  }
  return made->emplace(text, Tested{text, codec->codec, finite}).first->second;
}

const Tested& TestedOf(std::uint8_t choice) {
  if (const char* const text = std::getenv(kFuzzCodecVariable); text != nullptr && *text != '\0') {
    return TestedOf(std::string(text));
  }
  static const auto* const samples = new std::vector<CodecSample>(CodecSamples());
  return TestedOf((*samples)[choice % samples->size()].text);
}

CodecShape ShapeIn(const std::uint8_t* input, const Codec& codec) {
  CodecShape shape = {.elements = (input[0] | std::uint64_t{input[1]} << 8) % (kElementsMax + 1),
                      .columns = input[2]};
  shape.separate_rows = (input[3] & kInputSeparateRows) != 0 && shape.columns > 0;
  if (!shape.separate_rows) return shape;
  if (codec.StateElements(shape) > 0) {
    shape.separate_rows = false;
  } else {
    shape.elements -= shape.elements % shape.columns;  // all rows are whole
  }
  return shape;
}

bool Same(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b));
}

// Adds the message to one of zeros and to itself.
void RunSum(const Tested& tested, const CodecShape& shape, bool decoded,
            std::span<const std::byte> message) {
  const auto expect = [&](bool kept, const char* promise) { Expect(kept, tested.text, promise); };
  std::vector<float> values(shape.elements);
  std::vector<float> state(tested.codec->StateElements(shape));
  std::vector<std::byte> of_zeros(tested.codec->EncodedBytesMax(shape));
  const auto bytes =
      tested.codec->Encode(values.data(), {.shape = shape, .state = state}, of_zeros);
  expect(bytes.ok(), "zeros cannot be encoded");
  of_zeros.resize(*bytes);
  for (std::vector<std::byte> sum :
       {of_zeros, std::vector<std::byte>(message.begin(), message.end())}) {
    const std::vector<std::byte> before = sum;
    if (tested.codec->AddEncoded(message, shape, sum).ok()) {
      expect(decoded, "what is no message can be added");
      expect(tested.codec->Decode(sum, shape, values.data()).ok(), "a sum cannot be decoded");
    } else {
      expect(sum == before, "a sum was changed, and refused");
    }
  }
}

void Run(const Tested& tested, const CodecShape& shape, float factor,
         std::span<const std::byte> message) {
  const auto expect = [&](bool kept, const char* promise) { Expect(kept, tested.text, promise); };
  const std::size_t size = shape.elements;
  // In memory of exactly their size, too.
  const auto values = std::make_unique<float[]>(size), sum = std::make_unique<float[]>(size);
  const auto before = [](std::size_t i) { return 1 - 0.25f * static_cast<float>(i % 9); };
  for (std::size_t i = 0; i < size; ++i) sum[i] = before(i);

  const bool checked = tested.codec->Check(message, shape).ok();
  const bool decoded = tested.codec->Decode(message, shape, values.get()).ok();
  expect(checked == decoded, "Check and Decode do not agree");
  if (tested.codec->adds_encoded()) RunSum(tested, shape, decoded, message);
  const bool added = tested.codec->DecodeAdd(message, shape, factor, sum.get()).ok();
  expect(added == decoded, "DecodeAdd and Decode do not agree on whether the message is one");
  if (!decoded) return;
  for (std::size_t i = 0; i < size; ++i) {
    expect(!tested.finite || std::isfinite(values[i]), "a decoded value is not finite");
    expect(Same(sum[i], before(i) + factor * values[i]), "DecodeAdd adds something else");
  }
}

}  // namespace
}  // namespace leeway::compress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leeway::compress;  // NOLINT(google-build-using-namespace)
  if (size < kInputHeaderBytes) return 0;
  const Tested& tested = TestedOf(data[4]);
  const std::size_t offset = data[3] >> kInputOffsetShift & kInputOffsetMask;
  const std::size_t bytes = size - kInputHeaderBytes;
  const auto memory = std::make_unique<std::byte[]>(offset + bytes);
  if (bytes > 0) std::memcpy(memory.get() + offset, data + kInputHeaderBytes, bytes);
  Run(tested, ShapeIn(data, *tested.codec), (data[3] & kInputSubtract) != 0 ? -1.0f : 1.0f,
      {memory.get() + offset, bytes});
  return 0;
}
