#include "dpwa/kvstore/values.h"

#include <boost/endian/conversion.hpp>
#include <stdexcept>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"

namespace dpwa::kvstore {

std::string Key::text() const {
  if (is_number()) return std::to_string(number());
  return "'" + to_plain_text(name(), max_key_bytes) + "'";
}

std::uint64_t Key::hash() const {
  if (!is_number()) return hash_of(name());
  char bytes[sizeof(std::int64_t)];
  boost::endian::endian_store<std::int64_t, sizeof bytes, boost::endian::order::little>(
      reinterpret_cast<unsigned char*>(bytes), number());
  return hash_of({bytes, sizeof bytes});
}

std::optional<std::string> key_problem(const Key& key) {
  if (key.is_number()) return std::nullopt;
  const std::string& name = key.name();
  if (name.empty()) return "is empty";
  if (name.size() > max_key_bytes)
    return "has more than " + std::to_string(max_key_bytes) + " bytes";
  if (!is_plain_text(name)) return "is not UTF-8 or holds control characters";
  return std::nullopt;
}

std::optional<std::string> spec_problem(const ValueSpec& spec) {
  if (!is_stored(spec.dtype)) {
    return "is " + std::string(name_of(spec.dtype)) +
           "; accepted: float32, float64, float16, bfloat16";
  }
  if (spec.shape.size() > max_rank)
    return "has more than " + std::to_string(max_rank) + " dimensions";
  try {
    if (spec.elements() <= max_snapshot_bytes / size_of(spec.dtype)) return std::nullopt;
  } catch (const std::invalid_argument&) {
    // More elements than the most bytes of a value.
  }
  return "has more than 2^48 bytes";
}

}  // namespace dpwa::kvstore
