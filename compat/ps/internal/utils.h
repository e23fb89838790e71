// GetEnv and small macros that programs written for ps-lite use; and the standard headers that
// those of ps-lite bring along, which programs count on.
#ifndef PS_INTERNAL_UTILS_H_
#define PS_INTERNAL_UTILS_H_

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dmlc/logging.h"
#include "ps/internal/env.h"

namespace ps {

// The variable, or `otherwise` where it is not set.
template <typename V>
inline V GetEnv(const char* name, V otherwise) {
  const char* const value = Environment::Get()->find(name);
  return value == nullptr ? otherwise : V(value);
}
inline int GetEnv(const char* name, int otherwise) {
  const char* const value = Environment::Get()->find(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

}  // namespace ps

#ifndef DISALLOW_COPY_AND_ASSIGN
#define DISALLOW_COPY_AND_ASSIGN(TypeName) \
  TypeName(const TypeName&);               \
  void operator=(const TypeName&)
#endif

#define LL LOG(ERROR)

#endif  // PS_INTERNAL_UTILS_H_
