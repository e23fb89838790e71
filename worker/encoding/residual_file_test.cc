#include "worker/encoding/residual_file.h"

#include <algorithm>
#include <limits>

#include "checkpoint/folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/layout.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/sim/sim_world.h"
#include "worker/encoding/push_encoder.h"
#include "worker/testing/push_encoder_testing.h"

namespace leeway::worker {
namespace residual_file_test {
namespace {

using testing::HasSubstr;

class ResidualFileTest : public testing::Test {
 protected:
  ResidualFileTest() : host_(world_.NewHost("worker")) {
    EXPECT_TRUE(files()->CreateDirectories("/ckpt").ok());
  }
  runtime::FileSystem* files() { return host_->files(); }

  static SavedResiduals Some() {
    SavedResiduals residuals;
    residuals["a/b"].blocks[7] = {
        .residual = {1, -2, 3}, .codec_state = {0.5f}, .step = 12, .rate = 0.125};
    residuals["a/b"].blocks[9] = {.residual = {}, .codec_state = {}, .step = 3, .rate = 1};
    residuals["rows"].keys = {~0ull, 5};
    residuals["rows"].rows = {1, 2, 3, 4, 5, 6};
    residuals["rows"].steps = {0, 7};
    return residuals;
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_;
};

TEST_F(ResidualFileTest, ReadsWhatItWrote) {
  ASSERT_TRUE(WriteResiduals(files(), "/ckpt", 3, Some()).ok());
  EXPECT_TRUE(files()->Exists("/ckpt/residuals-worker-3.safetensors"));
  EXPECT_TRUE(checkpoint::IsFileOfCheckpoint("residuals-worker-3.safetensors"));
  const auto read = ReadResiduals(files(), "/ckpt", 3);
  ASSERT_TRUE(read.ok()) << read.status();
  const SavedBlock& block = read->at("a/b").blocks.at(7);
  EXPECT_EQ(block.residual, (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(block.codec_state, (std::vector<float>{0.5f}));
  EXPECT_EQ(block.step, 12u);
  EXPECT_EQ(block.rate, 0.125);
  EXPECT_EQ(read->at("a/b").blocks.at(9).step, 3u);
  EXPECT_EQ(read->at("rows").keys, (std::vector<std::uint64_t>{~0ull, 5}));
  EXPECT_EQ(read->at("rows").rows, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read->at("rows").steps, (std::vector<std::uint64_t>{0, 7}));
}

// A new file replaces the old one atomically, and is durable before the call returns.
TEST(ResidualCrashTest, LeavesTheOldFileOrTheNewOne) {
  int written = 0, failed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    runtime::SimFileSystem files(seed);
    ASSERT_TRUE(files.CreateDirectories("/ckpt").ok());
    SavedResiduals residuals;
    residuals["w"].blocks[0].residual = {1};
    ASSERT_TRUE(WriteResiduals(&files, "/ckpt", 0, residuals).ok());
    residuals["w"].blocks[0].residual = {2};
    files.SetFaults({.error_probability = 0.1, .torn_writes = true});
    const bool saved = WriteResiduals(&files, "/ckpt", 0, residuals).ok();
    ++(saved ? written : failed);
    files.Crash();
    files.SetFaults({});
    const auto read = ReadResiduals(&files, "/ckpt", 0);
    ASSERT_TRUE(read.ok()) << read.status();
    const float value = read->at("w").blocks.at(0).residual.at(0);
    EXPECT_TRUE(value == 2 || (value == 1 && !saved)) << value;
  }
  EXPECT_GT(written, 50);
  EXPECT_GT(failed, 50);
}

TEST_F(ResidualFileTest, HasOneFileForEachRank) {
  ASSERT_TRUE(WriteResiduals(files(), "/ckpt", 3, Some()).ok());
  const absl::Status status = ReadResiduals(files(), "/ckpt", 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no residuals of worker 4"));
}

// A file with another byte in its header, or of another length, is refused or read without harm.
TEST_F(ResidualFileTest, ADamagedFileIsRefusedOrRead) {
  ASSERT_TRUE(WriteResiduals(files(), "/ckpt", 0, Some()).ok());
  const std::string path = "/ckpt/residuals-worker-0.safetensors";
  const std::string whole = *files()->Read(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x21);
    ASSERT_TRUE(runtime::WriteFileAtomically(files(), path, damaged).ok());
    ReadResiduals(files(), "/ckpt", 0).status().IgnoreError();
    ASSERT_TRUE(runtime::WriteFileAtomically(files(), path, whole.substr(0, i)).ok());
    EXPECT_EQ(ReadResiduals(files(), "/ckpt", 0).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

PushEncoder EncoderOf(const TableSpec& spec, const compress::TableCodecs& codecs) {
  return PushEncoder(spec, &codecs,
                     {.table = 1,
                      .rank = 2,
                      .num_shards = 4,
                      .block_bytes = 1 << 20,
                      .residual_bytes_max = 1 << 20});
}

// As where the codec is changed while a worker runs.
TEST(SavedResiduals, WithAnotherCodecItsStateBeginsAnew) {
  for (const std::string other : {"topk:0.25,momentum=0.5", "onebit,momentum=0.9"}) {
    TableSpec spec = TableSpec::Dense("w", {8, 8});
    spec.codec = "onebit,momentum=0.5";
    spec.codecs = {other};
    const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
    PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs);
    std::vector<float> gradient(64);
    const auto push = [&](PushEncoder& encoder, std::uint32_t choice, float scale) {
      for (std::size_t i = 0; i < 64; ++i) gradient[i] = scale * static_cast<float>(i * i % 17) - 3;
      return std::string(
          encoder
              .EncodeBlock(choice, 0, reinterpret_cast<const std::byte*>(gradient.data()), 64, 0.1)
              .bytes.text());
    };
    for (const float scale : {1.0f, -0.5f, 2.0f}) push(first, 0, scale);
    const SavedTable saved = first.Save();
    ASSERT_TRUE(second.CheckSaved(saved).ok());
    second.Take(saved);
    for (const float scale : {0.5f, 3.0f}) {
      EXPECT_EQ(push(first, 1, scale), push(second, 1, scale)) << other;
    }
  }
}

TEST(SavedResiduals, AnotherEncoderContinuesLikeTheFirst) {
  for (const std::string codec : {"onebit", "topk:0.1", "powersgd:2", "qsgd", "onebit,momentum=0.9",
                                  "topk:0.1,momentum=0.5,nesterov=1", "powersgd:2,momentum=0.9"}) {
    TableSpec spec = TableSpec::Dense("w", {8, 8});
    spec.codec = codec;
    const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
    PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs);
    std::vector<float> gradient(64);
    const auto push = [&](PushEncoder& encoder, float scale) {
      for (std::size_t i = 0; i < 64; ++i) gradient[i] = scale * static_cast<float>(i * i % 17) - 3;
      return encoder.EncodeBlock(0, 0, reinterpret_cast<const std::byte*>(gradient.data()), 64,
                                 0.1);
    };
    for (const float scale : {1.0f, -0.5f, 2.0f}) push(first, scale);
    const SavedTable saved = first.Save();
    ASSERT_TRUE(second.CheckSaved(saved).ok());
    second.Take(saved);
    EXPECT_EQ(second.ResidualNorm(), first.ResidualNorm());
    EXPECT_GT(first.ResidualNorm(), 0) << codec;
    EXPECT_EQ(push(second, 0.25f).bytes.text(), push(first, 0.25f).bytes.text()) << codec;
  }
}

// A codec without feedback at the time of the load sends the loaded residual with the first push.
TEST(SavedResiduals, AreSentByACodecWithoutFeedback) {
  for (const std::string other : {"none", "zstd", "sketch"}) {
    SCOPED_TRACE(other);
    TableSpec spec = TableSpec::Dense("w", {8, 8});
    spec.codec = "onebit";
    spec.codecs = {other};
    const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
    ASSERT_FALSE(codecs.choices[1].worker_feedback);
    PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs);
    std::vector<float> gradient(64);
    for (std::size_t i = 0; i < 64; ++i) gradient[i] = static_cast<float>(i * i % 17) - 3;
    const auto* const bytes = reinterpret_cast<const std::byte*>(gradient.data());
    first.EncodeBlock(0, 0, bytes, 64, 0.1);
    const SavedTable saved = first.Save();
    ASSERT_TRUE(second.CheckSaved(saved).ok());
    second.Take(saved);
    EXPECT_GT(second.ResidualNorm(), 0);
    const EncodedValues pushed = second.EncodeBlock(1, 0, bytes, 64, 0.1);
    const std::vector<float> received = ReceivedOf(pushed, spec, codecs, 64);
    ASSERT_EQ(received.size(), 64u);
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_FLOAT_EQ(received[i], gradient[i] + saved.blocks.at(0).residual[i]) << i;
    }
    EXPECT_EQ(second.ResidualNorm(), 0);
  }
}

TEST(SavedResiduals, OfRowsAreSentByACodecWithoutFeedback) {
  for (const std::string other : {"none", "zstd", "sketch"}) {
    SCOPED_TRACE(other);
    TableSpec spec = TableSpec::Sparse("e", 16);
    spec.codec = "onebit";
    spec.codecs = {other};
    const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
    PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; keys.size() < 2; ++key) {
      if (proto::ShardOfKey(key, 4) == 1) keys.push_back(key);
    }
    std::vector<float> rows(32);
    for (std::size_t i = 0; i < 32; ++i) rows[i] = static_cast<float>(i % 7) - 2;
    first.EncodeRows(0, 1, keys, reinterpret_cast<std::byte*>(rows.data()), {});
    const SavedTable saved = first.Save();
    ASSERT_EQ(saved.keys, keys);
    second.Take(saved);
    EXPECT_GT(second.ResidualNorm(), 0);
    std::ranges::fill(rows, 5.0f);
    second.EncodeRows(1, 1, keys, reinterpret_cast<std::byte*>(rows.data()), {});
    for (std::size_t i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(rows[i], 5 + saved.rows[i]) << i;
    EXPECT_EQ(second.ResidualNorm(), 0);
  }
}

TEST(SavedResiduals, RowsAreKeptByTheirKeys) {
  TableSpec spec = TableSpec::Sparse("e", 16);
  spec.codec = "onebit";
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs);
  const std::vector<std::uint64_t> keys = {3, 9, 1ull << 60};
  const auto push = [&](PushEncoder& encoder) {
    std::vector<float> rows(48);
    for (std::size_t i = 0; i < 48; ++i) rows[i] = static_cast<float>(i % 7) - 2;
    return encoder.EncodeRows(0, 0, keys, reinterpret_cast<std::byte*>(rows.data()), {});
  };
  push(first);
  SavedTable saved = first.Save();
  EXPECT_EQ(saved.keys.size(), 3u);
  ASSERT_TRUE(second.CheckSaved(saved).ok());
  second.Take(saved);
  EXPECT_NEAR(second.ResidualNorm(), first.ResidualNorm(), 1e-6);
  saved.rows.pop_back();
  EXPECT_THAT(second.CheckSaved(saved).message(), HasSubstr("rows of another width"));
  saved.blocks[0] = {};
  EXPECT_THAT(second.CheckSaved(saved).message(), HasSubstr("another kind of table"));
}

// Random choices continue where they stopped.
TEST(SavedResiduals, RowsOfAStochasticCodecContinueBitForBit) {
  TableSpec spec = TableSpec::Sparse("e", 16);
  spec.codec = "qsgd";
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  PushEncoder first = EncoderOf(spec, codecs), second = EncoderOf(spec, codecs),
              anew = EncoderOf(spec, codecs);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; keys.size() < 2; ++key) {
    if (proto::ShardOfKey(key, 4) == 1) keys.push_back(key);
  }
  const auto push = [&](PushEncoder& encoder) {
    std::vector<float> rows(32);
    for (std::size_t i = 0; i < 32; ++i) rows[i] = static_cast<float>(i % 7) - 2;
    return std::string(encoder.EncodeRows(0, 1, keys, reinterpret_cast<std::byte*>(rows.data()), {})
                           .values.bytes.text());
  };
  push(first);
  push(first);
  SavedTable saved = first.Save();
  second.Take(saved);
  saved.steps.clear();
  anew.Take(saved);
  const std::string next = push(first);
  EXPECT_EQ(push(second), next);
  EXPECT_NE(push(anew), next);
}

TEST(SavedResiduals, BlocksOfAnotherSizeAreRefusedWithTheSetting) {
  TableSpec spec = TableSpec::Dense("w", {64});
  spec.codec = "onebit,momentum=0.5";
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  const PushEncoder encoder(spec, &codecs, {.block_bytes = 128});  // two blocks of 32 elements
  const auto refusal = [&](std::uint64_t index, SavedBlock block) {
    SavedTable saved;
    saved.blocks[index] = std::move(block);
    return std::string(encoder.CheckSaved(saved).message());
  };
  EXPECT_EQ(refusal(1, {.residual = std::vector<float>(32)}), "");
  EXPECT_EQ(refusal(1, {}), "");
  EXPECT_THAT(refusal(2, {.residual = std::vector<float>(32)}),
              AllOf(HasSubstr("block 2 where there are 2"), HasSubstr("LEEWAY_BLOCK_BYTES")));
  EXPECT_THAT(refusal(0, {.residual = std::vector<float>(64)}),
              AllOf(HasSubstr("64 elements of block 0, which has 32"),
                    HasSubstr("LEEWAY_BLOCK_BYTES than 128")));
  EXPECT_EQ(refusal(0, {.codec_state = std::vector<float>(32)}), "");
  EXPECT_THAT(refusal(0, {.codec_state = std::vector<float>(5)}), HasSubstr("codec's state"));
  std::vector<float> wrong(32);
  wrong[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(0, {.residual = wrong}), HasSubstr("NaN"));
}

}  // namespace
}  // namespace residual_file_test
}  // namespace leeway::worker
