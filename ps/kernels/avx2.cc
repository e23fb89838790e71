// Compiled with -mavx2 -mf16c (CMakeLists.txt).
#include "ps/kernels/levels.h"
#include "ps/kernels/loops/all.h"

namespace leeway::ps {

extern const Kernels kAvx2Kernels = kLoops;

}  // namespace leeway::ps
