#include "adapters/inference/split_data.h"

#include <torch/types.h>

#include <stdexcept>

#include "dpwa/parallel/shares.h"

namespace dpwa {
namespace {

std::string words_of_shape(const at::Tensor& tensor) {
  std::string words = std::string(c10::getDtypeNames(tensor.scalar_type()).first) + "[";
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis)
    words += (axis == 0 ? "" : ", ") + std::to_string(tensor.size(axis));
  return words + "]";
}

[[noreturn]] void refuse(std::size_t index, const std::string& why) {
  throw std::invalid_argument("split_data: tensor " + std::to_string(index) + " of the data " +
                              why);
}

std::string rows_words(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

void check(std::size_t index, const at::Tensor& tensor, const Place& place) {
  if (!tensor.defined() || tensor.dim() == 0) refuse(index, "has no rows: it needs an axis 0");
  const auto workers = static_cast<std::int64_t>(place.size);
  if (tensor.size(0) < workers) {
    refuse(index, "has " + rows_words(tensor.size(0)) + " for " + std::to_string(workers) +
                      " workers, so a worker would have none; accepted: at least one row for each");
  }
  if (!tensor.is_floating_point()) return;
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

}  // namespace dpwa
