#include "dpwa/kvclient/waiting_messages.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace dpwa::kvclient {

bool WaitingMessages::is_request(const kvstore::Message& message) {
  return std::holds_alternative<kvstore::Init>(message) ||
         std::holds_alternative<kvstore::Push>(message) ||
         std::holds_alternative<kvstore::Pull>(message) ||
         std::holds_alternative<kvstore::StateMessage>(message);
}

bool WaitingMessages::is_push(const kvstore::Message& message, const kvstore::SliceId& slice,
                              std::uint64_t step) {
  const auto* push = std::get_if<kvstore::Push>(&message);
  return push != nullptr && push->step <= step && push->slice == slice;
}

void WaitingMessages::add(std::uint64_t tag, kvstore::Message message) {
  if (!is_request(message)) {
    first_.push_back({tag, std::move(message)});
  } else if (tags_.insert(tag).second) {
    requests_.push_back({tag, std::move(message)});
  } else {
    std::ranges::find(requests_, tag, &Item::tag)->message = std::move(message);
  }
}

void WaitingMessages::drop_pushes(const kvstore::SliceId& slice, std::uint64_t step) {
  std::erase_if(requests_, [&](const Item& each) {
    const bool drops = is_push(each.message, slice, step);
    if (drops) tags_.erase(each.tag);
    return drops;
  });
}

void WaitingMessages::drop_requests() {
  requests_.clear();
  tags_.clear();
}

WaitingMessages::Item WaitingMessages::take() {
  auto& queue = first_.empty() ? requests_ : first_;
  Item item = std::move(queue.front());
  if (&queue == &requests_) tags_.erase(item.tag);
  queue.pop_front();
  return item;
}

}  // namespace dpwa::kvclient
