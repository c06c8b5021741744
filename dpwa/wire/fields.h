#pragma once

#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// Reads little-endian fields from untrusted bytes, never beyond their end. After the first fault,
// reads return zero and checks do nothing; finish() reports the fault. So a decoder needs no checks
// between its reads. Views the bytes, which must outlive it. One owner, one thread.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // A reader of `bytes` without its last four, which must be the CRC32C of the others.
  static Reader checked(std::span<const std::byte> bytes);

  std::uint8_t u8() { return load<std::uint8_t>(); }
  std::uint16_t u16() { return load<std::uint16_t>(); }
  std::uint32_t u32() { return load<std::uint32_t>(); }
  std::uint64_t u64() { return load<std::uint64_t>(); }
  std::int64_t i64() { return load<std::int64_t>(); }
  double f64() { return load<double>(); }

  void bytes(std::span<std::uint8_t> out);
  // Bytes that have no meaning in this version and must be zero.
  void reserved(std::size_t count);
  // An enumeration whose values are first..last without gaps.
  template <typename Enum>
  Enum choice(Enum first, Enum last, std::string_view what) {
    using Raw = std::underlying_type_t<Enum>;
    const auto raw = load<Raw>();
    if (fault_ || !in_range(raw, static_cast<Raw>(first), static_cast<Raw>(last), what)) {
      return first;
    }
    return static_cast<Enum>(raw);
  }
  // u16 length + plain text (plain_text.h).
  std::string text(std::size_t min_bytes, std::size_t max_bytes, std::string_view what);
  bool flag(std::string_view what) {
    const std::uint8_t value = u8();
    if (value > 1) fail(Fault::bad_value, std::string(what) + " is neither 0 nor 1");
    return value == 1;
  }
  // The same with a u32 length.
  std::string long_text(std::size_t max_bytes, std::string_view what);

  // The same, each into its field: as those of a Writer, so that one list of fields serves both.
  template <typename Number>
  void field(Number& field) {
    field = load<Number>();
  }
  template <typename Enum>
  void choice(Enum& field, Enum first, Enum last, std::string_view what) {
    field = choice(first, last, what);
  }
  void text(std::string& field, std::size_t min_bytes, std::size_t max_bytes,
            std::string_view what) {
    field = text(min_bytes, max_bytes, what);
  }
  void long_text(std::string& field, std::size_t max_bytes, std::string_view what) {
    field = long_text(max_bytes, what);
  }
  void flag(bool& field, std::string_view what) { field = flag(what); }

  void require(bool condition, Fault fault, std::string_view detail) {
    if (!condition) fail(fault, std::string(detail));
  }
  void fail(Fault fault, std::string detail);
  bool failed() const { return fault_.has_value(); }
  std::size_t remaining() const { return rest_.size(); }

  // The message, or the first fault. Unread bytes are a fault.
  template <typename T>
  Decoded<T> finish(T message) {
    require(rest_.empty(), Fault::bad_length, "bytes after the end of the message");
    if (fault_) return *std::move(fault_);
    return message;
  }

 private:
  template <typename T>
  T load() {
    const auto field = take(sizeof(T));
    if (field.empty()) return T{};
    return boost::endian::endian_load<T, sizeof(T), boost::endian::order::little>(
        reinterpret_cast<const unsigned char*>(field.data()));
  }
  std::span<const std::byte> take(std::size_t count);  // empty when there are not so many
  std::string read_text(std::uint64_t size, std::size_t min_bytes, std::size_t max_bytes,
                        std::string_view what);
  bool in_range(std::uint64_t value, std::uint64_t first, std::uint64_t last,
                std::string_view what);

  std::span<const std::byte> rest_;
  std::optional<WireError> fault_;
};

