#include "ps/shard/delay_compensation.h"

#include <cmath>
#include <utility>

namespace leeway::ps {
namespace {

constexpr double kEpsilon = 1e-7;

// `squares`: v, which this gradient changes; empty where λ is constant.
template <class T>
runtime::Buffer CompensateAs(const Consistency& consistency, const runtime::Buffer& gradient,
                             const runtime::Buffer& now, const runtime::Buffer& before,
                             std::vector<double>* squares) {
  const auto g = gradient.as<T>(), w = now.as<T>(), w_bak = before.as<T>();
  std::byte* data = nullptr;
  runtime::Buffer compensated = runtime::Buffer::Allocate(gradient.size(), &data);
  T* const to = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double square = static_cast<double>(g[i]) * static_cast<double>(g[i]);
    double lambda = consistency.compensation;
    if (!squares->empty()) {
      double& v = (*squares)[i];
      v = consistency.compensation_decay * v + (1 - consistency.compensation_decay) * square;
      lambda /= std::sqrt(v + kEpsilon);
    }
    const double moved = static_cast<double>(w[i]) - static_cast<double>(w_bak[i]);
    to[i] = moved == 0 ? g[i] : static_cast<T>(static_cast<double>(g[i]) + lambda * square * moved);
  }
  return compensated;
}

}  // namespace

void DelayCompensation::NotePulled(std::uint32_t worker, std::uint32_t table, std::uint64_t block,
                                   runtime::Buffer values) {
  Keep({worker, table, block}, {.values = std::move(values)});
}

std::optional<DelayCompensation::Compensated> DelayCompensation::Compensate(
    std::uint32_t worker, std::uint32_t table, std::uint64_t block, const Consistency& consistency,
    DType dtype, const runtime::Buffer& gradient, const runtime::Buffer& now) {
  const std::uint64_t elements = gradient.size() / SizeOf(dtype);
  Compensated compensated;
  if (consistency.compensation_decay > 0) {
    const Key key{kSquares, table, block};
    const auto found = kept_.find(key);
    Kept* squares = found == kept_.end() ? nullptr : &found->second;
    if (squares != nullptr && squares->squares.size() == elements) {
      Touch(key, squares);
    } else {
      squares = Keep(key, {.squares = std::vector<double>(elements)});
    }
    if (squares == nullptr) return std::nullopt;
    compensated.squares = squares->squares;
  }
  // After room was made for v.
  const auto found = kept_.find({worker, table, block});
  if (found == kept_.end() || found->second.values.size() != gradient.size() ||
      now.size() != gradient.size()) {
    return std::nullopt;
  }
  const runtime::Buffer& before = found->second.values;
  compensated.gradient =
      dtype == DType::kFloat64
          ? CompensateAs<double>(consistency, gradient, now, before, &compensated.squares)
          : CompensateAs<float>(consistency, gradient, now, before, &compensated.squares);
  return compensated;
}

void DelayCompensation::NoteApplied(std::uint32_t table, std::uint64_t block,
                                    Compensated compensated) {
  const auto found = kept_.find({kSquares, table, block});
  if (found == kept_.end() || found->second.squares.size() != compensated.squares.size()) return;
  found->second.squares = std::move(compensated.squares);
}

// Null: there is no room.
DelayCompensation::Kept* DelayCompensation::Keep(const Key& key, Kept kept) {
  if (const auto before = kept_.find(key); before != kept_.end()) Drop(before);
  MakeRoom(kept.bytes());
  if (!budget_->HasRoom(kept.bytes())) return nullptr;
  budget_->bytes += kept.bytes();
  Kept& now = kept_[key] = std::move(kept);
  Touch(key, &now);
  return &now;
}

// It is the newest now.
void DelayCompensation::Touch(const Key& key, Kept* kept) {
  kept->number = ++numbers_;
  order_.emplace_back(numbers_, key);
  // Entries that were replaced since are of no use.
  if (order_.size() > 2 * kept_.size() + 16) {
    std::erase_if(order_, [this](const auto& entry) {
      const auto found = kept_.find(entry.second);
      return found == kept_.end() || found->second.number != entry.first;
    });
  }
}

void DelayCompensation::MakeRoom(std::uint64_t bytes) {
  while (!order_.empty() && !budget_->HasRoom(bytes)) {
    const auto [number, key] = order_.front();
    order_.pop_front();
    const auto found = kept_.find(key);
    if (found != kept_.end() && found->second.number == number) Drop(found);
  }
}

void DelayCompensation::Drop(std::map<Key, Kept>::iterator kept) {
  budget_->bytes -= kept->second.bytes();
  kept_.erase(kept);
}

void DelayCompensation::DropWorker(std::uint32_t worker) {
  for (auto it = kept_.lower_bound({worker, 0, 0});
       it != kept_.end() && std::get<0>(it->first) == worker;) {
    Drop(it++);
  }
}

void DelayCompensation::Clear() {
  while (!kept_.empty()) Drop(kept_.begin());
  order_.clear();
}

}  // namespace leeway::ps
