#include "dpwa/collectives/operation_queue.h"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/support/eventually.h"

namespace dpwa::collectives {
namespace {

// What was performed, in this order.
struct Record {
  std::mutex mutex;
  std::string performed;
};

std::shared_ptr<Operation> added(OperationQueue& queue, Record& record, char name, bool prompt,
                                 const std::function<void()>& body = {}) {
  auto operation = std::make_shared<Operation>([&record, name, body] {
    if (body) body();
    const std::lock_guard lock(record.mutex);
    record.performed += name;
  });
  queue.add(operation, prompt);
  return operation;
}

}  // namespace

TEST_CASE("operations are performed in order, whoever performs them") {
  Record record;
  OperationQueue queue;
  std::vector<std::shared_ptr<Operation>> all;
  for (const char name : std::string("abcdefgh"))
    all.push_back(added(queue, record, name, name == 'c' || name == 'g'));
  queue.finish(*all[4]);
  queue.finish(*all[7]);
  CHECK(record.performed == "abcdefgh");
  for (const auto& each : all) CHECK(each->problem() == nullptr);
}

TEST_CASE("an operation is under way until it has ended") {
  Record record;
  OperationQueue queue;
  std::promise<void> begun;
  std::promise<void> may_end;
  const auto operation = added(queue, record, 'a', /*prompt=*/true, [&] {
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();
  CHECK(queue.performs());
  may_end.set_value();
  queue.finish(*operation);
  CHECK_FALSE(queue.performs());
}

TEST_CASE("an operation for which nobody waits is performed, as other members may need it") {
  Record record;
  OperationQueue queue;
  const auto first = added(queue, record, 'a', false);
  CHECK(test::eventually([&] { return first->has_ended(); }));
  // The thread rests by now, or does not.
  const auto second = added(queue, record, 'b', false);
  CHECK(queue.wait(*second, std::chrono::steady_clock::now() + test::patience));
  CHECK(record.performed == "ab");
}

TEST_CASE("after a failure the later operations end with it") {
  Record record;
  OperationQueue queue;
  std::promise<void> goes_on;
  const auto first = added(queue, record, 'a', true, [&] {
    goes_on.get_future().wait();
    throw std::runtime_error("a member is lost");
  });
  const auto second = added(queue, record, 'b', false);
  goes_on.set_value();
  queue.finish(*second);
  queue.finish(*first);
  const auto third = added(queue, record, 'c', true);
  CHECK(third->has_ended());
  CHECK(record.performed.empty());
  for (const auto& each : {first, second, third})
    CHECK_THROWS_WITH(each->rethrow(), "a member is lost");
}

TEST_CASE("a wait has an end where the operation has none") {
  Record record;
  OperationQueue queue;
  std::promise<void> goes_on;
  const auto operation = added(queue, record, 'a', true, [&] { goes_on.get_future().wait(); });
  CHECK_FALSE(queue.wait(*operation, std::chrono::steady_clock::now()));
  goes_on.set_value();
  queue.finish(*operation);
  CHECK(operation->has_ended());
}

}  // namespace dpwa::collectives
