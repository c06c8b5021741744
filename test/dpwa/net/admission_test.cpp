#include "dpwa/net/admission.h"

#include <doctest/doctest.h>

#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

LocalNode local_node() {
  return {"digits", "w1", 7, {"w2", "w3"}, test::vector_manifest(8), 4096, [](std::size_t bytes) {
            return AlignedBuffer(bytes);
          }};
}

wire::Hello hello(std::string cluster, std::string node, wire::Role role = wire::Role::node) {
  wire::Hello hello;
  hello.role = role;
  hello.cluster = std::move(cluster);
  hello.node = std::move(node);
  return hello;
}

}  // namespace

TEST_CASE("a node of the cluster file is admitted, whatever its model") {
  const LocalNode local = local_node();
  CHECK_FALSE(examine_hello(hello("digits", "w2"), local));
  CHECK_FALSE(examine_hello(hello("digits", "w3"), local));
}

TEST_CASE("an observer of the cluster is admitted, one of another cluster is not") {
  const LocalNode local = local_node();
  CHECK_FALSE(examine_hello(hello("digits", "", wire::Role::observer), local));
  const auto reject = examine_hello(hello("letters", "", wire::Role::observer), local);
  REQUIRE(reject);
  CHECK(reject->code == wire::RejectCode::cluster);
}

TEST_CASE("a caller is rejected for the first of cluster, own name and unknown name") {
  const LocalNode local = local_node();
  const auto code_and_reason = [&](const wire::Hello& caller) {
    const auto reject = examine_hello(caller, local);
    REQUIRE(reject);
    return std::pair(reject->code, reject->reason);
  };
  CHECK(code_and_reason(hello("letters", "w1")) ==
        std::pair(wire::RejectCode::cluster,
                  std::string("node 'w1' belongs to cluster 'digits', not 'letters'")));
  CHECK(code_and_reason(hello("letters", "w9")).first == wire::RejectCode::cluster);
  CHECK(code_and_reason(hello("digits", "w1")) ==
        std::pair(wire::RejectCode::own_name, std::string("two nodes are named 'w1'")));
  CHECK(code_and_reason(hello("digits", "w9")) ==
        std::pair(wire::RejectCode::unknown_node,
                  std::string("node 'w9' is not in the cluster file of 'w1'")));
}

TEST_CASE("the reject of another model names both nodes and the first tensor that differs") {
  const LocalNode local = local_node();
  const auto reject = model_reject(local, "w2", test::vector_manifest(9));
  CHECK(reject.code == wire::RejectCode::model);
  CHECK(reject.reason ==
        "the models of 'w1' and 'w2' differ: tensor 0 'x' is float32[8] on 'w1' and "
        "float32[9] on 'w2'");
}

}  // namespace dpwa
