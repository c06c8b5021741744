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

void Outbox::add(kvstore::Message message, std::uint64_t tag) {
  const std::size_t bytes = bytes_of(message) + message_bytes;
  bytes_ += bytes;
  const wire::MessageType type = wire::type_of(message);
  const bool urgent = type >= wire::MessageType::kv_beat && type != wire::MessageType::kv_state;
  (urgent ? urgent_ : other_)
      .push_back({std::move(message), static_cast<std::uint32_t>(tag), bytes});
}

bool Outbox::next(Batch& batch) {
  batch.messages.clear();
  batch.frames.clear();
  while (!empty()) {
    auto& queue = urgent_.empty() ? other_ : urgent_;
    Waiting& first = queue.front();
    if (!batch.frames.has_room_for(first.message)) break;
    try {
      batch.frames.add(first.message, first.request_id);
      batch.messages.push_back(std::move(first.message));
    } catch (const std::invalid_argument& defect) {
      log(LogLevel::error, "kvserver", std::string("a message was not sent: ") + defect.what());
    }
    bytes_ -= first.bytes;
    queue.pop_front();
  }
  return !batch.frames.empty();
}

void Outbox::clear() {
  urgent_.clear();
  other_.clear();
  bytes_ = 0;
}

}  // namespace dpwa::kvserver
