#pragma once

#include <cstdint>
#include <vector>

#include "dpwa/wire/frame.h"

namespace dpwa::session {

// The requests of this end that are under way on a connection, by number. Their answers may come in
// any order. No I/O, no clock. One owner, one thread.
class Requests {
 public:
  // The number of a new request, which is answered by one frame of these types.
  std::uint32_t begin(wire::TypeSet answers);
  // What the next answer may be.
  wire::TypeSet answers() const;
  // A frame has come. True: it answers a request, which is over now. False: it was not asked for,
  // and the connection is to end.
  bool answered(const wire::FrameHeader& header);
  bool waits_for(std::uint32_t number) const;
  // The connection has ended, and with it all requests. Numbers are never used again.
  void clear() { under_way_.clear(); }

 private:
  struct Request {
    std::uint32_t number = 0;
    wire::TypeSet answers;
  };
  std::vector<Request> under_way_;
  std::uint32_t last_ = 0;
};

}  // namespace dpwa::session
