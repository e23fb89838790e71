#include "compress/registry.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/codecs/builtin.h"
#include "compress/options.h"
#include "runtime/random.h"
#include "runtime/status_macros.h"

namespace leeway {
namespace compress {
namespace {

constexpr std::size_t kNameBytesMax = 64;

class Registry {
 public:
  // Never destroyed: tables may still be created while the process ends.
  static Registry& Get() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  absl::Status Add(absl::string_view name, CodecFactory factory) {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, made] : factories_) {
      if (other == name) {
        return absl::AlreadyExistsError(
            absl::StrCat("a codec named '", name, "' is registered already"));
      }
    }
    factories_.emplace(std::string(name), std::move(factory));
    return absl::OkStatus();
  }

  absl::StatusOr<CodecFactory> Find(absl::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = factories_.find(std::string(name));
    if (found != factories_.end()) return found->second;
    return absl::NotFoundError(absl::StrCat("there is no codec named '", name, "'; there are ",
                                            absl::StrJoin(NamesLocked(), ", "),
                                            "; LEEWAY_PLUGINS names libraries with more"));
  }

  std::vector<std::string> Names() const {
    const std::lock_guard lock(mutex_);
    return NamesLocked();
  }

 private:
  Registry() {
    for (auto& [name, factory] : BuiltinCodecs()) factories_.emplace(name, std::move(factory));
  }

  std::vector<std::string> NamesLocked() const {
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

  mutable std::mutex mutex_;  // over all below
  std::map<std::string, CodecFactory> factories_;
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

absl::StatusOr<NamedCodec> MakeCodec(absl::string_view text) {
  LEEWAY_ASSIGN_OR_RETURN(CodecText parsed, ParseCodecText(text));
  LEEWAY_ASSIGN_OR_RETURN(const CodecFactory factory, Registry::Get().Find(parsed.name));
  absl::StatusOr<std::unique_ptr<Codec>> whole = factory(parsed.options);
  if (whole.ok()) return NamedCodec{.name = parsed.name, .codec = *std::move(whole)};
  LEEWAY_ASSIGN_OR_RETURN(const std::optional<Momentum> momentum,
                          TakeMomentum(parsed.name, &parsed.options));
  if (!momentum.has_value()) return whole.status();
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Codec> codec, factory(parsed.options));
  // One that keeps what it drops has a momentum of its own, or none that would be right.
  if (codec->keeps_residual()) return whole.status();
  if (codec->lossless()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec ", parsed.name, " loses nothing: momentum is an option of lossy codecs"));
  }
  return NamedCodec{.name = parsed.name, .codec = std::move(codec), .momentum = momentum};
}

std::vector<std::string> CodecNames() { return Registry::Get().Names(); }

}  // namespace compress

absl::Status RegisterCodec(absl::string_view name, CodecFactory factory) {
  if (!compress::IsName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a codec's name has 1 to ", compress::kNameBytesMax,
                     " letters, digits, '_' and '-', which '", name, "' has not"));
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("codec '", name, "' has no factory"));
  }
  return compress::Registry::Get().Add(name, std::move(factory));
}

}  // namespace leeway
