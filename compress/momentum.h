// Momentum is the momentum of a worker's pushes before compression, an option of every lossy codec.
//
//   m ← μ·m + g;  the codec compresses m, or with Nesterov's form g + μ·m
//
// Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational
// Mathematics 4(5), 1964; Nesterov's form as in Sutskever et al., ICML 2013, equations 3 and 4, in
// the variables of Zheng et al., NeurIPS 2019 (dist-EF-blockSGDM). The same as the two momentum
// compressors of BytePS. m is of gradients, without a learning rate, as in torch.optim.SGD; all
// values are clamped to the largest finite number.
//
// It is not part of a codec: error feedback adds its residual to the result of momentum, so the
// owner of the residual (the worker's PushEncoder) applies it, and servers, which encode replies
// with the same codec, have none. Stateless; m belongs to the caller. Any thread.
// with the same codec, have none. Stateless; m belongs to the caller. Any thread.
#ifndef LEEWAY_COMPRESS_MOMENTUM_H_
#define LEEWAY_COMPRESS_MOMENTUM_H_

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/codec.h"

namespace leeway::compress {

class Momentum {
 public:
  // factor: μ, from 0 to 0.9999.
  Momentum(float factor, bool nesterov) : factor_(factor), nesterov_(nesterov) {}

  // Updates `velocity`, which is m, and writes the values to compress; all have one length.
  // `gradient` is finite, and `pushed` overlaps neither.
  void Step(std::span<const float> gradient, std::span<float> velocity,
            std::span<float> pushed) const;

  float factor() const { return factor_; }
  bool nesterov() const { return nesterov_; }

 private:
  float factor_;
  bool nesterov_;
};

// Takes the options `momentum` and `nesterov` out of `options`; nullopt: they are not given.
// INVALID_ARGUMENT names the codec and the option: out of range, nesterov without momentum.
absl::StatusOr<std::optional<Momentum>> TakeMomentum(absl::string_view codec,
                                                     CodecOptions* options);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_MOMENTUM_H_
