#include "proto/encoding/check_meaning.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/encoding/read_fields.h"
#include "proto/messages/limits.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto {
namespace {

template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// OK if `key` of each entry is above that of the entry before.
template <class Entry, class Key>
absl::Status CheckAscending(absl::string_view list, const std::vector<Entry>& all, Key key) {
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (key(all[i - 1]) < key(all[i])) continue;
    return Wrong(list, " are not in order, or one is there twice: entry ", i);
  }
  return absl::OkStatus();
}

// OK if the entries are in the order of tables, and those of one table in an order in which one
// `follows` the other.
template <class Entry, class Follows>
absl::Status CheckByTable(absl::string_view list, const std::vector<Entry>& all, Follows follows) {
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Entry &before = all[i - 1], &entry = all[i];
    if (before.table < entry.table) continue;
    if (before.table == entry.table && before.number < entry.number && before.decided &&
        follows(before, entry)) {
      continue;
    }
    return Wrong(list, " of table ", entry.table, " are not in order");
  }
  return absl::OkStatus();
}

// Some decided settings for each table, and at most one announced one behind them.
absl::Status CheckTableSettings(const std::vector<TableSettings>& all) {
  return CheckByTable("table_settings", all, [](const auto& before, const auto& entry) {
    return before.since <= entry.since;
  });
}

// Entries are in the order of ranks. Until the cluster is complete some may be missing; afterwards
// rank r is entry r, so that other code may use a rank as an index.
template <class Entry>
absl::Status CheckRanks(absl::string_view list, const std::vector<Entry>& all, bool complete) {
  for (std::size_t i = 0; complete && i < all.size(); ++i) {
    if (all[i].rank != i) return Wrong(list, "[", i, "].rank is ", all[i].rank, ", may be ", i);
  }
  return CheckAscending(list, all, [](const Entry& entry) { return entry.rank; });
}

// The entry in place of an owner for a shard that is lost.
constexpr ShardOwner kNobody{.server_rank = kNoServer, .thread = 0};

absl::Status CheckPlace(absl::string_view what, std::size_t shard, const ShardOwner& place,
                        const ClusterMap& map) {
  if (place.server_rank >= map.servers.size()) {
    return Wrong(what, " of shard ", shard, " is server ", place.server_rank, ", there are ",
                 map.servers.size(), " servers");
  }
  const std::size_t threads = map.servers[place.server_rank].endpoints.size();
  if (place.thread < threads) return absl::OkStatus();
  return Wrong(what, " of shard ", shard, " is thread ", place.thread, " of server ",
               place.server_rank, ", which has ", threads, " threads");
}

