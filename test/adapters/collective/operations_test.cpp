#include "adapters/collective/engine/operations.h"

#include <ATen/ATen.h>

#include "adapters/collective/engine/sum_in_halves.h"
#include "test/adapters/collective/ranks.h"
#include "test/adapters/doctest_with_torch.h"

using namespace dpwa::collective;
using dpwa::test::error_of;
using dpwa::test::Rank;
using dpwa::test::with_ranks;

namespace {

constexpr int size = 3;

ReduceOptions reduce(Reduction reduction, Compression compression = Compression::none) {
  ReduceOptions options;
  options.reduction = reduction;
  options.compression = compression;
  return options;
}

// What rank r contributes: different in every element and rank.
at::Tensor part(int rank, at::ScalarType type = at::kFloat) {
  return (at::arange(12, at::kFloat).reshape({4, 3}) * (rank + 1) - rank).to(type);
}

at::Tensor stacked(at::ScalarType type = at::kFloat) {
  return at::stack({part(0, type), part(1, type), part(2, type)});
}

}  // namespace

TEST_CASE("allreduce: average, sum, min and max of every element") {
  with_ranks(size, [](Rank& rank) {
    const at::Tensor mine = part(rank.group->rank());
    const auto all = stacked();
    const auto reduced = [&](Reduction reduction) {
      return rank.operations.allreduce("w", mine, reduce(reduction));
    };
    CHECK(at::allclose(rank.operations.allreduce("w", mine), all.mean(0)));
    CHECK(at::equal(reduced(Reduction::sum), all.sum(0)));
    CHECK(at::equal(reduced(Reduction::min), at::amin(all, {0})));
    CHECK(at::equal(reduced(Reduction::max), at::amax(all, {0})));
    CHECK(at::equal(mine, part(rank.group->rank())));  // stays as it was
  });
}

TEST_CASE("allreduce: prescale and postscale") {
  with_ranks(size, [](Rank& rank) {
    auto options = reduce(Reduction::sum);
    options.prescale = 0.5;
    options.postscale = 4;
    const auto sum = rank.operations.allreduce("w", part(rank.group->rank()), options);
    CHECK(at::allclose(sum, stacked().sum(0) * 2));
  });
}

TEST_CASE("allreduce: every element type keeps its type") {
  with_ranks(size, [](Rank& rank) {
    for (const auto type : {at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                            at::kChar, at::kByte}) {
      const std::string name = c10::toString(type);
      CAPTURE(name);
      const auto positive = at::full({2, 2}, rank.group->rank() + 1).to(type);
      const auto sum = rank.operations.allreduce("w", positive, reduce(Reduction::sum));
      CHECK((sum.scalar_type() == type));
      CHECK(at::equal(sum, at::full({2, 2}, 6).to(type)));
    }
    const auto flag = at::full({2}, rank.group->rank() == 1, at::kBool);
    CHECK(rank.operations.allreduce("flag", flag, reduce(Reduction::max)).all().item<bool>());
    CHECK_FALSE(rank.operations.allreduce("flag", flag, reduce(Reduction::min)).any().item<bool>());
  });
}

TEST_CASE("allreduce: halves are summed in float32") {
  with_ranks(size, [](Rank& rank) {
    // In bfloat16 256 + 1 is 256, however often.
    const auto mine = at::full({4}, rank.group->rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    const auto sum = rank.operations.allreduce("w", mine, reduce(Reduction::sum));
    CHECK(sum[0].item<double>() == 258);
  });
}

TEST_CASE("allreduce: strides, gradients, scalars and empty tensors") {
  with_ranks(size, [](Rank& rank) {
    const auto mine = part(rank.group->rank()).t().requires_grad_();
    const auto mean = rank.operations.allreduce("w", mine);
    CHECK(at::allclose(mean, stacked().mean(0).t()));
    CHECK_FALSE(mean.requires_grad());
    const auto scalar = rank.operations.allreduce("s", at::full({}, 3.0));
    CHECK(scalar.dim() == 0);
    CHECK(scalar.item<double>() == 3);
    CHECK(rank.operations.allreduce("none", at::empty({0, 4})).sizes() == at::IntArrayRef({0, 4}));
  });
}

TEST_CASE("grouped allreduce gives each tensor its own result and type") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    const auto results = rank.operations.grouped_allreduce({{"a", part(r)},
                                                            {"n", at::full({2}, r, at::kLong)},
                                                            {"b", part(r, at::kHalf).t()},
                                                            {"c", part(r)}},
                                                           reduce(Reduction::sum));
    REQUIRE(results.size() == 4);
    CHECK(at::equal(results[0], stacked().sum(0)));
    CHECK(at::equal(results[1], at::full({2}, 3, at::kLong)));
    CHECK((results[2].scalar_type() == at::kHalf));
    CHECK(at::equal(results[2].to(at::kFloat), stacked().sum(0).t()));
    CHECK(at::equal(results[3], results[0]));
  });
}

