#include "benchmarks/lab/experiment/experiment.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kRunsMax = 100'000;

// A plan, and where the file says each field of it that it says.
struct Written {
  RunPlan plan;
  std::map<const PlanField*, const toml::node*> places;
};

class Parser {
 public:
  explicit Parser(std::string file) : file_(std::move(file)) {}

  absl::StatusOr<Experiment> Parse(const std::string& text, const Overrides& overrides) {
    toml::table root;
    try {
      root = toml::parse(text, file_);
    } catch (const toml::parse_error& error) {
      return absl::InvalidArgumentError(absl::StrCat(file_, ":", error.source().begin.line, ": ",
                                                     std::string(error.description())));
    }
    Experiment experiment;
    experiment.name = std::filesystem::path(file_).stem().string();
    experiment.title = experiment.name;
    LEEWAY_RETURN_IF_ERROR(ReadHead(&root, &experiment));
    const toml::node* const variants = root.get("variant");
    const toml::node* const paper = root.get("paper");
    std::vector<Written> plans = {Written{}};
    LEEWAY_RETURN_IF_ERROR(Multiply(root, overrides, &plans));
    if (variants != nullptr) {
      const std::vector<Written> base = std::exchange(plans, {});
      LEEWAY_RETURN_IF_ERROR(AddVariants(*variants, overrides, base, &plans));
    }
    std::set<std::string> known;
    for (auto& [plan, places] : plans) {
      if (!overrides.engine.empty()) plan.engine = overrides.engine;
      if (overrides.epochs > 0) plan.epochs = overrides.epochs;
      if (const absl::Status valid = Validate(plan); !valid.ok())
        return WrongPlan(plan, places, valid);
      // The same run twice would be no second result.
      if (known.insert(ToJson(plan).dump()).second) experiment.runs.push_back(plan);
    }
    SeedsFastest(&experiment.runs);
    if (paper != nullptr) LEEWAY_RETURN_IF_ERROR(ReadPaper(*paper, &experiment));
    return experiment;
  }

 private:
  absl::Status Wrong(const toml::node* where, absl::string_view key, absl::string_view why) const {
    const std::string line = where == nullptr ? "" : absl::StrCat(":", where->source().begin.line);
    return absl::InvalidArgumentError(absl::StrCat(file_, line, ": ", key, ": ", why));
  }

  // Names the field without which the plan would be valid, the last such one.
  absl::Status WrongPlan(const RunPlan& plan,
                         const std::map<const PlanField*, const toml::node*>& places,
                         const absl::Status& why) const {
    for (auto field = PlanFields().rbegin(); field != PlanFields().rend(); ++field) {
      const auto place = places.find(&*field);
      if (place == places.end()) continue;
      RunPlan usual = plan;
      std::visit([&](auto member) { usual.*member = RunPlan().*member; }, field->member);
      if (Validate(usual).ok()) return Wrong(place->second, field->name, why.message());
    }
    return Wrong(nullptr, plan.policy, why.message());
  }

  absl::Status ReadHead(toml::table* root, Experiment* experiment) const {
    for (auto& [key, text] : std::initializer_list<std::pair<const char*, std::string*>>{
             {"title", &experiment->title}, {"about", &experiment->about}}) {
      const toml::node* const node = root->get(key);
      if (node == nullptr) continue;
      const auto value = node->value_exact<std::string>();
      if (!value.has_value()) return Wrong(node, key, "is no text");
      *text = *value;
      root->erase(key);
    }
    if (const toml::node* const node = root->get("target")) {
      const auto value = node->value<double>();
      if (!value.has_value()) return Wrong(node, "target", "is no number");
      experiment->target = *value;
      root->erase("target");
    }
    return absl::OkStatus();
  }

