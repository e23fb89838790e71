#include "tests/simulation/scale/scale_plan.h"

#include <algorithm>
#include <cmath>

#include "leeway/dtype.h"

namespace leeway::simulation {
namespace {

TableSpec Table(const char* name, std::uint64_t elements) {
  TableSpec spec = TableSpec::Dense(name, {elements}, DType::kFloat32);
  spec.consistency = Consistency::Bsp();
  return spec;
}

}  // namespace

std::vector<TableSpec> Model(const ScalePlan& plan) {
  return {Table("weights", plan.servers * plan.block_bytes / SizeOf(DType::kFloat32)),
          Table("bias", 64), Table("scale", 1)};
}

int ScalePlan::StepsMeasured() const {
  const double fill = std::ceil(absl::FDivDuration(measured, IdealStep(*this)));
  return std::max(steps, static_cast<int>(fill));
}

// Blocks go to servers in turn, so each server has one of the large table. The small tables are
// ignored: they are a hundredth of it.
std::uint64_t FullestServerBytes(const ScalePlan& plan) { return plan.block_bytes; }

absl::Duration IdealStep(const ScalePlan& plan) {
  std::uint64_t model = 0;
  for (const TableSpec& spec : Model(plan)) model += spec.NumElements() * SizeOf(spec.dtype);
  const std::uint64_t bytes =
      std::max<std::uint64_t>(model, plan.workers * FullestServerBytes(plan));
  const absl::Duration carry = absl::Seconds(static_cast<double>(bytes) / plan.bytes_per_second);
  return plan.compute + 2 * (carry + plan.delay);
}

}  // namespace leeway::simulation
