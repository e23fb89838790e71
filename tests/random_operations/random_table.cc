#include "tests/random_operations/random_table.h"

#include "runtime/base/status_macros.h"

namespace leeway::tests {

UpdaterSpec SpecOf(const std::string& updater) {
  UpdaterSpec spec{.name = updater, .parameters = {}};
  if (updater == "assign" || updater == "add") return spec;
  auto& p = spec.parameters;
  p["learning_rate"] = kRate;
  if (updater == "momentum" || updater == "nesterov") p["momentum"] = kMomentum;
  if (updater == "adagrad" || updater == "rmsprop") p["epsilon"] = kEpsilon;
  if (updater == "rmsprop") p["alpha"] = kAlpha;
  if (updater == "adam" || updater == "adamw") {
    p["beta1"] = kBeta1;
    p["beta2"] = kBeta2;
    p["epsilon"] = kEpsilon;
  }
  if (updater == "adamw") p["weight_decay"] = kDecay;
  if (updater == "ftrl") {
    p["l1"] = kL1;
    p["l2"] = kL2;
    p["beta"] = kFtrlBeta;
  }
  return spec;
}

namespace {

// Odd sizes, below and above one block of the test's cluster.
constexpr std::uint64_t kDenseSizes[] = {1, 31, 257, 1500};

template <class T>
absl::Status Add(Worker* worker, const std::string& prefix, const std::string& updater,
                 std::vector<std::unique_ptr<RandomTable>>* tables) {
  const std::string name = absl::StrCat(prefix, "/", updater, "/", Name(DTypeOf<T>));
  TableSpec dense = TableSpec::Dense(absl::StrCat(name, "/dense"),
                                     {kDenseSizes[tables->size() / 2 % 4]}, DTypeOf<T>);
  TableSpec sparse =
      TableSpec::Sparse(absl::StrCat(name, "/sparse"), TypedRandomTable<T>::kRowWidth, DTypeOf<T>);
  for (TableSpec* spec : {&dense, &sparse}) {
    spec->updater = SpecOf(updater);
    spec->consistency = Consistency::Asp();
    LEEWAY_ASSIGN_OR_RETURN(Table table, worker->CreateTable(*spec));
    tables->push_back(std::make_unique<TypedRandomTable<T>>(std::move(table)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<RandomTable>>> CreateRandomTables(
    Worker* worker, const std::string& prefix) {
  std::vector<std::unique_ptr<RandomTable>> tables;
  for (const char* updater : {"assign", "add"}) {
    LEEWAY_RETURN_IF_ERROR(Add<float>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<double>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<Float16>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<BFloat16>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<std::int32_t>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<std::int64_t>(worker, prefix, updater, &tables));
  }
  for (const char* updater :
       {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "ftrl"}) {
    LEEWAY_RETURN_IF_ERROR(Add<float>(worker, prefix, updater, &tables));
    LEEWAY_RETURN_IF_ERROR(Add<double>(worker, prefix, updater, &tables));
  }
  return tables;
}

}  // namespace leeway::tests
