#include "tools/compression/results.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "tools/format/text_table.h"
#include "tools/train/train_settings.h"

namespace leeway::tools {
namespace {

constexpr char kNotes[] =
    "± is the standard deviation over the seeds; points are against none in the same mode.\n"
    "Bytes are the payload that all workers push and pull in a step, mean over the run, with the\n"
    "first pulls, which are whole. \"both\": pushes and pulls are encoded, and what that drops is\n"
    "added to the next message. \"worker\": pushes are encoded so, pulls travel uncompressed.\n"
    "\"off\", of a codec that loses something: pushes are encoded and what they drop is gone; "
    "pulls\n"
    "travel uncompressed, since without feedback workers would drift away from the servers. So "
    "only\n"
    "ratios of \"both\", and of codecs that lose nothing, are about both directions.\n";

std::string Accuracy(const CompressionResult& result) {
  return absl::StrFormat("%.2f ± %.2f %%", 100 * result.accuracy_mean, 100 * result.accuracy_sd);
}

std::string Kilobytes(double bytes) { return absl::StrFormat("%.1f kB", bytes * 1e-3); }

bool IsNone(const CompressionResult& result) { return result.variant.codec == "none"; }

// Percentage points between its accuracy and that of `none` in its mode.
std::string Points(const CompressionResult& result, const std::vector<CompressionResult>& results) {
  if (IsNone(result)) return "";
  for (const CompressionResult& other : results) {
    if (!IsNone(other) || other.mode != result.mode) continue;
    return absl::StrFormat("%+.2f", 100 * (result.accuracy_mean - other.accuracy_mean));
  }
  return "";
}

}  // namespace

CompressionResult Summarize(const std::string& mode, const Variant& variant,
                            const std::vector<TrainFacts>& runs, const CompressionResult* none) {
  CompressionResult result;
  result.mode = mode;
  result.variant = variant;
  result.seeds = runs.size();
  const auto n = static_cast<double>(runs.size());
  for (const TrainFacts& run : runs) {
    result.accuracy_mean += run.test_accuracy / n;
    result.bytes_per_step += run.bytes_per_step / n;
    result.seconds_mean += run.wall_time_s / n;
  }
  double squares = 0;
  for (const TrainFacts& run : runs)
    squares += std::pow(run.test_accuracy - result.accuracy_mean, 2);
  if (runs.size() > 1) result.accuracy_sd = std::sqrt(squares / (n - 1));
  if (none != nullptr && result.bytes_per_step > 0) {
    result.ratio = none->bytes_per_step / result.bytes_per_step;
  }
  return result;
}

std::string CompressionTable(const std::vector<CompressionResult>& results) {
  std::vector<std::vector<std::string>> rows = {{"mode", "codec", "error feedback", "test accuracy",
                                                 "points", "bytes a step", "ratio", "time"}};
  for (const CompressionResult& result : results) {
    rows.push_back({result.mode, result.variant.codec,
                    IsNone(result) ? "" : std::string(Name(result.variant.error_feedback)),
                    Accuracy(result), Points(result, results), Kilobytes(result.bytes_per_step),
                    absl::StrFormat("%.1f", result.ratio),
                    absl::StrFormat("%.1f s", result.seconds_mean)});
  }
  return TextTable(rows, 3) + kNotes;
}

std::string CompressionLine(const CompressionResult& result) {
  return absl::StrFormat(
      "%s %s, error feedback %s: test accuracy %s, %s a step, ratio %.1f, %.1f s", result.mode,
      result.variant.codec, Name(result.variant.error_feedback), Accuracy(result),
      Kilobytes(result.bytes_per_step), result.ratio, result.seconds_mean);
}

std::string CompressionJson(const std::vector<CompressionResult>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CompressionResult& result : results) {
    list.push_back({{"codec", result.variant.codec},
                    {"error_feedback", std::string(Name(result.variant.error_feedback))},
                    {"accuracy_mean", result.accuracy_mean},
                    {"accuracy_sd", result.accuracy_sd},
                    {"bytes_per_step", result.bytes_per_step},
                    {"ratio", result.ratio},
                    {"mode", result.mode},
                    {"seeds", result.seeds},
                    {"seconds_mean", result.seconds_mean}});
  }
  return list.dump(2) + "\n";
}

}  // namespace leeway::tools
