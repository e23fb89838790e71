#include "tests/storm/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/base/monotonic_time.h"
#include "runtime/base/status_macros.h"

namespace leeway::storm {

absl::StatusOr<std::shared_ptr<HistoryWriter>> HistoryWriter::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return std::shared_ptr<HistoryWriter>(new HistoryWriter(fd));
}

HistoryWriter::~HistoryWriter() { close(fd_); }

template <class Record>
void HistoryWriter::Append(Record record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  record.at = runtime::MonotonicNow();
  Write(ToHistoryLine(record));
}

void HistoryWriter::Made(PushMade push) { Append(push); }
void HistoryWriter::Asked(ReadAsked read) { Append(read); }
void HistoryWriter::Told(PushTold push) { Append(push); }
void HistoryWriter::Failed(ReadFailed read) { Append(read); }

void HistoryWriter::SetClock(std::uint64_t clock) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clock_ = clock;
}

void HistoryWriter::Seen(std::uint64_t id, const simulation::SimTable& table,
                         std::span<const std::uint32_t> places,
                         std::span<const std::int64_t> counts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ReadSeen read;
  read.id = id;
  read.reader_clock = clock_;
  read.at = runtime::MonotonicNow();
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::vector<std::int64_t>& told = told_[{table.index, places[i]}];
    told.resize(table.width);
    for (std::size_t element = 0; element < table.width; ++element) {
      const std::int64_t now = counts[i * table.stride + element];
      if (now != told[element]) read.changes.push_back({places[i], element, now});
      told[element] = now;
    }
  }
  Write(ToHistoryLine(read));
}

void HistoryWriter::Write(std::string line) {
  line += '\n';
  std::size_t written = 0;
  while (status_.ok() && written < line.size()) {
    const ssize_t part = write(fd_, line.data() + written, line.size() - written);
    if (part > 0) {
      written += static_cast<std::size_t>(part);
    } else if (errno != EINTR) {
      status_ = absl::DataLossError(
          absl::StrCat("the history cannot be written: ", std::strerror(errno)));
    }
  }
}

absl::Status HistoryWriter::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::StatusOr<std::optional<HistoryRecord>> HistoryReader::Next() {
  std::string line;
  ++number_;
  if (!std::getline(*lines_, line) || lines_->eof()) return std::nullopt;
  std::optional<HistoryRecord> record = ParseHistoryLine(line);
  if (record.has_value()) return record;
  return absl::DataLossError(absl::StrCat("line ", number_, " of a history is \"", line, "\""));
}

absl::StatusOr<std::uint64_t> PushesNumbered(const std::string& path, std::uint64_t before) {
  HistoryReader reader(std::make_unique<std::ifstream>(path));
  while (true) {
    LEEWAY_ASSIGN_OR_RETURN(const std::optional<HistoryRecord> record, reader.Next());
    if (!record.has_value()) return before;
    if (const auto* push = std::get_if<PushMade>(&*record)) {
      before = std::max(before, push->number + 1);
    }
  }
}

}  // namespace leeway::storm
