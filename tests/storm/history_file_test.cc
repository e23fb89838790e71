// History files: written lines are read again, also when the process was killed.
#include "tests/storm/history_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "tests/storm/history_record.h"
#include "tests/storm/traced_tables.h"

namespace leeway::storm::history_file_test {

using ::testing::HasSubstr;

class HistoryFileTest : public testing::Test {
 protected:
  ~HistoryFileTest() override { std::filesystem::remove(path_); }

  std::vector<HistoryRecord> Written() const {
    HistoryReader reader(std::make_unique<std::ifstream>(path_));
    std::vector<HistoryRecord> records;
    while (const std::optional<HistoryRecord> record = *reader.Next()) records.push_back(*record);
    return records;
  }

  const std::string path_ = testing::TempDir() + "/" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() +
                            ".history";
};

TEST_F(HistoryFileTest, ReadsWhatWasWritten) {
  const simulation::SimTable table = TracedTables(2, 10, Consistency::Bsp())[1];
  std::vector<std::int64_t> counts(2 * table.stride);
  const std::shared_ptr<HistoryWriter> writer = *HistoryWriter::Open(path_);
  writer->SetClock(7);
  writer->Made({.table = 1, .number = 3, .clock = 7, .places = 9, .at = {}});
  writer->Asked({.id = 1,
                 .table = 1,
                 .clock = 7,
                 .effective = 8,
                 .own_pushes = 4,
                 .places = 0x8000000000000001,
                 .at = {}});
  writer->Told({.table = 1, .number = 3, .code = 2, .at = {}});
  counts[table.stride + 5] = std::int64_t{1} << 62;
  const std::vector<std::uint32_t> places = {0, 3};
  writer->Seen(1, table, places, counts);
  counts[2] = 1;
  writer->Seen(2, table, places, counts);
  writer->Failed({.id = 3, .code = 4, .at = {}});
  ASSERT_TRUE(writer->status().ok());

  const std::vector<HistoryRecord> written = Written();
  ASSERT_EQ(written.size(), 6u);
  const auto& push = std::get<PushMade>(written[0]);
  EXPECT_EQ(push.table, 1u);
  EXPECT_EQ(push.number, 3u);
  EXPECT_EQ(push.clock, 7u);
  EXPECT_EQ(push.places, 9u);
  const auto& asked = std::get<ReadAsked>(written[1]);
  EXPECT_EQ(asked.effective, 8u);
  EXPECT_EQ(asked.own_pushes, 4u);
  EXPECT_EQ(asked.places, 0x8000000000000001);
  EXPECT_EQ(std::get<PushTold>(written[2]).code, 2);
  const auto& seen = std::get<ReadSeen>(written[3]);
  EXPECT_EQ(seen.reader_clock, 7u);
  ASSERT_EQ(seen.changes.size(), 1u);
  EXPECT_EQ(seen.changes[0].place, 3u);
  EXPECT_EQ(seen.changes[0].element, 5u);
  EXPECT_EQ(seen.changes[0].value, std::int64_t{1} << 62);
  const auto& later = std::get<ReadSeen>(written[4]);
  ASSERT_EQ(later.changes.size(), 1u);  // earlier values are not written again
  EXPECT_EQ(later.changes[0].element, 2u);
  EXPECT_EQ(std::get<ReadFailed>(written[5]).code, 4);
  for (std::size_t i = 1; i < written.size(); ++i) {
    EXPECT_LE(TimeOf(written[i - 1]), TimeOf(written[i]));
  }
}

TEST_F(HistoryFileTest, ALineWithoutAnEndIsNone) {
  std::ofstream(path_) << "push 0 0 0 1 10\npush 0 1 1 1 2";
  EXPECT_EQ(Written().size(), 1u);
}

TEST_F(HistoryFileTest, ALineThatSaysNothingIsAnError) {
  HistoryReader reader(std::make_unique<std::istringstream>("push 0 0 0 1 10\npush 0 1 1 2\n"));
  EXPECT_TRUE(reader.Next().ok());
  EXPECT_THAT(std::string(reader.Next().status().message()), HasSubstr("line 2 of a history"));
}

TEST_F(HistoryFileTest, NumbersGoOn) {
  EXPECT_EQ(*PushesNumbered(path_, 5), 5u);  // there is no file: it was killed early
  std::ofstream(path_) << "push 0 8 0 1 10\npush 1 7 1 1 20\ntold 0 8 0 30\n";
  EXPECT_EQ(*PushesNumbered(path_, 5), 9u);
}

TEST_F(HistoryFileTest, SaysWhereItCannotBeWritten) {
  EXPECT_THAT(std::string(HistoryWriter::Open(path_ + "/not/there").status().message()),
              HasSubstr("not/there"));
  const auto full = HistoryWriter::Open("/dev/full");
  ASSERT_TRUE(full.ok());
  (*full)->Made({});
  EXPECT_FALSE((*full)->status().ok());
}

}  // namespace leeway::storm::history_file_test
