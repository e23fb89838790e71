// FromWords parses lines of words, which a storm's processes write for each other. Times and
// durations are in whole microseconds.
#ifndef LEEWAY_TESTS_STORM_WORDS_H_
#define LEEWAY_TESTS_STORM_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"

namespace leeway::storm {

using Words = std::vector<std::string>;

template <class T>
bool FromWord(const std::string& word, T* value) {
  return absl::SimpleAtoi(word, value);
}
inline bool FromWord(const std::string& word, double* value) {
  return absl::SimpleAtod(word, value);
}
inline bool FromWord(const std::string& word, std::string* value) {
  *value = word;
  return true;
}
inline bool FromWord(const std::string& word, absl::Time* value) {
  std::int64_t microseconds = 0;
  if (!FromWord(word, &microseconds)) return false;
  *value = absl::FromUnixMicros(microseconds);
  return true;
}
inline bool FromWord(const std::string& word, absl::Duration* value) {
  std::int64_t microseconds = 0;
  if (!FromWord(word, &microseconds)) return false;
  *value = absl::Microseconds(microseconds);
  return true;
}

// Parses all words after the first, one into each of these.
template <class... Values>
bool FromWords(const Words& words, Values*... values) {
  if (words.size() != sizeof...(values) + 1) return false;
  std::size_t at = 0;
  return (FromWord(words[++at], values) && ...);
}

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_WORDS_H_
