// Messages with wrong meaning for tests: one for each check of Decode.
#ifndef LEEWAY_PROTO_TESTING_WRONG_H_
#define LEEWAY_PROTO_TESTING_WRONG_H_

#include <ostream>
#include <string>
#include <variant>

#include "proto/testing/samples.h"

namespace leeway::proto {

// A message, and the beginning of the error that Decode answers with.
struct Wrong {
  const char* name;
  Sample sent;
  std::string says;
};

inline void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

// `message` after `change`.
template <class Message, class Change>
AnyMessage With(Message message, Change change) {
  change(message);
  return message;
}

// The first sample of that type.
template <class Message>
Message SampleOf() {
  for (const Sample& sample : AllSamples()) {
    if (const Message* message = std::get_if<Message>(&sample.message)) return *message;
  }
  return {};
}

template <class Message>
AnyMessage Changed(void (*change)(Message&)) {
  return With(SampleOf<Message>(), change);
}

// A frame of two keys.
inline const runtime::Buffer& TwoKeys() {
  static const auto& keys = *new runtime::Buffer(FrameOf<std::uint64_t>({1, 2}));
  return keys;
}

// Requests and replies, whose counts must fit their payload: wrong_data.cc.
std::vector<Wrong> WrongRequests();
std::vector<Wrong> WrongReplies();
// Batches of small pushes and of acknowledgements: wrong_batches.cc.
std::vector<Wrong> WrongBatches();
// Entries between replicas, whose fields and payload must fit their kind: wrong_replication.cc.
std::vector<Wrong> WrongReplication();
// The map's chains, and messages of schedulers, servers and tools: wrong_admin.cc.
std::vector<Wrong> WrongReplicas();
std::vector<Wrong> WrongAdministration();

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TESTING_WRONG_H_