TEST_CASE("several allreduces can be under way, and end in any order") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    std::vector<Handle> handles;
    for (int k = 0; k < 4; ++k) {
      handles.push_back(rank.operations.allreduce_async("w", part(r) + k));
    }
    for (int k = 3; k >= 0; --k) {
      const auto mean = handles[static_cast<std::size_t>(k)].wait().front();
      CHECK(at::allclose(mean, stacked().mean(0) + k));
    }
  });
}

TEST_CASE("compressed allreduce: sums in float32, the same bits on every rank") {
  for (const auto compression : {Compression::fp16, Compression::bf16}) {
    with_ranks(size, [&](Rank& rank) {
      const auto r = rank.group->rank();
      // 256 + 1 + 1 tells float32 sums from sums in bfloat16; 1000 elements do not divide by 3.
      const auto mine = at::full({1000}, r == 0 ? 256.0 : 1.0);
      const auto sum = rank.operations.allreduce("g", mine, reduce(Reduction::sum, compression));
      CHECK(at::equal(sum, at::full({1000}, 258.0)));

      const auto noise = at::sin(at::arange(1000, at::kFloat) * (r + 1));
      const auto mean =
          rank.operations.allreduce("g", noise, reduce(Reduction::average, compression));
      auto exact = at::zeros({1000});
      for (int k = 0; k < size; ++k) exact += at::sin(at::arange(1000, at::kFloat) * (k + 1)) / 3;
      CHECK((mean - exact).abs().max().item<double>() <
            (compression == Compression::fp16 ? 1e-3 : 8e-3));
      const auto of_all = rank.operations.allgather("g", mean.reshape({1, 1000}));
      for (int k = 0; k < size; ++k) CHECK(at::equal(of_all[k], mean));
      for (const std::int64_t few : {0, 1, 2, 4, 7}) {  // some ranks have no part of them
        const auto ones = at::ones({few});
        const auto all = rank.operations.allreduce("f", ones, reduce(Reduction::sum, compression));
        CHECK(at::equal(all, ones * size));
      }
    });
  }
}

namespace {

at::Tensor from_halves(const Halves& halves) {
  return halves.values.to(at::kFloat).mul(std::ldexp(1.0, halves.exponent));
}

}  // namespace

TEST_CASE("halves keep finite values finite, small ones alive and the others as they are") {
  const auto values = at::tensor({1e9, -1e9, 1e3, 0.0, HUGE_VAL, -HUGE_VAL}, at::kFloat);
  const auto small = at::tensor({1e-12, -3e-14, 0.0}, at::kFloat);
  for (const auto compression : {Compression::fp16, Compression::bf16}) {
    const double precision = compression == Compression::fp16 ? 1.0 / 2048 : 1.0 / 256;
    for (const auto& tensor : {values, small, at::full({3}, 3e38), at::full({2}, 1e-35)}) {
      const auto back = from_halves(to_halves(tensor, compression));
      CHECK(at::allclose(back, tensor, precision, 0));
    }
    const auto nan = from_halves(to_halves(at::tensor({NAN, 1e6}, at::kFloat), compression));
    CHECK(nan[0].isnan().item<bool>());
    CHECK(at::allclose(nan[1], at::full({}, 1e6), precision, 0));
    CHECK(at::equal(from_halves(to_halves(at::zeros({3}), compression)), at::zeros({3})));
    CHECK(to_halves(at::zeros({0}), compression).values.numel() == 0);
  }
}

