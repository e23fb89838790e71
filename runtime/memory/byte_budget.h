// A share of memory that several things on one loop charge together.
#ifndef LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_
#define LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_

#include <cstdint>

namespace leeway::runtime {

struct ByteBudget {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes = 0;  // charged

  bool HasRoom(std::uint64_t more) const { return bytes <= bytes_max && more <= bytes_max - bytes; }
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_
