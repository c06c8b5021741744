#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// The optimizer state of a range of elements of one key.
struct SavedRange {
  Key key;
  DType dtype = DType::float32;  // of the value
  ItemRange elements;            // of the value, flattened
  OptimizerState state;          // of elements.count elements
};

// The content of a file with optimizer states.
struct SavedStates {
  OptimizerOptions options;
  std::vector<SavedRange> ranges;
};

// The file, little-endian:
//    0  u8   8 bytes "dpwa-kvo"
//    8  u32  version, 1
//   12  u32  number of ranges
//   16  u8   options_bytes bytes: the options (optimizer.h)
//  112       for each range:
//        u8   kind of key: 0 integer, 1 text
//        u8   dtype
//        u16  bytes of a text, else 0
//        u32  0
//        i64  the integer, or else the text
//        u64  first element, number of elements, updates so far
//             the arrays of the state, one after the other
//  end  u32  CRC32C of all before it
std::vector<std::byte> encode(const SavedStates& states);
// The states, or a text that says what is wrong with the file.
std::variant<SavedStates, std::string> decode_states(std::span<const std::byte> bytes);

// The state of the elements `range` of `key`, from ranges that may have other boundaries. A key or
// element that is in none of them has not been updated yet. Throws std::invalid_argument that names
// the key when its dtype differs.
OptimizerState state_of_range(const SavedStates& states, const Key& key, DType dtype,
                              const ItemRange& range);

}  // namespace dpwa::kvstore
