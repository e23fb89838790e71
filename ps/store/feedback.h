// The error feedback slot of a dense table whose replies are encoded: one more state value for each
// element, behind those of the updater (compress::TableCodec::server_feedback).
//
// Of a gradient table it is the residual: what the replies have lost, times the learning rate at
// which they were made. Of any other it is what workers hold of the block. Being state it is
// replicated, moved and checkpointed like all state.
#ifndef LEEWAY_PS_STORE_FEEDBACK_H_
#define LEEWAY_PS_STORE_FEEDBACK_H_

#include <cstdint>

#include "leeway/table_spec.h"
#include "leeway/updater.h"

namespace leeway::ps {

// 1 where the table has such a slot, else 0. A codec that is not known here counts as none.
std::uint32_t FeedbackSlots(const TableSpec& spec);

// Whether the slot begins as the block's values do, rather than with zeros.
bool FeedbackIsValue(const TableSpec& spec);

// State values an element in a store of such a table: the updater's, and the one above.
inline std::uint32_t StateSlots(const TableSpec& spec, const Updater& updater) {
  return static_cast<std::uint32_t>(updater.state_slots()) + FeedbackSlots(spec);
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_FEEDBACK_H_
