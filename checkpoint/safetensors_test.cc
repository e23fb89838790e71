// Files are read here by a reader that shares nothing with ours: it knows the format's description
// only.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/checksum.h"
#include "checkpoint/safetensors_reader.h"
#include "checkpoint/safetensors_writer.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr char kPath[] = "file.safetensors";

std::span<const std::byte> BytesOfText(absl::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// What anybody's reader makes of a file: each tensor's bytes by name.
std::map<std::string, std::string> ReadIndependently(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));  // this machine is little-endian
  EXPECT_EQ(length % 8, 0u);
  const Json header = Json::parse(file.substr(8, length));
  const std::string data = file.substr(8 + length);
  const std::map<std::string, std::size_t> sizes = {{"F64", 8}, {"I64", 8}, {"U64", 8},
                                                    {"F32", 4}, {"I32", 4}, {"U32", 4},
                                                    {"F16", 2}, {"BF16", 2}};
  std::map<std::string, std::string> tensors;
  std::map<std::size_t, std::size_t> places;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    std::size_t bytes = sizes.at(tensor["dtype"]);
    for (const std::size_t extent : tensor["shape"]) bytes *= extent;
    const std::size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    EXPECT_EQ(end - begin, bytes) << name;
    tensors[name] = data.substr(begin, end - begin);
    if (begin != end) places[begin] = end;
  }
  std::size_t reached = 0;
  for (const auto& [begin, end] : places) {
    EXPECT_EQ(begin, reached) << "a gap or an overlap";
    reached = end;
  }
  EXPECT_EQ(reached, data.size());
  return tensors;
}

class SafetensorsTest : public ::testing::Test {
 protected:
  WrittenFile Write(TensorHeader header, const std::string& data, std::size_t step) {
    auto writer = SafetensorsWriter::Create(&files_, kPath, std::move(header));
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (std::size_t at = 0; at < data.size(); at += step) {
      const absl::string_view part = absl::string_view(data).substr(at, step);
      EXPECT_TRUE((*writer)->Append(BytesOfText(part)).ok());
    }
    const auto written = (*writer)->Finish();
    EXPECT_TRUE(written.ok()) << written.status();
    return *written;
  }

  runtime::SimFileSystem files_{1};
};

TensorHeader EveryType() {
  TensorHeader header{.tensors = {}, .metadata = {{"who", "a \"name\" with ümlauts"}}};
  for (const TensorType type :
       {TensorType::kF64, TensorType::kI64, TensorType::kU64, TensorType::kF32, TensorType::kI32,
        TensorType::kU32, TensorType::kF16, TensorType::kBF16}) {
    header.tensors.push_back({.name = std::string(Name(type)), .type = type, .shape = {3, 5}});
  }
  header.tensors.push_back({.name = "nothing", .type = TensorType::kF32, .shape = {0, 7}});
  header.tensors.push_back({.name = "a number", .type = TensorType::kF64, .shape = {}});
  return header;
}

std::string Bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
  return bytes;
}

constexpr std::size_t kEveryTypeBytes = 15 * (3 * 8 + 3 * 4 + 2 * 2) + 8;

TEST_F(SafetensorsTest, AnyReaderReadsIt) {
  const std::string data = Bytes(kEveryTypeBytes);
  Write(EveryType(), data, 7);
  const auto tensors = ReadIndependently(*files_.Read(kPath));
  ASSERT_EQ(tensors.size(), 10u);
  EXPECT_EQ(tensors.at("F64"), data.substr(0, 120));
  EXPECT_EQ(tensors.at("BF16"), data.substr(data.size() - 8 - 30, 30));
  EXPECT_EQ(tensors.at("a number"), data.substr(data.size() - 8));
  EXPECT_EQ(tensors.at("nothing"), "");
}

TEST_F(SafetensorsTest, OurReaderReadsIt) {
  const std::string data = Bytes(kEveryTypeBytes);
  const WrittenFile written = Write(EveryType(), data, 1000);
  auto reader = SafetensorsReader::Open(&files_, kPath);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header().metadata.at("who"), "a \"name\" with ümlauts");
  std::string read;
  for (std::size_t i = 0; i < (*reader)->header().tensors.size(); ++i) {
    const auto tensor = (*reader)->ReadNext();
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    read += std::string(tensor->text());
  }
  EXPECT_EQ(read, data);
  EXPECT_EQ((*reader)->ReadNext().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*reader)->checksum(), written.checksum);
  EXPECT_EQ((*reader)->bytes(), written.bytes);
}

TEST_F(SafetensorsTest, TheChecksumIsOfTheWholeFile) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{64 << 10}, std::size_t{300000}}) {
    const TensorHeader header{
        .tensors = {{.name = "t", .type = TensorType::kF32, .shape = {250000}}}, .metadata = {}};
    const WrittenFile written = Write(header, Bytes(1000000), step);
    const std::string file = *files_.Read(kPath);
    EXPECT_EQ(written.checksum, ChecksumOf(file));
    EXPECT_EQ(written.bytes, file.size());
    auto reader = SafetensorsReader::Open(&files_, kPath);
    ASSERT_TRUE((*reader)->SkipRest().ok());
    EXPECT_EQ((*reader)->checksum(), written.checksum);
  }
}

TEST_F(SafetensorsTest, AFinishedFileSurvivesACrash) {
  const std::string data = Bytes(kEveryTypeBytes);
  Write(EveryType(), data, 100);
  const std::string file = *files_.Read(kPath);
  ASSERT_TRUE(files_.SyncDirectory(".").ok());
  files_.Crash();
  EXPECT_EQ(*files_.Read(kPath), file);
}

TEST_F(SafetensorsTest, TheWriterKeepsToItsHeader) {
  TensorHeader header = EveryType();
  auto writer = SafetensorsWriter::Create(&files_, kPath, header);
  const std::string data = Bytes(kEveryTypeBytes + 1);
  EXPECT_EQ((*writer)->Finish().status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->Append(BytesOfText(data)).code(), absl::StatusCode::kInternal);
  header.tensors.push_back(header.tensors[0]);
  EXPECT_EQ(SafetensorsWriter::Create(&files_, kPath, header).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SafetensorsTest, AnErrorOfTheDiskIsSeen) {
  files_.SetFaults({.bytes_max = 1000});
  const TensorHeader header{.tensors = {{.name = "t", .type = TensorType::kF32, .shape = {25000}}},
                            .metadata = {}};
  auto writer = SafetensorsWriter::Create(&files_, kPath, header);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->Append(BytesOfText(Bytes(100000))).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::checkpoint
