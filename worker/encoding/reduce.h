// The kernels by which pushes are summed up and looked at.
#ifndef LEEWAY_WORKER_ENCODING_REDUCE_H_
#define LEEWAY_WORKER_ENCODING_REDUCE_H_

#include "compress/kernels/kernels.h"

namespace leeway::worker {

inline const compress::ReduceKernels& Reduce() { return compress::ChosenKernels().reduce; }

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_REDUCE_H_
