#include "ps/checkpoint/piece_tensors.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

using checkpoint::TensorInfo;
using checkpoint::TensorType;

constexpr absl::string_view kPrefix = "table/";
constexpr absl::string_view kBlock = "block";
constexpr absl::string_view kRows = "rows";
// Of collected pushes.
constexpr absl::string_view kBlockPushes = "block-pushes";
constexpr absl::string_view kRowsPushes = "rows-pushes";
constexpr char kPushes[] = "pushes";    // how many they are
constexpr char kRate[] = "rate";        // the learning rate of the last that had one of its own
constexpr char kVersion[] = "version";  // of dense blocks whose replies are encoded

struct Part {
  const char* name;
  TensorType type;
  std::vector<std::uint64_t> shape;
  runtime::Buffer FrozenPiece::*bytes;
};

// The parts of a piece with so many rows and elements.
std::vector<Part> PartsOf(const TableSpec& spec, std::uint64_t rows, std::uint64_t elements,
                          std::uint64_t slots) {
  const TensorType stored = checkpoint::TensorTypeOf(spec.dtype);
  const TensorType computed = checkpoint::TensorTypeOf(ComputeDType(spec.dtype));
  std::vector<std::uint64_t> values = {elements}, state = {slots * elements};
  if (spec.kind == TableKind::kDense) state = {slots, elements};
  if (spec.kind == TableKind::kSparse) {
    values = {rows, spec.row_width};
    state = {rows, slots, spec.row_width};
  }
  std::vector<Part> parts;
  if (spec.kind != TableKind::kDense) {
    parts.push_back({"keys", TensorType::kU64, {rows}, &FrozenPiece::keys});
  }
  if (spec.kind == TableKind::kRagged) {
    parts.push_back({"widths", TensorType::kU32, {rows}, &FrozenPiece::widths});
  }
  parts.push_back({"values", stored, values, &FrozenPiece::values});
  if (slots != 0) parts.push_back({"state", computed, state, &FrozenPiece::state});
  parts.push_back({"steps", TensorType::kU64, {rows}, &FrozenPiece::steps});
  return parts;
}

std::uint64_t CountOf(const PieceTensor& tensor) {
  return tensor.info.bytes() / checkpoint::SizeOf(tensor.info.type);
}

}  // namespace

std::vector<PieceTensor> ToTensors(const TableSpec& spec, std::uint64_t index,
                                   const FrozenPiece& piece) {
  const bool dense = spec.kind == TableKind::kDense;
  const bool collected = piece.collected != 0;
  const absl::string_view what =
      collected ? (dense ? kBlockPushes : kRowsPushes) : (dense ? kBlock : kRows);
  const std::string prefix =
      absl::StrCat(kPrefix, spec.name, "/", what, "/", dense ? piece.block : index, "/");
  std::vector<PieceTensor> tensors;
  const auto add = [&](const char* name, TensorType type, std::vector<std::uint64_t> shape,
                       runtime::Buffer bytes) {
    PieceTensor& tensor = tensors.emplace_back();
    tensor.info.name = absl::StrCat(prefix, name);
    tensor.info.type = type;
    tensor.info.shape = std::move(shape);
    tensor.bytes = std::move(bytes);
  };
  for (Part& part : PartsOf(collected ? SpecOfSums(spec) : spec, piece.rows(), piece.elements,
                            piece.state_slots)) {
    add(part.name, part.type, std::move(part.shape), piece.*part.bytes);
  }
  if (piece.version != 0) {
    add(kVersion, TensorType::kU64, {1},
        runtime::Buffer::CopyOf(&piece.version, sizeof(piece.version)));
  }
  if (collected) {
    const std::uint64_t pushes = piece.collected;
    add(kPushes, TensorType::kU64, {1}, runtime::Buffer::CopyOf(&pushes, sizeof(pushes)));
    if (!std::isnan(piece.learning_rate)) {
      add(kRate, TensorType::kF64, {1},
          runtime::Buffer::CopyOf(&piece.learning_rate, sizeof(piece.learning_rate)));
    }
  }
  return tensors;
}

