#include "dpwa/collective/signature.h"

#include <doctest/doctest.h>

#include <string>

namespace dpwa::collective {
namespace {

Signature reduce(const std::string& form) {
  return {"allreduce sum", {{"w", form}, {"b", "float32 [3]"}}, {}};
}

}  // namespace

TEST_CASE("two ranks that use one GPU are named, and ranks with a GPU each are not") {
  CHECK_FALSE(shared_gpu({"a", "b", "c"}, {}));
  CHECK(shared_gpu({"a", "b", "a"}, {}) ==
        "ranks 0 and 2 use the same GPU; accepted: a GPU for each rank, or engine gloo");
  CHECK(shared_gpu({"a", "a"}, {"w1", "w2"}) ==
        "ranks 0 ('w1') and 1 ('w2') use the same GPU; accepted: a GPU for each rank, or engine "
        "gloo");
}

TEST_CASE("equal signatures agree") {
  const auto text = reduce("float32 [3, 4]").text();
  CHECK_FALSE(disagreement({text, text, text}).has_value());
  CHECK(text != reduce("float32 [3, 5]").text());
}

TEST_CASE("a disagreement names the tensor, and by rank what each has") {
  const auto usual = reduce("float32 [3, 4]").text(), other = reduce("float32 [3, 5]").text();
  CHECK(disagreement({usual, other, usual}).value() ==
        "the ranks do not make the same call: ranks 0, 2: 'w' float32 [3, 4]; rank 1: 'w' float32 "
        "[3, 5]");
}

TEST_CASE("other operations and other numbers of tensors disagree") {
  const auto usual = reduce("float32 [3]").text();
  CHECK(disagreement({usual, Signature{"barrier", {}, {}}.text()}).value() ==
        "the ranks do not make the same call: rank 0: allreduce sum; rank 1: barrier");
  auto longer = reduce("float32 [3]");
  longer.entries.push_back({"c", "int64 []"});
  CHECK(disagreement({usual, longer.text()}).value() ==
        "the ranks do not make the same call: rank 0: nothing; rank 1: 'c' int64 []");
}

TEST_CASE("a setting that some ranks have is told as a setting") {
  auto more = reduce("float32 [3]");
  more.entries.insert(more.entries.begin(), {"--seed", "1", true});
  CHECK(disagreement({reduce("float32 [3]").text(), more.text()}).value() ==
        "the ranks differ in a setting: rank 0: nothing; rank 1: '--seed' 1");
}

TEST_CASE("what one rank has wrong comes before what follows from it") {
  auto wrong = reduce("bool [3]");
  wrong.problem = "'w': bool cannot be added";
  CHECK(disagreement({reduce("float32 [3]").text(), wrong.text()}).value() ==
        "rank 1: 'w': bool cannot be added");
}

TEST_CASE("operation and tensors are read back from the text, without settings and problems") {
  Signature signature = reduce("float32 [3, 4]");
  signature.entries.push_back({"it's", "int64 []"});
  signature.entries.push_back({"--seed", "1", true});
  signature.problem = "'w': wrong";
  const Signature read = Signature::parse(signature.text());
  CHECK(read.operation == "allreduce sum");
  REQUIRE(read.entries.size() == 3);
  CHECK(read.entries[0].name == "w");
  CHECK(read.entries[0].form == "float32 [3, 4]");
  CHECK(read.entries[2].name == "it's");
  CHECK(read.entries[2].form == "int64 []");
  CHECK(Signature::parse("").operation.empty());
}

TEST_CASE("a line end in a name cannot pose as another entry") {
  const Signature forged{"sum", {{"w\n'b' float32 [3]", "x"}}, {}};
  CHECK(forged.text() == "sum\n'w 'b' float32 [3]' x\n");
}

}  // namespace dpwa::collective
