#include "dpwa/kvserver/outbox.h"

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "dpwa/kvserver/limits.h"
#include "dpwa/log/log.h"

namespace dpwa::kvserver {
namespace {

std::size_t length_of(const kvstore::SharedBytes& bytes) {
  return bytes ? bytes->size() : 0;
}

// The bytes of the values in the message.
std::size_t bytes_of(const kvstore::Message& message) {
  return std::visit(
      [](const auto& content) -> std::size_t {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, kvstore::Answer>) return length_of(content.values);
        if constexpr (std::is_same_v<Content, kvstore::Forward>) return content.gradient.size();
        if constexpr (std::is_same_v<Content, kvstore::StateMessage>) return content.state.size();
        if constexpr (std::is_same_v<Content, kvstore::Copy>)
          return length_of(content.values) + content.optimizer_state.size();
        return 0;
      },
      message);
}

}  // namespace

std::vector<boost::asio::const_buffer> Outbox::Item::buffers() const {
  std::vector<boost::asio::const_buffer> all{boost::asio::buffer(frame.head)};
  for (const auto& part : frame.payload) all.push_back({part.data(), part.size()});
  return all;
}

void Outbox::add(kvstore::Message message, std::uint64_t tag) {
  const std::size_t bytes = bytes_of(message) + message_bytes;
  bytes_ += bytes;
  const wire::MessageType type = wire::type_of(message);
  const bool urgent = type >= wire::MessageType::kv_beat && type != wire::MessageType::kv_state;
  (urgent ? urgent_ : other_)
      .push_back({std::move(message), static_cast<std::uint32_t>(tag), bytes});
}

std::unique_ptr<Outbox::Item> Outbox::next() {
  while (!empty()) {
    auto& queue = urgent_.empty() ? other_ : urgent_;
    Waiting first = std::move(queue.front());
    queue.pop_front();
    bytes_ -= first.bytes;
    auto item = std::make_unique<Item>(Item{std::move(first.message), {}});
    try {
      item->frame = wire::encode(item->message, first.request_id);
      return item;
    } catch (const std::invalid_argument& defect) {
      log(LogLevel::error, "kvserver", std::string("a message was not sent: ") + defect.what());
    }
  }
  return nullptr;
}

void Outbox::clear() {
  urgent_.clear();
  other_.clear();
  bytes_ = 0;
}

}  // namespace dpwa::kvserver
