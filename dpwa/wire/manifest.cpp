#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::size_t min_tensor_bytes = 2 + 1 + 3;  // a name of one byte, a scalar

TensorSpec read_tensor(Reader& in) {
  TensorSpec tensor;
  tensor.name = in.text(1, max_tensor_name_bytes, "tensor name");
  tensor.dtype = in.choice(DType::float32, DType::boolean, "dtype");
  tensor.rule = in.choice(BlendRule::interpolate, BlendRule::carry, "blend rule");
  const std::size_t rank = in.u8();
  in.require(rank <= max_rank, Fault::bad_value, "rank of a tensor is above 16");
  if (in.failed()) return tensor;
  tensor.shape.resize(rank);
  for (std::uint64_t& extent : tensor.shape) extent = in.u64();
  return tensor;
}

}  // namespace

// MANIFEST
//   offset size
//        0    4  number of tensors (0 to 65536), then for each
//                  name: u16 length (1 to 255) + UTF-8
//                  u8 dtype, u8 blend rule, u8 rank (0 to 16), u64 extent of each dimension
//                CRC32C of the body so far
// The fingerprint covers everything before the checksum (snapshot/manifest.cpp).
std::vector<std::byte> encode(const Manifest& message, std::uint32_t request_id) {
  Writer out;
  out.u32(static_cast<std::uint32_t>(message.tensors().size()));
  for (const TensorSpec& tensor : message.tensors()) {
    out.text(tensor.name, 1, max_tensor_name_bytes, "tensor name");
    out.u8(static_cast<std::uint8_t>(tensor.dtype));
    out.u8(static_cast<std::uint8_t>(tensor.rule));
    out.u8(static_cast<std::uint8_t>(tensor.shape.size()));
    for (const std::uint64_t extent : tensor.shape) out.u64(extent);
  }
  out.checksum();
  return std::move(out).finish(MessageType::manifest, request_id);
}

Decoded<Manifest> decode_manifest(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  const std::size_t count = in.u32();
  in.require(count <= max_tensors, Fault::bad_value, "a manifest has at most 65536 tensors");
  std::vector<TensorSpec> tensors;
  tensors.reserve(std::min(count, in.remaining() / min_tensor_bytes));
  while (tensors.size() < count && !in.failed()) tensors.push_back(read_tensor(in));
  const auto complete = in.finish(true);
  if (!complete) return complete.error();
  try {
    return Manifest(std::move(tensors));
  } catch (const std::invalid_argument& fault) {
    return WireError{Fault::bad_value, fault.what()};
  }
}

}  // namespace dpwa::wire
