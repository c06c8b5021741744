#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::kvserver {

// The messages that wait to be written to one connection. Beats and messages about epochs leave
// before messages with values, so that a member that sends many values over a slow line does not
// seem silent. The engines accept messages in another order. One thread.
class Outbox {
 public:
  // What leaves in one write: the frames, and the messages that they view.
  struct Batch {
    std::deque<kvstore::Message> messages;  // stay where they are
    wire::KvFrames frames;
  };

  void add(kvstore::Message message, std::uint64_t tag);
  bool empty() const { return urgent_.empty() && other_.empty(); }
  std::size_t bytes() const { return bytes_; }  // of all that wait
  // The next messages, encoded; false: none. A message that cannot be encoded is left out: a
  // defect, and the engines would send it again for ever.
  bool next(Batch& batch);
  void clear();

 private:
  struct Waiting {
    kvstore::Message message;
    std::uint32_t request_id = 0;
    std::size_t bytes = 0;
  };
  std::deque<Waiting> urgent_;
  std::deque<Waiting> other_;
  std::size_t bytes_ = 0;
};

}  // namespace dpwa::kvserver
