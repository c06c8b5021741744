#include "examples/train/idx.h"

#include "examples/train/errors.h"

namespace dpwa::train {
namespace {

constexpr std::size_t preamble_bytes = 4;
constexpr std::size_t max_elements = std::size_t{1} << 32;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw UsageError(name + ": not a usable IDX file: " + why);
}

}  // namespace

IdxTensor parse_idx(std::vector<std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < preamble_bytes) refuse(name, "shorter than its header");
  if (bytes[0] != 0 || bytes[1] != 0) refuse(name, "it does not begin with two zero bytes");
  if (bytes[2] != 0x08)
    refuse(name, "element type " + std::to_string(bytes[2]) + "; accepted: 8 (unsigned byte)");
  const std::size_t rank = bytes[3];
  if (rank < 1 || rank > 4) refuse(name, std::to_string(rank) + " dimensions; accepted: 1 to 4");
  const std::size_t header_bytes = preamble_bytes + 4 * rank;
  if (bytes.size() < header_bytes) refuse(name, "shorter than its header");

  IdxTensor tensor;
  std::size_t elements = 1;
  for (std::size_t at = preamble_bytes; at < header_bytes; at += 4) {
    const std::size_t size = std::size_t{bytes[at]} << 24 | std::size_t{bytes[at + 1]} << 16 |
                             std::size_t{bytes[at + 2]} << 8 | std::size_t{bytes[at + 3]};
    if (size == 0) refuse(name, "a dimension is 0");
    if (size > max_elements / elements) refuse(name, "its header announces too many elements");
    elements *= size;
    tensor.dimensions.push_back(size);
  }
  const std::size_t held = bytes.size() - header_bytes;
  if (held != elements)
    refuse(name, "its header announces " + std::to_string(elements) + " elements, it holds " +
                     std::to_string(held));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  tensor.elements = std::move(bytes);
  return tensor;
}

}  // namespace dpwa::train
