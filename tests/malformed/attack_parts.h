// The parts that malformed messages are made from.
#ifndef LEEWAY_TESTS_MALFORMED_ATTACK_PARTS_H_
#define LEEWAY_TESTS_MALFORMED_ATTACK_PARTS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "runtime/base/random.h"
#include "van/prefix.h"

namespace leeway::tests {

using Frames = std::vector<std::string>;

// Everything that an attack needs to make its bytes.
struct Forge {
  runtime::Random random;

  std::string Noise(std::size_t size) {
    std::string noise(size, '\0');
    for (char& c : noise) c = static_cast<char>(random.Next());
    return noise;
  }
  std::string Cut(std::string text) {
    text.resize(random.Below(text.size()));
    return text;
  }
  std::string FlipBit(std::string text, std::size_t from = 0) {
    const std::size_t at = from + random.Below(text.size() - from);
    text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
    return text;
  }
};

// Messages to be sent one after the other over one ZeroMQ connection.
using ZmqAttack = std::function<std::vector<Frames>(Forge&)>;

// The first frame of a connection. A hello without a role becomes a worker's, and one without an
// incarnation that of a node that nobody knows.
std::string Hello(proto::Hello hello = {});
std::string Data(const proto::AnyMessage& message, std::size_t payload_frames);

// Messages of replication, late join, administration and checkpoints from senders that may not send
// them, or to receivers that do not take them, whole and damaged.
std::vector<ZmqAttack> ClusterAttacks();

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_MALFORMED_ATTACK_PARTS_H_
