#include "compress/table_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

template <class... Args>
absl::Status Refused(const TableSpec& spec, const Args&... args) {
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec.name, "': codec ", spec.codec, " ", args...));
}

bool WantsWorker(ErrorFeedback wanted) {
  return wanted == ErrorFeedback::kWorker || wanted == ErrorFeedback::kBoth;
}
bool WantsServer(ErrorFeedback wanted) {
  return wanted == ErrorFeedback::kServer || wanted == ErrorFeedback::kBoth;
}

bool Is16Bit(DType dtype) { return ComputeType(dtype) != dtype; }

absl::StatusOr<DType> MessageType(const TableSpec& spec, const Codec& codec) {
  if (codec.Supports(spec.dtype)) return spec.dtype;
  const bool widened = Is16Bit(spec.dtype) && codec.Supports(DType::kFloat32);
  if (!widened) return Refused(spec, "does not carry ", Name(spec.dtype));
  if (spec.kind == TableKind::kDense) return DType::kFloat32;
  return Refused(spec, "carries float32; of 16-bit tables only dense ones are widened for it");
}

absl::StatusOr<NamedCodec> MadeFor(const TableSpec& spec) {
  absl::StatusOr<NamedCodec> made = MakeCodec(spec.codec);
  if (made.ok()) return made;
  return absl::Status(made.status().code(),
                      absl::StrCat("table '", spec.name, "': ", made.status().message()));
}

absl::Status CheckMomentum(const TableSpec& spec) {
  if (spec.kind == TableKind::kSparse) {
    return Refused(spec, "has momentum, which rows of sparse tables have no state for");
  }
  if (spec.updater.name == "assign") {
    return Refused(spec, "has momentum, and updater assign stores what is pushed");
  }
  return absl::OkStatus();
}

// For a lossy codec: decides which ends keep the residual.
absl::Status SetFeedback(const TableSpec& spec, TableCodec* table) {
  const ErrorFeedback wanted = spec.error_feedback;
  const bool off = wanted == ErrorFeedback::kOff;
  const bool dense = spec.kind == TableKind::kDense;
  const bool gradient = spec.updater.name == kGradientUpdater;
  const bool keeps_its_own = table->codec->keeps_residual();
  if (spec.updater.name == "assign" && !off) {
    return Refused(spec,
                   "is lossy and updater assign stores what is pushed, where error feedback would "
                   "add up values; use a lossless codec, or error_feedback off");
  }
  if (WantsServer(wanted) && !dense) {
    return Refused(spec,
                   "has error feedback on servers for dense tables alone; "
                   "error_feedback may be worker or off");
  }
  if (WantsServer(wanted) && keeps_its_own) {
    return Refused(spec,
                   "keeps what it drops itself, on workers alone; error_feedback may be worker");
  }
  const bool contracts = table->codec->contracts();
  if (!contracts && (WantsWorker(wanted) || WantsServer(wanted))) {
    return Refused(spec,
                   "drops more than it is given, so that error feedback would grow without "
                   "bound; error_feedback may be auto or off");
  }
  if (off && keeps_its_own) {
    return Refused(spec, "keeps what it drops itself; error_feedback may be worker or auto");
  }
  const bool automatic = wanted == ErrorFeedback::kAuto && contracts;
  table->worker_feedback = automatic || WantsWorker(wanted);
  table->server_feedback = dense && !keeps_its_own && (automatic || WantsServer(wanted));
  table->versions = table->server_feedback && !gradient;
  table->codes_replies = table->versions || (gradient && dense && !keeps_its_own);
  return absl::OkStatus();
}

// For one of several codecs of a table: error feedback that is asked for concerns the lossy ones. A
// codec with a residual of its own is refused, since its residual would be lost when another
// follows.
absl::Status AllowAmongSeveral(TableSpec* one, bool* any_lossy) {
  LEEWAY_ASSIGN_OR_RETURN(const NamedCodec made, MadeFor(*one));
  if (made.codec->lossless()) {
    one->error_feedback = ErrorFeedback::kAuto;
    return absl::OkStatus();
  }
  *any_lossy = true;
  if (!made.codec->keeps_residual()) return absl::OkStatus();
  return Refused(*one,
                 "keeps what it drops itself, which would be lost where the table gets another "
                 "codec; it cannot be one of several");
}

}  // namespace

