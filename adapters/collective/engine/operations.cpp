#include "adapters/collective/engine/operations.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/exchange.h"
#include "adapters/collective/engine/sum_in_halves.h"
#include "adapters/collective/engine/tensor_form.h"
#include "dpwa/collective/agreement.h"

namespace dpwa::collective {

namespace {

using Counts = std::vector<std::int64_t>;

std::string quoted(const std::string& name) {
  return " '" + name + "'";
}

// Bytes of one row of `tensor`, which has a first dimension.
std::int64_t row_bytes(const at::Tensor& tensor) {
  std::int64_t bytes = static_cast<std::int64_t>(tensor.element_size());
  for (std::int64_t axis = 1; axis < tensor.dim(); ++axis) bytes *= tensor.size(axis);
  return bytes;
}

std::vector<std::int64_t> shape_with_rows(const at::Tensor& like, std::int64_t rows) {
  auto shape = like.sizes().vec();
  shape[0] = rows;
  return shape;
}

// The rows that the others sent here, in the order of ranks.
at::Tensor rows_of_all(const ProcessGroup& group, const at::Tensor& tensor, const Counts& sent,
                       const Counts& received) {
  const auto rows = std::accumulate(received.begin(), received.end(), std::int64_t{0});
  auto result = at::empty(shape_with_rows(tensor, rows), tensor.options());
  const auto bytes = row_bytes(tensor);
  const auto in_bytes = [&](Counts counts) {
    for (auto& count : counts) count *= bytes;
    return counts;
  };
  if (bytes > 0) {
    exchange_rows(group, bytes_of(result), bytes_of(tensor), in_bytes(received), in_bytes(sent));
  }
  return result;
}

std::string dense_problem(const at::Tensor& tensor) {
  if (!tensor.defined()) return "there is no tensor";
  return tensor.layout() == at::kStrided ? "" : "the tensor is not dense";
}

}  // namespace

at::Tensor Operations::allgather(const std::string& name, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const auto problem = dense_problem(tensor);
  auto own = tensor;
  if (problem.empty()) {
    own = tensor.detach();
    own = (own.dim() == 0 ? own.reshape({1}) : own).contiguous();
  }
  const Signature signature{"allgather", {{name, form_of(own, true)}}, problem};
  const auto rows = agree(group_, signature, problem.empty() ? own.size(0) : 0);
  return gather_rows(signature.operation + quoted(name), own, rows);
}

at::Tensor Operations::gather_rows(const std::string& title, const at::Tensor& own,
                                   const Counts& rows) {
  const auto most = *std::max_element(rows.begin(), rows.end());
  at::Tensor all;
  group_.run(title, [&] {
    auto padded = own;
    if (own.size(0) < most) {
      padded = at::zeros(shape_with_rows(own, most), own.options());
      padded.narrow(0, 0, own.size(0)).copy_(own);
    }
    all = at::empty(shape_with_rows(own, most * group_.size()), own.options());
    if (all.numel() > 0) gather_equal(group_, bytes_of(all), bytes_of(padded));
  });
  if (std::all_of(rows.begin(), rows.end(), [&](auto count) { return count == most; })) return all;
  std::vector<at::Tensor> parts;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    parts.push_back(all.narrow(0, static_cast<std::int64_t>(rank) * most, rows[rank]));
  }
  return at::cat(parts);
}

void Operations::broadcast(const std::string& name, const at::Tensor& tensor, int root) {
  const at::NoGradGuard no_grad;
  auto problem = dense_problem(tensor);
  if (root < 0 || root >= group_.size()) problem = "there is no rank " + std::to_string(root);
  const Signature signature{
      "broadcast from rank " + std::to_string(root), {{name, form_of(tensor)}}, problem};
  const auto payloads = agree(group_, signature, /*payload=*/1);
  receive(signature.operation + quoted(name), tensor, root, payloads);
}

