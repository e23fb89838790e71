// Decode crashes on no input. The sanitizers make these tests strict.
#include <algorithm>
#include <cstring>
#include <random>

#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"
#include "proto/testing/samples.h"

namespace leeway::proto {
namespace {

// Decodes a copy that is exactly as long as the bytes, so that a sanitizer sees a read of one byte
// beyond. An accepted message is encoded and decoded again, which must give the same message.
bool Accepts(std::string_view header, const std::vector<runtime::Buffer>& payload) {
  const std::unique_ptr<char[]> exact(new char[header.size()]);
  std::copy(header.begin(), header.end(), exact.get());
  std::vector<runtime::Buffer> frames = payload;
  const auto message = Decode(runtime::Buffer::Unowned(exact.get(), header.size()), frames);
  if (!message.ok()) return false;
  const runtime::Buffer again = Encode(*message);
  const auto second = Decode(again, frames);
  EXPECT_TRUE(second.ok()) << second.status();
  if (!second.ok()) return true;
  EXPECT_EQ(Encode(*second).text(), again.text());
  return true;
}

std::string HeaderOf(const Sample& sample) {
  const runtime::Buffer header = Encode(sample.message);
  return std::string(header.text());
}

TEST(MutationTest, TruncatedAtEveryByte) {
  for (const Sample& sample : AllSamples()) {
    SCOPED_TRACE(std::string(NameOf(sample.message)));
    const std::string header = HeaderOf(sample);
    ASSERT_TRUE(Accepts(header, sample.payload));
    // FlatBuffers pads at the end of texts: without some of the padding a header is still whole.
    // Without its last third it cannot be.
    for (std::size_t size = 0; size < header.size(); ++size) {
      const bool accepted = Accepts(std::string_view(header).substr(0, size), sample.payload);
      EXPECT_FALSE(accepted && size < header.size() * 2 / 3) << size;
    }
  }
}

// True if the last frame is a codec's or, of a call, a handler's: its length is for these to know.
bool IsEncoded(const AnyMessage& message) {
  if (const auto* request = std::get_if<Request>(&message)) {
    return request->codec != 0 || request->op == Op::kCall;
  }
  if (const auto* reply = std::get_if<Reply>(&message)) return reply->op == Op::kCall;
  if (const auto* entry = std::get_if<Replicate>(&message)) {
    return entry->codec != 0 || entry->kind == LogEntryKind::kCall;
  }
  return false;
}

TEST(MutationTest, PayloadTruncatedAtEveryByte) {
  for (const Sample& sample : AllSamples()) {
    if (!std::holds_alternative<Request>(sample.message) &&
        !std::holds_alternative<Reply>(sample.message) &&
        !std::holds_alternative<Replicate>(sample.message)) {
      continue;
    }
    const runtime::Buffer header = Encode(sample.message);
    for (std::size_t i = 0; i < sample.payload.size(); ++i) {
      if (IsEncoded(sample.message) && i + 1 == sample.payload.size()) continue;
      for (std::size_t size = 0; size < sample.payload[i].size(); ++size) {
        std::vector<runtime::Buffer> payload = sample.payload;
        payload[i] = runtime::Buffer::CopyOf(sample.payload[i].data(), size);
        EXPECT_FALSE(Decode(header, payload).ok()) << i << " " << size;
      }
    }
  }
}

TEST(MutationTest, EverySingleBit) {
  for (const Sample& sample : AllSamples()) {
    SCOPED_TRACE(std::string(NameOf(sample.message)));
    std::string header = HeaderOf(sample);
    for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
      const char mask = static_cast<char>(1 << bit % 8);
      header[bit / 8] ^= mask;
      Accepts(header, sample.payload);
      header[bit / 8] ^= mask;
    }
  }
}

// True if the second frame has widths.
bool HasWidths(const AnyMessage& message) {
  if (const auto* request = std::get_if<Request>(&message)) {
    return request->kind == TableKind::kRagged && HasPush(request->op);
  }
  const auto* entry = std::get_if<Replicate>(&message);
  return entry != nullptr && entry->table_kind == TableKind::kRagged;
}

TEST(MutationTest, EveryBitOfWidths) {
  for (const Sample& sample : AllSamples()) {
    if (!HasWidths(sample.message)) continue;
    const runtime::Buffer header = Encode(sample.message);
    std::string widths(sample.payload[1].text());
    for (std::size_t bit = 0; bit < widths.size() * 8; ++bit) {
      widths[bit / 8] ^= static_cast<char>(1 << bit % 8);
      std::vector<runtime::Buffer> payload = sample.payload;
      payload[1] = runtime::Buffer::CopyOf(widths);
      EXPECT_FALSE(Decode(header, payload).ok()) << bit;
      widths[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
  }
}

using Random = std::mt19937_64;

std::size_t Below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

// Numbers at which sizes and offsets tend to overflow.
std::uint32_t Awkward(Random& random) {
  constexpr std::uint32_t kNumbers[] = {0,      1,      2,          3,          4,          8,
                                        0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xfffffffe, ~0u};
  return kNumbers[Below(random, std::size(kNumbers))];
}

void MutateOnce(std::string* bytes, const std::string& other, Random& random) {
  if (bytes->empty()) return;
  const std::size_t at = Below(random, bytes->size());
  const std::size_t length = std::min<std::size_t>(1 + Below(random, 16), bytes->size() - at);
  switch (random() % 7) {
    case 0:
      (*bytes)[at] = static_cast<char>(random());
      break;
    case 1:
      (*bytes)[at] ^= static_cast<char>(1 << random() % 8);
      break;
    case 2: {
      const std::uint32_t number = Awkward(random);
      std::memcpy(bytes->data() + at, &number, std::min<std::size_t>(length, sizeof(number)));
      break;
    }
    case 3:
      bytes->erase(at, length);
      break;
    case 4:
      bytes->insert(at, bytes->substr(Below(random, bytes->size()), length));
      break;
    case 5:
      bytes->resize(at);
      break;
    case 6:
      bytes->replace(at, length, other.substr(std::min(at, other.size()), length));
      break;
  }
}

TEST(MutationTest, AHundredThousandAtRandom) {
  const std::vector<Sample> samples = AllSamples();
  std::vector<std::string> headers;
  for (const Sample& sample : samples) headers.push_back(HeaderOf(sample));
  Random random(20240229);
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t which = Below(random, samples.size());
    std::string header = headers[which];
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      MutateOnce(&header, headers[Below(random, headers.size())], random);
    }
    // Some get the payload of another message.
    const Sample& payload = samples[random() % 8 == 0 ? Below(random, samples.size()) : which];
    accepted += Accepts(header, payload.payload);
  }
  // If all were refused, the code behind the verifier would not have been reached.
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 90'000);
}

}  // namespace
}  // namespace leeway::proto
