#include "dpwa/session/outgoing.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "dpwa/base/invariant.h"
#include "dpwa/log/log.h"

namespace dpwa::session {
namespace {

// What a message takes beside its values.
constexpr std::size_t message_bytes = 512;

}  // namespace

bool Outgoing::is_urgent(const kvstore::Message& message) {
  return std::visit([](const auto& content) { return !requires { content.slice; }; }, message);
}

void Outgoing::add(kvstore::Message message, std::uint64_t tag) {
  const std::size_t bytes = wire::payload_bytes(message) + message_bytes;
  auto& queue = is_urgent(message) ? urgent_ : others_;
  queue.push_back({tag, std::move(message), bytes});
  bytes_ += bytes;
}

void Outgoing::put(kvstore::Message message, std::uint64_t tag) {
  if (is_urgent(message) || tags_.insert(tag).second) return add(std::move(message), tag);
  Item& item = *std::ranges::find(others_, tag, &Item::tag);
  bytes_ -= item.bytes;
  item.bytes = wire::payload_bytes(message) + message_bytes;
  bytes_ += item.bytes;
  item.message = std::move(message);
}

void Outgoing::forget(const Item& item) {
  DPWA_INVARIANT(item.bytes <= bytes_, "a message that leaves has waited", item.bytes, bytes_);
  bytes_ -= item.bytes;
  tags_.erase(item.tag);
}

void Outgoing::drop_urgent() {
  for (const Item& item : urgent_) bytes_ -= item.bytes;
  urgent_.clear();
  frames_.clear();
}

void Outgoing::clear() {
  drop_urgent();
  others_.clear();
  tags_.clear();
  bytes_ = 0;
}

void Outgoing::stage(const Form& form) {
  DPWA_INVARIANT(!is_staged(), "what is staged is written before more is staged", staged_bytes());
  std::swap(staged_frames_, frames_);
  while (!urgent_.empty() || !others_.empty()) {
    auto& queue = urgent_.empty() ? others_ : urgent_;
    Item& next = queue.front();
    const auto other = form ? form(next.message) : std::nullopt;
    const kvstore::Message& message = other ? *other : next.message;
    if (!staged_.empty() && !staged_frames_.has_room_for(message)) break;
    try {
      staged_frames_.add(message, static_cast<std::uint32_t>(next.tag));
      forget(next);
      staged_.push_back(std::move(next));
    } catch (const std::invalid_argument& defect) {
      log(LogLevel::error, "kvstore", std::string("a message was not sent: ") + defect.what());
      forget(next);
    }
    queue.pop_front();
  }
}

std::vector<std::span<const std::byte>> Outgoing::output() const {
  auto parts = staged_frames_.parts();
  std::size_t gone = written_;
  std::erase_if(parts, [&](std::span<const std::byte>& part) {
    const std::size_t bytes = std::min(gone, part.size());
    gone -= bytes;
    part = part.subspan(bytes);
    return part.empty();
  });
  return parts;
}

void Outgoing::wrote(std::size_t bytes) {
  DPWA_INVARIANT(written_ + bytes <= staged_bytes(), "no more is written than was staged", bytes,
                 written_, staged_bytes());
  written_ += bytes;
  if (written_ == staged_bytes()) unstage();
}

void Outgoing::unstage() {
  staged_.clear();
  staged_frames_.clear();
  written_ = 0;
}

}  // namespace dpwa::session
