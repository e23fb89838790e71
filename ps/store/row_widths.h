// Which pushes of rows can be combined: all that give a row the same width.
#ifndef LEEWAY_PS_STORE_ROW_WIDTHS_H_
#define LEEWAY_PS_STORE_ROW_WIDTHS_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

// Of each push, in that order, whether it can be combined with those before it that can: OK, or
// INVALID_ARGUMENT that names the row. A row has the width it has in the store, or else the one
// that the first of these pushes gives it. For pushes to a ragged table that the store has checked,
// one by one, before.
std::vector<absl::Status> CheckWidthsTogether(const ShardStore& store,
                                              std::span<const PushView> pushes);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_ROW_WIDTHS_H_
