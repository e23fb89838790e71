// The messages of publications: versions of a model, each as of one moment, which servers keep for
// readers. docs/publishing.md has the protocol.
#ifndef LEEWAY_PROTO_MESSAGES_PUBLICATION_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_PUBLICATION_MESSAGES_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// A table of a model.
struct ModelTable {
  std::uint32_t id = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("id", m.id, Range{.min = 1, .max = kTableIdMax});
  }
  friend auto operator<=>(const ModelTable&, const ModelTable&) = default;
};

// scheduler → server: freeze these tables. Repeated until it is answered; a later publication takes
// the place of an earlier one that is not answered.
struct Publish {
  std::uint64_t publication = 0;        // its number; no two of a cluster's life are equal
  std::uint64_t clock = 0;              // tables of BSP: with what belongs to clocks below it
  std::vector<ModelTable> tables = {};  // ascending, none twice
  static bool Fields(auto& v, auto& m) {
    return v("publication", m.publication, AtLeast(1)) && v("clock", m.clock) &&
           v("tables", m.tables, Count{1, kTablesMax});
  }
};
// server → scheduler. OUT_OF_RANGE: a shard is beyond the clock; ABORTED: it has just got another
// head.
struct PublishReply {
  std::uint64_t publication = 0;
  absl::Status result = {};
  std::uint32_t shards = 0;  // that it has frozen: those that it is the head of
  std::uint64_t closed = 0;  // clocks below it have closed on one of them
  static bool Fields(auto& v, auto& m) {
    return v("publication", m.publication, AtLeast(1)) && v(m.result) &&
           v("shards", m.shards, UpTo(kShardsMax)) && v("closed", m.closed);
  }
};
// One version of a model.
struct PublishedVersion {
  std::uint64_t version = 0;  // counts from 1
  std::uint64_t publication = 0;
  std::uint64_t clock = 0;  // of the worker that published it
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("version", m.version, AtLeast(1)) && v("publication", m.publication, AtLeast(1)) &&
           v("clock", m.clock);
  }
  friend bool operator==(const PublishedVersion&, const PublishedVersion&) = default;
};
// scheduler → servers, workers and readers: the model has a new version, or had when the receiver
// connected. Servers forget its other versions.
struct Published {
  std::string model = {};
  std::vector<ModelTable> tables = {};          // ascending, none twice
  std::vector<PublishedVersion> versions = {};  // that are kept, ascending
  static bool Fields(auto& v, auto& m) {
    return v("model", m.model, kName) && v("tables", m.tables, Count{1, kTablesMax}) &&
           v("versions", m.versions, Count{1, kVersionsKeptMax});
  }
  friend bool operator==(const Published&, const Published&) = default;
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_PUBLICATION_MESSAGES_H_
