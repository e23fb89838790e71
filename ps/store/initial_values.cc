#include "ps/store/initial_values.h"

#include <algorithm>

#include "ps/store/elements.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

// The initial value of an integer table is a whole number in range (TableSpec::Validate).
template <class Stored>
Stored Rounded(double value) {
  const auto computed = static_cast<ComputeOf<Stored>>(value);
  Stored stored;
  Store(&computed, 1, &stored);
  return stored;
}

}  // namespace

std::uint64_t PlaceOfRow(std::uint64_t key) { return runtime::StableHash(key); }

InitialValues::InitialValues(const TableSpec& spec)
    : initializer_(spec.initializer), stream_(runtime::StableHash(spec.name)) {}

double InitialValues::At(std::uint64_t place) const {
  const auto& [kind, a, b, seed] = initializer_;
  switch (kind) {
    case Initializer::Kind::kZeros:
    case Initializer::Kind::kPushed:
      return 0;
    case Initializer::Kind::kConstant:
      return a;
    case Initializer::Kind::kUniform:
      return a + (b - a) * runtime::UniformAt(seed, stream_, place);
    case Initializer::Kind::kNormal:
      return a + b * runtime::NormalAt(seed, stream_, place);
  }
  return 0;
}

template <class Stored>
void InitialValues::Fill(std::uint64_t place, std::size_t size, Stored* to) const {
  const bool same_everywhere = initializer_.kind != Initializer::Kind::kUniform &&
                               initializer_.kind != Initializer::Kind::kNormal;
  if (same_everywhere) {
    std::fill_n(to, size, Rounded<Stored>(At(place)));
    return;
  }
  for (std::size_t i = 0; i < size; ++i) to[i] = Rounded<Stored>(At(place + i));
}

template void InitialValues::Fill(std::uint64_t, std::size_t, float*) const;
template void InitialValues::Fill(std::uint64_t, std::size_t, double*) const;
template void InitialValues::Fill(std::uint64_t, std::size_t, Float16*) const;
template void InitialValues::Fill(std::uint64_t, std::size_t, BFloat16*) const;
template void InitialValues::Fill(std::uint64_t, std::size_t, std::int32_t*) const;
template void InitialValues::Fill(std::uint64_t, std::size_t, std::int64_t*) const;

}  // namespace leeway::ps
