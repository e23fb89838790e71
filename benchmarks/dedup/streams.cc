#include "dedup/streams.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/sharding.h"
#include "examples/wordnet/complex_model.h"
#include "examples/wordnet/graph.h"
#include "examples/wordnet/sampler.h"
#include "examples/wordnet/synsets.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr std::uint64_t kSeed = 1;

void Append(std::span<const float> values, std::vector<std::byte>* payload) {
  const auto bytes = std::as_bytes(values);
  payload->insert(payload->end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> PayloadOf(const std::vector<fashion_mnist::Tensor>& tensors) {
  std::vector<std::byte> payload;
  for (const fashion_mnist::Tensor& tensor : tensors) Append(tensor, &payload);
  return payload;
}

// Uniform initial values as torch.nn.Linear has them; their distribution does not matter here.
void Initialize(const std::vector<fashion_mnist::Parameter>& parameters,
                std::vector<fashion_mnist::Tensor>* values) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    (*values)[p].resize(parameters[p].size());
    const auto inputs = static_cast<double>(parameters[p].shape.front());
    for (std::size_t i = 0; i < (*values)[p].size(); ++i) {
      (*values)[p][i] = static_cast<float>(runtime::NormalAt(kSeed, p, i) / std::sqrt(inputs));
    }
  }
}

// Rows of an adagrad table, made at their first use.
class Rows {
 public:
  Rows(std::size_t width, std::uint64_t stream) : width_(width), stream_(stream) {}

  void Pull(std::span<const std::uint64_t> keys, std::vector<float>* rows) {
    rows->clear();
    for (const std::uint64_t key : keys) {
      const std::vector<float>& row = Of(key).values;
      rows->insert(rows->end(), row.begin(), row.end());
    }
  }
  void Add(std::span<const std::uint64_t> keys, std::span<const float> gradients) {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      std::vector<float>& sum = sums_[keys[k]];
      sum.resize(width_);
      for (std::size_t j = 0; j < width_; ++j) sum[j] += gradients[k * width_ + j];
    }
  }
  // Applies the gradients that were added since the last call.
  void Step(float rate) {
    for (const auto& [key, sum] : sums_) {
      Row& row = Of(key);
      for (std::size_t j = 0; j < width_; ++j) {
        row.squares[j] += sum[j] * sum[j];
        row.values[j] -= rate * sum[j] / (std::sqrt(row.squares[j]) + 1e-10f);
      }
    }
    sums_.clear();
  }

 private:
  struct Row {
    std::vector<float> values, squares;
  };
  Row& Of(std::uint64_t key) {
    Row& row = rows_[key];
    if (!row.values.empty()) return row;
    row.squares.assign(width_, 0.0f);
    for (std::size_t j = 0; j < width_; ++j) {
      row.values.push_back(static_cast<float>(0.1 * runtime::NormalAt(stream_, key, j)));
    }
    return row;
  }

  const std::size_t width_;
  const std::uint64_t stream_;
  std::unordered_map<std::uint64_t, Row> rows_;
  std::unordered_map<std::uint64_t, std::vector<float>> sums_;
};

absl::StatusOr<wordnet::Graph> LoadGraph() {
  LEEWAY_ASSIGN_OR_RETURN(
      const wordnet::Synsets synsets,
      wordnet::LoadSynsets(wordnet::kDefaultFolder, {"noun", "verb", "adj", "adv"}));
  return wordnet::MakeGraph(synsets, {});
}

}  // namespace

absl::StatusOr<std::vector<Stream>> FashionMnistStreams(std::size_t steps, std::size_t skipped) {
  constexpr float kRate = 0.1f;
  LEEWAY_ASSIGN_OR_RETURN(const fashion_mnist::Dataset data,
                          fashion_mnist::LoadDataset(fashion_mnist::kDefaultFolder));
  LEEWAY_ASSIGN_OR_RETURN(const auto model, fashion_mnist::MakeModel("mlp", kSeed));
  fashion_mnist::Sharding sharding(data.train.size(), 16, kWorkers, kSeed);
  std::vector<fashion_mnist::Tensor> values(model->parameters().size());
  Initialize(model->parameters(), &values);
  std::vector<Stream> streams = {{.name = "fashion_mnist push", .payloads = {}},
                                 {.name = "fashion_mnist pull", .payloads = {}}};
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<fashion_mnist::Tensor> next = values;
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      fashion_mnist::Batch batch;
      fashion_mnist::FillBatch(data.train, sharding.Take(step, rank), &batch);
      std::vector<fashion_mnist::Tensor> gradients;
      for (const fashion_mnist::Tensor& tensor : values) gradients.emplace_back(tensor.size());
      model->Gradients(batch, values, static_cast<double>(batch.size()), &gradients);
      if (rank == 0 && step >= skipped) {
        streams[0].payloads.push_back(PayloadOf(gradients));
        streams[1].payloads.push_back(PayloadOf(values));
      }
      for (std::size_t p = 0; p < next.size(); ++p) {
        for (std::size_t i = 0; i < next[p].size(); ++i) {
          next[p][i] -= kRate / kWorkers * gradients[p][i];
        }
      }
    }
    values = std::move(next);
  }
  return streams;
}

absl::StatusOr<std::vector<Stream>> WordNetStreams(std::size_t steps, std::size_t skipped) {
  constexpr std::size_t kWidth = 64;
  LEEWAY_ASSIGN_OR_RETURN(const wordnet::Graph graph, LoadGraph());
  wordnet::Sampler sampler(&graph, 128, 64, kWorkers, kSeed);
  wordnet::ComplexModel model(kWidth, 0.6);
  Rows entities(kWidth, 1), relations(kWidth, 2);
  std::vector<Stream> streams = {{.name = "wordnet push", .payloads = {}},
                                 {.name = "wordnet pull", .payloads = {}}};
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      wordnet::Batch batch;
      sampler.Fill(step, rank, &batch);
      entities.Pull(batch.entities, &batch.entity_rows);
      relations.Pull(batch.relations, &batch.relation_rows);
      model.Gradients(&batch);
      entities.Add(batch.entities, batch.entity_gradients);
      relations.Add(batch.relations, batch.relation_gradients);
      if (rank != 0 || step < skipped) continue;
      Append(batch.entity_gradients, &streams[0].payloads.emplace_back());
      Append(batch.entity_rows, &streams[1].payloads.emplace_back());
    }
    entities.Step(0.2f);
    relations.Step(0.2f);
  }
  return streams;
}

absl::StatusOr<Stream> CheckpointStream(const std::vector<std::string>& folders) {
  Stream stream = {.name = "checkpoints", .payloads = {}};
  for (const std::string& folder : folders) {
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    if (error || paths.empty()) {
      return absl::NotFoundError(absl::StrCat("no files in ", folder));
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::byte>& payload = stream.payloads.emplace_back();
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      const auto view = std::as_bytes(std::span(bytes));
      payload.insert(payload.end(), view.begin(), view.end());
      payload.resize((payload.size() + 3) / 4 * 4);
    }
  }
  return stream;
}

}  // namespace leeway::bench