absl::StatusOr<PieceTensorName> ParseTensorName(const std::string& name) {
  // From the back: a table's name may have any characters.
  std::array<std::string, 3> last;  // part, index, block or rows
  absl::string_view rest = name;
  const absl::Status wrong =
      absl::InvalidArgumentError(absl::StrCat("'", name, "' is no tensor of a checkpoint"));
  for (std::string& piece : last) {
    const std::size_t slash = rest.rfind('/');
    if (slash == absl::string_view::npos) return wrong;
    piece = std::string(rest.substr(slash + 1));
    rest = rest.substr(0, slash);
  }
  PieceTensorName parsed{.table = "",
                         .dense = last[2] == kBlock || last[2] == kBlockPushes,
                         .collected = last[2] == kBlockPushes || last[2] == kRowsPushes,
                         .index = 0,
                         .part = last[0]};
  const bool known = parsed.dense || parsed.collected || last[2] == kRows;
  if (!absl::ConsumePrefix(&rest, kPrefix) || !known || !absl::SimpleAtoi(last[1], &parsed.index) ||
      absl::StrCat(parsed.index) != last[1]) {
    return wrong;
  }
  parsed.table = std::string(rest);
  return parsed;
}

absl::StatusOr<FrozenPiece> ToPiece(const TableSpec& spec, std::uint32_t state_slots,
                                    std::uint64_t index,
                                    const std::map<std::string, PieceTensor>& parts) {
  const auto wrong = [&](const auto&... problem) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece ", index, " of table '", spec.name, "' ", problem...));
  };
  const auto steps = parts.find("steps"), values = parts.find("values");
  if (steps == parts.end() || values == parts.end()) return wrong("has no values or no steps");
  FrozenPiece piece;
  piece.kind = spec.kind;
  piece.dtype = spec.dtype;
  piece.elements = CountOf(values->second);
  piece.state_slots = state_slots;
  if (spec.kind == TableKind::kDense) piece.block = index;
  const std::vector<Part> expected =
      PartsOf(spec, CountOf(steps->second), piece.elements, state_slots);
  const auto version = parts.find(kVersion);
  const bool versioned = version != parts.end();
  if (expected.size() + (versioned ? 1 : 0) != parts.size()) {
    return wrong("has ", parts.size(), " parts");
  }
  if (versioned) {
    const TensorInfo& info = version->second.info;
    if (spec.kind != TableKind::kDense || info.type != TensorType::kU64 ||
        info.shape != std::vector<std::uint64_t>{1}) {
      return wrong("has a version of another type or shape, or for rows");
    }
    piece.version = version->second.bytes.as<std::uint64_t>()[0];
  }
  for (const Part& part : expected) {
    const auto found = parts.find(part.name);
    if (found == parts.end()) return wrong("has no ", part.name);
    const TensorInfo& info = found->second.info;
    if (info.type != part.type || info.shape != part.shape) {
      return wrong("has ", part.name, " of another type or shape than the table's");
    }
    piece.*part.bytes = found->second.bytes;
  }
  return piece;
}

absl::StatusOr<FrozenPiece> ToCollectedPiece(const TableSpec& spec, std::uint64_t index,
                                             std::map<std::string, PieceTensor> parts) {
  const auto count = parts.extract(kPushes);
  const auto rate = parts.extract(kRate);
  const auto is_one = [](const auto& part, TensorType type) {
    const TensorInfo& info = part.mapped().info;
    return info.type == type && info.shape == std::vector<std::uint64_t>{1};
  };
  const std::uint64_t pushes = count.empty() || !is_one(count, TensorType::kU64)
                                   ? 0
                                   : count.mapped().bytes.template as<std::uint64_t>()[0];
  // Until their clock closes there may be any number of them.
  const bool fits = pushes <= std::numeric_limits<std::uint32_t>::max();
  if (pushes == 0 || !fits || !spec.consistency.collects()) {
    return absl::InvalidArgumentError(absl::StrCat("collected pushes ", index, " of table '",
                                                   spec.name, "' are of no number that may be"));
  }
  LEEWAY_ASSIGN_OR_RETURN(FrozenPiece piece, ToPiece(SpecOfSums(spec), 0, index, parts));
  piece.collected = static_cast<std::uint32_t>(pushes);
  if (rate.empty()) return piece;
  piece.learning_rate = is_one(rate, TensorType::kF64) ? rate.mapped().bytes.as<double>()[0]
                                                       : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(piece.learning_rate) || piece.learning_rate < 0) {
    return absl::InvalidArgumentError(absl::StrCat("collected pushes ", index, " of table '",
                                                   spec.name,
                                                   "' have no learning rate that may be"));
  }
  return piece;
}

}  // namespace leeway::ps
