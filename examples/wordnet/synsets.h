// LoadSynsets reads the synsets of WordNet and the pointers between them from the database files
// data.noun, data.verb, data.adj and data.adv, whose format is described in wndb(5WN):
//   offset lex_filenum type w_cnt (word lex_id)… p_cnt (symbol offset part source/target)… … |
//   gloss
// one synset a line; lines of the licence in front begin with a space.
#ifndef LEEWAY_EXAMPLES_WORDNET_SYNSETS_H_
#define LEEWAY_EXAMPLES_WORDNET_SYNSETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::wordnet {

inline constexpr char kDefaultFolder[] = "/usr/share/wordnet";

// A kind of pointer, as wninput(5WN) lists them.
struct Relation {
  absl::string_view symbol;
  absl::string_view name;
  // True: each pointer of this kind is the inverse of one of another kind, as hyponym of hypernym.
  bool repeats_another = false;
};
std::span<const Relation> Relations();

struct Pointer {
  std::uint32_t source = 0;    // below Synsets::count
  std::uint32_t relation = 0;  // index in Relations()
  std::uint32_t target = 0;    // below Synsets::count
  friend auto operator<=>(const Pointer&, const Pointer&) = default;
};

struct Synsets {
  std::uint32_t count = 0;
  std::vector<Pointer> pointers;  // in the order of the files
};

// `parts`: the parts of speech to read, of "noun", "verb", "adj" and "adv". Pointers to synsets of
// other parts are left out. NOT_FOUND: a file is missing; names the package that contains it.
// INVALID_ARGUMENT: an unknown part, or a fault in a file, with its name and line.
absl::StatusOr<Synsets> LoadSynsets(const std::string& folder,
                                    const std::vector<std::string>& parts);

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_SYNSETS_H_
