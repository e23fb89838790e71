#include "runtime/base/random.h"

#include <cmath>

#include "runtime/base/mix.h"

namespace leeway::runtime {
namespace {

std::uint64_t RotateLeft(std::uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

double ToUnit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// log and cos of the standard library differ in the last bit between versions and CPUs, so they
// cannot be used where all processes must compute the same number. These two use only additions,
// multiplications and divisions, which IEEE 754 defines to the bit (random.cc is compiled without
// fused multiply-add).

// ln(x) for normal x > 0: x = m 2^e with m near 1, and ln m = 2 artanh((m − 1) / (m + 1)).
double PortableLog(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2): keeps m within [0.71, 1.41]
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + exponent * kLn2;
}

// cos(2πt) for t in [0, 1): folded to an angle of at most π/4, then Taylor's series.
double PortableCosTurns(double t) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  const double quarters = t * 4;
  const int quadrant = static_cast<int>(quarters + 0.5);
  const double x = (quarters - quadrant) * kHalfPi;
  const double x2 = x * x;
  double cosine = 0;
  double sine = 0;
  for (int k = 16; k >= 2; k -= 2) {
    cosine = (cosine + 1) * (-x2 / (k * (k - 1)));
    sine = (sine + 1) * (-x2 / (k * (k + 1)));
  }
  cosine += 1;
  sine = (sine + 1) * x;
  switch (quadrant % 4) {
    case 0:
      return cosine;
    case 1:
      return -sine;
    case 2:
      return -cosine;
    default:
      return sine;
  }
}

// Box–Muller. The first argument must not be 0, which 1 − u of [0, 1) never is.
double ToNormal(std::uint64_t a, std::uint64_t b) {
  return std::sqrt(-2 * PortableLog(1 - ToUnit(a))) * PortableCosTurns(ToUnit(b));
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = Mix(seed += kGamma);
}

std::uint64_t Random::Next() {
  const std::uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

double Random::Uniform() { return ToUnit(Next()); }

std::uint64_t Random::Below(std::uint64_t bound) {
  // Draws below 2^64 mod `bound` are rejected, because they would make small results likelier.
  const std::uint64_t rejected = (0 - bound) % bound;
  std::uint64_t draw = Next();
  while (draw < rejected) draw = Next();
  return draw % bound;
}

double Random::Normal() {
  const std::uint64_t first = Next();
  return ToNormal(first, Next());
}

std::uint64_t RandomAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return Mix((Mix((Mix(seed + kGamma) ^ stream) + kGamma) ^ index) + kGamma);
}

double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return ToUnit(RandomAt(seed, stream, index));
}

double NormalAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const std::uint64_t first = RandomAt(seed, stream, index);
  return ToNormal(first, Mix(first + kGamma));
}

std::uint64_t StableHash(absl::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Mix(hash);
}

std::uint64_t StableHash(std::uint64_t key) { return MixKey(key); }

}  // namespace leeway::runtime
