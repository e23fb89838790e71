// The kernels that split elements into planes, the bytes of equal significance, which compress
// better than elements do.
#ifndef LEEWAY_COMPRESS_KERNELS_SHUFFLE_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_SHUFFLE_KERNELS_H_

#include <cstddef>

namespace leeway::compress {

// Elements of 2, 4 or 8 bytes, at any alignment. Plane p holds every element's byte p, counted from
// the least significant one.
struct ShuffleKernels {
  // Plane p goes to `to` + p · size.
  void (*split2)(const std::byte* from, std::size_t size, std::byte* to);
  void (*split4)(const std::byte* from, std::size_t size, std::byte* to);
  void (*split8)(const std::byte* from, std::size_t size, std::byte* to);
  // `planes` has the address of each plane.
  void (*join2)(const std::byte* const* planes, std::size_t size, std::byte* to);
  void (*join4)(const std::byte* const* planes, std::size_t size, std::byte* to);
  void (*join8)(const std::byte* const* planes, std::size_t size, std::byte* to);
  // The elements are floats: sum[i] += factor × joined[i].
  void (*join_add)(const std::byte* const* planes, std::size_t size, float factor, float* sum);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_SHUFFLE_KERNELS_H_
