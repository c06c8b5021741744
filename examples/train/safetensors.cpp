#include "examples/train/safetensors.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <nlohmann/json.hpp>
#include <tuple>

#include "examples/train/files.h"

namespace dpwa::train {
namespace {

std::string header_of(const std::vector<StoredTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::uint64_t begin = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t end = begin + tensor.data.size();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, std::vector<StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(tensors, [](const StoredTensor& left, const StoredTensor& right) {
    return std::tie(right.element_bytes, left.name) < std::tie(left.element_bytes, right.name);
  });
  const std::string header = header_of(tensors, metadata);
  std::string size(8, '\0');
  boost::endian::store_little_u64(reinterpret_cast<unsigned char*>(size.data()), header.size());
  std::vector<std::string_view> parts{size, header};
  for (const StoredTensor& tensor : tensors) parts.push_back(tensor.data);
  write_file_atomically(file, parts, private_mode);
}

}  // namespace dpwa::train