  absl::Status ReadPaper(const toml::node& paper, Experiment* experiment) const {
    const toml::array* const list = paper.as_array();
    if (list == nullptr) return Wrong(&paper, "paper", "is no table: write [[paper]]");
    const std::vector<const PlanField*> varying = VaryingFields(experiment->runs);
    std::set<std::string> labels, of_slopes;
    for (const RunPlan& plan : experiment->runs) {
      labels.insert(LabelOf(plan, varying));
      of_slopes.insert(LabelWithoutPolicy(plan, varying));
    }
    for (const toml::node& one : *list) {
      const toml::table* const table = one.as_table();
      if (table == nullptr) return Wrong(&one, "paper", "is no table: write [[paper]]");
      const auto setting = (*table)["setting"].value_exact<std::string>();
      const auto says = (*table)["says"].value_exact<std::string>();
      if (!setting.has_value() || !says.has_value() || table->size() != 2) {
        return Wrong(&one, "paper", "has a `setting` and what it `says`, texts, and nothing else");
      }
      if (!labels.contains(*setting) && !of_slopes.contains(*setting)) {
        return Wrong(&one, "paper",
                     absl::StrCat("there is no setting '", *setting, "': there are ",
                                  absl::StrJoin(labels, "; ")));
      }
      experiment->paper[*setting] = *says;
    }
    return absl::OkStatus();
  }

  absl::Status AddVariants(const toml::node& variants, const Overrides& overrides,
                           const std::vector<Written>& base, std::vector<Written>* all) const {
    const toml::array* const list = variants.as_array();
    if (list == nullptr) return Wrong(&variants, "variant", "is no table: write [[variant]]");
    for (const toml::node& one : *list) {
      const toml::table* const table = one.as_table();
      if (table == nullptr) return Wrong(&one, "variant", "is no table: write [[variant]]");
      std::vector<Written> plans = base;
      LEEWAY_RETURN_IF_ERROR(Multiply(*table, overrides, &plans));
      all->insert(all->end(), plans.begin(), plans.end());
    }
    return absl::OkStatus();
  }

  // Each plan once for each value of each field that the table names.
  absl::Status Multiply(const toml::table& table, const Overrides& overrides,
                        std::vector<Written>* plans) const {
    for (const auto& [key, node] : table) {
      if (key == "variant" || key == "paper") continue;
      const std::string name(key.str());
      const auto field = std::ranges::find_if(
          PlanFields(), [&](const PlanField& one) { return name == one.name; });
      if (field == PlanFields().end()) return Wrong(&node, name, Unknown());
      std::vector<const toml::node*> values = {&node};
      if (const toml::array* const list = node.as_array()) {
        values.clear();
        for (const toml::node& value : *list) values.push_back(&value);
        if (values.empty()) return Wrong(&node, name, "is an empty list");
        if (name == "seed" && overrides.seeds > 0 && overrides.seeds < values.size()) {
          values.resize(overrides.seeds);
        }
      }
      if (values.size() * plans->size() > kRunsMax) {
        return Wrong(&node, name, absl::StrCat("makes more than ", kRunsMax, " runs"));
      }
      std::vector<Written> more;
      for (const Written& written : *plans) {
        for (const toml::node* const value : values) {
          more.push_back(written);
          more.back().places[&*field] = value;
          LEEWAY_RETURN_IF_ERROR(Set(*field, *value, &more.back().plan));
        }
      }
      *plans = std::move(more);
    }
    return absl::OkStatus();
  }

  static std::string Unknown() {
    std::vector<std::string> names = {"title", "about", "target", "variant", "paper"};
    for (const PlanField& field : PlanFields()) names.push_back(field.name);
    return absl::StrCat("there is no such key: there are ", absl::StrJoin(names, ", "));
  }

