// CheckMeaning checks what depends on several fields of a message, or entries of a list; each field
// by itself has been checked. OK, or an error that names the field.
#ifndef LEEWAY_PROTO_ENCODING_CHECK_MEANING_H_
#define LEEWAY_PROTO_ENCODING_CHECK_MEANING_H_

#include "absl/status/status.h"
#include "proto/messages/messages.h"

namespace leeway::proto {

template <class Message>
absl::Status CheckMeaning(const Message&) {
  return absl::OkStatus();
}
absl::Status CheckMeaning(const Join& m);
absl::Status CheckMeaning(const ClusterMap& m);
absl::Status CheckMeaning(const CreateTable& m);
absl::Status CheckMeaning(const TableReply& m);
absl::Status CheckMeaning(const InstallTable& m);
absl::Status CheckMeaning(const Replicate& m);
absl::Status CheckMeaning(const LoadReport& m);
absl::Status CheckMeaning(const CodecReport& m);
absl::Status CheckMeaning(const CheckpointWritten& m);
absl::Status CheckMeaning(const Publish& m);
absl::Status CheckMeaning(const Published& m);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_CHECK_MEANING_H_
