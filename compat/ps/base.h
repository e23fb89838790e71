// The names of keys and of groups of nodes. Groups are sums: kServerGroup + kWorkerGroup is all
// servers and workers.
#ifndef PS_BASE_H_
#define PS_BASE_H_

#include <cstdint>
#include <limits>

#include "ps/internal/utils.h"

namespace ps {

#if USE_KEY32
#error "USE_KEY32 is not supported: keys have 64 bits"
#endif

using Key = uint64_t;
static const Key kMaxKey = std::numeric_limits<Key>::max();

static const int kScheduler = 1;
static const int kServerGroup = 2;
static const int kWorkerGroup = 4;

}  // namespace ps

#endif  // PS_BASE_H_
