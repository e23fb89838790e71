// The values that elements have before their first push. They depend on the seed, the table's name
// and the element's place alone.
#ifndef LEEWAY_PS_STORE_INITIAL_VALUES_H_
#define LEEWAY_PS_STORE_INITIAL_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "leeway/table_spec.h"

namespace leeway::ps {

// The place of a row's first element: rows of any width hardly ever meet.
std::uint64_t PlaceOfRow(std::uint64_t key);

class InitialValues {
 public:
  explicit InitialValues(const TableSpec& spec);

  // Elements `place`, `place` + 1, … of the table: in a dense one the index in row-major order,
  // in the others PlaceOfRow(key) + column.
  template <class Stored>
  void Fill(std::uint64_t place, std::size_t size, Stored* to) const;

 private:
  double At(std::uint64_t place) const;

  const Initializer initializer_;
  const std::uint64_t stream_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_INITIAL_VALUES_H_