TEST_CASE("compressed sums beyond the range of fp16 are right, and what is not finite shows") {
  for (const auto compression : {Compression::fp16, Compression::bf16}) {
    const double precision = compression == Compression::fp16 ? 1e-3 : 1e-2;
    with_ranks(size, [&](Rank& rank) {
      const auto r = rank.group->rank();
      const auto options = reduce(Reduction::average, compression);
      // Of different size on every rank and in every part; 10 elements do not divide by 3.
      const auto large = at::arange(1, 11, at::kFloat) * (r == 0 ? 1e6 : 1);
      const auto expected = at::arange(1, 11, at::kFloat) * (1e6 + 2) / size;
      CHECK(at::allclose(rank.operations.allreduce("g", large, options), expected, precision, 0));
      const auto tiny = at::full({10}, 1e-10);
      CHECK(at::allclose(rank.operations.allreduce("g", tiny, options), tiny, precision, 0));

      auto broken = at::ones({10});
      if (r == 1) broken[9] = HUGE_VAL;
      if (r == 2) broken[0] = NAN;
      const auto result = rank.operations.allreduce("g", broken, options);
      CHECK(result[0].isnan().item<bool>());
      CHECK(result[9].isinf().item<bool>());
      CHECK(at::equal(result.narrow(0, 1, 8), at::ones({8})));

      const auto rows = at::full({3, 2}, r == 2 ? 1e8 : 1e-3);
      const auto scattered = rank.operations.reducescatter("w", rows, options);
      CHECK(at::allclose(scattered, at::full({1, 2}, 1e8 / size), precision, 0));
    });
  }
}

TEST_CASE("allgather: the first dimension may differ, and be zero") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    const auto all = rank.operations.allgather("rows", at::full({r * 2, 3}, r, at::kLong));
    REQUIRE(all.sizes() == at::IntArrayRef({6, 3}));
    CHECK(at::equal(all.select(1, 0), at::tensor({1, 1, 2, 2, 2, 2}, at::kLong)));
    const auto scalars = rank.operations.allgather("s", at::full({}, r, at::kDouble));
    CHECK(at::equal(scalars, at::tensor({0.0, 1.0, 2.0}, at::kDouble)));
    CHECK(rank.operations.allgather("none", at::empty({0, 3})).sizes() == at::IntArrayRef({0, 3}));
    const auto flags = rank.operations.allgather("flag", at::full({1}, r == 1, at::kBool));
    CHECK(at::equal(flags, at::tensor({0, 1, 0}, at::kLong).to(at::kBool)));
  });
}

TEST_CASE("broadcast fills every tensor with that of the root") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    for (int root = 0; root < size; ++root) {
      auto mine = part(r);
      rank.operations.broadcast("w", mine, root);
      CHECK(at::equal(mine, part(root)));
      auto turned = part(r, at::kBFloat16).t();
      rank.operations.broadcast("t", turned, root);
      CHECK(at::equal(turned, part(root, at::kBFloat16).t()));
    }
    auto leaf = part(r).requires_grad_();
    rank.operations.broadcast("leaf", leaf, 1);
    CHECK(at::equal(leaf.detach(), part(1)));
  });
}

TEST_CASE("reducescatter: each rank has its rows of the sum, the first ranks one more") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    const std::vector<std::int64_t> first{0, 2, 3, 4};
    const auto rows = [&](const at::Tensor& whole) {
      const auto from = first[static_cast<std::size_t>(r)];
      return whole.narrow(0, from, first[static_cast<std::size_t>(r) + 1] - from);
    };
    const auto all = stacked();
    CHECK(at::allclose(rank.operations.reducescatter("w", part(r)), rows(all.mean(0))));
    CHECK(at::equal(rank.operations.reducescatter("w", part(r), reduce(Reduction::max)),
                    rows(at::amax(all, {0}))));
    const auto halves =
        rank.operations.reducescatter("w", part(r), reduce(Reduction::sum, Compression::bf16));
    CHECK((halves.scalar_type() == at::kFloat));
    CHECK(at::equal(halves, rows(all.sum(0))));
  });
}

