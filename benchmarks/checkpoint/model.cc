#include "checkpoint/model.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace leeway::bench {
namespace {

std::uint64_t Mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185;
  return (x ^ (x >> 27)) * 0x81dadef4bc2dd44d;
}

float Value(std::uint64_t x) { return static_cast<float>(Mixed(x) >> 40) / (1 << 23) - 1.0f; }

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

}  // namespace

void Die(const absl::Status& why) {
  std::fprintf(stderr, "checkpoint_benchmark: %s\n", std::string(why.message()).c_str());
  std::exit(1);
}

Model::Model(Worker* worker, ModelSize size) : worker_(worker), size_(size) {
  for (std::uint64_t i = 0; i < size.dense_tables(); ++i) {
    dense_.push_back(Open(TableSpec::Dense(absl::StrCat("dense", i), {kTableElements})));
  }
  sparse_ = Open(TableSpec::Sparse("sparse", kWidth));
  ends_ = Open(TableSpec::Sparse("ends", 1));
  gradient_.resize(std::max(kTableElements, kKeysAtOnce * kWidth));
  for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = Value(i);
}

Table Model::Open(TableSpec spec) {
  if (spec.name != "ends") spec.updater.name = "adam";
  auto table = worker_->CreateTable(spec);
  if (!table.ok()) Die(table.status());
  return *table;
}

// Fills in this worker's pushes of a clock.
void Model::FillIn(std::uint64_t clock) {
  const std::uint64_t rank = worker_->rank();
  const bool all = clock < size_.round() || clock >= last_round_;
  // The same places each time, so that it depends on the clock alone.
  for (std::size_t i = 0; i < gradient_.size(); i += 97) {
    gradient_[i] = Value(clock * 3 + rank * 5 + i);
  }
  keys_.clear();
  for (std::uint64_t i = 0; i < (all ? kKeysAtOnce : kKeysAStep); ++i) {
    const std::uint64_t row =
        all ? clock * kKeysAtOnce + i : Mixed(clock * 7919 + rank * 104729 + i);
    keys_.push_back(row % size_.rows());
  }
}

absl::Duration Model::Step() {
  FillIn(worker_->clock());
  const absl::Time start = absl::Now();
  const Table& table = dense_[worker_->clock() % dense_.size()];
  std::vector<Ticket> tickets = {
      table.Push(std::span<const float>(gradient_.data(), kTableElements)),
      sparse_.Push(std::span<const std::uint64_t>(keys_),
                   std::span<const float>(gradient_.data(), keys_.size() * kWidth))};
  const std::uint64_t row = 0;
  const std::span<const std::uint64_t> the_row(&row, 1);
  const float one = 1;
  if (std::exchange(end_asked_, false)) {
    tickets.push_back(ends_.Push(the_row, std::span<const float>(&one, 1)));
  }
  Check(worker_->Wait(tickets));
  Check(worker_->Clock());
  float some[kWidth], end = 0;
  const std::vector<Ticket> pulls = {
      sparse_.Pull(std::span<const std::uint64_t>(keys_.data(), 1), std::span<float>(some)),
      ends_.Pull(the_row, std::span<float>(&end, 1))};
  Check(worker_->Wait(pulls));
  end_seen_ = end != 0;
  return absl::Now() - start;
}

std::uint64_t Model::Sum() {
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t place, std::span<const float> values) {
    for (const float value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      sum += Mixed(++place * 31 + bits);
    }
  };
  for (std::size_t i = 0; i < dense_.size(); ++i) {
    Check(worker_->Wait(dense_[i].Pull(std::span<float>(gradient_.data(), kTableElements))));
    add(i << 32, std::span<const float>(gradient_.data(), kTableElements));
  }
  for (std::uint64_t first = 0; first < size_.rows(); first += kKeysAtOnce) {
    keys_.clear();
    const std::uint64_t end = std::min(first + kKeysAtOnce, size_.rows());
    for (std::uint64_t key = first; key < end; ++key) keys_.push_back(key);
    const std::span<float> values(gradient_.data(), keys_.size() * kWidth);
    Check(worker_->Wait(sparse_.Pull(std::span<const std::uint64_t>(keys_), values)));
    add(first << 20 | 1, values);
  }
  return sum;
}

}  // namespace leeway::bench
