// An Updater is the formula by which a push changes stored values; the built-in updaters and yours
// implement this class.
//
// A server calls an updater from the one data thread that owns the shard, on runs of elements that
// lie contiguously: a dense block (or a part of it) or one sparse row. Values of 16-bit
// floating-point tables arrive converted to float and are rounded once when they are stored.
#ifndef LEEWAY_UPDATER_H_
#define LEEWAY_UPDATER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/dtype.h"

namespace leeway {

// One run of elements to update in place.
template <class T>
struct UpdateRun {
  T* value;              // [size], read and written
  const T* gradient;     // [size], the push (in BSP: the combined pushes of a clock)
  T* const* state;       // state[i] is [size], i < state_slots(); starts at initial_state(i)
  std::size_t size;      // elements
  std::uint64_t step;    // 1 for the first update of this block or row, then 2, 3, …
  double learning_rate;  // of the push, or else of the table; NaN where the updater has none
};

class Updater {
 public:
  virtual ~Updater() = default;

  // Optimiser values kept for each element (Adam: 2), of the type that the run has: float for 16-
  // and 32-bit tables, double for float64.
  virtual int state_slots() const { return 0; }
  virtual double initial_state(int /*slot*/) const { return 0; }

  // True if it can update a table of this dtype; called once, when the table is created.
  virtual bool Supports(DType dtype) const { return !IsInteger(dtype); }

  // How several pushes become one: repeated keys within one sparse batch, and the workers' pushes
  // of one BSP clock. kSum for gradients, kLast for values.
  enum class Combine { kSum, kLast };
  virtual Combine combine() const { return Combine::kSum; }

  // Updates one run. Only the overloads of supported dtypes are called.
  virtual void Update(const UpdateRun<float>& run) const;
  virtual void Update(const UpdateRun<double>& run) const;
  virtual void Update(const UpdateRun<std::int32_t>& run) const;
  virtual void Update(const UpdateRun<std::int64_t>& run) const;
};

using UpdaterParameters = std::map<std::string, double>;

// Makes an updater from a table's hyper-parameters. The error says what is wrong with them.
using UpdaterFactory =
    std::function<absl::StatusOr<std::unique_ptr<Updater>>(const UpdaterParameters&)>;

// Adds an updater under a name, for every table created afterwards in this process's servers.
// ALREADY_EXISTS if the name is taken. Any thread; normally before the server starts, or from
// LeewayRegister in a plugin (leeway/server.h).
absl::Status RegisterUpdater(absl::string_view name, UpdaterFactory factory);

}  // namespace leeway

#endif  // LEEWAY_UPDATER_H_
