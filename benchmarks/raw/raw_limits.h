// MeasureMemory, MeasureTcp and MeasureZmq measure the best speed of the machine and its
// transports, without any part of Leeway.
#ifndef LEEWAY_BENCHMARKS_RAW_RAW_LIMITS_H_
#define LEEWAY_BENCHMARKS_RAW_RAW_LIMITS_H_

#include <string>

#include "harness/measured.h"

namespace leeway::bench {

// "copy": copies `in_flight` buffers to as many others, in turn.
Measured MeasureMemory(const Command& command);

// "stream": one connection over loopback, written and read in pieces of `bytes`, into the same
// memory again and again. "add": `in_flight` tensors of `bytes` by turns, which the reader, one
// thread, adds to as many of its own. "message": the reader has `bytes` of memory for a whole
// message and answers it with one byte. "rtt": `bytes` there and back. `congestion`: the congestion
// control; "": the system's default.
Measured MeasureTcp(const std::string& congestion, const Command& command);

// "stream": messages of `bytes` from one thread to another process, which takes and frees them, in
// recycled memory. "message": one at a time, answered. "rtt": `bytes` there and back.
Measured MeasureZmq(const std::string& transport, const Command& command);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_RAW_RAW_LIMITS_H_
