#include "leeway/updater.h"

namespace leeway {

// Only the overloads of supported dtypes are called, so an updater leaves out the others.
void Updater::Update(const UpdateRun<float>&) const {}
void Updater::Update(const UpdateRun<double>&) const {}
void Updater::Update(const UpdateRun<std::int32_t>&) const {}
void Updater::Update(const UpdateRun<std::int64_t>&) const {}

}  // namespace leeway
