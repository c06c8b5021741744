#include "dpwa/snapshot/manifest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/snapshot/mark.h"

namespace dpwa {
namespace {

[[noreturn]] void refuse(std::size_t index, const std::string& name, const std::string& why) {
  std::string text = "tensor " + std::to_string(index);
  if (!name.empty()) text += " '" + to_plain_text(name, max_tensor_name_bytes) + "'";
  throw std::invalid_argument(text + " " + why);
}

// Throws unless the tensor may be part of a manifest. The constructor checks its size when it adds
// up the sizes.
void check(std::size_t index, const TensorSpec& tensor) {
  if (tensor.name.empty()) refuse(index, tensor.name, "has no name");
  if (tensor.name.size() > max_tensor_name_bytes) {
    refuse(index, tensor.name,
           "has a name of more than " + std::to_string(max_tensor_name_bytes) + " bytes");
  }
  if (!is_plain_text(tensor.name)) {
    refuse(index, tensor.name,
           "has a name that is not UTF-8 or holds control or invisible characters");
  }
  if (tensor.shape.size() > max_rank) {
    refuse(index, tensor.name, "has more than " + std::to_string(max_rank) + " dimensions");
  }
  if (size_of(tensor.dtype) == 0) refuse(index, tensor.name, "has an unknown dtype");
  switch (tensor.rule) {
    case BlendRule::interpolate:
      if (is_floating_point(tensor.dtype)) return;
      refuse(index, tensor.name, "is not floating-point and cannot be interpolated");
    case BlendRule::maximum:
      if (!is_floating_point(tensor.dtype) && tensor.dtype != DType::boolean) return;
      refuse(index, tensor.name, "is not an integer and cannot follow the maximum rule");
    case BlendRule::carry:
      return;
  }
  refuse(index, tensor.name, "has an unknown blend rule");
}

std::uint64_t checked_bytes(std::size_t index, const TensorSpec& tensor) {
  try {
    return tensor.bytes();
  } catch (const std::invalid_argument& fault) {
    refuse(index, tensor.name, fault.what());
  }
}

std::uint64_t align(std::uint64_t bytes) {
  return (bytes + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
}

template <typename T>
void append(std::string& out, T value) {
  unsigned char bytes[sizeof(T)];
  boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), sizeof(T));
}

// SHA-256 of "dpwa-manifest-1" (15 bytes) and, little-endian:
//   u32 number of tensors, then for each: u16 name length, name, u8 dtype, u8 blend rule, u8 rank,
//   u64 extent of each dimension
Fingerprint fingerprint_of(const std::vector<TensorSpec>& tensors) {
  std::string text = "dpwa-manifest-1";
  append(text, static_cast<std::uint32_t>(tensors.size()));
  for (const TensorSpec& tensor : tensors) {
    append(text, static_cast<std::uint16_t>(tensor.name.size()));
    text += tensor.name;
    append(text, static_cast<std::uint8_t>(tensor.dtype));
    append(text, static_cast<std::uint8_t>(tensor.rule));
    append(text, static_cast<std::uint8_t>(tensor.shape.size()));
    for (const std::uint64_t extent : tensor.shape) append(text, extent);
  }
  Fingerprint digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL offers no SHA-256");
  }
  return digest;
}

std::string words_for(BlendRule rule) {
  switch (rule) {
    case BlendRule::interpolate:
      return "interpolated";
    case BlendRule::maximum:
      return "a counter";
    case BlendRule::carry:
      return "carried";
  }
  return "unknown";
}

// One tensor as two nodes describe it.
std::optional<std::string> difference_of(const TensorSpec& of_a, const std::string& a,
                                         const TensorSpec& of_b, const std::string& b) {
  const auto apart = [&](const std::string& on_a, const std::string& on_b) {
    return "is " + on_a + " on '" + a + "' and " + on_b + " on '" + b + "'";
  };
  if (of_a.name != of_b.name) return apart("'" + of_a.name + "'", "'" + of_b.name + "'");
  const std::string name = "'" + of_a.name + "' ";
  if (of_a.dtype != of_b.dtype || of_a.shape != of_b.shape)
    return name + apart(type_text(of_a.dtype, of_a.shape), type_text(of_b.dtype, of_b.shape));
  if (of_a.rule != of_b.rule) return name + apart(words_for(of_a.rule), words_for(of_b.rule));
  return std::nullopt;
}

