// All loops of one level. Included only by the files of levels, each of which is compiled for
// another instruction set. All of it is therefore in unnamed namespaces, and nothing is called that
// the linker might merge with a copy from elsewhere: an inline function of the standard library
// compiled here could end up in code that runs before the processor has been asked what it can do.
#ifndef LEEWAY_PS_KERNELS_LOOPS_ALL_H_
#define LEEWAY_PS_KERNELS_LOOPS_ALL_H_

#include "ps/kernels/kernels.h"
#include "ps/kernels/loops/halves.h"
#include "ps/kernels/loops/in_shard.h"
#include "ps/kernels/loops/non_finite.h"
#include "ps/kernels/loops/sum.h"
#include "ps/kernels/loops/updates.h"

namespace leeway::ps {
namespace {

template <class T>
constexpr UpdateKernels<T> kUpdateLoops = {.add = Add<T>};

template <std::floating_point T>
constexpr UpdateKernels<T> kUpdateLoops<T> = {.add = Add<T>,
                                              .sgd = Sgd<T>,
                                              .momentum = Momentum<T>,
                                              .nesterov = Nesterov<T>,
                                              .adagrad = Adagrad<T>,
                                              .rmsprop = Rmsprop<T>,
                                              .adam = Adam<T>,
                                              .adamw = AdamW<T>,
                                              .ftrl = Ftrl<T>};

constexpr Kernels kLoops = {
    .sum = {.of_float = Sum<float>,
            .of_double = Sum<double>,
            .of_float16 = Sum<Float16>,
            .of_bfloat16 = Sum<BFloat16>,
            .of_int32 = Sum<std::int32_t>,
            .of_int64 = Sum<std::int64_t>},
    .update_float = kUpdateLoops<float>,
    .update_double = kUpdateLoops<double>,
    .update_int32 = kUpdateLoops<std::int32_t>,
    .update_int64 = kUpdateLoops<std::int64_t>,
    .float16 = {.widen = WidenRun<Float16>, .narrow = NarrowRun<Float16>},
    .bfloat16 = {.widen = WidenRun<BFloat16>, .narrow = NarrowRun<BFloat16>},
    .any_non_finite = {.of_float = AnyNonFinite<float>,
                       .of_double = AnyNonFinite<double>,
                       .of_float16 = AnyNonFinite<Float16>,
                       .of_bfloat16 = AnyNonFinite<BFloat16>},
    .all_in_shard = AllInShard};

}  // namespace
}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_LOOPS_ALL_H_
