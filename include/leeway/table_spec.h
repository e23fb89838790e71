// A TableSpec describes a table. A worker gives it when it creates the table, and the scheduler
// keeps it; creating the table again with an equal description is harmless, with another one an
// error that shows both.
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

// The formula by which a push changes a value. Built in: assign, add, sgd, momentum, nesterov,
// adagrad, rmsprop, adam, adamw, ftrl, and gradient (the value is the sum of the pushes of one
// clock); others by the name under which they were registered (leeway/updater.h).
struct UpdaterSpec {
  std::string name = "add";
  // Hyper-parameters by name, e.g. {"learning_rate", 0.1}. An unknown name is refused.
  std::map<std::string, double> parameters;
  friend bool operator==(const UpdaterSpec&, const UpdaterSpec&) = default;
};

// The value of an element before its first push. Random values depend on the seed, the table's name
// and the element's place alone: never on the number of servers or the order of pulls. `pushed`, of
// dense tables: it is zero, and the first push sets it, to values that a worker has made. That push
// takes effect at once; in BSP when its clock closes, where the values of the worker of the lowest
// rank are taken. The updater begins with the second push. Each worker's first push to such a table
// leaves as it is, whatever the codec.
struct Initializer {
  enum class Kind : std::uint8_t {
    kZeros = 0,
    kConstant = 1,
    kUniform = 2,
    kNormal = 3,
    kPushed = 4,
  };
  Kind kind = Kind::kZeros;
  double a = 0;  // constant: the value; uniform: lower bound; normal: mean
  double b = 0;  // uniform: upper bound; normal: standard deviation
  std::uint64_t seed = 0;

  static Initializer Zeros() { return {}; }
  static Initializer Pushed() { return {Kind::kPushed, 0, 0, 0}; }
  static Initializer Constant(double value) { return {Kind::kConstant, value, 0, 0}; }
  static Initializer Uniform(double low, double high, std::uint64_t seed) {
    return {Kind::kUniform, low, high, seed};
  }
  static Initializer Normal(double mean, double stddev, std::uint64_t seed) {
    return {Kind::kNormal, mean, stddev, seed};
  }
  friend bool operator==(const Initializer&, const Initializer&) = default;
};

// What becomes of a push that holds NaN or infinity (nonfinite_pushes in `leeway status`), or whose
// update leaves 16-bit values that are NaN or infinite or makes integers wrap around (overflows;
// known before it is applied unless it is held for its clock: then it is counted). The rows of a
// key that a push has several times are added up first, on the worker: integers that wrap around
// there are overflows, which kRefuse refuses before anything is sent, uncounted; sums of finite
// floats that are infinite count as infinity that was pushed.
enum class NonFinite : std::uint8_t {
  kCount = 0,   // apply, and count
  kRefuse = 1,  // refuse the push with INVALID_ARGUMENT, and count
};

// The way in which BSP combines the contributions of one clock.
enum class Aggregate : std::uint8_t { kSum = 0, kMean = 1 };

// The ends that keep what a lossy codec drops, and add it to the next message
// (docs/compression.md). Workers keep what their pushes lose. Servers keep what their answers lose:
// of a table whose updater is `gradient`, the loss of the clock's sum; of other dense tables, the
// difference between the table and the workers' copies, and they answer with what has changed.
// Without error feedback, servers answer pulls of such tables uncompressed.
enum class ErrorFeedback : std::uint8_t {
  kAuto = 0,  // wherever the codec and the kind of table have a use for it
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
  std::uint64_t row_width = 0;       // sparse only; elements of a row
  UpdaterSpec updater;
  Initializer initializer;
  Consistency consistency = {};
  Aggregate aggregate = Aggregate::kSum;
  NonFinite nonfinite = NonFinite::kCount;
  // The codec of the table's values on the wire, with its options, e.g. "onebit" or "topk:0.01", or
  // "auto": one of `codecs`, chosen by the speed of links and codecs (docs/compression.md).
  std::string codec = "none";
  // The codecs that the table may be switched to while training (Worker::SetCodec), and that "auto"
  // chooses from: at most 16, none twice. Empty: the codec stays as it is.
  std::vector<std::string> codecs;
  ErrorFeedback error_feedback = ErrorFeedback::kAuto;

  static TableSpec Dense(std::string name, std::vector<std::uint64_t> shape,
                         DType dtype = DType::kFloat32);
  static TableSpec Sparse(std::string name, std::uint64_t row_width, DType dtype = DType::kFloat32);
  static TableSpec Ragged(std::string name, DType dtype = DType::kFloat32);

  std::uint64_t NumElements() const;  // dense: product of the shape; otherwise 0

  // OK, or an error for the first fault: sizes in range, names known, combinations that work.
  // (Servers check that an updater of that name exists.)
  absl::Status Validate() const;
  // All fields in one line, as error messages show them.
  std::string ToString() const;

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

// A change of settings that do not shape a table's data (Worker::ChangeTable). Fields that are not
// given stay as they are.
struct TableChange {
  // The updater's hyper-parameters; nullopt: the default again.
  std::map<std::string, std::optional<double>> parameters;
  std::optional<Consistency> consistency;  // from ssp to ssp or asp, or back
  std::optional<NonFinite> nonfinite;
};

}  // namespace leeway

#endif  // LEEWAY_TABLE_SPEC_H_
