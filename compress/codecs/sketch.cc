// sketch: a count sketch, a small table to which all elements are added and from which they are
// estimated.
// Charikar, Chen and Farach-Colton, "Finding Frequent Items in Data Streams", 2002, as used for
// gradients in Rothchild et al., "FetchSGD", arXiv 2007.07682, section 3:
//
//     S[r][h_r(i)] += s_r(i) · x_i                    for each row r of the table
//     decoded_i = median over r of s_r(i) · S[r][h_r(i)]
//
// with a hash h_r to the columns of the table and a sign s_r = ±1 (kernels/sketch_kernels.h). Both
// depend on a seed that is computed from the number of elements of a table and a constant, so that
// the tables of all workers can be added up without decoding: Codec::AddEncoded.
//
// A large element is decoded nearly exactly; a small one is lost among the elements that share its
// places. If no elements stand out, the error of the estimates is larger than the elements
// themselves: the codec is no contraction, and under error feedback the residual grows from step to
// step until large elements stand out.
//
// Options: rows, odd, 1 to 9, 5 by default; ratio, columns of the table for each element, above 0
// and at most 1, 0.1 by default (rounded up to a whole number of columns).
//
// Message:
//     rows             u8
//     ratio            float64
//     seed             u64
//     tables, one for all elements, or one for each row where rows are separate:
//         exponent     u8: 0 or 64
//         cells        float32 × rows × ⌈ratio × elements⌉, row by row
//       or, if that would be as many floats as there are elements, or more:
//         values       float32 × elements
// Estimates are multiplied by 2^exponent: 64 if a cell would otherwise overflow.
//
// NaN and infinity are refused, and in a message malformed. Estimates are clamped to the largest
// float.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
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

constexpr absl::string_view kSketchName = "sketch";
constexpr std::uint64_t kSeed = 0x536b65746368;
constexpr std::size_t kSketchHeaderBytes = 1 + 8 + 8;
constexpr int kCellExponents[] = {0, 64};

// The header of a message.
struct Header {
  std::uint8_t rows = 0;
  double ratio = 0;
  std::uint64_t seed = 0;
};

// The elements that share a table, or are sent as values.
struct Group {
  std::uint64_t begin = 0;  // among the shape's elements
  std::uint64_t elements = 0;
  std::uint32_t width = 0;  // of the table
  bool has_table = false;
  std::size_t at = 0;      // in the message
  std::size_t floats = 0;  // of the cells, or the values

  std::size_t bytes() const { return (has_table ? 1 : 0) + floats * sizeof(float); }
};

