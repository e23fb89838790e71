#include "compress/registry.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/codecs/builtin.h"
#include "compress/common/options.h"
#include "proto/messages/limits.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway {
namespace compress {
namespace {

constexpr std::size_t kNameBytesMax = proto::kCodecNameBytesMax;

// The version of the built-in codecs' messages. A codec whose message changes gets its own version.
constexpr std::uint32_t kBuiltinVersion = 1;

class Registry {
 public:
  // Never destroyed: tables may still be created while the process ends.
  static Registry& Get() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  absl::Status Add(absl::string_view name, CodecFactory factory, std::uint32_t version) {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(name)) {
      return absl::AlreadyExistsError(
          absl::StrCat("a codec named '", name, "' is registered already"));
    }
    if (entries_.size() >= proto::kCodecsMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "codec '", name, "' cannot be registered: ", "there are ", proto::kCodecsMax));
    }
    entries_.emplace(std::string(name), Entry{std::move(factory), version});
    return absl::OkStatus();
  }

  absl::StatusOr<CodecFactory> Find(absl::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second.factory;
    return absl::NotFoundError(absl::StrCat("there is no codec named '", name, "'; there are ",
                                            absl::StrJoin(NamesLocked(), ", "),
                                            "; LEEWAY_PLUGINS names libraries with more"));
  }

  std::vector<std::string> Names() const {
    const std::lock_guard lock(mutex_);
    return NamesLocked();
  }

  std::vector<proto::CodecVersion> Versions() const {
    const std::lock_guard lock(mutex_);
    std::vector<proto::CodecVersion> versions;
    for (const auto& [name, entry] : entries_) versions.push_back({name, entry.version});
    return versions;
  }

 private:
  struct Entry {
    CodecFactory factory;
    std::uint32_t version = kBuiltinVersion;
  };

  Registry() {
    for (auto& [name, factory] : BuiltinCodecs()) entries_[name] = {.factory = std::move(factory)};
  }

  std::vector<std::string> NamesLocked() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Entry, std::less<>> entries_;
};

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
         });
}

}  // namespace

CodecId IdOf(absl::string_view text) {
  const auto id = static_cast<CodecId>(runtime::StableHash(text));
  return id == kNoCodec ? 1 : id;
}

// Returns the codec that a user's factory made, or its error; a null codec is an error.
static absl::StatusOr<std::unique_ptr<Codec>> MadeBy(absl::string_view name,
                                                     absl::StatusOr<std::unique_ptr<Codec>> codec) {
  if (!codec.ok() || *codec != nullptr) return codec;
  return absl::InternalError(absl::StrCat("the factory of codec '", name, "' has made none"));
}

absl::StatusOr<NamedCodec> MakeCodec(absl::string_view text) {
  LEEWAY_ASSIGN_OR_RETURN(CodecText parsed, ParseCodecText(text));
  LEEWAY_ASSIGN_OR_RETURN(const CodecFactory factory, Registry::Get().Find(parsed.name));
  absl::StatusOr<std::unique_ptr<Codec>> whole = MadeBy(parsed.name, factory(parsed.options));
  if (whole.ok()) return NamedCodec{.name = parsed.name, .codec = *std::move(whole)};
  LEEWAY_ASSIGN_OR_RETURN(const std::optional<Momentum> momentum,
                          TakeMomentum(parsed.name, &parsed.options));
  if (!momentum.has_value()) return whole.status();
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Codec> codec,
                          MadeBy(parsed.name, factory(parsed.options)));
  // A codec that keeps its own residual has its own momentum, or none: from here it would be wrong.
  if (codec->keeps_residual()) return whole.status();
  if (codec->lossless()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec ", parsed.name, " loses nothing: momentum is an option of lossy codecs"));
  }
  return NamedCodec{.name = parsed.name, .codec = std::move(codec), .momentum = momentum};
}

std::vector<std::string> CodecNames() { return Registry::Get().Names(); }
std::vector<proto::CodecVersion> CodecVersions() { return Registry::Get().Versions(); }

}  // namespace compress

absl::Status RegisterCodec(absl::string_view name, CodecFactory factory, std::uint32_t version) {
  if (!compress::IsName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a codec's name has 1 to ", compress::kNameBytesMax,
                     " letters, digits, '_' and '-', which '", name, "' has not"));
  }
  if (name == "auto") {
    return absl::InvalidArgumentError(
        "a codec cannot be named 'auto': that stands for the choice among a table's codecs");
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("codec '", name, "' has no factory"));
  }
  if (version == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the version of codec '", name, "' is 0, may be 1 or more"));
  }
  return compress::Registry::Get().Add(name, std::move(factory), version);
}

}  // namespace leeway
