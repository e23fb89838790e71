// The table of kernels of each level; a level's file is compiled for its instruction set.
#ifndef LEEWAY_PS_KERNELS_LEVELS_H_
#define LEEWAY_PS_KERNELS_LEVELS_H_

#include "ps/kernels/kernels.h"

namespace leeway::ps {

extern const Kernels kScalarKernels;
extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_LEVELS_H_