Group GroupOf(const Header& header, std::uint64_t begin, std::uint64_t elements, std::size_t at) {
  const double columns = std::ceil(header.ratio * static_cast<double>(elements));
  const auto width = static_cast<std::uint32_t>(
      std::min(columns, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
  const std::uint64_t cells = std::uint64_t{header.rows} * width;
  const bool has_table = cells < elements;
  return {.begin = begin,
          .elements = elements,
          .width = width,
          .has_table = has_table,
          .at = at,
          .floats = has_table ? cells : elements};
}

// Calls `with(group)` for one group after the other, until it returns false; returns the end of the
// last one.
template <class With>
std::size_t ForEachGroup(const Header& header, const CodecShape& shape, With with) {
  const std::uint64_t each = GroupElements(shape, 0);
  std::size_t at = kSketchHeaderBytes;
  for (std::uint64_t begin = 0; begin < shape.elements; begin += each) {
    const Group group = GroupOf(header, begin, std::min(each, shape.elements - begin), at);
    at += group.bytes();
    if (!with(group)) break;
  }
  return at;
}

// All full rows are alike, so that the time does not grow with their number.
std::size_t MessageBytes(const Header& header, const CodecShape& shape) {
  const std::uint64_t each = GroupElements(shape, 0);
  if (each == 0) return kSketchHeaderBytes;
  const std::uint64_t last = shape.elements % each;
  return kSketchHeaderBytes + shape.elements / each * GroupOf(header, 0, each, 0).bytes() +
         (last > 0 ? GroupOf(header, 0, last, 0).bytes() : 0);
}

SketchTable TableOf(const Header& header, const Group& group) {
  return {.seed = header.seed, .rows = header.rows, .width = group.width};
}

int ExponentOf(std::span<const std::byte> message, const Group& group) {
  return group.has_table ? std::to_integer<int>(message[group.at]) : 0;
}
const std::byte* FloatsOf(std::span<const std::byte> message, const Group& group) {
  return message.data() + group.at + (group.has_table ? 1 : 0);
}

// The header of a message, after all of the message was checked.
absl::StatusOr<Header> ParseSketch(std::span<const std::byte> message, const CodecShape& shape) {
  ByteReader reader(message);
  Header header;
  if (!reader.Take(&header.rows) || !reader.Take(&header.ratio) || !reader.Take(&header.seed)) {
    return Malformed(kSketchName, message.size(), " bytes hold no header");
  }
  if (header.rows % 2 == 0 || header.rows > kSketchRowsMax) {
    return Malformed(kSketchName, static_cast<int>(header.rows), " rows");
  }
  if (!(header.ratio > 0 && header.ratio <= 1)) {
    return Malformed(kSketchName, "ratio ", header.ratio);
  }
  const std::size_t bytes = MessageBytes(header, shape);
  if (message.size() != bytes) {
    return Malformed(kSketchName, message.size(), " bytes are not the ", bytes, " of ",
                     shape.elements, " elements");
  }
  absl::Status status;
  ForEachGroup(header, shape, [&](const Group& group) {
    if (const int exponent = ExponentOf(message, group);
        exponent != kCellExponents[0] && exponent != kCellExponents[1]) {
      status = Malformed(kSketchName, "exponent ", exponent);
    } else if (!AllFinite(FloatsOf(message, group), group.floats)) {
      status = Malformed(kSketchName, "a cell is not finite");
    }
    return status.ok();
  });
  if (!status.ok()) return status;
  return header;
}

// Adds up tables, or values, of `count` floats, at a common exponent; false if that overflows.
bool AddCells(const std::byte* cells, float scale, float sum_scale, std::size_t count,
              std::byte* sum) {
  ForEachStretch(cells, count, [&](const float* floats, std::size_t begin, std::size_t some) {
    for (std::size_t i = 0; i < some; ++i) {
      std::byte* const at = sum + (begin + i) * sizeof(float);
      float cell = 0;
      std::memcpy(&cell, at, sizeof(cell));
      cell = cell * sum_scale + floats[i] * scale;
      std::memcpy(at, &cell, sizeof(cell));
    }
  });
  return AllFinite(sum, count);
}

class Sketch final : public FloatCodec {
 public:
  Sketch(std::uint8_t rows, double ratio) : rows_(rows), ratio_(ratio) {}

  // The median of a dense gradient's estimates has an error longer than the gradient.
  bool contracts() const override { return false; }

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return MessageBytes(HeaderOf(shape), shape);
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const auto* const floats = static_cast<const float*>(values);
    const Header header = HeaderOf(terms.shape);
    ByteWriter writer(out);
    writer.Put(header.rows);
    writer.Put(header.ratio);
    writer.Put(header.seed);
    bool finite = true;
    const std::size_t bytes = ForEachGroup(header, terms.shape, [&](const Group& group) {
      finite = EncodeGroup(floats + group.begin, header, group, out.data() + group.at);
      return finite;
    });
    if (!finite) return NotFinite(kSketchName);
    return bytes;
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return ParseSketch(encoded, shape).status();
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Header header, ParseSketch(encoded, shape));
    auto* const floats = static_cast<float*>(values);
    ForEachGroup(header, shape, [&](const Group& group) {
      const std::byte* const cells = FloatsOf(encoded, group);
      if (group.has_table) {
        ChosenKernels().sketch.estimate(cells, TableOf(header, group), 0, group.elements,
                                        std::ldexp(1.0f, ExponentOf(encoded, group)),
                                        floats + group.begin);
      } else {
        std::memcpy(floats + group.begin, cells, group.floats * sizeof(float));
      }
      return true;
    });
    return absl::OkStatus();
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Header header, ParseSketch(encoded, shape));
    ForEachGroup(header, shape, [&](const Group& group) {
      const std::byte* const cells = FloatsOf(encoded, group);
      if (!group.has_table) {
        AddFloats(cells, group.floats, factor, sum + group.begin);
        return true;
      }
      const float scale = std::ldexp(1.0f, ExponentOf(encoded, group));
      std::array<float, kSketchChunk> estimates;
      for (std::uint64_t begin = 0; begin < group.elements; begin += kSketchChunk) {
        const std::size_t some = std::min<std::size_t>(kSketchChunk, group.elements - begin);
        ChosenKernels().sketch.estimate(cells, TableOf(header, group), begin, some, scale,
                                        estimates.data());
        ChosenKernels().reduce.add(estimates.data(), some, factor, sum + group.begin + begin);
      }
      return true;
    });
    return absl::OkStatus();
  }

  bool adds_encoded() const override { return true; }

  absl::Status AddEncoded(std::span<const std::byte> encoded, const CodecShape& shape,
                          std::span<std::byte> sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Header header, ParseSketch(encoded, shape));
    LEEWAY_RETURN_IF_ERROR(ParseSketch(sum, shape).status());
    if (std::memcmp(encoded.data(), sum.data(), kSketchHeaderBytes) != 0) {
      return absl::InvalidArgumentError(
          "sketches of different rows, ratio or seed cannot be added up");
    }
    std::vector<std::byte> added(sum.begin(), sum.end());
    bool finite = true;
    ForEachGroup(header, shape, [&](const Group& group) {
      const int theirs = ExponentOf(encoded, group), ours = ExponentOf(sum, group);
      finite = false;
      for (const int exponent : kCellExponents) {
        if (exponent < std::max(theirs, ours) || (exponent > 0 && !group.has_table)) continue;
        std::byte* const at = added.data() + group.at;
        std::memcpy(at, sum.data() + group.at, group.bytes());
        if (group.has_table) *at = static_cast<std::byte>(exponent);
        finite = AddCells(FloatsOf(encoded, group), std::ldexp(1.0f, theirs - exponent),
                          std::ldexp(1.0f, ours - exponent), group.floats,
                          at + (group.has_table ? 1 : 0));
        if (finite) break;
      }
      return finite;
    });
    if (!finite) return absl::InvalidArgumentError("the sum of two sketches is not finite");
    std::ranges::copy(added, sum.begin());
    return absl::OkStatus();
  }

 private:
  // Workers' tables are added up: hence it depends on nothing that differs between workers.
  Header HeaderOf(const CodecShape& shape) const {
    return {.rows = rows_,
            .ratio = ratio_,
            .seed = runtime::RandomAt(kSeed, GroupElements(shape, 0), 0)};
  }

  // False if the values are not finite.
  static bool EncodeGroup(const float* values, const Header& header, const Group& group,
                          std::byte* out) {
    if (!group.has_table) {
      std::memcpy(out, values, group.floats * sizeof(float));
      return AllFinite(out, group.floats);
    }
    for (const int exponent : kCellExponents) {
      *out = static_cast<std::byte>(exponent);
      std::memset(out + 1, 0, group.floats * sizeof(float));
      ChosenKernels().sketch.add(values, group.elements, std::ldexp(1.0f, -exponent),
                                 TableOf(header, group), out + 1);
      if (AllFinite(out + 1, group.floats)) return true;
    }
    return false;
  }

  const std::uint8_t rows_;
  const double ratio_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeSketch(const CodecOptions& options) {
  double rows = 5, ratio = 0.1;
  LEEWAY_RETURN_IF_ERROR(
      ReadOptions(kSketchName, options,
                  {{.name = "rows",
                    .value = &rows,
                    .low = 1,
                    .high = static_cast<double>(kSketchRowsMax),
                    .whole = true},
                   {.name = "ratio", .value = &ratio, .low = 0, .high = 1, .low_open = true}}));
  const auto whole = static_cast<std::uint8_t>(rows);
  if (whole % 2 == 0) {
    return absl::InvalidArgumentError(absl::StrCat("codec ", kSketchName, ": rows is ",
                                                   static_cast<int>(whole),
                                                   ", has to be odd, for a median"));
  }
  return std::make_unique<Sketch>(whole, ratio);
}

}  // namespace

CodecList SketchCodecs() { return {{"sketch", MakeSketch}}; }

}  // namespace leeway::compress
