// How many names the text of an error lists at most.
#ifndef LEEWAY_SCHEDULER_MEMBERS_NAMED_MAX_H_
#define LEEWAY_SCHEDULER_MEMBERS_NAMED_MAX_H_

#include <cstddef>

namespace leeway::scheduler {

inline constexpr std::size_t kNamedMax = 8;  // nodes, or tables

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_NAMED_MAX_H_
