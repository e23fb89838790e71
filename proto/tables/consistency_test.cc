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

TEST(ConsistencyTest, ReadsBackEveryForm) {
  for (const char* text :
       {"backup:14/16", "backup:1/1,drop", "backup:14/16,drop,wait", "dssp:1-8", "dssp:0-0",
        "psp:3/8", "psp:0/1", "softsync:4", "fedbuff:10", "asp,weight=1/tau",
        "ssp:3,weight=poly:0.5", "asp,weight=hinge:10/4", "dssp:1-8,weight=cutoff:16",
        "fedbuff:10,weight=table:1/0.5/0.25/0", "softsync:4,weight=1/tau", "asp,dc=0.04",
        "ssp:3,dc=adaptive:2/0.95", "asp,weight=1/tau,dc=0.04"}) {
    const auto parsed = Consistency::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->ToString(), text);
  }
  EXPECT_EQ(Consistency::Parse("backup:14/16,drop").value(),
            Consistency::Backup(14, 16, Consistency::Late::kDrop));
  EXPECT_EQ(Consistency::Parse("dssp:1-8").value(), Consistency::Dssp(1, 8));
  EXPECT_EQ(Consistency::Parse("psp:3/8").value(), Consistency::Psp(3, 8));
  EXPECT_EQ(Consistency::Parse("softsync:4").value(), Consistency::Softsync(4));
  EXPECT_EQ(Consistency::Parse("fedbuff:10").value(), Consistency::FedBuff(10));
}

TEST(ConsistencyTest, RefusesEverythingElse) {
  for (const char* text : {"",
                           "BSP",
                           "bsp ",
                           " asp",
                           "ssp",
                           "ssp:",
                           "ssp:-1",
                           "ssp:+1",
                           "ssp: 1",
                           "ssp:1 ",
                           "ssp:1.5",
                           "ssp:x",
                           "ssp:18446744073709551615",
                           "ssp:18446744073709551616",
                           "ssp:3\n",
                           "backup:3",
                           "backup:4/3",
                           "backup:0/3",
                           "backup:/3",
                           "backup:3/",
                           "backup:2/3/4",
                           "backup:4294967297/4294967298",
                           "backup:2/3,dropped",
                           "backup:2/3,drop,drop",
                           "asp,drop",
                           "bsp,drop",
                           "asp,wait",
                           "dssp:4-3",
                           "dssp:3",
                           "dssp:0-18446744073709551615",
                           "psp:3",
                           "psp:3/0",
                           "softsync:0",
                           "softsync:-1",
                           "softsync:1.5",
                           "fedbuff:",
                           "fedbuff:0",
                           "asp,weight=",
                           "asp,weight=2/tau",
                           "asp,weight=poly:0",
                           "asp,weight=poly:-1",
                           "asp,weight=poly:nan",
                           "asp,weight=poly:inf",
                           "asp,weight=hinge:1",
                           "asp,weight=hinge:0/1",
                           "asp,weight=hinge:1/-1",
                           "asp,weight=cutoff:-1",
                           "asp,weight=table:",
                           "asp,weight=table:1/",
                           "asp,weight=table:-1",
                           "asp,weight=table: 1",
                           "asp,weight=1/tau,weight=1/tau",
                           "bsp,weight=1/tau",
                           "backup:2/3,weight=1/tau",
                           "asp,dc=",
                           "asp,dc=0",
                           "asp,dc=-1",
                           "asp,dc=inf",
                           "bsp,dc=1",
                           "softsync:4,dc=1",
                           "asp,dc=adaptive:1",
                           "asp,dc=adaptive:1/1",
                           "asp,dc=adaptive:1/0",
                           "asp,dc=adaptive:1/-0",
                           "asp,dc=1,dc=1",
                           "asp,",
                           ",",
                           "asp,,weight=1/tau"}) {
    const auto parsed = Consistency::Parse(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(Consistency::Parse("x\n").status().message()),
              testing::StartsWith("consistency is \"x\\n\", may be bsp, ssp:S, asp, backup:K/N"));
  EXPECT_EQ(Consistency::Parse("backup:4/3").status().message(),
            "consistency.count is 4 of 3 workers, may be at most as many");
  EXPECT_EQ(Consistency::Parse("bsp,weight=1/tau").status().message(),
            "consistency.weight is by staleness, and pushes wait for their clock in bsp: they are "
            "never stale");
  std::string many = "asp,weight=table:1";
  for (int i = 0; i < 64; ++i) many += "/1";
  EXPECT_FALSE(Consistency::Parse(many).ok());
}

// Pushes of float32 are multiplied by them.
TEST(ConsistencyTest, FactorsAreFiniteFloats) {
  for (const char* const text : {"asp,weight=table:3.4e38", "asp,dc=3.4e38"}) {
    EXPECT_TRUE(Consistency::Parse(text).ok()) << text;
  }
  EXPECT_EQ(Consistency::Parse("asp,weight=table:1/1e39").status().message(),
            "consistency.weights has 1e+39, each may be 0 to 3.40282e+38");
  EXPECT_EQ(Consistency::Parse("asp,dc=1e300").status().message(),
            "consistency.compensation is 1e+300 and its decay 0, may be 0 to 3.40282e+38, and 0 to "
            "below 1");
}

TEST(ConsistencyTest, AnErrorOfALongListIsShort) {
  Consistency many = Consistency::Asp();
  many.weight = Consistency::Weight::kTable;
  many.weights.assign(1000000, 0.123456789);
  for (const absl::Status& refused : {many.Validate(), Consistency::Parse(many.ToString()).status(),
                                      Consistency::Parse(std::string(3000000, ',')).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(refused.message().size(), 500u);
  }
}

TEST(ConsistencyTest, RefusesValuesThatWereCast) {
  using C = Consistency;
  EXPECT_FALSE(C{.rule = static_cast<C::Rule>(9)}.Validate().ok());
  EXPECT_FALSE(C{.weight = static_cast<C::Weight>(9)}.Validate().ok());
  EXPECT_FALSE(C{.count = 3}.Validate().ok());
  EXPECT_FALSE((C{.rule = C::Rule::kSoftsync, .staleness = 3, .count = 3}.Validate().ok()));
  EXPECT_FALSE((C{.staleness = 3, .a = 1}.Validate().ok()));
  EXPECT_FALSE((C{.staleness = 3, .weights = {1}}.Validate().ok()));
}

}  // namespace
}  // namespace leeway
