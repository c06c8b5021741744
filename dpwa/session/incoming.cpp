#include "dpwa/session/incoming.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/messages.h"

namespace dpwa::session {
namespace {

constexpr std::size_t body_step_bytes = std::size_t{64} << 10;
// Of a part of a SNAPSHOT: fewer are not worth a wake-up.
constexpr std::size_t least_landed_bytes = std::size_t{64} << 10;

}  // namespace

void Incoming::go(Stage stage, std::span<std::byte> into) {
  stage_ = stage;
  into_ = into;
  have_ = 0;
  looked_ = false;
}

void Incoming::clear() {
  go(Stage::idle, {});
  frame_ = {};
  fault_.reset();
  unlanded_ = longest_payload_ = 0;
  wanted_ = begin_ = end_ = 0;
}

void Incoming::fail(wire::Fault fault, std::string detail) {
  fault_ = wire::WireError{fault, std::move(detail)};
  stage_ = Stage::broken;
}

void Incoming::expect(const Expected& expected) {
  DPWA_INVARIANT(is_between_frames(), "a frame begins after the one before it", stage_);
  expected_ = expected;
  go(Stage::header, header_);
}

void Incoming::fill() {
  const std::size_t count = std::min(into_.size() - have_, end_ - begin_);
  if (count == 0) return;
  std::memcpy(into_.data() + have_, ahead_.data() + begin_, count);
  have_ += count;
  begin_ += count;
}

bool Incoming::ready() {
  DPWA_INVARIANT(stage_ != Stage::idle, "a frame is expected before it is asked for");
  while (true) {
    if (stage_ == Stage::whole || stage_ == Stage::between_parts || stage_ == Stage::broken)
      return true;
    fill();
    if (have_ < into_.size()) return false;
    if (stage_ == Stage::part) return true;
    advance();
  }
}

Incoming::Want Incoming::want() {
  const auto rest = into_.subspan(have_);
  DPWA_INVARIANT(!rest.empty() && begin_ == end_, "bytes are wanted where some are missing",
                 stage_);
  direct_ = rest.size() >= ahead_bytes_;
  Want want{rest, rest.size()};
  if (!direct_) {
    if (ahead_.size() < ahead_bytes_) ahead_.resize(ahead_bytes_);
    begin_ = end_ = 0;
    want.target = ahead_;
  } else if (stage_ == Stage::part) {
    want.least = std::min(rest.size(), least_landed_bytes);
    want.at_once = true;
  } else {
    want.at_once = !looked_ && stage_ != Stage::header;
    looked_ = true;
  }
  wanted_ = want.target.size();
  return want;
}

void Incoming::took(std::size_t bytes) {
  DPWA_INVARIANT(bytes <= wanted_, "no more bytes come than were wanted", bytes, wanted_);
  wanted_ = 0;
  if (direct_) {
    have_ += bytes;
  } else {
    end_ = bytes;
    fill();
  }
}

void Incoming::advance() {
  switch (stage_) {
    case Stage::header:
      return begin_body();
    case Stage::head_length: {
      const auto start = std::span(std::as_const(frame_.body)).first<wire::kv_head_length_bytes>();
      const auto head = wire::kv_head_bytes(start, frame_.header.body_bytes);
      if (!head) return fail(head.error().fault, head.error().detail);
      body_bytes_ = *head;
      return grow_body();
    }
    case Stage::body:
      if (frame_.body.size() < body_bytes_) return grow_body();
      if (wire::is_kv_type(frame_.header.type)) return begin_payload();
      return go(Stage::whole, {});
    case Stage::payload:
      longest_payload_ = std::max(longest_payload_, frame_.payload.size());
      if (frame_.payload.size() < payload_bytes_) return grow_payload();
      [[fallthrough]];
    default:
      go(Stage::whole, {});
  }
}

void Incoming::begin_body() {
  const auto header = wire::decode_header(header_, expected_.most_snapshot_bytes, expected_.bounds);
  if (!header) return fail(header.error().fault, header.error().detail);
  if (!expected_.types.has(header->type)) {
    return fail(
        wire::Fault::bad_type,
        "message type " + std::to_string(static_cast<int>(header->type)) + " is not expected here");
  }
  if (header->body_bytes > expected_.most_bytes) {
    return fail(wire::Fault::bad_length, "a message of " + std::to_string(header->body_bytes) +
                                             " bytes, where " +
                                             std::to_string(expected_.most_bytes) + " are allowed");
  }
  frame_ = Frame{*header, {}, {}};
  if (wire::is_kv_type(header->type)) {
    frame_.body.resize(wire::kv_head_length_bytes);
    return go(Stage::head_length, frame_.body);
  }
  const bool is_snapshot = header->type == wire::MessageType::snapshot;
  body_bytes_ = is_snapshot ? wire::snapshot_head_bytes : header->body_bytes;
  unlanded_ = is_snapshot ? header->body_bytes - body_bytes_ : 0;
  grow_body();
}

void Incoming::grow_body() {
  const std::size_t before = frame_.body.size();
  frame_.body.resize(std::min(body_bytes_, before + body_step_bytes));
  go(Stage::body, std::span(frame_.body).subspan(before));
}

void Incoming::begin_payload() {
  const std::uint64_t bytes = frame_.header.body_bytes - frame_.body.size();
  std::span<std::byte> place;
  if (target_ && bytes > 0) place = target_(frame_.header.type, frame_.body, bytes);
  payload_bytes_ = place.empty() ? bytes : 0;
  if (place.empty()) return grow_payload();
  DPWA_INVARIANT(place.size() == bytes, "a payload has a place of its size", place.size(), bytes);
  go(Stage::payload, place);
}

// At once as much as this connection has sent before, else four times what is there.
void Incoming::grow_payload() {
  const std::size_t before = frame_.payload.size();
  const std::size_t most = std::max({body_step_bytes, longest_payload_, 4 * before});
  ReusedBytes larger(std::min(payload_bytes_, most));
  std::ranges::copy(frame_.payload, larger.begin());
  frame_.payload = std::move(larger);
  go(Stage::payload, std::span<std::byte>(frame_.payload).subspan(before));
}

wire::Decoded<Frame> Incoming::take() {
  DPWA_INVARIANT(stage_ == Stage::whole || stage_ == Stage::broken,
                 "a frame is taken once it is whole", stage_);
  if (fault_) return *fault_;
  go(unlanded_ > 0 ? Stage::between_parts : Stage::idle, {});
  return std::move(frame_);
}

void Incoming::land(std::span<std::byte> part) {
  const bool is_next =
      stage_ == Stage::between_parts || (stage_ == Stage::part && have_ == into_.size());
  DPWA_INVARIANT(is_next && part.size() <= unlanded_,
                 "a part of a snapshot lands after the one before it", stage_, part.size(),
                 unlanded_);
  unlanded_ -= part.size();
  go(Stage::part, part);
  fill();
}

}  // namespace dpwa::session