// The entries of one shard: each on a different server, joining replicas last.
absl::Status CheckChain(std::span<const ShardReplica> replicas, const ClusterMap& map) {
  const std::uint32_t shard = replicas.front().shard;
  const ShardOwner head = map.owners[shard];
  if (head == kNobody) return Wrong("shard ", shard, " has a replica but no owner");
  if (replicas.size() >= kChainMax) {
    return Wrong("length of a chain is ", 1 + replicas.size(), ", may be 1 to ", kChainMax);
  }
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const ShardOwner& place = replicas[i].place;
    LEEWAY_RETURN_IF_ERROR(CheckPlace("replica", shard, place, map));
    bool twice = place.server_rank == head.server_rank;
    for (std::size_t j = 0; j < i; ++j) {
      twice = twice || place.server_rank == replicas[j].place.server_rank;
    }
    if (twice) return Wrong("shard ", shard, " is on server ", place.server_rank, " twice");
    if (i > 0 && replicas[i - 1].joining && !replicas[i].joining) {
      return Wrong("shard ", shard, " has a joining replica before a member");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReplicas(const ClusterMap& map) {
  const std::span<const ShardReplica> all = map.replicas;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    const std::uint32_t shard = all[first].shard;
    const std::uint32_t least = first == 0 ? 0 : all[first - 1].shard;
    if (shard < least || shard >= map.owners.size()) {
      return Wrong("replicas[", first, "].shard", OutOfRange(shard, least, map.owners.size() - 1));
    }
    while (last < all.size() && all[last].shard == shard) ++last;
    LEEWAY_RETURN_IF_ERROR(CheckChain(all.subspan(first, last - first), map));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const TableSpec& spec) {
  const absl::Status valid = spec.Validate();
  return valid.ok() ? valid : Wrong("spec of table ", Quoted(spec.name), ": ", valid.message());
}

}  // namespace

absl::Status CheckMeaning(const Join& m) {
  const std::int32_t ranks = m.role == Role::kServer ? kServersMax : kWorkersMax;
  if (m.rank_wanted < -1 || m.rank_wanted >= ranks) {
    return Wrong("rank_wanted is ", m.rank_wanted, ", may be -1 (none) to ", ranks - 1);
  }
  // So that two lists can be compared in one pass.
  return CheckAscending("codecs", m.codecs,
                        [](const CodecVersion& codec) -> const std::string& { return codec.name; });
}

absl::Status CheckMeaning(const ClusterMap& m) {
  LEEWAY_RETURN_IF_ERROR(CheckRanks("servers", m.servers, m.epoch > 0));
  LEEWAY_RETURN_IF_ERROR(CheckRanks("workers", m.workers, m.epoch > 0));
  for (std::size_t shard = 0; shard < m.owners.size(); ++shard) {
    if (m.owners[shard] == kNobody) continue;
    LEEWAY_RETURN_IF_ERROR(CheckPlace("owner", shard, m.owners[shard], m));
  }
  LEEWAY_RETURN_IF_ERROR(CheckReplicas(m));
  // One decided switch for each table, and at most one announced one behind it.
  LEEWAY_RETURN_IF_ERROR(CheckByTable(
      "codecs", m.codecs, [](const auto&, const auto& entry) { return !entry.decided; }));
  return CheckTableSettings(m.table_settings);
}

absl::Status CheckMeaning(const CreateTable& m) { return CheckSpec(m.spec); }

absl::Status CheckMeaning(const TableReply& m) {
  if (!m.result.ok()) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(CheckTableSettings(m.table_settings));
  for (const TableSettings& settings : m.table_settings) {
    if (settings.table != m.table) return Wrong("table_settings are of table ", settings.table);
  }
  return CheckSpec(m.spec);
}

absl::Status CheckMeaning(const InstallTable& m) { return CheckSpec(m.spec); }

absl::Status CheckMeaning(const Replicate& m) {
  LEEWAY_RETURN_IF_ERROR(
      CheckAscending("closed_of", m.closed_of, [](const TableClock& of) { return of.table; }));
  return CheckAscending("workers", m.workers, [](const ClientSession& worker) {
    return std::tuple(worker.rank, worker.incarnation);
  });
}

absl::Status CheckMeaning(const LoadReport& m) {
  return CheckAscending("shards", m.shards, [](const ShardLoad& load) { return load.shard; });
}

absl::Status CheckMeaning(const CodecReport& m) {
  const std::uint64_t all = (std::uint64_t{1} << m.costs.size()) - 1;
  if (m.lossy <= all) return absl::OkStatus();
  return Wrong("lossy is ", m.lossy, ", may be 0 to ", all);
}

// A file name within a checkpoint's directory must not lead out of it.
absl::Status CheckMeaning(const CheckpointWritten& m) {
  for (const auto& [name, bytes, checksum] : m.files) {
    if (name.find('/') == std::string::npos && name != "." && name != "..") continue;
    return Wrong("a file's name is ", Quoted(name), ", may be without directories");
  }
  return absl::OkStatus();
}

absl::Status CheckMeaning(const Publish& m) {
  return CheckAscending("tables", m.tables, [](const ModelTable& table) { return table.id; });
}

absl::Status CheckMeaning(const Published& m) {
  LEEWAY_RETURN_IF_ERROR(CheckMeaning(Publish{.tables = m.tables}));
  LEEWAY_RETURN_IF_ERROR(CheckAscending("versions", m.versions,
                                        [](const PublishedVersion& one) { return one.version; }));
  return CheckAscending("publications", m.versions,
                        [](const PublishedVersion& one) { return one.publication; });
}

}  // namespace leeway::proto