void Operations::receive(const std::string& title, const at::Tensor& tensor, int root,
                         const Counts& payloads) {
  require_at_work(group_, title, {payloads[static_cast<std::size_t>(root)]}, root);
  if (tensor.numel() == 0) return;
  group_.run(title, [&] {
    const auto own = tensor.detach();
    const auto buffer = own.contiguous();
    std::vector<at::Tensor> list{bytes_of(buffer)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    bounded_wait(group_, group_.c10d()->broadcast(list, options), list);
    if (!buffer.is_same(own)) own.copy_(buffer);
  });
}

at::Tensor Operations::reducescatter(const std::string& name, const at::Tensor& tensor,
                                     const ReduceOptions& options) {
  const at::NoGradGuard no_grad;
  auto problem = reduction_problem(tensor, options);
  if (problem.empty() && tensor.dim() == 0) problem = "a scalar has no rows to scatter";
  const Signature signature{
      "reducescatter " + text_of(options), {{name, form_of(tensor)}}, problem};
  const auto title = "reducescatter" + quoted(name);
  if (options.check) {
    require_at_work(group_, title, agree(group_, signature, /*payload=*/1));
  } else if (!problem.empty()) {
    throw CollectiveError(Failure::usage, title, group_.engine(), problem);
  }
  const std::int64_t size = group_.size();
  Counts sent(static_cast<std::size_t>(size), tensor.size(0) / size);
  for (std::int64_t rank = 0; rank < tensor.size(0) % size; ++rank) ++sent[rank];
  const auto mine = sent[static_cast<std::size_t>(group_.rank())];
  const Counts received(static_cast<std::size_t>(size), mine);
  at::Tensor result;
  group_.run(title, [&] {
    const auto type = working_type(tensor.scalar_type());
    auto own = tensor.detach();
    if (options.prescale != 1) own = own.to(type).mul(options.prescale);
    const bool halves = options.compression != Compression::none && at::isFloatingType(type);
    auto exponents = at::zeros({size}, at::kInt);
    if (halves) {
      const auto [values, exponent] = to_halves(own, options.compression);
      own = values;
      gather_equal(group_, exponents, at::full({1}, exponent, at::kInt));
    }
    auto shape = shape_with_rows(own, mine);
    shape.insert(shape.begin(), size);
    auto rows = rows_of_all(group_, own.contiguous(), sent, received).view(shape).to(type);
    for (std::int64_t rank = 0; halves && rank < size; ++rank)
      rows.select(0, rank).mul_(std::ldexp(1.0, exponents[rank].item<int>()));
    switch (options.reduction) {
      case Reduction::sum:
      case Reduction::average:
        result = at::sum(rows, {0}, /*keepdim=*/false, type);
        break;
      case Reduction::min:
        result = at::amin(rows, {0});
        break;
      case Reduction::max:
        result = at::amax(rows, {0});
        break;
    }
    const double divisor = options.reduction == Reduction::average ? group_.size() : 1;
    if (options.postscale / divisor != 1) result.mul_(options.postscale / divisor);
    result = result.to(tensor.scalar_type());
  });
  return result;
}

std::pair<at::Tensor, std::vector<std::int64_t>> Operations::alltoall(
    const std::string& name, const at::Tensor& tensor, const std::vector<std::int64_t>& splits) {
  const at::NoGradGuard no_grad;
  const std::int64_t size = group_.size();
  auto problem = dense_problem(tensor);
  if (problem.empty() && tensor.dim() == 0) problem = "a scalar has no rows to send";
  Counts sent = splits;
  if (problem.empty()) {
    const auto rows = tensor.size(0);
    if (sent.empty() && rows % size == 0) sent.assign(static_cast<std::size_t>(size), rows / size);
    const bool negative = std::any_of(sent.begin(), sent.end(), [](auto n) { return n < 0; });
    const auto sum = std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
    if (sent.empty()) {
      problem = std::to_string(rows) + " rows do not divide by " + std::to_string(size);
    } else if (static_cast<std::int64_t>(sent.size()) != size || negative || sum != rows) {
      problem = std::to_string(sent.size()) + " splits of " + std::to_string(sum) +
                " rows in all for " + std::to_string(rows) + " rows and " + std::to_string(size) +
                " ranks";
    }
  }
  const Signature signature{"alltoall", {{name, form_of(tensor, true)}}, problem};
  require_at_work(group_, "alltoall" + quoted(name), agree(group_, signature, /*payload=*/1));
  std::pair<at::Tensor, Counts> result;
  group_.run("alltoall" + quoted(name), [&] {
    auto to_others = at::empty({size}, at::kLong), to_me = at::empty({size}, at::kLong);
    std::copy(sent.begin(), sent.end(), to_others.data_ptr<std::int64_t>());
    exchange_rows(group_, to_me, to_others);
    const auto* counts = to_me.data_ptr<std::int64_t>();
    result.second.assign(counts, counts + size);
    result.first = rows_of_all(group_, tensor.detach().contiguous(), sent, result.second);
  });
  return result;
}

void Operations::barrier() {
  agree(group_, {"barrier", {}, {}});
}

}  // namespace dpwa::collective
