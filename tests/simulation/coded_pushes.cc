#include "tests/simulation/coded_pushes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compress/sparse/coded_rows.h"
#include "runtime/base/random.h"

namespace leeway::simulation {
namespace {

// As a part of the sum of all magnitudes: single precision, and as many additions as there are
// pushes. The smallest pushed value is 1/4.
constexpr double kRounding = 2e-6;

std::uint64_t HashOf(const ps::Inbound& push) {
  std::uint64_t hash = push.request.codec;
  for (const runtime::Buffer& frame : push.payload) {
    const absl::string_view bytes(reinterpret_cast<const char*>(frame.data()), frame.size());
    hash = runtime::StableHash(hash ^ runtime::StableHash(bytes));
  }
  return hash;
}

std::string Where(const SimTable& table, std::uint32_t place) {
  return absl::StrCat(table.dense() ? "block " : "row ", place, " of '", table.spec.name, "' (",
                      table.spec.codec, ", ", table.spec.updater.name, ", ",
                      table.spec.consistency.ToString(), ")");
}

bool HasAccount(const SimTable& table) { return table.spec.updater.name != "gradient"; }

}  // namespace

const SimTable* CodedPushes::Find(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  const SimTable& table = (*tables_)[found->second];
  return table.coded ? &table : nullptr;
}

void CodedPushes::OnPush(const SimTable& table, std::uint32_t rank, std::uint32_t place,
                         std::span<const float> gradient, double rate) {
  Account& account = accounts_[{rank, history_->lives[rank].incarnation, {table.index, place}}];
  account.given.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    account.given[i] += rate * static_cast<double>(gradient[i]);
  }
}

std::vector<CodedPushes::Piece> CodedPushes::Decode(const SimTable& table, const ps::Inbound& sent,
                                                    std::string* wrong) const {
  const ps::PushView push = ps::ToPush(sent);
  std::vector<Piece> pieces;
  const compress::TableCodec* const codec = table.codecs.Find(push.codec);
  if (push.codec != 0 && codec == nullptr) {
    *wrong = absl::StrCat("a push to '", table.spec.name, "' has a codec that is not the table's");
    return pieces;
  }
  if (table.dense()) {
    Piece piece{.place = static_cast<std::uint32_t>(push.block), .values = {}};
    piece.values.resize(table.ElementsOf(piece.place));
    if (push.codec == 0) {
      std::memcpy(piece.values.data(), push.values.data(), push.values.size());
    } else {
      const auto shape = compress::BlockShape(table.spec, *codec, piece.values.size());
      const absl::Status decoded =
          codec->codec->Decode(push.values.bytes(), shape, piece.values.data());
      if (!decoded.ok()) *wrong = decoded.ToString();
    }
    pieces.push_back(std::move(piece));
    return pieces;
  }
  const auto keys = push.keys.as<std::uint64_t>();
  std::vector<float> rows(keys.size() * table.width);
  if (push.codec == 0) {
    std::memcpy(rows.data(), push.values.data(), push.values.size());
  } else {
    const auto coded =
        compress::ParseCodedRows(push.values.bytes(), keys.size(), table.width * sizeof(float));
    if (!coded.ok()) {
      *wrong = coded.status().ToString();
      return pieces;
    }
    const auto shape = compress::RowsShape(table.spec, *codec, coded->encoded_rows);
    const absl::Status decoded = codec->codec->Decode(coded->encoded, shape, rows.data());
    if (!decoded.ok()) *wrong = decoded.ToString();
    std::memcpy(rows.data() + coded->encoded_rows * table.width, coded->plain.data(),
                coded->plain.size());
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::uint32_t> place = PlaceOf(table, keys[i]);
    if (!place.has_value()) {
      *wrong = absl::StrCat("key ", keys[i], " is pushed, which nobody has asked for");
      continue;
    }
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i * table.width);
    pieces.push_back(
        {.place = *place,
         .values = std::vector<float>(row, row + static_cast<std::ptrdiff_t>(table.width))});
  }
  return pieces;
}

// A lossy codec makes every message smaller here. A lossless one does not always, and then a block
// travels as it is, also with the residual of the lossy codec before.
std::uint32_t CodedPushes::PlainUnder(const SimTable& table, const ps::Inbound& sent) const {
  const ps::PushView push = ps::ToPush(sent);
  const proto::RequestId& id = sent.request.id;
  bool carried = false;
  if (table.dense()) {
    const auto found = carries_.find(
        {id.worker, id.incarnation, {table.index, static_cast<std::uint32_t>(push.block)}});
    carried = found != carries_.end() && found->second;
  }
  std::uint32_t under = 0;
  for (std::size_t i = 0; i < table.codecs.choices.size(); ++i) {
    const compress::TableCodec& codec = table.codecs.choices[i];
    if (!codec.encodes() || (codec.codec->lossless() && (carried || Grows(table, codec, push)))) {
      under |= 1u << i;
    }
  }
  return under;
}

