// The table of all loops of one level. Only the levels' files include it, each of which is compiled
// for another instruction set. Everything is therefore in unnamed namespaces, and the loops call
// nothing that the linker might merge with a copy from elsewhere: an inline function of the
// standard library compiled here could end up in code that runs on processors without these
// instructions.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_ALL_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_ALL_H_

#include "compress/kernels/kernels.h"
#include "compress/kernels/loops/dither.h"
#include "compress/kernels/loops/eight_bit.h"
#include "compress/kernels/loops/halves.h"
#include "compress/kernels/loops/in_shard.h"
#include "compress/kernels/loops/matrix.h"
#include "compress/kernels/loops/non_finite.h"
#include "compress/kernels/loops/nonzero.h"
#include "compress/kernels/loops/reduce.h"
#include "compress/kernels/loops/shuffle.h"
#include "compress/kernels/loops/sign.h"
#include "compress/kernels/loops/sketch.h"
#include "compress/kernels/loops/sparse.h"
#include "compress/kernels/loops/sum.h"
#include "compress/kernels/loops/updates.h"

namespace leeway::compress {
namespace {

constexpr Kernels kLoops = {
    .reduce = kReduceLoops,
    .sign = kSignLoops,
    .dither = kDitherLoops,
    .matrix = kMatrixLoops,
    .sketch = kSketchLoops,
    .sparse = kSparseLoops,
    .halves = kHalvesLoops,
    .eight_bit = kEightBitLoops,
    .shuffle = kShuffleLoops,
    .nonzero = kNonzeroLoops,
    .sum = {{Sum<float>},
            {Sum<double>},
            {Sum<Float16>},
            {Sum<BFloat16>},
            {Sum<std::int32_t>},
            {Sum<std::int64_t>}},
    .update = {{kUpdateLoops<float>},
               {kUpdateLoops<double>},
               {kUpdateLoops<std::int32_t>},
               {kUpdateLoops<std::int64_t>}},
    .any_non_finite = {{AnyNonFinite<float>},
                       {AnyNonFinite<double>},
                       {AnyNonFinite<Float16>},
                       {AnyNonFinite<BFloat16>}},
    .all_in_shard = AllInShard,
};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_ALL_H_
