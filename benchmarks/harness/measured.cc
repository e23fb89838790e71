#include "harness/measured.h"

#include <algorithm>
#include <cstdio>

namespace leeway::bench {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

double Percentile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

std::string ToJson(const Measured& measured) {
  if (!measured.error.empty()) return "{\"error\": " + Quoted(measured.error) + "}";
  char text[320];
  int size = std::snprintf(text, sizeof(text),
                           "{\"operations\": %llu, \"bytes\": %llu, \"seconds\": %.9f, "
                           "\"cpu_seconds\": %.9f",
                           static_cast<unsigned long long>(measured.operations),
                           static_cast<unsigned long long>(measured.bytes), measured.seconds,
                           measured.cpu_seconds);
  std::string json(text, static_cast<std::size_t>(size));
  if (!measured.latencies_us.empty()) {
    std::vector<double> sorted = measured.latencies_us;
    std::sort(sorted.begin(), sorted.end());
    size = std::snprintf(text, sizeof(text), ", \"p50_us\": %.3f, \"p99_us\": %.3f",
                         Percentile(sorted, 0.5), Percentile(sorted, 0.99));
    json.append(text, static_cast<std::size_t>(size));
  }
  return json + "}";
}

}  // namespace leeway::bench
