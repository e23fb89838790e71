#include "compress/differences/digest.h"

#include "compress/differences/testing.h"

namespace leeway::compress {
namespace digest_test {
namespace {

TEST(DigestOfBlocks, DependsOnEveryByteAndOnWhereTheBlockIs) {
  const Bytes block = RandomBytes(1000, 1);
  const std::uint64_t digest = DigestOfBlock(3, 4, block);
  EXPECT_EQ(DigestOfBlock(3, 4, Bytes(block)), digest);
  EXPECT_NE(DigestOfBlock(4, 3, block), digest);
  EXPECT_NE(DigestOfBlock(3, 5, block), digest);
  EXPECT_NE(DigestOfBlock(2, 4, block), digest);
  for (std::size_t i = 0; i < block.size(); ++i) {
    Bytes other = block;
    other[i] ^= std::byte{0x10};
    EXPECT_NE(DigestOfBlock(3, 4, other), digest) << i;
  }
}

TEST(DigestOfBlocks, SumsTellBlocksThatHaveChangedPlaces) {
  const Bytes a = RandomBytes(500, 1), b = RandomBytes(500, 2);
  EXPECT_NE(DigestOfBlock(1, 0, a) + DigestOfBlock(1, 1, b),
            DigestOfBlock(1, 0, b) + DigestOfBlock(1, 1, a));
}

// Two processes compare them: they are part of what goes over the wire.
TEST(DigestOfBlocks, AreTheSameOnEveryMachine) {
  Bytes block(300);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i);
  EXPECT_EQ(DigestOfBlock(1, 2, block), 11099824950826573248u);
  EXPECT_EQ(DigestOfBlock(0, 0, {}), 14933405476792416823u);
}

}  // namespace
}  // namespace digest_test
}  // namespace leeway::compress
