#include "leeway/consistency.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway {
namespace {

TEST(ConsistencyTest, Parses) {
  EXPECT_EQ(Consistency::Parse("bsp").value(), Consistency::Bsp());
  EXPECT_EQ(Consistency::Parse("asp").value(), Consistency::Asp());
  EXPECT_EQ(Consistency::Parse("ssp:3").value(), Consistency::Ssp(3));
  EXPECT_EQ(Consistency::Parse("ssp:0").value(), Consistency::Bsp());
  EXPECT_EQ(Consistency::Parse("ssp:18446744073709551614").value(),
            Consistency::Ssp(Consistency::kUnbounded - 1));
}

TEST(ConsistencyTest, ReadsBackWhatItWrites) {
  for (const Consistency& value :
       {Consistency::Bsp(), Consistency::Ssp(1), Consistency::Ssp(8), Consistency::Asp(),
        Consistency::Ssp(Consistency::kUnbounded - 1)}) {
    EXPECT_EQ(Consistency::Parse(value.ToString()).value(), value) << value.ToString();
  }
  EXPECT_EQ(Consistency::Ssp(8).ToString(), "ssp:8");
  EXPECT_EQ(Consistency::Ssp(0).ToString(), "bsp");
}

TEST(ConsistencyTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "BSP", "bsp ", " asp", "ssp", "ssp:", "ssp:-1", "ssp:+1", "ssp: 1", "ssp:1 ", "ssp:1.5",
        "ssp:x", "ssp:18446744073709551615", "ssp:18446744073709551616", "ssp:3\n"}) {
    const auto parsed = Consistency::Parse(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Consistency::Parse("x\n").status().message(),
            "consistency is \"x\\n\", may be \"bsp\", \"asp\", or \"ssp:S\" with S from 0 to "
            "18446744073709551614");
}

}  // namespace
}  // namespace leeway
