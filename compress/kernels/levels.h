// The kernels of each level; a level's file is compiled for its instruction set.
#ifndef LEEWAY_COMPRESS_KERNELS_LEVELS_H_
#define LEEWAY_COMPRESS_KERNELS_LEVELS_H_

#include "compress/kernels/kernels.h"

namespace leeway::compress {

extern const Kernels kScalarKernels;
extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LEVELS_H_
