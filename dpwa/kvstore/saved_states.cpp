#include "dpwa/kvstore/saved_states.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "dpwa/base/checksum.h"
#include "dpwa/base/invariant.h"

namespace dpwa::kvstore {
namespace {

constexpr std::string_view states_magic = "dpwa-kvo";
constexpr std::uint32_t states_version = 1;
constexpr std::uint8_t integer_key = 0;
constexpr std::uint8_t text_key = 1;

class StateWriter {
 public:
  template <class Number>
  void number(Number value) {
    unsigned char bytes[sizeof value];
    boost::endian::endian_store<Number, sizeof value, boost::endian::order::little>(bytes, value);
    append(std::as_bytes(std::span(bytes)));
  }
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) { append(std::as_bytes(std::span(text))); }
  std::vector<std::byte> finish() && {
    number(crc32c(bytes_));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

// Reads while there are bytes; after that all results are 0 or empty.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) {
      complete_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  template <class Number>
  Number number() {
    const auto bytes = take(sizeof(Number));
    if (bytes.empty()) return 0;
    return boost::endian::endian_load<Number, sizeof(Number), boost::endian::order::little>(
        reinterpret_cast<const unsigned char*>(bytes.data()));
  }
  std::string text(std::size_t size) {
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool complete() const { return complete_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool complete_ = true;
};

// None when the bytes are not a range.
std::optional<SavedRange> read_range(StateReader& reader, const OptimizerOptions& options) {
  SavedRange range;
  const auto kind = reader.number<std::uint8_t>();
  range.dtype = static_cast<DType>(reader.number<std::uint8_t>());
  const auto text_bytes = reader.number<std::uint16_t>();
  const auto reserved = reader.number<std::uint32_t>();
  if (kind == text_key) {
    range.key = reader.text(text_bytes);
  } else {
    range.key = reader.number<std::int64_t>();
  }
  range.elements.from = reader.number<std::uint64_t>();
  range.elements.count = reader.number<std::uint64_t>();
  const auto steps = reader.number<std::uint64_t>();
  if (!reader.complete() || kind > text_key || (kind == integer_key && text_bytes != 0) ||
      reserved != 0 || !is_stored(range.dtype) || key_problem(range.key) ||
      range.elements.count > max_snapshot_bytes ||
      range.elements.from > max_snapshot_bytes - range.elements.count)
    return std::nullopt;
  const auto arrays =
      reader.take(OptimizerState::bytes_of(options, range.dtype, range.elements.count));
  if (!reader.complete()) return std::nullopt;
  auto state = OptimizerState::restored(options, range.dtype, range.elements.count, steps, arrays);
  if (!state) return std::nullopt;
  range.state = *std::move(state);
  return range;
}

}  // namespace

std::vector<std::byte> encode(const SavedStates& states) {
  StateWriter writer;
  writer.text(states_magic);
  writer.number(states_version);
  writer.number(static_cast<std::uint32_t>(states.ranges.size()));
  writer.append(encode(states.options));
  for (const SavedRange& range : states.ranges) {
    const bool integer = range.key.is_number();
    writer.number(integer ? integer_key : text_key);
    writer.number(static_cast<std::uint8_t>(range.dtype));
    writer.number(static_cast<std::uint16_t>(integer ? 0 : range.key.name().size()));
    writer.number(std::uint32_t{0});
    if (integer) {
      writer.number(range.key.number());
    } else {
      writer.text(range.key.name());
    }
    writer.number(range.elements.from);
    writer.number(range.elements.count);
    writer.number(range.state.steps());
    writer.append(range.state.bytes());
  }
  return std::move(writer).finish();
}

std::variant<SavedStates, std::string> decode_states(std::span<const std::byte> bytes) {
  if (bytes.size() < states_magic.size() + 4 ||
      std::memcmp(bytes.data(), states_magic.data(), states_magic.size()) != 0)
    return "is no file of optimizer states";
  StateReader reader(bytes.first(bytes.size() - sizeof(std::uint32_t)));
  reader.take(states_magic.size());
  const auto version = reader.number<std::uint32_t>();
  if (version != states_version) {
    return "has version " + std::to_string(version) +
           "; accepted: " + std::to_string(states_version);
  }
  const auto checksum = StateReader(bytes.last(sizeof(std::uint32_t))).number<std::uint32_t>();
  if (checksum != crc32c(bytes.first(bytes.size() - sizeof checksum)))
    return "is damaged: its checksum is wrong";
  SavedStates states;
  const auto count = reader.number<std::uint32_t>();
  const auto options = decode_options(reader.take(options_bytes));
  if (!options) return "has an unknown optimizer";
  states.options = *options;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto range = read_range(reader, *options);
    if (!range) return "has an invalid range of states, number " + std::to_string(i);
    states.ranges.push_back(*std::move(range));
  }
  if (!reader.empty()) return "has bytes after its end";
  return states;
}

OptimizerState state_of_range(const SavedStates& states, const Key& key, DType dtype,
                              const ItemRange& range) {
  const OptimizerState fresh(states.options, dtype, range.count);
  std::vector<std::byte> arrays(fresh.bytes().begin(), fresh.bytes().end());
  const std::size_t size = size_of(computed_in(dtype));
  const std::size_t array_count = range.count == 0 ? 0 : arrays.size() / (range.count * size);
  std::uint64_t steps = 0;
  for (const SavedRange& saved : states.ranges) {
    if (saved.key != key) continue;
    if (saved.dtype != dtype) {
      throw std::invalid_argument("the saved state of key " + key.text() + " is that of " +
                                  std::string(name_of(saved.dtype)) + ", the value is " +
                                  std::string(name_of(dtype)));
    }
    const std::uint64_t from = std::max(range.from, saved.elements.from);
    const std::uint64_t end = std::min(range.end(), saved.elements.end());
    if (from > end || (from == end && range.count > 0)) continue;
    DPWA_INVARIANT(saved.state.bytes().size() ==
                       OptimizerState::bytes_of(states.options, dtype, saved.elements.count),
                   "a saved state is that of its elements", key.text(), saved.elements.count,
                   saved.state.bytes().size());
    steps = std::max(steps, saved.state.steps());
    for (std::size_t array = 0; array < array_count; ++array) {
      const std::size_t source = (array * saved.elements.count + from - saved.elements.from) * size;
      const std::size_t target = (array * range.count + from - range.from) * size;
      std::memcpy(arrays.data() + target, saved.state.bytes().data() + source, (end - from) * size);
    }
  }
  return *OptimizerState::restored(states.options, dtype, range.count, steps, arrays);
}

}  // namespace dpwa::kvstore
