// The "__metadata__" entry of a shard's file, written and read.
#ifndef LEEWAY_PS_CHECKPOINT_SHARD_METADATA_H_
#define LEEWAY_PS_CHECKPOINT_SHARD_METADATA_H_

#include <map>
#include <string>

#include "ps/checkpoint/shard_file.h"

namespace leeway::ps {

std::map<std::string, std::string> ToMetadata(const ShardContent& content);
// Everything but the pieces and the tables' descriptions, which the manifest has.
absl::StatusOr<ShardContent> FromMetadata(const std::map<std::string, std::string>& metadata);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_SHARD_METADATA_H_
