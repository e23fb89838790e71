#include "examples/wordnet/synsets.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway::wordnet {
namespace {

constexpr Relation kRelations[] = {{"!", "antonym"},
                                   {"@", "hypernym"},
                                   {"@i", "instance hypernym"},
                                   {"~", "hyponym", true},
                                   {"~i", "instance hyponym", true},
                                   {"#m", "member holonym"},
                                   {"#s", "substance holonym"},
                                   {"#p", "part holonym"},
                                   {"%m", "member meronym", true},
                                   {"%s", "substance meronym", true},
                                   {"%p", "part meronym", true},
                                   {"=", "attribute"},
                                   {"+", "derivationally related form"},
                                   {";c", "domain of synset: topic"},
                                   {"-c", "member of this domain: topic", true},
                                   {";r", "domain of synset: region"},
                                   {"-r", "member of this domain: region", true},
                                   {";u", "domain of synset: usage"},
                                   {"-u", "member of this domain: usage", true},
                                   {"*", "entailment"},
                                   {">", "cause"},
                                   {"^", "also see"},
                                   {"$", "verb group"},
                                   {"&", "similar to"},
                                   {"<", "participle of verb"},
                                   {"\\", "pertainym, or derived from adjective"}};

struct Part {
  absl::string_view name;
  absl::string_view letters;  // of its synsets, and in pointers to them
};
// A satellite (s) is an adjective; pointers to it say a or s.
constexpr Part kParts[] = {{"noun", "n"}, {"verb", "v"}, {"adj", "as"}, {"adv", "r"}};

std::optional<std::size_t> PartOf(absl::string_view letter) {
  for (std::size_t p = 0; p < std::size(kParts); ++p) {
    if (letter.size() == 1 && absl::StrContains(kParts[p].letters, letter)) return p;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> RelationOf(absl::string_view symbol) {
  for (std::uint32_t r = 0; r < std::size(kRelations); ++r) {
    if (kRelations[r].symbol == symbol) return r;
  }
  return std::nullopt;
}

// A pointer as it is read, before all synsets are known.
struct RawPointer {
  std::uint32_t source = 0;  // index in the part's file
  std::uint32_t relation = 0;
  std::size_t part = 0;      // of the target
  std::uint32_t offset = 0;  // of the target
  std::size_t line = 0;
};

// One data file.
class DataFile {
 public:
  DataFile(const std::string& folder, std::size_t part)
      : part_(part), path_(absl::StrCat(folder, "/data.", kParts[part].name)) {}

  absl::Status Read() {
    std::error_code error;
    if (!std::filesystem::exists(path_, error)) {
      return absl::NotFoundError(absl::StrCat(
          path_, " does not exist: install Debian's wordnet-base or name another folder"));
    }
    std::ifstream file(path_, std::ios::binary);
    if (!file || std::filesystem::is_directory(path_, error)) {
      return absl::PermissionDeniedError(absl::StrCat(path_, " cannot be opened for reading"));
    }
    std::string line;
    while (std::getline(file, line)) {
      ++line_;
      if (file.eof()) return Wrong(line_, "is cut short: it does not end with a newline");
      if (absl::Status status = ReadLine(line); !status.ok()) return status;
      position_ += line.size() + 1;
    }
    if (file.bad()) return absl::DataLossError(absl::StrCat(path_, " cannot be read"));
    if (offsets_.empty()) return Wrong(line_, "ends a file without synsets");
    return absl::OkStatus();
  }

  std::size_t part() const { return part_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(offsets_.size()); }
  const std::vector<RawPointer>& pointers() const { return pointers_; }

  // The index of the synset with this offset.
  std::optional<std::uint32_t> Find(std::uint32_t offset) const {
    const auto found = std::lower_bound(offsets_.begin(), offsets_.end(), offset);
    if (found == offsets_.end() || *found != offset) return std::nullopt;
    return static_cast<std::uint32_t>(found - offsets_.begin());
  }

  template <class... Args>
  absl::Status Wrong(std::size_t line, const Args&... why) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", line, ": ", why...));
  }

 private:
  absl::Status ReadLine(absl::string_view line) {
    if (!line.empty() && line[0] == ' ') return absl::OkStatus();  // the licence
    fields_ = absl::StrSplit(line.substr(0, line.find('|')), ' ', absl::SkipEmpty());
    next_ = 0;
    std::uint32_t offset = 0, words = 0, pointers = 0;
    if (absl::Status status = Number("offset", 10, &offset); !status.ok()) return status;
    // An offset is the line's position in the file, so that offsets grow and none occurs twice.
    if (offset != position_) {
      return Wrong(line_, "gives offset ", offset, " to the synset at byte ", position_);
    }
    absl::string_view type;
    if (absl::Status status = Skip("lex_filenum", 1); !status.ok()) return status;
    if (absl::Status status = Take("type", &type); !status.ok()) return status;
    if (PartOf(type) != part_) {
      return Wrong(line_, "has a synset of type '", type, "' in a file of type '",
                   kParts[part_].letters, "'");
    }
    if (absl::Status status = Number("w_cnt", 16, &words); !status.ok()) return status;
    if (absl::Status status = Skip("word", std::size_t{2} * words); !status.ok()) return status;
    if (absl::Status status = Number("p_cnt", 10, &pointers); !status.ok()) return status;
    for (std::uint32_t i = 0; i < pointers; ++i) {
      if (absl::Status status = ReadPointer(); !status.ok()) return status;
    }
    offsets_.push_back(offset);
    return absl::OkStatus();
  }

  absl::Status ReadPointer() {
    RawPointer pointer{.source = size(), .line = line_};
    absl::string_view symbol, part;
    if (absl::Status status = Take("pointer symbol", &symbol); !status.ok()) return status;
    const std::optional<std::uint32_t> relation = RelationOf(symbol);
    if (!relation.has_value()) return Wrong(line_, "has an unknown pointer symbol '", symbol, "'");
    pointer.relation = *relation;
    if (absl::Status status = Number("pointer offset", 10, &pointer.offset); !status.ok()) {
      return status;
    }
    if (absl::Status status = Take("pointer's part of speech", &part); !status.ok()) return status;
    const std::optional<std::size_t> target = PartOf(part);
    if (!target.has_value())
      return Wrong(line_, "points to an unknown part of speech '", part, "'");
    pointer.part = *target;
    if (absl::Status status = Skip("source/target", 1); !status.ok()) return status;
    pointers_.push_back(pointer);
    return absl::OkStatus();
  }

  absl::Status Take(absl::string_view what, absl::string_view* field) {
    if (next_ == fields_.size()) return Wrong(line_, "is cut short: ", what, " is missing");
    *field = fields_[next_++];
    return absl::OkStatus();
  }

  absl::Status Skip(absl::string_view what, std::size_t fields) {
    if (fields_.size() - next_ < fields) return Wrong(line_, "is cut short: ", what, " is missing");
    next_ += fields;
    return absl::OkStatus();
  }

  absl::Status Number(absl::string_view what, int base, std::uint32_t* number) {
    absl::string_view field;
    if (absl::Status status = Take(what, &field); !status.ok()) return status;
    const bool read =
        base == 16 ? absl::SimpleHexAtoi(field, number) : absl::SimpleAtoi(field, number);
    if (!read) return Wrong(line_, "has '", field, "' where the number ", what, " should be");
    return absl::OkStatus();
  }

  const std::size_t part_;
  const std::string path_;
  std::vector<std::uint32_t> offsets_;  // by place, ascending
  std::vector<RawPointer> pointers_;
  std::size_t line_ = 0;
  std::uint64_t position_ = 0;  // of the line
  std::vector<absl::string_view> fields_;
  std::size_t next_ = 0;
};

absl::StatusOr<std::vector<DataFile>> ReadFiles(const std::string& folder,
                                                const std::vector<std::string>& parts) {
  std::vector<DataFile> files;
  for (std::size_t p = 0; p < std::size(kParts); ++p) {
    if (std::find(parts.begin(), parts.end(), kParts[p].name) == parts.end()) continue;
    files.emplace_back(folder, p);
    if (absl::Status status = files.back().Read(); !status.ok()) return status;
  }
  return files;
}

absl::Status CheckParts(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (std::none_of(std::begin(kParts), std::end(kParts),
                     [&](const Part& known) { return known.name == part; })) {
      return absl::InvalidArgumentError(absl::StrCat("there is no part of speech '", part,
                                                     "': there are noun, verb, adj and adv"));
    }
  }
  if (parts.empty()) return absl::InvalidArgumentError("no part of speech is named");
  return absl::OkStatus();
}

}  // namespace

