#include "dpwa/net/requests.h"

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <string>
#include <utility>

namespace dpwa::net {

namespace asio = boost::asio;

Requests::Requests(std::shared_ptr<Stream> stream, std::vector<wire::TypeBound> answers)
    : state_(std::make_shared<State>(std::move(stream), std::move(answers))) {}

void Requests::close() {
  end_all(*state_, Failure(Failure::Kind::ended, "the connection was closed"));
}

void Requests::end_all(State& state, const Failure& why) {
  state.stream->close();
  for (auto& [id, request] : state.waiting) {
    if (!request->outcome) request->outcome = why;
    request->timer.cancel();
  }
  state.waiting.clear();
}

asio::awaitable<IoResult<Frame>> Requests::ask(std::uint32_t id, std::vector<std::byte> frame,
                                               TimePoint deadline) {
  const std::shared_ptr<State> state = state_;
  if (state->waiting.size() >= max_outstanding || state->waiting.contains(id)) {
    Failure busy(Failure::Kind::busy, "too many requests are outstanding on this connection");
    co_return busy;
  }
  const auto request = std::make_shared<Request>(state->stream->get_executor(), deadline);
  state->waiting.emplace(id, request);
  bool in_time = false;
  if (co_await state->writing.take(deadline)) {
    const OnExit over([&state] { state->writing.give_back(); });
    in_time = std::chrono::steady_clock::now() < deadline;
    if (in_time && !request->outcome) co_await write(state, *request, frame, deadline);
  }
  if (!in_time && !request->outcome) {
    state->waiting.erase(id);  // nothing has left, so no answer comes
    Failure late(Failure::Kind::timed_out, "the request had no turn to be sent in time");
    co_return late;
  }
  if (!request->outcome) co_await request->timer.async_wait(as_result);
  if (!request->outcome) {
    request->given_up = true;
    Failure late(Failure::Kind::timed_out, "no answer in time");
    co_return late;
  }
  IoResult<Frame> outcome = std::move(*request->outcome);
  co_return outcome;
}

// A frame is written whole or the connection ends: a deadline that passes meanwhile ends it.
asio::awaitable<void> Requests::write(const std::shared_ptr<State>& state, Request& request,
                                      const std::vector<std::byte>& frame, TimePoint deadline) {
  request.leaves = true;
  if (!state->reading) {
    state->reading = true;
    asio::co_spawn(state->stream->get_executor(), read_answers(state), rethrow);
  }
  const Deadline end(state->stream->get_executor(), deadline, [&] {
    end_all(*state, Failure(Failure::Kind::timed_out, "the request could not be sent in time"));
  });
  const auto broken = co_await state->stream->write_all(frame);
  if (broken) end_all(*state, *broken);
}

asio::awaitable<void> Requests::read_answers(std::shared_ptr<State> state) {
  const OnExit over([&state] { state->reading = false; });
  while (state->awaits_answers()) {
    auto answer = co_await read_frame(*state->stream, state->answers);
    if (!answer) {
      end_all(*state, answer.error());
      co_return;
    }
    const auto asked = state->waiting.find(answer->header.request_id);
    if (asked == state->waiting.end() || !asked->second->leaves) {
      end_all(*state, Failure(Failure::Kind::protocol, "answered a request that was never made"));
      co_return;
    }
    const auto request = asked->second;
    state->waiting.erase(asked);
    if (request->given_up) continue;
    request->outcome = std::move(*answer);
    request->timer.cancel();
  }
}

}  // namespace dpwa::net
