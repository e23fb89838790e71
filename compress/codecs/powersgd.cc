// powersgd: a matrix as the product of two narrow ones, by one step of power iteration a message.
// Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
// Optimization", arXiv 1905.13727, Algorithm 1:
//
//     P = M·Q      P = orthonormalised P      Q = Mᵀ·P      decoded = P·Qᵀ
//
// The state (EncodeTerms::state) keeps Q from message to message, so that the iteration goes on
// where it stopped ("warm start") and, for a constant matrix, converges to its best approximation
// of that rank. Each kept column is multiplied by a power of two that brings its largest element to
// [0.5, 1), which changes no result but keeps it from overflowing. A column that is zero (before
// the first message, or after M had a smaller rank) is drawn from a normal distribution by the
// seed. Algorithm 1 averages P and Q over all workers; here each worker's message stands by itself,
// and the receiver adds up the decoded values.
//
// M has the shape's columns, and zeros behind a short last row. If the shape has no columns, or one
// row, M is nearly square: ⌈√elements⌉ columns, and zeros behind the last element. A matrix of
// which either side is at most twice the rank is sent as it is.
//
// Option: the rank, 1 to 32, 2 by default.
//
// Message, of 2 + 4 × rank × (rows + columns) bytes:
//     rank             u8
//     exponent         u8: 0 or 64
//     P, Q             float32: each column by column
// or, of 2 + 4 × elements bytes:
//     0                u8
//     0                u8
//     values           float32
// The decoded values are P·Qᵀ × 2^exponent: 64 if P or Q would otherwise overflow, which does not
// happen with values of up to 2^90.
//
// NaN and infinity are refused, and in a message malformed. Decoded values are clamped to the
// largest float. Rows of sparse tables are refused, since they have no state.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/message_floats.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr float kFactoredMax = 1e35f;

constexpr absl::string_view kPowerSgdName = "powersgd";
constexpr std::size_t kPowerSgdHeaderBytes = 2;
constexpr int kFactorExponents[] = {0, 64};
// The bound of largest element of P × largest of Q × rank: no sum of products is larger.
constexpr double kProductMax = 0x1p126;

// The smallest whole number whose square is at least `number`.
std::uint64_t RootCeiling(std::uint64_t number) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(number)));
  while (root * root < number) ++root;
  while (root > 0 && (root - 1) * (root - 1) >= number) --root;
  return root;
}

MatrixShape MatrixOf(const CodecShape& shape) {
  if (shape.elements == 0) return {};
  const bool has_rows = shape.columns > 0 && shape.columns < shape.elements;
  const std::uint64_t columns = has_rows ? shape.columns : RootCeiling(shape.elements);
  return {.elements = shape.elements,
          .columns = columns,
          .rows = (shape.elements + columns - 1) / columns};
}

bool HasRank(const MatrixShape& matrix, std::size_t rank) {
  return matrix.rows > 2 * rank && matrix.columns > 2 * rank;
}

std::size_t FactorElements(const MatrixShape& matrix, std::size_t rank) {
  return rank * (matrix.rows + matrix.columns);
}

float MaxAbs(const std::vector<float>& values) {
  return ChosenKernels().reduce.max_abs(values.data(), values.size());
}

// True if no element of the product can overflow or be NaN, given the largest elements.
bool ProductIsFinite(float largest_p, float largest_q, std::size_t rank) {
  return static_cast<double>(rank) * static_cast<double>(largest_p) *
             static_cast<double>(largest_q) <=
         kProductMax;
}

// A message taken apart and checked.
struct Parsed {
  MatrixShape matrix;
  std::size_t rank = 0;  // 0: the values are sent as they are
  float scale = 1;
  const std::byte* values = nullptr;  // or P
  const std::byte* q = nullptr;
};

