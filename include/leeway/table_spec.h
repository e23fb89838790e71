// What a table is. A worker describes it once; the scheduler keeps the description; creating it
// again with an equal description is harmless, with another one an error that shows both.
#ifndef LEEWAY_TABLE_SPEC_H_
#define LEEWAY_TABLE_SPEC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/consistency.h"
#include "leeway/dtype.h"

namespace leeway {

enum class TableKind : std::uint8_t {
  kDense = 0,   // one N-D tensor, cut into blocks of about 512 KiB
  kSparse = 1,  // 64-bit key → row of `row_width` elements
  kRagged = 2,  // 64-bit key → row of its own width
};

// What a push does to a value. Built in: assign, add, sgd, momentum, nesterov, adagrad, rmsprop,
// adam, adamw, ftrl, and gradient (the value is what
// the pushes of one clock add up to); others by the name they were registered under
// (leeway/updater.h).
struct UpdaterSpec {
  std::string name = "add";
  // Hyper-parameters by name, e.g. {"learning_rate", 0.1}. An unknown name is refused.
  std::map<std::string, double> parameters;
  friend bool operator==(const UpdaterSpec&, const UpdaterSpec&) = default;
};

// The value an element has before its first push. Random values depend on the seed, the table's
// name and the element's place alone: never on the number of servers or the order of pulls.
struct Initializer {
  enum class Kind : std::uint8_t { kZeros = 0, kConstant = 1, kUniform = 2, kNormal = 3 };
  Kind kind = Kind::kZeros;
  double a = 0;  // constant: the value; uniform: lower bound; normal: mean
  double b = 0;  // uniform: upper bound; normal: standard deviation
  std::uint64_t seed = 0;

  static Initializer Zeros() { return {}; }
  static Initializer Constant(double value) { return {Kind::kConstant, value, 0, 0}; }
  static Initializer Uniform(double low, double high, std::uint64_t seed) {
    return {Kind::kUniform, low, high, seed};
  }
  static Initializer Normal(double mean, double stddev, std::uint64_t seed) {
    return {Kind::kNormal, mean, stddev, seed};
  }
  friend bool operator==(const Initializer&, const Initializer&) = default;
};

enum class NonFinite : std::uint8_t {
  kCount = 0,   // apply, and count (nonfinite_pushes in `leeway status`)
  kRefuse = 1,  // refuse the push with INVALID_ARGUMENT, and count
};

// How BSP combines the contributions of one clock.
enum class Aggregate : std::uint8_t { kSum = 0, kMean = 1 };

// Which ends keep what a lossy codec drops, and add it to the next message (docs/compression.md).
// Workers keep it of what they push. Servers keep it of what they answer: of a table whose updater
// is `gradient`, what the clock's sum lost; of other dense tables, the difference to what workers
// hold, and answer with what has changed. Without it servers of such tables answer uncompressed.
enum class ErrorFeedback : std::uint8_t {
  kAuto = 0,  // wherever the codec, and the kind of table, have a use for it
  kOff = 1,
  kWorker = 2,
  kServer = 3,
  kBoth = 4,
};

struct TableSpec {
  std::string name;  // 1 to 255 bytes of UTF-8 without control characters
  TableKind kind = TableKind::kDense;
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;  // dense only; row-major; 1 to 8 dimensions, none zero
  std::uint64_t row_width = 0;       // sparse only; elements a row
  UpdaterSpec updater;
  Initializer initializer;
  Consistency consistency;
  Aggregate aggregate = Aggregate::kSum;
  NonFinite nonfinite = NonFinite::kCount;
  // How values travel: a codec with its options, e.g. "onebit" or "topk:0.01", or "auto": one of
  // `codecs`, chosen by how fast links and codecs are (docs/compression.md).
  std::string codec = "none";
  // What the codec may be changed to while training (Worker::SetCodec), and what "auto" chooses
  // from: at most 16, none twice. Empty: the codec stays as it is.
  std::vector<std::string> codecs;
  ErrorFeedback error_feedback = ErrorFeedback::kAuto;

  static TableSpec Dense(std::string name, std::vector<std::uint64_t> shape,
                         DType dtype = DType::kFloat32);
  static TableSpec Sparse(std::string name, std::uint64_t row_width, DType dtype = DType::kFloat32);
  static TableSpec Ragged(std::string name, DType dtype = DType::kFloat32);

  std::uint64_t NumElements() const;  // dense: product of the shape; otherwise 0

  // OK, or the first thing wrong with it: sizes in range, names known, combinations that work.
  // (Whether an updater of that name exists is for the servers to say.)
  absl::Status Validate() const;
  // One line, every field; what error messages show.
  std::string ToString() const;

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

// A change of what does not shape a table's data (Worker::ChangeTable). What is not given stays.
struct TableChange {
  // Of the updater's hyper-parameters; none: its default again.
  std::map<std::string, std::optional<double>> parameters;
  std::optional<Consistency> consistency;  // between ssp and asp
  std::optional<NonFinite> nonfinite;
};

}  // namespace leeway

#endif  // LEEWAY_TABLE_SPEC_H_
