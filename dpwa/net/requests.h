#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/frame_io.h"
#include "dpwa/net/stream.h"

namespace dpwa::net {

// The requests of one connection, several outstanding at a time. They leave in the order of the
// calls; answers are told apart by their request id and may come in any order. Each request has its
// own deadline, which ends only that request: while it waits for its turn it is not sent any more,
// and a later answer is dropped. Only a deadline that passes while the request is being written
// ends the connection, because half a frame may have left. close() and a broken connection end all
// requests. While a request is outstanding the stream is read here; at any other time its owner may
// read from it and write to it. One thread; not to be destroyed while a call is under way.
//
// Pulls do not use this (PeerChannel): an answer here is a frame that is read whole, by a coroutine
// of its own that wakes the caller, while the parameters of a pull are landed part by part as they
// arrive, by the coroutine that asked.
class Requests {
 public:
  // Outstanding and given up together; one more is refused as busy.
  static constexpr std::size_t max_outstanding = 64;

  // `stream`: connected, and introduced. `answers`: the message types that may come.
  Requests(std::shared_ptr<Stream> stream, std::vector<wire::TypeBound> answers);

  std::uint32_t next_id() { return state_->next_id++; }

  // Sends `frame`, whose request id is `id`, and waits for the answer. After a failure other than
  // timed_out and busy the connection is closed; after timed_out it may be.
  boost::asio::awaitable<IoResult<Frame>> ask(std::uint32_t id, std::vector<std::byte> frame,
                                              TimePoint deadline);
  std::size_t outstanding() const { return state_->waiting.size(); }
  bool is_open() const { return state_->stream->is_open(); }
  void close();

 private:
  struct Request {
    explicit Request(const boost::asio::any_io_executor& executor, TimePoint deadline)
        : timer(executor, deadline) {}
    boost::asio::steady_timer timer;  // cancelled by the outcome
    std::optional<IoResult<Frame>> outcome;
    bool leaves = false;    // its frame is being written, or has been
    bool given_up = false;  // the answer is still to come
  };
  // Held by the coroutine that reads, too, which may end after this object.
  struct State {
    State(std::shared_ptr<Stream> opened, std::vector<wire::TypeBound> types)
        : stream(std::move(opened)), answers(std::move(types)), writing(stream->get_executor()) {}
    bool awaits_answers() const {
      return std::ranges::any_of(waiting, [](const auto& each) { return each.second->leaves; });
    }

    std::shared_ptr<Stream> stream;
    const std::vector<wire::TypeBound> answers;
    std::map<std::uint32_t, std::shared_ptr<Request>> waiting;
    Turns writing;
    bool reading = false;
    std::uint32_t next_id = 1;
  };
  static boost::asio::awaitable<void> write(const std::shared_ptr<State>& state, Request& request,
                                            const std::vector<std::byte>& frame,
                                            TimePoint deadline);
  static boost::asio::awaitable<void> read_answers(std::shared_ptr<State> state);
  static void end_all(State& state, const Failure& why);

  const std::shared_ptr<State> state_;
};

}  // namespace dpwa::net
