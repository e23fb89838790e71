// Compiled with -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl (CMakeLists.txt).
#include "ps/kernels/levels.h"
#include "ps/kernels/loops/all.h"

namespace leeway::ps {

extern const Kernels kAvx512Kernels = kLoops;

}  // namespace leeway::ps
