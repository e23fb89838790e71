// FlushSubnormals makes floating-point results of its thread that are below the smallest normal
// number zero, while it lives. For what decays: the mean of gradients that have become 0, as those
// of a pixel that is always black, is multiplied by 0.9 in every step, comes to the smallest number
// of all and stays there, since rounding to nearest leads back to it. Processors take up to a
// hundred times as long for such numbers.
#ifndef LEEWAY_RUNTIME_BASE_FLUSH_SUBNORMALS_H_
#define LEEWAY_RUNTIME_BASE_FLUSH_SUBNORMALS_H_

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace leeway::runtime {

// Does nothing unless `wanted`, and on processors other than x86-64 and 64-bit Arm.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    before_ = Control();
    SetControl(before_ | kFlush);
  }
  ~FlushSubnormals() {
    if (wanted_) SetControl(before_);
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__SSE__)
  static constexpr std::uint32_t kFlush = 1u << 15;  // MXCSR.FZ
  static std::uint32_t Control() { return _mm_getcsr(); }
  static void SetControl(std::uint32_t control) { _mm_setcsr(control); }
  std::uint32_t before_ = 0;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = 1u << 24;  // FPCR.FZ
  static std::uint64_t Control() {
    std::uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void SetControl(std::uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
  std::uint64_t before_ = 0;
#else
  static constexpr int kFlush = 0;
  static int Control() { return 0; }
  static void SetControl(int) {}
  int before_ = 0;
#endif
  const bool wanted_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_FLUSH_SUBNORMALS_H_
