// Combines the rows that one batch pushes to one key into one row.
#ifndef LEEWAY_WORKER_SLICING_COMBINE_ROWS_H_
#define LEEWAY_WORKER_SLICING_COMBINE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "leeway/dtype.h"
#include "leeway/updater.h"

namespace leeway::worker {

// Writes to `out` the combination of rows[i], i in `which` (in that order, at least one), each
// `width` elements long. Sums of 16-bit floating-point values are kept in float and rounded once;
// sums of integers wrap around.
void CombineRows(Updater::Combine combine, DType dtype, const std::byte* rows, std::uint64_t width,
                 std::span<const std::uint32_t> which, std::byte* out);

// Whether sums of integers wrap around; false for other types, whose sums may be infinite.
bool SumsWrap(DType dtype, const std::byte* rows, std::uint64_t width,
              std::span<const std::uint32_t> which);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_COMBINE_ROWS_H_
