// The fields of a table's description from texts, as command lines, files and other languages give
// them. Errors show the text and the forms that there are; numbers in texts are finite.
#ifndef LEEWAY_PROTO_TABLES_TABLE_FIELDS_H_
#define LEEWAY_PROTO_TABLES_TABLE_FIELDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/table_spec.h"

namespace leeway::proto {

// "adam", "sgd:learning_rate=0.1", "momentum:learning_rate=0.1,momentum=0.9".
absl::StatusOr<UpdaterSpec> ParseUpdater(absl::string_view text);

// "zeros", "constant:0.5", "uniform:-0.1,0.1,seed=1", "normal:0,0.01,seed=7", "pushed"; without
// seed: 0.
absl::StatusOr<Initializer> ParseInitializer(absl::string_view text);

// Sets updater, initializer, consistency, aggregate, nonfinite, codec, codecs (separated by blanks)
// or error_feedback. INVALID_ARGUMENT: there is no such field, or the text is none of its forms.
absl::Status SetField(TableSpec* spec, absl::string_view field, absl::string_view text);

// Adds to `change`: consistency or nonfinite with a text as above, or a hyper-parameter of the
// updater with a number ("": its default again).
absl::Status AddChange(TableChange* change, absl::string_view name, absl::string_view text);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TABLES_TABLE_FIELDS_H_