TEST_CASE("alltoall: rows go where the splits say, and their numbers are told") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    // Rank r sends one row to rank 0, r rows to rank 1, none to rank 2.
    const auto mine = at::full({1 + r, 2}, 10.0 * r, at::kDouble);
    const auto [rows, counts] = rank.operations.alltoall("x", mine, {1, r, 0});
    if (r == 0) CHECK(at::equal(rows.select(1, 0), at::tensor({0.0, 10.0, 20.0}, at::kDouble)));
    if (r == 1) CHECK(counts == std::vector<std::int64_t>{0, 1, 2});
    if (r == 2) CHECK(rows.sizes() == at::IntArrayRef({0, 2}));
    const auto even = rank.operations.alltoall("y", at::arange(6).add(10 * r)).first;
    CHECK(at::equal(
        even,
        at::tensor({2 * r, 2 * r + 1, 10 + 2 * r, 11 + 2 * r, 20 + 2 * r, 21 + 2 * r}, at::kLong)));
  });
}

TEST_CASE("what one rank has otherwise is one error on every rank, and the group goes on") {
  with_ranks(size, [](Rank& rank) {
    const auto r = rank.group->rank();
    const auto odd = [&](auto&& usual, auto&& other) { return r == 1 ? other : usual; };
    auto& ops = rank.operations;
    const auto reason = [](const std::function<void()>& call) {
      const auto error = error_of(call);
      CHECK(error.failure() == Failure::mismatch);
      return error.reason();
    };
    const std::string same = "the ranks do not make the same call: ";
    CHECK(reason([&] { ops.allreduce("w", odd(at::zeros({3, 4}), at::zeros({3, 5}))); }) ==
          same + "ranks 0, 2: 'w' float32 [3, 4]; rank 1: 'w' float32 [3, 5]");
    CHECK(reason([&] { ops.allreduce("w", odd(at::zeros({3}), at::zeros({3}, at::kHalf))); }) ==
          same + "ranks 0, 2: 'w' float32 [3]; rank 1: 'w' float16 [3]");
    CHECK(reason([&] { ops.allreduce(odd("v", "w"), at::zeros({3})); }) ==
          same + "ranks 0, 2: 'v' float32 [3]; rank 1: 'w' float32 [3]");
    CHECK(reason([&] { ops.reducescatter("w", odd(at::zeros({3, 4}), at::zeros({3, 5}))); }) ==
          same + "ranks 0, 2: 'w' float32 [3, 4]; rank 1: 'w' float32 [3, 5]");
    CHECK(reason([&] { ops.allgather("w", odd(at::zeros({1, 4}), at::zeros({2, 5}))); }) ==
          same + "ranks 0, 2: 'w' float32 [*, 4]; rank 1: 'w' float32 [*, 5]");
    CHECK(reason([&] { ops.broadcast("w", at::zeros({3}), odd(0, 2)); }) ==
          same + "ranks 0, 2: broadcast from rank 0; rank 1: broadcast from rank 2");
    CHECK(reason([&] {
            if (r == 1) {
              ops.barrier();
            } else {
              ops.broadcast("w", at::zeros({3}), 0);
            }
          }) == same + "ranks 0, 2: broadcast from rank 0; rank 1: barrier");
    CHECK(reason([&] { ops.alltoall("w", odd(at::zeros({3, 2}), at::zeros({4, 2}))); }) ==
          "rank 1: 4 rows do not divide by 3");
    CHECK(reason([&] { ops.broadcast("w", at::zeros({3}), odd(0, 7)); }) ==
          "rank 1: there is no rank 7");
    CHECK(reason([&] { ops.allreduce("w", at::zeros({3}, odd(at::kFloat, at::kLong))); }) ==
          "rank 1: 'w': int64 cannot be averaged; use sum or a floating-point type");
    // Still in step.
    CHECK(at::equal(ops.allreduce("w", part(r), reduce(Reduction::sum)), stacked().sum(0)));
  });
}

TEST_CASE("without the check an allreduce is the same, and a local mistake is told locally") {
  with_ranks(size, [](Rank& rank) {
    auto options = reduce(Reduction::sum);
    options.check = false;
    const auto sum = rank.operations.allreduce("w", part(rank.group->rank()), options);
    CHECK(at::equal(sum, stacked().sum(0)));
    const auto error =
        error_of([&] { rank.operations.allreduce("flag", at::zeros({3}, at::kBool), options); });
    CHECK(error.failure() == Failure::usage);
  });
}