std::vector<TensorSpec> without_marks(std::vector<TensorSpec> tensors) {
  std::erase_if(tensors, [](const TensorSpec& tensor) { return mark_of(tensor).has_value(); });
  return tensors;
}

}  // namespace

std::string type_text(DType dtype, const std::vector<std::uint64_t>& shape) {
  std::string text{name_of(dtype)};
  text += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + ']';
}

std::uint64_t elements_of(const std::vector<std::uint64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) {
    if (extent > max_snapshot_bytes / product) {
      throw std::invalid_argument("has more than 2^48 elements");
    }
    product *= extent;
  }
  return product;
}

Manifest::Manifest(std::vector<TensorSpec> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.size() > max_tensors) {
    throw std::invalid_argument("a model has at most " + std::to_string(max_tensors) +
                                " tensors, this one " + std::to_string(tensors_.size()));
  }
  std::set<std::string_view> names;  // ordered, so that a hostile peer cannot make it slow
  std::map<std::pair<BlendRule, DType>, Region> regions;  // in the order of the layout
  std::uint64_t sum = 0;
  offsets_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& tensor = tensors_[i];
    check(i, tensor);
    if (!names.insert(tensor.name).second) refuse(i, tensor.name, "has the name of another one");
    const std::uint64_t bytes = checked_bytes(i, tensor);
    sum += bytes;
    if (sum > max_snapshot_bytes) refuse(i, tensor.name, "brings the model above 2^48 bytes");
    Region& region = regions[{tensor.rule, tensor.dtype}];
    if (bytes > 0) region.bytes = align(region.bytes);
    offsets_.push_back(region.bytes);  // within its region; the start is added below
    region.bytes += bytes;
  }

  for (auto& [key, region] : regions) {
    region.rule = key.first;
    region.dtype = key.second;
    region.offset = align(total_bytes_);
    total_bytes_ = region.offset + region.bytes;
    if (region.rule != BlendRule::carry) exchange_bytes_ = total_bytes_;
    regions_.push_back(region);
  }
  if (total_bytes_ > max_snapshot_bytes) {
    throw std::invalid_argument("the model has more than 2^48 bytes");
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    offsets_[i] += regions.at({tensors_[i].rule, tensors_[i].dtype}).offset;
  }
  stated_fingerprint_ = fingerprint_of(tensors_);
  const bool has_settings = std::ranges::any_of(tensors_, is_setting);
  fingerprint_ = has_settings ? fingerprint_of(without_settings(tensors_)) : stated_fingerprint_;
}

std::optional<std::string> first_difference(const NodeModel& a, const NodeModel& b) {
  const std::vector<TensorSpec> of_a = without_marks(a.manifest.tensors());
  const std::vector<TensorSpec> of_b = without_marks(b.manifest.tensors());
  const std::size_t common = std::min(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto difference = difference_of(of_a[i], a.node, of_b[i], b.node);
    if (difference) return "tensor " + std::to_string(i) + " " + *difference;
  }
  if (of_a.size() == of_b.size()) {
    const auto marks = differences(marks_of(a.manifest), marks_of(b.manifest));
    if (marks.empty()) return std::nullopt;
    return marks.front().words(on_node(a.node), on_node(b.node));
  }
  const bool a_has_more = of_a.size() > of_b.size();
  return "tensor " + std::to_string(common) + " '" + (a_has_more ? of_a : of_b)[common].name +
         "' exists only on '" + (a_has_more ? a : b).node + "' (" + std::to_string(of_a.size()) +
         " tensors on '" + a.node + "', " + std::to_string(of_b.size()) + " on '" + b.node + "')";
}

}  // namespace dpwa
