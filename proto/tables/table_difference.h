// Where two descriptions of a table differ, and whether that shapes its data.
#ifndef LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_
#define LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/table_spec.h"

namespace leeway::proto {

// A field in which they differ, as messages show it.
struct FieldDifference {
  std::string field;   // "updater.learning_rate"
  std::string is;      // "0.1"; "the default" for a hyper-parameter that is not given
  std::string wanted;  // likewise
  bool shapes_data = true;
};

// In the order of TableSpec's fields. Empty: they are equal.
std::vector<FieldDifference> DifferencesOf(const TableSpec& is, const TableSpec& wanted);

// "updater.learning_rate is 0.1, wanted 0.2; consistency is bsp, wanted ssp:3".
std::string DescribeDifferences(const std::vector<FieldDifference>& differences);

// OK where they differ in nothing that shapes the data (at most in the updater's hyper-parameters,
// consistency and nonfinite). Otherwise ALREADY_EXISTS: it shows where they differ.
absl::Status CheckShapedAlike(const TableSpec& is, const TableSpec& wanted);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_
