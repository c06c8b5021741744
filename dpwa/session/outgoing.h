#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::session {

// The outgoing side of a connection: the messages of the store that wait to be written, and those
// that are staged, which leave together. Beats, votes, epochs and barriers leave before messages of
// slices, so that a process that sends many values over a slow line does not seem silent; the
// engines accept that. Messages of slices keep their order: the answer to a pull tells a worker
// that its pushes before it were counted, where no answer has said otherwise. No I/O. One owner,
// one thread.
//
//   stage(), then write output(), wrote(), until is_staged() is false
class Outgoing {
 public:
  struct Item {
    std::uint64_t tag = 0;
    kvstore::Message message;
    std::size_t bytes = 0;  // with its values
  };
  // The form in which a message leaves, if it is not its own: one without values.
  using Form = std::function<std::optional<kvstore::Message>(const kvstore::Message& message)>;

  static bool is_urgent(const kvstore::Message& message);

  void add(kvstore::Message message, std::uint64_t tag);
  // The same, in the place of a message of a slice with this tag that waits, if there is one. Those
  // that are put have tags of their own.
  void put(kvstore::Message message, std::uint64_t tag);
  // A frame of another kind, before all that waits.
  void add(std::span<const std::byte> frame) { frames_.add(frame); }

  bool waits() const { return !urgent_.empty() || !others_.empty() || !frames_.empty(); }
  std::size_t bytes() const { return bytes_; }  // of the messages that wait
  // Of these, messages of slices for which `drops` holds.
  template <class Predicate>
  void drop_if(Predicate drops) {
    std::erase_if(others_, [&](const Item& item) {
      if (!drops(item.message)) return false;
      forget(item);
      return true;
    });
  }
  void drop_urgent();
  void clear();  // all that waits; what is staged stays

  // Encodes what leaves next. A message that cannot be encoded is left out: a defect, and the
  // engines would send it again for ever. While nothing is staged.
  void stage(const Form& form = nullptr);
  bool is_staged() const { return !staged_frames_.empty(); }
  // The messages that output() views.
  const std::deque<Item>& staged() const { return staged_; }
  std::size_t staged_bytes() const { return staged_frames_.bytes(); }
  std::vector<std::span<const std::byte>> output() const;  // what is left of it to write
  // So many bytes of output() are written. After the last one nothing is staged.
  void wrote(std::size_t bytes);
  void unstage();  // the rest will not be written

 private:
  void forget(const Item& item);  // that no longer waits

  std::deque<Item> urgent_;
  std::deque<Item> others_;
  std::unordered_set<std::uint64_t> tags_;  // of those of others_ that were put
  std::size_t bytes_ = 0;
  wire::KvFrames frames_;    // that leave first
  std::deque<Item> staged_;  // stay where they are
  wire::KvFrames staged_frames_;
  std::size_t written_ = 0;  // bytes of staged_frames_
};

}  // namespace dpwa::session