// True if the encoded values would not be smaller.
bool CodedPushes::Grows(const SimTable& table, const compress::TableCodec& codec,
                        const ps::PushView& push) const {
  EncodeTerms terms;
  std::size_t prefix = 0;
  if (table.dense()) {
    terms.shape = compress::BlockShape(table.spec, codec, push.values.size() / sizeof(float));
  } else {
    terms.shape = compress::RowsShape(table.spec, codec, push.keys.as<std::uint64_t>().size());
    prefix = compress::kCodedRowsPrefix;
  }
  std::vector<std::byte> message(codec.codec->EncodedBytesMax(terms.shape));
  const auto bytes = codec.codec->Encode(push.values.data(), terms, message);
  return !bytes.ok() || prefix + *bytes >= push.values.size();
}

CodedPushes::Heard CodedPushes::Hear(const SimTable& table, const ps::Inbound& push) {
  Heard heard;
  const proto::RequestId& id = push.request.id;
  const std::uint64_t hash = HashOf(push);
  const auto [known, fresh] =
      bytes_.try_emplace({id.worker, id.incarnation, id.shard, id.sequence}, hash);
  if (!fresh) {
    if (known->second != hash) {
      heard.wrong = absl::StrCat("push ", id.sequence, " of worker ", id.worker, " to shard ",
                                 id.shard, ", to '", table.spec.name, "', is another one now");
    }
    return heard;
  }
  heard.fresh = true;
  heard.pieces = Decode(table, push, &heard.wrong);
  if (!heard.wrong.empty()) return heard;
  if (push.request.codec == 0) heard.plain_under = PlainUnder(table, push);
  if (table.dense()) {
    const compress::TableCodec* const codec = table.codecs.Find(push.request.codec);
    carries_[{id.worker, id.incarnation, {table.index, heard.pieces[0].place}}] =
        codec != nullptr && codec->worker_feedback;
  }
  if (table.spec.updater.name != "add") {
    heard.rate = push.request.has_learning_rate ? push.request.learning_rate : 1;
  }
  const std::uint32_t incarnation = history_->lives[id.worker].Incarnation(id.incarnation);
  const double sign = table.spec.updater.name == "sgd" ? -1 : 1;
  for (const Piece& piece : heard.pieces) {
    const PlaceOfTable place{table.index, piece.place};
    Account& account = accounts_[{id.worker, incarnation, place}];
    account.sent.resize(piece.values.size());
    account.magnitude.resize(piece.values.size());
    Sent sent{.rank = id.worker,
              .known_as = id.incarnation,
              .sequence = id.sequence,
              .effect = std::vector<float>(piece.values.size())};
    for (std::size_t i = 0; i < piece.values.size(); ++i) {
      const double times_rate = heard.rate * static_cast<double>(piece.values[i]);
      account.sent[i] += times_rate;
      account.magnitude[i] += std::abs(times_rate);
      sent.effect[i] = static_cast<float>(sign * times_rate);
    }
    if (HasAccount(table)) sent_[place].push_back(std::move(sent));
  }
  return heard;
}