absl::StatusOr<Parsed> ParseFactors(std::span<const std::byte> encoded, const CodecShape& shape) {
  ByteReader reader(encoded);
  std::uint8_t rank = 0, exponent = 0;
  if (!reader.Take(&rank) || !reader.Take(&exponent)) {
    return Malformed(kPowerSgdName, encoded.size(), " bytes hold no header");
  }
  Parsed parsed{.matrix = MatrixOf(shape), .rank = rank};
  if (rank > 0 && (rank > kRankMax || !HasRank(parsed.matrix, rank))) {
    return Malformed(kPowerSgdName, "rank ", static_cast<int>(rank), " of a matrix of ",
                     parsed.matrix.rows, " rows and ", parsed.matrix.columns, " columns");
  }
  if (exponent != 0 && (exponent != kFactorExponents[1] || rank == 0)) {
    return Malformed(kPowerSgdName, "exponent ", static_cast<int>(exponent));
  }
  const std::size_t floats = rank > 0 ? FactorElements(parsed.matrix, rank) : shape.elements;
  if (reader.left() != floats * sizeof(float)) {
    return Malformed(kPowerSgdName, reader.left(), " bytes are not ", floats, " floats");
  }
  parsed.values = reader.Skip(floats * sizeof(float));
  if (rank == 0) {
    if (!AllFinite(parsed.values, floats)) return Malformed(kPowerSgdName, "a value is not finite");
    return parsed;
  }
  const std::size_t p_elements = rank * parsed.matrix.rows;
  parsed.scale = std::ldexp(1.0f, exponent);
  parsed.q = parsed.values + p_elements * sizeof(float);
  float largest_p = 0, largest_q = 0;
  if (!AllFinite(parsed.values, p_elements, &largest_p) ||
      !AllFinite(parsed.q, floats - p_elements, &largest_q) ||
      !ProductIsFinite(largest_p, largest_q, rank)) {
    return Malformed(kPowerSgdName, "P·Qᵀ is not finite");
  }
  return parsed;
}

// Q at the start of a message, [rank × columns]: from the state, with drawn columns where it has
// none.
std::vector<float> StartOf(std::span<const float> state, std::size_t columns, std::size_t rank,
                           std::uint64_t seed) {
  std::vector<float> q(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(rank * columns));
  for (std::size_t k = 0; k < rank; ++k) {
    float* const column = q.data() + k * columns;
    const float largest = ChosenKernels().reduce.max_abs(column, columns);
    if (largest > 0 && std::isfinite(largest)) continue;
    for (std::size_t j = 0; j < columns; ++j) {
      column[j] = static_cast<float>(runtime::NormalAt(seed, k, j));
    }
  }
  return q;
}

// Scales each column by a power of two, so that its largest element is in [0.5, 1).
void KeepColumns(const std::vector<float>& q, std::size_t columns, std::size_t rank,
                 std::span<float> state) {
  for (std::size_t k = 0; k < rank; ++k) {
    const float* const column = q.data() + k * columns;
    int exponent = 0;
    std::frexp(ChosenKernels().reduce.max_abs(column, columns), &exponent);
    for (std::size_t j = 0; j < columns; ++j) {
      state[k * columns + j] = std::ldexp(column[j], -exponent);
    }
  }
}

