#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/frame.h"

namespace dpwa::session {

struct Frame {
  wire::FrameHeader header;
  // Of a message of the store and of a SNAPSHOT only the head.
  std::vector<std::byte> body;
  ReusedBytes payload;  // of a message of the store, unless it was read to another place
};

// The frames that are accepted next. Any other one is a fault that is found before its body is
// allocated.
struct Expected {
  // A body of `most_bytes` at most.
  explicit Expected(wire::TypeSet accepted,
                    std::uint64_t longest = std::numeric_limits<std::uint64_t>::max())
      : types(accepted), most_bytes(longest) {}
  // Each with its bound, also of types that not every connection takes. `accepted` outlives this.
  explicit Expected(std::span<const wire::TypeBound> accepted) : bounds(accepted) {
    for (const wire::TypeBound& bound : accepted) types.add(bound.type);
  }

  wire::TypeSet types;
  std::span<const wire::TypeBound> bounds;
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_snapshot_bytes = 0;  // of the body of a SNAPSHOT
};

// The incoming side of a connection: says where the next bytes go, and makes frames of them. What
// is longer than it reads ahead goes straight to its place. Memory follows the bytes that have
// come, not the length that a frame announces. No I/O. One owner, one thread.
//
//   expect(), then until ready(): read into want(), and took(); then take()
//
// A SNAPSHOT is taken with its head alone. The rest of its body is read part by part, each with
// land() and then in the same way, until all of it has landed.
class Incoming {
 public:
  // Where the payload of a message of the store, `bytes` long, is to be read to; empty: into the
  // frame. Asked once its head is there, which is not checked yet. Written to until the frame is
  // taken, or clear().
  using Target = std::function<std::span<std::byte>(
      wire::MessageType type, std::span<const std::byte> head, std::uint64_t bytes)>;

  // `ahead_bytes`: the most that is read ahead; 0: nothing.
  explicit Incoming(std::size_t ahead_bytes, Target target = nullptr)
      : ahead_bytes_(ahead_bytes), target_(std::move(target)) {}

  void read_ahead(std::size_t bytes) { ahead_bytes_ = bytes; }  // from the next read on
  // Begins a frame, once the one before it is there as a whole.
  void expect(const Expected& expected);
  // Whether the frame, or the part that is to land, is there. A fault is there, too.
  bool ready();
  struct Want {
    std::span<std::byte> target;
    std::size_t least = 0;  // bytes that are worth a wake-up
    // More has probably come with what came last: worth a look before waiting.
    bool at_once = false;
  };
  Want want();  // while it is not ready()
  // So many bytes of the last want() have come.
  void took(std::size_t bytes);
  // Once it is ready(). After a fault only clear() is allowed.
  wire::Decoded<Frame> take();

  // Where the next bytes of the SNAPSHOT go that was taken: no more than unlanded_bytes().
  void land(std::span<std::byte> part);
  std::size_t landed() const { return have_; }  // bytes of the last part that are there
  std::uint64_t unlanded_bytes() const { return unlanded_; }

  bool is_between_frames() const {
    return stage_ == Stage::idle ||
           (stage_ == Stage::part && unlanded_ == 0 && have_ == into_.size());
  }
  // Bytes have come beyond what has been taken.
  bool holds_bytes() const { return begin_ != end_; }
  // As at the beginning. What was read ahead is lost.
  void clear();

 private:
  enum class Stage : std::uint8_t {
    idle,  // between two frames
    header,
    body,           // or the head of it
    head_length,    // of a message of the store
    payload,        // of a message of the store
    whole,          // to be taken
    between_parts,  // of a SNAPSHOT
    part,           // of a SNAPSHOT
    broken,
  };
  void go(Stage stage, std::span<std::byte> into);
  void fill();  // from what was read ahead
  void advance();
  void begin_body();
  void grow_body();
  void begin_payload();
  void grow_payload();
  void fail(wire::Fault fault, std::string detail);

  std::size_t ahead_bytes_;
  const Target target_;
  Stage stage_ = Stage::idle;
  Expected expected_{wire::TypeSet()};
  std::array<std::byte, wire::header_bytes> header_;
  Frame frame_;
  std::optional<wire::WireError> fault_;
  std::size_t body_bytes_ = 0;       // that Frame::body is to have
  std::size_t payload_bytes_ = 0;    // that Frame::payload is to have
  std::size_t longest_payload_ = 0;  // that has come
  std::uint64_t unlanded_ = 0;       // bytes of a SNAPSHOT that no part has been named for
  std::span<std::byte> into_;        // where the bytes of this stage go
  std::size_t have_ = 0;             // of them
  bool looked_ = false;              // for the rest of them, at once
  std::size_t wanted_ = 0;           // bytes of the last want()
  bool direct_ = false;              // the last want() was not for what is read ahead
  std::vector<std::byte> ahead_;     // empty until the first read
  std::size_t begin_ = 0;            // what has come and has not been used
  std::size_t end_ = 0;
};

}  // namespace dpwa::session
