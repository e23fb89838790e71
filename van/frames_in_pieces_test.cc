#include "van/frames_in_pieces.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "runtime/memory/sanitized.h"

namespace leeway::van {
namespace {

absl::Status Take(FramesInPieces* frames, absl::string_view piece,
                  FramesInPieces::Payload* payload) {
  return frames->Take(reinterpret_cast<const std::byte*>(piece.data()), piece.size(), payload);
}

TEST(FramesInPieces, AFrameGetsItsMemoryWithItsFirstBytes) {
  FramesInPieces frames;
  FramesInPieces::Payload payload;
  std::string head(4, '.');
  frames.AddInto(reinterpret_cast<std::byte*>(head.data()), 4);
  for (int i = 0; i < 2; ++i) frames.AddTo(&payload, 100);
  frames.AddDiscarded(3);
  ASSERT_EQ(payload.size(), 2u);
  EXPECT_EQ(frames.missing(), 4u);
  ASSERT_TRUE(Take(&frames, "head", &payload).ok());
  EXPECT_EQ(head, "head");
  EXPECT_EQ(payload[0].size(), 0u);
  ASSERT_TRUE(Take(&frames, std::string(99, 'a'), &payload).ok());
  EXPECT_EQ(payload[0].size(), 100u);
  EXPECT_EQ(payload[1].size(), 0u);
  EXPECT_EQ(frames.missing(), 1u);
  ASSERT_TRUE(Take(&frames, "b", &payload).ok());
  EXPECT_EQ(payload[0].text(), std::string(99, 'a') + "b");
  ASSERT_TRUE(Take(&frames, std::string(100, 'c'), &payload).ok());
  EXPECT_EQ(payload[1].text(), std::string(100, 'c'));
  ASSERT_TRUE(Take(&frames, "xyz", &payload).ok());
  EXPECT_TRUE(frames.empty());
}

TEST(FramesInPieces, WithoutMemoryAFrameIsAnError) {
  if (runtime::kSanitized) GTEST_SKIP() << "sanitizers end a process that asks for too much";
  FramesInPieces frames;
  FramesInPieces::Payload payload;
  frames.AddTo(&payload, std::uint64_t{1} << 62);
  const absl::Status status = Take(&frames, "x", &payload);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::van
