// Compiled with -mavx2 -mf16c (CMakeLists.txt).
#include "compress/kernels/levels.h"
#include "compress/kernels/loops/all.h"

namespace leeway::compress {

extern const Kernels kAvx2Kernels = kLoops;

}  // namespace leeway::compress
