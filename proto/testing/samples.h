// Samples for tests: messages of every type.
#ifndef LEEWAY_PROTO_TESTING_SAMPLES_H_
#define LEEWAY_PROTO_TESTING_SAMPLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto {

struct Sample {
  AnyMessage message;
  std::vector<runtime::Buffer> payload = {};
};

// At least one of every type. Every field of a type differs from its default in one of them.
std::vector<Sample> AllSamples();

// The part of AllSamples in samples_replication.cc: entries between replicas, of each kind.
void AddReplication(std::vector<Sample>* all);

// A frame of these entries.
template <class T>
runtime::Buffer FrameOf(const std::vector<T>& entries) {
  return runtime::Buffer::CopyOf(entries.data(), entries.size() * sizeof(T));
}

// `sample` as it arrives: encoded, then decoded.
inline absl::StatusOr<AnyMessage> Arrive(const Sample& sample) {
  std::vector<runtime::Buffer> payload = sample.payload;
  return Decode(Encode(sample.message), payload);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TESTING_SAMPLES_H_