bool TableCodecs::AnyHas(bool TableCodec::*what) const {
  return std::any_of(choices.begin(), choices.end(),
                     [what](const TableCodec& choice) { return choice.*what; });
}

const TableCodec* TableCodecs::Find(CodecId id) const {
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [id](const TableCodec& c) { return c.id == id; });
  return found == choices.end() || !found->encodes() ? nullptr : &*found;
}

std::vector<std::string> CodecTextsOf(const TableSpec& spec) {
  std::vector<std::string> texts;
  const bool automatic = spec.codec == kAutomaticCodec;
  if (!automatic) texts.push_back(spec.codec);
  for (const std::string& text : spec.codecs) {
    if (automatic || text != spec.codec) texts.push_back(text);
  }
  // Without measurements nothing may be lost.
  const auto none = std::find(texts.begin(), texts.end(), "none");
  if (automatic && none != texts.end()) std::rotate(texts.begin(), none, none + 1);
  return texts;
}

absl::StatusOr<TableCodecs> TableCodecsOf(const TableSpec& spec) {
  TableCodecs all;
  if (spec.codec == kAutomaticCodec && spec.codecs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("table '", spec.name, "': codec auto chooses ",
                                                   "from codecs, which is empty"));
  }
  all.texts = CodecTextsOf(spec);
  const bool several = all.texts.size() > 1;
  bool lossy = !several;
  for (const std::string& text : all.texts) {
    TableSpec one = spec;
    one.codec = text;
    if (std::ranges::count(all.texts, text) > 1) return Refused(one, "is named twice");
    if (several) LEEWAY_RETURN_IF_ERROR(AllowAmongSeveral(&one, &lossy));
    LEEWAY_ASSIGN_OR_RETURN(TableCodec choice, TableCodecOf(one));
    if (choice.encodes() && all.Find(choice.id) != nullptr) {
      return Refused(one, "has the same hash as another of the table's codecs");
    }
    all.choices.push_back(std::move(choice));
  }
  if (!lossy && (WantsWorker(spec.error_feedback) || WantsServer(spec.error_feedback))) {
    return Refused(spec,
                   "has lossless codecs alone, so that there is no error to feed back; "
                   "error_feedback may be auto or off");
  }
  return all;
}

absl::StatusOr<TableCodec> TableCodecOf(const TableSpec& spec) {
  LEEWAY_ASSIGN_OR_RETURN(const NamedCodec made, MadeFor(spec));
  const bool feedback_wanted = WantsWorker(spec.error_feedback) || WantsServer(spec.error_feedback);
  if (made.codec->lossless() && feedback_wanted) {
    return Refused(spec,
                   "loses nothing, so that there is no error to feed back; error_feedback "
                   "may be auto or off");
  }
  TableCodec table;
  if (made.name == "none") return table;
  if (spec.kind == TableKind::kRagged) {
    return Refused(spec, "carries dense and sparse tables, not ragged ones");
  }
  table.codec = made.codec;
  table.one_pass = dynamic_cast<const OnePassFeedback*>(made.codec.get());
  table.id = IdOf(spec.codec);
  LEEWAY_ASSIGN_OR_RETURN(table.dtype, MessageType(spec, *table.codec));
  table.momentum = made.momentum;
  if (table.momentum.has_value()) LEEWAY_RETURN_IF_ERROR(CheckMomentum(spec));
  if (spec.kind == TableKind::kSparse &&
      table.codec->StateElements(RowsShape(spec, table, 1)) > 0) {
    return Refused(spec, "needs state for each block and carries dense tables alone");
  }
  if (!table.codec->lossless()) {
    LEEWAY_RETURN_IF_ERROR(SetFeedback(spec, &table));
  } else {
    table.codes_replies = spec.kind == TableKind::kDense;
  }
  return table;
}

CodecShape BlockShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t elements) {
  return {.dtype = codec.dtype,
          .elements = elements,
          .columns = spec.shape.size() < 2 ? 0 : spec.shape.back(),
          .separate_rows = false};
}

CodecShape RowsShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t rows) {
  return {.dtype = codec.dtype,
          .elements = rows * spec.row_width,
          .columns = spec.row_width,
          .separate_rows = true};
}

}  // namespace leeway::compress