  absl::Status Set(const PlanField& field, const toml::node& node, RunPlan* plan) const {
    return std::visit(
        [&](auto member) -> absl::Status {
          using T = std::remove_cvref_t<decltype(plan->*member)>;
          if constexpr (std::is_same_v<T, std::string>) {
            const auto value = node.value_exact<std::string>();
            if (!value.has_value()) return Wrong(&node, field.name, "is no text");
            plan->*member = *value;
          } else if constexpr (std::is_same_v<T, bool>) {
            const auto value = node.value_exact<bool>();
            if (!value.has_value()) return Wrong(&node, field.name, "is neither true nor false");
            plan->*member = *value;
          } else {
            const auto value = node.is_number() ? node.value<double>() : std::nullopt;
            const bool whole = !std::is_integral_v<T> || (value && *value == std::floor(*value));
            if (!value.has_value() || !whole || !(*value >= field.min && *value <= field.max)) {
              return Wrong(&node, field.name,
                           absl::StrCat("must be a ", std::is_integral_v<T> ? "whole " : "",
                                        "number from ", field.min, " to ", field.max));
            }
            plan->*member = static_cast<T>(*value);
          }
          return absl::OkStatus();
        },
        field.member);
  }

  // So that after each group of runs something can be compared. Groups stay in their order.
  static void SeedsFastest(std::vector<RunPlan>* runs) {
    std::map<std::string, std::size_t> groups;
    std::vector<std::pair<std::size_t, const RunPlan*>> order;
    for (const RunPlan& plan : *runs) {
      RunPlan group = plan;
      group.seed = 0;
      order.emplace_back(groups.try_emplace(ToJson(group).dump(), groups.size()).first->second,
                         &plan);
    }
    std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
    std::vector<RunPlan> sorted;
    for (const auto& one : order) sorted.push_back(*one.second);
    *runs = std::move(sorted);
  }

  const std::string file_;
};

}  // namespace

absl::StatusOr<Experiment> ParseExperiment(const std::string& file, const std::string& text,
                                           const Overrides& overrides) {
  return Parser(file).Parse(text, overrides);
}

namespace {

bool IsLearningRate(const PlanField* field) {
  const auto* const number = std::get_if<double RunPlan::*>(&field->member);
  return number != nullptr && *number == &RunPlan::learning_rate;
}

bool IsPolicy(const PlanField* field) {
  const auto* const text = std::get_if<std::string RunPlan::*>(&field->member);
  return text != nullptr && *text == &RunPlan::policy;
}

// Whether the runs that are equal in those fields have one learning rate.
bool TellsLearningRate(const std::vector<RunPlan>& runs,
                       const std::vector<const PlanField*>& fields) {
  std::map<std::string, double> rates;
  return std::ranges::all_of(runs, [&](const RunPlan& plan) {
    return rates.emplace(LabelOf(plan, fields), plan.learning_rate).first->second ==
           plan.learning_rate;
  });
}

}  // namespace

std::vector<const PlanField*> VaryingFields(const std::vector<RunPlan>& runs) {
  std::vector<const PlanField*> varying;
  for (const PlanField& field : PlanFields()) {
    std::set<std::string> values;
    for (const RunPlan& plan : runs) values.insert(ValueText(plan, field));
    if (values.size() > 1 && std::string(field.name) != "seed") varying.push_back(&field);
  }
  std::vector<const PlanField*> others = varying;
  std::erase_if(others, IsLearningRate);
  return others.empty() || !TellsLearningRate(runs, others) ? varying : others;
}

std::string LabelOf(const RunPlan& plan, const std::vector<const PlanField*>& varying) {
  std::vector<std::string> words;
  for (const PlanField* field : varying) {
    const std::string value = ValueText(plan, *field);
    if (value == "even") continue;  // as usual, of batches or links
    const bool names_itself = std::holds_alternative<std::string RunPlan::*>(field->member);
    words.push_back(names_itself ? value : absl::StrCat(field->name, " ", value));
  }
  return words.empty() ? plan.policy : absl::StrJoin(words, ", ");
}

std::string LabelWithoutPolicy(const RunPlan& plan, std::vector<const PlanField*> varying) {
  std::erase_if(varying, IsPolicy);
  return varying.empty() ? "all policies" : LabelOf(plan, varying);
}

}  // namespace leeway::lab
