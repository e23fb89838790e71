// DifferencesOf compares two descriptions of a table: which fields differ, and whether these shape
// its data.
#ifndef LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_
#define LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/table_spec.h"

namespace leeway::proto {

// A field that differs, as messages show it.
struct FieldDifference {
  std::string field;   // "updater.learning_rate"
  std::string is;      // "0.1"; "the default" for a hyper-parameter that is not given
  std::string wanted;  // likewise
  bool shapes_data = true;
};

// In the order of TableSpec's fields. Empty: the descriptions are equal.
std::vector<FieldDifference> DifferencesOf(const TableSpec& is, const TableSpec& wanted);

// "updater.learning_rate is 0.1, wanted 0.2; consistency is bsp, wanted ssp:3".
std::string DescribeDifferences(const std::vector<FieldDifference>& differences);

// OK if they agree in all that shapes the data (they may differ in the updater's hyper-parameters,
// consistency and nonfinite). Otherwise ALREADY_EXISTS, which shows the differences.
absl::Status CheckShapedAlike(const TableSpec& is, const TableSpec& wanted);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TABLES_TABLE_DIFFERENCE_H_
