#include "runtime/memory/thread_object.h"

#include <gtest/gtest.h>

#include <thread>

namespace leeway::runtime::thread_object_test {
namespace {

int living = 0;

struct Counted {
  Counted() { ++living; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --living; }
  int uses = 0;
};

int Use() { return ++ThreadObject<Counted>()->uses; }

TEST(ThreadObject, IsTheSameInAllUsesOfAThread) {
  std::thread([] {
    EXPECT_EQ(Use(), 1);
    EXPECT_EQ(Use(), 2);
    std::thread([] { EXPECT_EQ(Use(), 1); }).join();
    EXPECT_EQ(living, 1);
  }).join();
  EXPECT_EQ(living, 0);
}

TEST(ThreadObject, CanBeUsedAfterTheThreadsOwnIsGone) {
  static int used_late;
  used_late = 0;
  struct Late {
    ~Late() {
      EXPECT_EQ(living, 0);
      used_late = Use() + Use();
    }
  };
  std::thread([] {
    thread_local Late late;
    static_cast<void>(&late);
    Use();
  }).join();
  EXPECT_EQ(used_late, 2);  // an object for each
  EXPECT_EQ(living, 0);
}

}  // namespace
}  // namespace leeway::runtime::thread_object_test