// Builds one frame: room for the header first, then little-endian fields. One owner, one thread.
class Writer {
 public:
  Writer() : bytes_(own_), begin_(0) { bytes_.resize(header_bytes); }
  // Behind these bytes.
  explicit Writer(std::vector<std::byte>& before) : bytes_(before), begin_(before.size()) {
    bytes_.resize(begin_ + header_bytes);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void u8(std::uint8_t value) { store(value); }
  void u16(std::uint16_t value) { store(value); }
  void u32(std::uint32_t value) { store(value); }
  void u64(std::uint64_t value) { store(value); }
  void i64(std::int64_t value) { store(value); }
  void f64(double value) { store(value); }
  template <typename Number>
  void field(Number value) {
    store(value);
  }
  template <typename Enum>
  void choice(Enum value, Enum /*first*/, Enum /*last*/, std::string_view /*what*/) {
    store(static_cast<std::underlying_type_t<Enum>>(value));
  }
  void flag(bool value, std::string_view /*what*/) { u8(value ? 1 : 0); }
  void bytes(std::span<const std::uint8_t> values);
  void reserved(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  // u16 length + text. Throws std::invalid_argument when a peer would refuse the text.
  void text(std::string_view value, std::size_t min_bytes, std::size_t max_bytes,
            std::string_view what);
  // The same with a u32 length.
  void long_text(std::string_view value, std::size_t max_bytes, std::string_view what);

  // Throws std::invalid_argument where a peer would refuse the message.
  void require(bool condition, Fault, std::string_view detail) const {
    if (!condition) throw std::invalid_argument(std::string(detail));
  }

  std::size_t body_bytes() const { return bytes_.size() - begin_ - header_bytes; }  // so far
  // Writes over the first field of the body.
  void set_first_u32(std::uint32_t value) { store_at(begin_ + header_bytes, value); }
  // Appends the CRC32C of the fields so far.
  void checksum();
  // Fills in the header for the body so far plus `bytes_to_follow`.
  void end(MessageType type, std::uint32_t request_id, std::uint64_t bytes_to_follow = 0);
  // The same, and returns the frame, with the bytes before it.
  std::vector<std::byte> finish(MessageType type, std::uint32_t request_id,
                                std::uint64_t bytes_to_follow = 0) &&;

 private:
  template <typename T>
  void store(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_at(at, value);
  }
  template <typename T>
  void store_at(std::size_t at, T value) {
    boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(
        reinterpret_cast<unsigned char*>(bytes_.data() + at), value);
  }
  void append(std::string_view value);

  std::vector<std::byte> own_;
  std::vector<std::byte>& bytes_;
  const std::size_t begin_;  // of the frame
};

// A list of fields, fields(side, message), serves both directions: a Writer with a constant
// message, and a Reader.
template <typename Side>
inline constexpr bool reads = std::is_same_v<Side, Reader>;
template <typename Side, typename Message>
using Of = std::conditional_t<reads<Side>, Message, const Message>;

// Words for people, of which a Writer makes plain text.
template <typename Side>
void words(Side& side, Of<Side, std::string>& text, std::size_t max_bytes, std::string_view what) {
  if constexpr (reads<Side>) {
    text = side.text(0, max_bytes, what);
  } else {
    side.text(to_plain_text(text, max_bytes), 0, max_bytes, what);
  }
}

// `most` items behind their number. `each` has the fields of one.
template <typename Count = std::uint16_t, typename Side, typename Items, typename Each>
void list(Side& side, Items& items, std::size_t most, std::string_view what, const Each& each) {
  if constexpr (reads<Side>) {
    Count count = 0;
    side.field(count);
    if (count > most) side.fail(Fault::bad_value, "too many " + std::string(what));
    for (std::size_t i = 0; i < count && !side.failed(); ++i) each(items.emplace_back());
  } else {
    if (items.size() > most) throw std::invalid_argument("too many " + std::string(what));
    side.field(static_cast<Count>(items.size()));
    for (auto& item : items) each(item);
  }
}

// Each is a number, or has a list of fields of its own.
template <typename Side, typename... Values>
void all(Side& side, Values&... values) {
  const auto one = [&side](auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      side.field(value);
    } else {
      fields(side, value);
    }
  };
  (one(values), ...);
}

// Of a message whose body is its fields and their checksum.
template <typename Message>
std::vector<std::byte> encode_fields(const Message& message, MessageType type,
                                     std::uint32_t request_id) {
  Writer out;
  fields(out, message);
  out.checksum();
  return std::move(out).finish(type, request_id);
}
template <typename Message>
Decoded<Message> decode_fields(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Message message;
  fields(in, message);
  return in.finish(std::move(message));
}

}  // namespace dpwa::wire
