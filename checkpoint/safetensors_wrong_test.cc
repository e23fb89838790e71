// Files that are not as they should be: each is refused in one line, and none is believed.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "checkpoint/safetensors_reader.h"
#include "proto/tables/text.h"
#include "runtime/base/random.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::checkpoint {
namespace {

constexpr char kWrongPath[] = "wrong.safetensors";

std::string FileOf(absl::string_view header, std::size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  return absl::StrCat(file, header, std::string(data_bytes, 'x'));
}

absl::Status Open(const std::string& contents) {
  runtime::SimFileSystem files(1);
  auto file = files.Create(kWrongPath);
  EXPECT_TRUE((*file)->Append(contents).ok());
  auto reader = SafetensorsReader::Open(&files, kWrongPath);
  return reader.ok() ? (*reader)->SkipRest() : reader.status();
}

struct Wrong {
  const char* what;
  const char* header;
  std::size_t data_bytes;
};

constexpr Wrong kWrong[] = {
    {"no JSON", "this is no JSON", 0},
    {"an array", "[]", 0},
    {"cut off", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4},
    {"a comment behind it", "{} x", 0},
    {"an unknown dtype", R"({"t":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4},
    {"a dtype that is a number", R"({"t":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4},
    {"no dtype", R"({"t":{"shape":[1],"data_offsets":[0,4]}})", 4},
    {"no shape", R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", 4},
    {"no place", R"({"t":{"dtype":"F32","shape":[1]}})", 4},
    {"half a place", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4},
    {"three offsets", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4},
    {"more than it may have", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"a":1}})", 4},
    {"a negative offset", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4},
    {"a broken offset", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4.5]}})", 4},
    {"a negative extent", R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4},
    {"its end before its begin", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4},
    {"a shape of other bytes", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4},
    {"a shape beyond counting",
     R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0},
    {"a shape that comes round to its bytes",
     R"({"t":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4},
    {"too many dimensions",
     R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
     4},
    {"bytes behind the last", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5},
    {"too few bytes", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3},
    {"a gap at the start", R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8},
    {"a gap",
     R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"u":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12},
    {"an overlap",
     R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"u":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12},
    {"a name twice",
     R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
     4},
    {"metadata that are no object", R"({"__metadata__":[]})", 0},
    {"metadata that are no text", R"({"__metadata__":{"a":1}})", 0},
    {"nested deeply", R"({"t":{"dtype":"F32","shape":[[[[[1]]]]],"data_offsets":[0,4]}})", 4},
    {"a name that is no text", R"({"\u001b]0;x":{"dtype":"F32"}})", 0},
    {"a dtype that is no text", R"({"t":{"dtype":"\u001b[2J","shape":[1],"data_offsets":[0,4]}})",
     4},
    {"metadata with a name that is no text", R"({"__metadata__":{"\u001b":1}})", 0},
    {"text that is no UTF-8", "{\"\xff\":1}", 0},
};

TEST(SafetensorsWrongTest, EachIsRefusedInOneLineThatNamesTheFile) {
  for (const Wrong& wrong : kWrong) {
    const absl::Status status = Open(FileOf(wrong.header, wrong.data_bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << wrong.what << ": " << status;
    EXPECT_NE(status.message().find(kWrongPath), absl::string_view::npos) << status;
    EXPECT_TRUE(proto::IsClean(status.message(), proto::Lines::kOne)) << status;
  }
}

TEST(SafetensorsWrongTest, LengthsAreNotBelieved) {
  EXPECT_EQ(Open("").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Open("1234567").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Open(std::string(8, '\xff')).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Open(std::string(8, '\0')).code(), absl::StatusCode::kDataLoss);
  std::string longer = FileOf("{}", 0);
  longer[0] = 3;
  EXPECT_EQ(Open(longer).code(), absl::StatusCode::kDataLoss);
  std::string huge = FileOf("{}", 1000);
  huge[7] = 1;
  EXPECT_EQ(Open(huge).code(), absl::StatusCode::kDataLoss);
}

TEST(SafetensorsWrongTest, DeepNestingTakesNoStack) {
  EXPECT_EQ(Open(FileOf(absl::StrCat("{\"t\":", std::string(1000000, '[')), 0)).code(),
            absl::StatusCode::kDataLoss);
}

TEST(SafetensorsWrongTest, CorrectFilesAreTaken) {
  EXPECT_TRUE(Open(FileOf("{}", 0)).ok());
  EXPECT_TRUE(Open(FileOf("{}      ", 0)).ok());
  const char kHeader[] = R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},)"
                         R"("s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},)"
                         R"("__metadata__":{"a":"b"}})";
  const absl::Status status = Open(FileOf(kHeader, 26));
  EXPECT_TRUE(status.ok()) << status;
}

// Whatever stands in the header: refused or right, but never a crash.
TEST(SafetensorsWrongTest, MutationsDoNotHurt) {
  const std::string good = FileOf(
      R"({"__metadata__":{"a":"b"},"s":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4);
  runtime::Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string file = good;
    for (std::uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
      file[random.Below(file.size())] = static_cast<char>(random.Next());
    }
    file.resize(random.Below(8) == 0 ? random.Below(file.size()) : file.size());
    Open(file).IgnoreError();
  }
}

}  // namespace
}  // namespace leeway::checkpoint
