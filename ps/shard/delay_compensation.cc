#include "ps/shard/delay_compensation.h"

#include <cmath>
#include <utility>

namespace leeway::ps {
namespace {

constexpr double kEpsilon = 1e-7;

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
    if (squares != nullptr) {
      double& v = (*squares)[i];
      v = consistency.compensation_decay * v + (1 - consistency.compensation_decay) * square;
      lambda /= std::sqrt(v + kEpsilon);
    }
    to[i] = static_cast<T>(static_cast<double>(g[i]) +
                           lambda * square * static_cast<double>(w[i] - w_bak[i]));
  }
  return compensated;
}

}  // namespace

void DelayCompensation::NotePulled(std::uint32_t worker, std::uint32_t table, std::uint64_t block,
                                   runtime::Buffer values) {
  const Key key{worker, table, block};
  if (const auto before = pulled_.find(key); before != pulled_.end()) Drop(before);
  MakeRoom(values.size());
  budget_->bytes += values.size();
  order_.emplace_back(++numbers_, key);
  pulled_[key] = {.values = std::move(values), .number = numbers_};
}

std::optional<runtime::Buffer> DelayCompensation::Compensate(
    std::uint32_t worker, std::uint32_t table, std::uint64_t block, const Consistency& consistency,
    DType dtype, const runtime::Buffer& gradient, const runtime::Buffer& now) {
  std::vector<double>* squares = nullptr;
  if (consistency.compensation_decay > 0) {
    squares = &squares_[{table, block}];
    squares->resize(gradient.size() / SizeOf(dtype));
  }
  const auto found = pulled_.find({worker, table, block});
  if (found == pulled_.end() || found->second.values.size() != gradient.size() ||
      now.size() != gradient.size()) {
    return std::nullopt;
  }
  return dtype == DType::kFloat64
             ? CompensateAs<double>(consistency, gradient, now, found->second.values, squares)
             : CompensateAs<float>(consistency, gradient, now, found->second.values, squares);
}

void DelayCompensation::MakeRoom(std::uint64_t bytes) {
  while (!order_.empty() && !budget_->HasRoom(bytes)) {
    const auto [number, key] = order_.front();
    order_.pop_front();
    const auto found = pulled_.find(key);
    if (found != pulled_.end() && found->second.number == number) Drop(found);
  }
  // Entries that were replaced since are of no use.
  if (order_.size() > 2 * pulled_.size() + 16) {
    std::erase_if(order_, [this](const auto& entry) {
      const auto found = pulled_.find(entry.second);
      return found == pulled_.end() || found->second.number != entry.first;
    });
  }
}

void DelayCompensation::Drop(std::map<Key, Pulled>::iterator pulled) {
  budget_->bytes -= pulled->second.values.size();
  pulled_.erase(pulled);
}

void DelayCompensation::DropWorker(std::uint32_t worker) {
  for (auto it = pulled_.lower_bound({worker, 0, 0});
       it != pulled_.end() && std::get<0>(it->first) == worker;) {
    Drop(it++);
  }
}

void DelayCompensation::Clear() {
  while (!pulled_.empty()) Drop(pulled_.begin());
  order_.clear();
  squares_.clear();
}

}  // namespace leeway::ps