void Scale(std::vector<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

class PowerSgd final : public FloatCodec {
 public:
  explicit PowerSgd(std::size_t rank) : rank_(rank) {}

  // Never 0, so that rows of sparse tables are refused whatever their number.
  std::size_t StateElements(const CodecShape& shape) const override {
    const MatrixShape matrix = MatrixOf(shape);
    return HasRank(matrix, rank_) ? rank_ * matrix.columns : 1;
  }
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    const MatrixShape matrix = MatrixOf(shape);
    const std::size_t floats =
        HasRank(matrix, rank_) ? FactorElements(matrix, rank_) : shape.elements;
    return kPowerSgdHeaderBytes + floats * sizeof(float);
  }

  // The remainder of very large values, value - decoded, may overflow: they are sent as they are.
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    const std::size_t elements = terms.shape.elements;
    if (ChosenKernels().reduce.max_abs(carried, elements) < kFactoredMax) {
      return Codec::EncodeAndSubtract(carried, terms, out);
    }
    const std::vector<float> before(carried, carried + elements);
    absl::StatusOr<std::size_t> bytes = Codec::EncodeAndSubtract(carried, terms, out);
    if (std::isfinite(ChosenKernels().reduce.max_abs(carried, elements))) return bytes;
    std::copy(before.begin(), before.end(), carried);
    return NotFinite(kPowerSgdName);
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const auto* const m = static_cast<const float*>(values);
    const MatrixShape matrix = MatrixOf(terms.shape);
    if (!HasRank(matrix, rank_)) return EncodeAsItIs(m, terms.shape.elements, out);
    const std::vector<float> start = StartOf(terms.state, matrix.columns, rank_, terms.seed);
    for (const int exponent : kFactorExponents) {
      std::vector<float> p(rank_ * matrix.rows), q(start);
      if (!Step(m, matrix, std::ldexp(1.0f, -exponent), &p, &q)) continue;
      ByteWriter writer(out);
      writer.Put(static_cast<std::uint8_t>(rank_));
      writer.Put(static_cast<std::uint8_t>(exponent));
      std::memcpy(writer.Skip(p.size() * sizeof(float)), p.data(), p.size() * sizeof(float));
      std::memcpy(writer.Skip(q.size() * sizeof(float)), q.data(), q.size() * sizeof(float));
      KeepColumns(q, matrix.columns, rank_, terms.state);
      return writer.size();
    }
    return NotFinite(kPowerSgdName);
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return ParseFactors(encoded, shape).status();
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Parsed parsed, ParseFactors(encoded, shape));
    if (parsed.rank > 0) {
      ChosenKernels().matrix.product(parsed.values, parsed.q, parsed.matrix, parsed.rank,
                                     parsed.scale, static_cast<float*>(values));
    } else if (shape.elements > 0) {
      std::memcpy(values, parsed.values, shape.elements * sizeof(float));
    }
    return absl::OkStatus();
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Parsed parsed, ParseFactors(encoded, shape));
    if (parsed.rank > 0) {
      ChosenKernels().matrix.add_product(parsed.values, parsed.q, parsed.matrix, parsed.rank,
                                         parsed.scale, factor, sum);
      return absl::OkStatus();
    }
    AddFloats(parsed.values, shape.elements, factor, sum);
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::size_t> EncodeAsItIs(const float* values, std::size_t elements,
                                                  std::span<std::byte> out) {
    if (!std::isfinite(ChosenKernels().reduce.max_abs(values, elements)))
      return NotFinite(kPowerSgdName);
    ByteWriter writer(out);
    writer.Put(std::uint8_t{0});
    writer.Put(std::uint8_t{0});
    std::byte* const to = writer.Skip(elements * sizeof(float));
    if (elements > 0) std::memcpy(to, values, elements * sizeof(float));
    return writer.size();
  }

  // Algorithm 1 for M = scale × m; false if a value overflows, or M is not finite.
  bool Step(const float* m, const MatrixShape& matrix, float scale, std::vector<float>* p,
            std::vector<float>* q) const {
    const MatrixKernels& kernels = ChosenKernels().matrix;
    Scale(*q, scale);
    kernels.times(m, matrix, q->data(), rank_, p->data());
    if (!std::isfinite(MaxAbs(*p))) return false;
    std::vector<double> columns(p->begin(), p->end());
    kernels.orthonormalise(columns.data(), matrix.rows, rank_);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      (*p)[i] = static_cast<float>(columns[i]) * scale;
    }
    kernels.transposed_times(m, matrix, p->data(), rank_, q->data());
    Scale(*p, 1 / scale);
    const float largest = MaxAbs(*q);
    return std::isfinite(largest) && ProductIsFinite(MaxAbs(*p), largest, rank_);
  }

  const std::size_t rank_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakePowerSgd(const CodecOptions& options) {
  double rank = 2;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(kPowerSgdName, options,
                                     {{.name = "",
                                       .what = "rank",
                                       .value = &rank,
                                       .low = 1,
                                       .high = static_cast<double>(kRankMax),
                                       .whole = true}}));
  return std::make_unique<PowerSgd>(static_cast<std::size_t>(rank));
}

}  // namespace

CodecList PowerSgdCodecs() { return {{"powersgd", MakePowerSgd}}; }

}  // namespace leeway::compress
