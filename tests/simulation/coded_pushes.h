// CodedPushes records the workers' pushes to the coded tables of a simulated run: the gradients,
// and the messages sent for them. From that it follows exactly
//
// - what a place with one writer may hold: its writer's messages, one after the other;
// - what any place has to hold at the end: the messages that were admitted, each once;
// - the residual of every worker at the end: the gradients less the messages, both times the
//   learning rate. Nothing is lost, and nothing counts twice.
//
// A killed worker's residual is lost; its messages may have arrived, up to some message.
#ifndef LEEWAY_TESTS_SIMULATION_CODED_PUSHES_H_
#define LEEWAY_TESTS_SIMULATION_CODED_PUSHES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/shard/shard.h"
#include "ps/table/inbound.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_table.h"
#include "worker/slicing/table_coding.h"

namespace leeway::simulation {

class CodedPushes {
 public:
  CodedPushes(const std::vector<SimTable>* tables, const History* history)
      : tables_(tables), history_(history) {}

  // Servers know the table by that id.
  void Know(std::uint32_t id, const SimTable& table) { by_id_[id] = table.index; }
  const SimTable* Find(std::uint32_t id) const;  // null: not a coded one

  // The run begins with these values.
  void BeginWith(const SimTable& table, std::uint32_t place, std::vector<float> values) {
    before_[{table.index, place}] = std::move(values);
  }
  // A worker is about to push that gradient, at that rate (1 if there is none).
  void OnPush(const SimTable& table, std::uint32_t rank, std::uint32_t place,
              std::span<const float> gradient, double rate);

  // One place of a push as the server will decode it.
  struct Piece {
    std::uint32_t place = 0;
    std::vector<float> values;
  };
  struct Heard {
    std::string wrong;   // empty: nothing
    bool fresh = false;  // the first time; otherwise the fields below are empty
    std::vector<Piece> pieces;
    double rate = 1;
    std::uint32_t plain_under = 0;  // CodecLedger::Left
  };
  // A push leaves a worker, for the first time or again.
  Heard Hear(const SimTable& table, const ps::Inbound& push);

  // At the end: returns what is wrong with the values of a shard's head; empty: nothing.
  std::string JudgeShard(ps::Shard* head) const;
  // At the end: likewise of a living worker's residual.
  std::string JudgeWorker(const SimTable& table, std::uint32_t rank,
                          const worker::TableCoding& coding) const;
  // Places that JudgeShard has judged, and those whose arrived messages were not known.
  std::uint64_t judged() const { return judged_; }

 private:
  using PlaceOfTable = std::pair<std::uint32_t, std::uint32_t>;                // table, place
  using WorkerPlace = std::tuple<std::uint32_t, std::uint32_t, PlaceOfTable>;  // rank, incarnation

  struct Sent {
    std::uint32_t rank = 0;
    std::uint64_t known_as = 0;  // the incarnation's number at servers
    std::uint64_t sequence = 0;
    std::vector<float> effect;  // on the value
  };
  // Sums, times the learning rate.
  struct Account {
    std::vector<double> given, sent, magnitude;
  };

  std::vector<Piece> Decode(const SimTable& table, const ps::Inbound& push,
                            std::string* wrong) const;
  std::uint32_t PlainUnder(const SimTable& table, const ps::Inbound& sent) const;
  bool Grows(const SimTable& table, const compress::TableCodec& codec,
             const ps::PushView& push) const;
  std::string JudgePlace(const SimTable& table, std::uint32_t place, std::span<const float> values,
                         const std::vector<proto::ClientSession>& windows) const;

  const std::vector<SimTable>* const tables_;
  const History* const history_;
  std::map<std::uint32_t, std::uint32_t> by_id_;
  // By rank, incarnation, shard and number: the bytes that were sent.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>, std::uint64_t>
      bytes_;
  // By rank, the worker's number at servers, and block: true if it keeps a part of its last push.
  std::map<std::tuple<std::uint32_t, std::uint64_t, PlaceOfTable>, bool> carries_;
  std::map<PlaceOfTable, std::vector<Sent>> sent_;
  std::map<PlaceOfTable, std::vector<float>> before_;  // the values that the run began with
  std::map<WorkerPlace, Account> accounts_;
  mutable std::uint64_t judged_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODED_PUSHES_H_