std::string CodedPushes::JudgeShard(ps::Shard* head) const {
  const std::vector<proto::ClientSession> sessions = head->ExportBegin().header.workers;
  for (const auto& [id, store] : head->stores()) {
    const SimTable* const table = Find(id);
    if (table == nullptr || !HasAccount(*table)) continue;
    std::string wrong;
    for (const ps::FrozenPiece& piece : store->Freeze().pieces) {
      ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
        const std::optional<std::uint32_t> place = PlaceOf(*table, row.key);
        std::vector<float> values(row.width);
        std::memcpy(values.data(), row.values.data(), row.values.size());
        if (wrong.empty()) {
          wrong = place.has_value() ? JudgePlace(*table, *place, values, sessions)
                                    : absl::StrCat("nobody has pushed to key ", row.key);
        }
      });
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// For a worker with a later incarnation it is not known any more how much has arrived: everything
// up to some message.
std::string CodedPushes::JudgePlace(const SimTable& table, std::uint32_t place,
                                    std::span<const float> values,
                                    const std::vector<proto::ClientSession>& sessions) const {
  const auto before = before_.find({table.index, place});
  const auto found = sent_.find({table.index, place});
  if (found == sent_.end() && before == before_.end()) {
    return absl::StrCat("nobody has pushed to ", Where(table, place));
  }
  std::vector<double> left(values.begin(), values.end());
  double magnitude = 1;
  for (std::size_t i = 0; before != before_.end() && i < left.size(); ++i) {
    left[i] -= static_cast<double>(before->second[i]);
    magnitude = std::max(magnitude, 1 + std::abs(static_cast<double>(before->second[i])));
  }
  static const std::vector<Sent> kNothing;
  const auto take = [&](const Sent& sent, double factor, std::vector<double>* from) {
    for (std::size_t i = 0; i < from->size(); ++i) {
      (*from)[i] -= factor * static_cast<double>(sent.effect[i]);
    }
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<const Sent*>> uncertain;
  for (const Sent& sent : found == sent_.end() ? kNothing : found->second) {
    float largest = 0;
    for (const float value : sent.effect) largest = std::max(largest, std::abs(value));
    magnitude += static_cast<double>(largest);
    const auto session = std::find_if(sessions.begin(), sessions.end(), [&](const auto& it) {
      return it.rank == sent.rank && it.incarnation == sent.known_as;
    });
    const std::uint64_t newest = history_->lives[sent.rank].known_as.back();
    if (session == sessions.end() || sent.known_as != newest) {
      uncertain[{sent.rank, sent.known_as}].push_back(&sent);
    } else if (sent.sequence <= (table.bsp() ? session->admitted_held : session->admitted)) {
      take(sent, 1, &left);
    }
  }
  const auto nothing = [&](const std::vector<double>& rest) {
    return std::all_of(rest.begin(), rest.end(),
                       [&](double value) { return std::abs(value) <= kRounding * magnitude; });
  };
  std::vector<std::vector<const Sent*>> open;
  for (auto& [worker, pushes] : uncertain) open.push_back(std::move(pushes));
  if (open.size() > 2) return "";
  ++judged_;
  const std::size_t first = open.empty() ? 0 : open[0].size();
  const std::size_t second = open.size() < 2 ? 0 : open[1].size();
  for (std::size_t i = 0; i <= first; ++i) {
    if (i > 0) take(*open[0][i - 1], 1, &left);
    std::vector<double> rest = left;
    for (std::size_t j = 0; j <= second; ++j) {
      if (j > 0) take(*open[1][j - 1], 1, &rest);
      if (nothing(rest)) return "";
    }
  }
  const auto worst = std::max_element(left.begin(), left.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  return absl::StrCat("element ", worst - left.begin(), " of ", Where(table, place), " is ",
                      values[static_cast<std::size_t>(worst - left.begin())], ", ", *worst,
                      " more than what was pushed");
}

std::string CodedPushes::JudgeWorker(const SimTable& table, std::uint32_t rank,
                                     const worker::TableCoding& coding) const {
  // Without error feedback the dropped part is lost.
  const auto drops = [](const compress::TableCodec& codec) {
    return codec.encodes() && !codec.worker_feedback && !codec.codec->lossless();
  };
  if (std::ranges::any_of(table.codecs.choices, drops)) return "";
  const std::uint32_t incarnation = history_->lives[rank].incarnation;
  const worker::SavedTable saved = coding.pushes.Save();
  for (std::uint32_t place = 0; place < table.places; ++place) {
    const auto found = accounts_.find({rank, incarnation, {table.index, place}});
    if (found == accounts_.end()) continue;
    const Account& account = found->second;
    const auto row = table.dense()
                         ? saved.keys.end()
                         : std::find(saved.keys.begin(), saved.keys.end(), table.keys[place]);
    const std::size_t first = static_cast<std::size_t>(row - saved.keys.begin()) * table.width;
    for (std::size_t i = 0; i < account.given.size(); ++i) {
      const double kept = table.dense()             ? coding.pushes.Kept(place, i)
                          : row == saved.keys.end() ? 0
                                                    : static_cast<double>(saved.rows[first + i]);
      const double sent = account.sent.empty() ? 0 : account.sent[i];
      const double magnitude = 1 + (account.magnitude.empty() ? 0 : account.magnitude[i]);
      const double missing = account.given[i] - sent - kept;
      if (std::abs(missing) <= kRounding * magnitude) continue;
      return absl::StrCat("of element ", i, " of ", Where(table, place), " worker ", rank,
                          " was given ", account.given[i], ", has sent ", sent, " and keeps ",
                          kept);
    }
  }
  return "";
}

}  // namespace leeway::simulation
