#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dpwa/session/incoming.h"
#include "dpwa/wire/frame.h"

namespace dpwa::session {

// The requests of this end that are under way on a connection, by number. Their answers may come in
// any order. No I/O, no clock. One owner, one thread.
class Requests {
 public:
  // Of what comes.
  enum class Kind {
    due,      // the answer to a request
    late,     // the answer to a request that was given up: to be read and dropped
    unasked,  // of no request: the connection is to end
  };

  // The number of a new request, which is answered by one frame of these types.
  std::uint32_t begin(wire::TypeSet answers);
  // Nobody waits for its answer any more, which may still come.
  void give_up(std::uint32_t number);
  // What an answer may be: of all requests, those that were given up included.
  wire::TypeSet answers() const;
  // A frame has come. If it is an answer, its request is over.
  Kind answered(const wire::FrameHeader& header);
  bool waits_for(std::uint32_t number) const;  // it is under way, and was not given up
  // The connection has ended, and with it all requests. Numbers are never used again.
  void clear() { under_way_.clear(); }

 private:
  struct Request {
    std::uint32_t number = 0;
    wire::TypeSet answers;
    bool given_up = false;
  };
  std::vector<Request> under_way_;
  std::uint32_t last_ = 0;
};

}  // namespace dpwa::session
