// Kernels is the set of loops over elements and keys that codecs and servers spend their time in,
// compiled for several instruction sets; the best one that this machine has is chosen at the first
// use.
//
// All levels compute the same bits: each element's operations are done in the same order and
// rounded one by one (no fused multiply-add), by IEEE 754, and each kernel fixes the order of its
// sums. Only the payload of a NaN may differ. Pointers need the alignment of their type and no
// more.
#ifndef LEEWAY_COMPRESS_KERNELS_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_KERNELS_H_

#include "compress/kernels/dither_kernels.h"
#include "compress/kernels/eight_bit_kernels.h"
#include "compress/kernels/halves_kernels.h"
#include "compress/kernels/matrix_kernels.h"
#include "compress/kernels/nonzero_kernels.h"
#include "compress/kernels/reduce_kernels.h"
#include "compress/kernels/shuffle_kernels.h"
#include "compress/kernels/sign_kernels.h"
#include "compress/kernels/sketch_kernels.h"
#include "compress/kernels/sparse_kernels.h"
#include "compress/kernels/update_kernels.h"
#include "runtime/base/instruction_level.h"

namespace leeway::compress {

using runtime::Level;
using runtime::LevelsHere;

struct Kernels {
  ReduceKernels reduce;
  SignKernels sign;
  DitherKernels dither;
  MatrixKernels matrix;
  SketchKernels sketch;
  SparseKernels sparse;
  HalvesKernels halves;
  EightBitKernels eight_bit;
  ShuffleKernels shuffle;
  NonzeroKernels nonzero;
  ByType<SumKernel, float, double, Float16, BFloat16, std::int32_t, std::int64_t> sum;
  ByType<UpdateKernels, float, double, std::int32_t, std::int64_t> update;
  ByType<NonFiniteKernel, float, double, Float16, BFloat16> any_non_finite;
  // Whether all keys lie in a shard, of mask + 1 shards, a power of two (proto::ShardOfKey).
  bool (*all_in_shard)(const std::uint64_t* keys, std::size_t size, std::uint64_t mask,
                       std::uint64_t shard);
};

// The kernels of a level that is among LevelsHere().
const Kernels& KernelsOf(Level level);

// The kernels of the chosen level. Any thread.
const Kernels& ChosenKernels();

// Chooses another level than the best, for tests and benchmarks.
void ChooseLevel(Level level);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_KERNELS_H_
