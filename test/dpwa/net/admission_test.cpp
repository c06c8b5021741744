#include "dpwa/net/admission.h"

#include <doctest/doctest.h>

#include <chrono>

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

// What a node answers to this pull at this moment; none: it grants it.
std::optional<wire::MessageType> refusal(const LocalNode& local, const wire::Pull& pull,
                                         TimePoint now) {
  const auto verdict = examine_pull(pull, local, /*busy=*/false, now);
  const auto* refused = std::get_if<PullRefusal>(&verdict);
  return refused ? std::optional(refused->type) : std::nullopt;
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

TEST_CASE("a snapshot that is no longer fresh is given to no pull that states the ledger") {
  LocalNode local = local_node();
  Progress progress;
  progress.version = 3;
  local.store.publish(*local.store.begin(), progress);
  local.state = wire::NodeState::ready;
  const TimePoint until{std::chrono::seconds(5)};
  const TimePoint after = until + std::chrono::nanoseconds(1);
  wire::Pull states, known, silent;
  states.taken = known.taken = 0;
  known.known_version = 3;
  CHECK_FALSE(refusal(local, states, after));  // a node that knows no usual step
  local.fresh_until = until;
  CHECK_FALSE(refusal(local, states, until));
  CHECK(refusal(local, states, after) == wire::MessageType::not_fresh);
  CHECK(refusal(local, known, after) == wire::MessageType::not_modified);
  CHECK_FALSE(refusal(local, silent, after));
}

}  // namespace dpwa
