#include "adapters/inference/split_data.h"

#include <torch/types.h>

#include <cstdio>
#include <span>
#include <stdexcept>

#include "adapters/common/tensor_bytes.h"
#include "dpwa/base/checksum.h"
#include "dpwa/parallel/shares.h"

namespace dpwa {

std::string words_of_shape(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  std::string words = std::string(c10::getDtypeNames(tensor.scalar_type()).first) + "[";
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis)
    words += (axis == 0 ? "" : ", ") + std::to_string(tensor.size(axis));
  return words + "]";
}

namespace {

[[noreturn]] void refuse(std::size_t index, const std::string& why) {
  throw std::invalid_argument("split_data: tensor " + std::to_string(index) + " of the data " +
                              why);
}

std::string rows_words(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

void check(std::size_t index, const at::Tensor& tensor, const Place& place) {
  if (!tensor.defined() || tensor.dim() == 0) refuse(index, "has no rows: it needs an axis 0");
  if (tensor.is_sparse()) refuse(index, "is sparse; accepted: dense");
  const auto workers = static_cast<std::int64_t>(place.size);
  if (tensor.size(0) < workers) {
    refuse(index, "has " + rows_words(tensor.size(0)) + " for " + std::to_string(workers) +
                      " workers, so a worker would have none; accepted: at least one row for each");
  }
  if (!tensor.is_floating_point() && !tensor.is_complex()) return;
  const at::Tensor bad = torch::isfinite(tensor.reshape({tensor.size(0), -1})).all(1).logical_not();
  if (!bad.any().item<bool>()) return;
  refuse(index, "is not finite in " + rows_words(bad.sum().item<std::int64_t>()) +
                    ", the first is row " +
                    std::to_string(bad.to(torch::kInt).argmax().item<std::int64_t>()) +
                    " (counted from 0)");
}

}  // namespace

std::vector<at::Tensor> split_data(const std::vector<at::Tensor>& data, const Place& place) {
  if (data.empty()) throw std::invalid_argument("split_data: there is no data: the list is empty");
  if (place.rank >= place.size) {
    throw std::invalid_argument("split_data: rank " + std::to_string(place.rank) + " of " +
                                std::to_string(place.size) +
                                " workers; accepted: a rank below their number");
  }
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < data.size(); ++i) {
    check(i, data[i], place);
    if (data[i].size(0) != data[0].size(0)) {
      refuse(i, "has " + rows_words(data[i].size(0)) + ", where tensor 0 has " +
                    rows_words(data[0].size(0)) + "; accepted: the same number in all");
    }
    const ItemRange rows =
        shard(static_cast<std::uint64_t>(data[i].size(0)), place.size, place.rank);
    parts.push_back(data[i].narrow(0, static_cast<std::int64_t>(rows.from),
                                   static_cast<std::int64_t>(rows.count)));
  }
  return parts;
}

at::Tensor split_data(const at::Tensor& data, const Place& place) {
  return split_data(std::vector<at::Tensor>{data}, place).front();
}

std::string words_of_shapes(const std::vector<at::Tensor>& data) {
  std::string words;
  for (const at::Tensor& tensor : data)
    words += (words.empty() ? "" : ", ") + words_of_shape(tensor);
  return words;
}

std::string words_of_data(const std::vector<at::Tensor>& data) {
  std::string sums;
  for (const at::Tensor& tensor : data) {
    const at::Tensor values = tensor.cpu().contiguous();
    sums += std::to_string(crc32c(const_bytes_of(values))) + ' ';
  }
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(std::as_bytes(std::span(sums))));
  return words_of_shapes(data) + ", checksum " + text;
}

}  // namespace dpwa