std::span<const Relation> Relations() { return kRelations; }

absl::StatusOr<Synsets> LoadSynsets(const std::string& folder,
                                    const std::vector<std::string>& parts) {
  if (absl::Status status = CheckParts(parts); !status.ok()) return status;
  const absl::StatusOr<std::vector<DataFile>> files = ReadFiles(folder, parts);
  if (!files.ok()) return files.status();
  Synsets synsets;
  std::vector<const DataFile*> by_part(std::size(kParts));
  std::vector<std::uint32_t> first(std::size(kParts));
  for (const DataFile& file : *files) {
    by_part[file.part()] = &file;
    first[file.part()] = synsets.count;
    synsets.count += file.size();
  }
  for (const DataFile& file : *files) {
    for (const RawPointer& pointer : file.pointers()) {
      const DataFile* const target = by_part[pointer.part];
      if (target == nullptr) continue;
      const std::optional<std::uint32_t> place = target->Find(pointer.offset);
      if (!place.has_value()) {
        return file.Wrong(pointer.line, "points to offset ", pointer.offset, " of data.",
                          kParts[pointer.part].name, ", where no synset begins");
      }
      synsets.pointers.push_back({.source = first[file.part()] + pointer.source,
                                  .relation = pointer.relation,
                                  .target = first[pointer.part] + *place});
    }
  }
  return synsets;
}

}  // namespace leeway::wordnet
