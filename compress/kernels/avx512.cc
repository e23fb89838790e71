// Compiled with -mavx512{f,bw,dq,vl} (CMakeLists.txt).
#include "compress/kernels/levels.h"
#include "compress/kernels/loops/all.h"

namespace leeway::compress {

extern const Kernels kAvx512Kernels = kLoops;

}  // namespace leeway::compress
