#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// What the programs of all workers of a run have in common: their settings, and the keys of the
// model. It is the value of a key of its own, which each worker makes before any other: the record
// of the first worker counts, and every worker compares its own with it.
struct RunRecord {
  struct ModelKey {
    std::string name;
    std::string type;  // such as "float32[10,128]"
    std::uint64_t elements = 0;
  };

  double clock = 0;              // of the first worker, at step 0
  Settings settings{};           // of plain text
  std::vector<ModelKey> keys{};  // in the order of the model
};

// The most bytes of all settings together, each name and value with 3 more. The rest of the record
// has room for the names of keys: those of a large model are compared by a digest alone.
inline constexpr std::size_t max_run_settings_bytes = 4096;

// The value as float64. Its size is the same for every record, because a server refuses values of
// another size with a line that says nothing about the reason:
//    0   clock
//    1   number of keys
//    2   number of elements in all of them
//    3   digest of all keys with their types, 52 bits
//    4…  text, 6 bytes in each number, the first one in its lowest bits: lines, whole ones only, of
//        fields with U+001F between them: "s" name value for each setting, "k" name type for each
//        key
inline constexpr std::size_t run_record_elements = 1024;
inline ValueSpec run_record_spec() {
  return {DType::float64, {run_record_elements}};
}
std::vector<double> encode(const RunRecord& record);

// What a worker reads of the record of the run, from another process: any numbers are decoded.
struct RunOfOthers {
  double clock = 0;
  std::uint64_t key_count = 0;
  std::uint64_t elements = 0;
  double digest = 0;
  Settings settings{};
  std::vector<RunRecord::ModelKey> keys{};  // perhaps not all; without elements
};
RunOfOthers decode_run(std::span<const double> values);

// In what the model of the run differs: its first key that does, and both sizes. None: they have
// the same keys in the same order, with the same types.
std::optional<std::string> other_model(const RunRecord& own, const RunOfOthers& run);

}  // namespace dpwa::kvstore
