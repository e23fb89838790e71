// ParseCodecText splits a codec's text ("topk:0.01,exact=1") into a name and options, and
// ReadOptions reads options as numbers with their ranges. Any thread.
#ifndef LEEWAY_COMPRESS_COMMON_OPTIONS_H_
#define LEEWAY_COMPRESS_COMMON_OPTIONS_H_

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/codec.h"

namespace leeway::compress {

struct CodecText {
  std::string name;
  CodecOptions options;
};

// NAME[:OPTION][,OPTION…], an option being KEY=VALUE; the one behind the colon may be a VALUE
// alone, whose key is empty. INVALID_ARGUMENT: no name, an empty option, a repeated key.
absl::StatusOr<CodecText> ParseCodecText(absl::string_view text);

// An option whose value is a number. Infinite and NaN values are outside every range.
struct NumberOption {
  absl::string_view name = "";  // "": the one without a key
  absl::string_view what = "";  // the name in errors of the option without a key
  double* value = nullptr;      // holds the default
  double low = 0;
  double high = 0;
  bool whole = false;     // the value has to be a whole number
  bool low_open = false;  // `low` itself is out of range
};

// Writes the given options over the defaults. INVALID_ARGUMENT names the codec and the option, and
// lists the known ones or shows the range. Only for codecs whose options are all numbers.
absl::Status ReadOptions(absl::string_view codec, const CodecOptions& given,
                         std::initializer_list<NumberOption> known);

// If `option` is given, replaces its value, the name of a choice, by the choice's number (0, 1, …),
// so that ReadOptions can read it. INVALID_ARGUMENT for a name that is no choice.
absl::Status NumberChoice(absl::string_view codec, absl::string_view option,
                          std::initializer_list<absl::string_view> choices, CodecOptions* options);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_OPTIONS_H_
