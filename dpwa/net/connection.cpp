#include "dpwa/net/connection.h"

#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <vector>

#include "dpwa/base/on_exit.h"
#include "dpwa/kvstore/link_limits.h"

namespace dpwa::net {

namespace asio = boost::asio;

asio::awaitable<std::optional<Failure>> read_into(ByteSource& source, Incoming& incoming) {
  const Incoming::Want want = incoming.want();
  std::size_t have = want.at_once ? source.read_at_once(want.target) : 0;
  std::optional<Failure> failure;
  if (have < want.least) {
    const auto target = want.target.subspan(have);
    const auto got = co_await source.read_some(target, want.least - have);
    if (!got) failure = got.error();
    if (got) have += *got;
  }
  if (!failure) incoming.took(have);
  co_return failure;
}

asio::awaitable<IoResult<Frame>> receive(ByteSource& source, Incoming& incoming,
                                         Expected expected) {
  incoming.expect(expected);
  while (!incoming.ready()) {
    auto failure = co_await read_into(source, incoming);
    if (failure) {
      incoming.clear();
      co_return std::move(*failure);
    }
  }
  auto frame = incoming.take();
  if (frame) co_return std::move(*frame);
  Failure failure(frame.error());
  incoming.clear();
  co_return failure;
}

asio::awaitable<IoResult<Frame>> Connection::receive(Expected expected) {
  if (!stream_.is_open()) incoming_.clear();
  return net::receive(stream_, incoming_, expected);
}

asio::awaitable<std::optional<Failure>> Connection::send(std::vector<std::byte> frame) {
  co_return co_await stream_.write_all(frame);
}

asio::awaitable<void> write_waiting(Stream& stream, session::Outgoing& outgoing,
                                    asio::steady_timer& wake, const WriteRules& rules) {
  while (stream.is_open()) {
    if (!outgoing.waits()) {
      wake.expires_at(TimePoint::max());
      co_await wake.async_wait(as_result);
      continue;
    }
    if (rules.turns != nullptr) co_await rules.turns->take();
    const OnExit over([&rules] {
      if (rules.turns != nullptr) rules.turns->give_back();
    });
    if (rules.before) rules.before();
    outgoing.stage(rules.form);
    if (!outgoing.is_staged()) continue;
    if (rules.staged) rules.staged();
    const std::size_t bytes = outgoing.staged_bytes();
    const Duration time = kvstore::time_to_write(rules.least_time, bytes);
    std::vector<asio::const_buffer> buffers;
    for (const auto& part : outgoing.output()) buffers.emplace_back(part.data(), part.size());
    bool whole = false;
    {
      const TimePoint until = std::chrono::steady_clock::now() + time;
      const Deadline deadline(stream.get_executor(), until, [&] {
        if (rules.late) rules.late(bytes, time);
        stream.close();
      });
      const std::span<const asio::const_buffer> all(buffers);
      const auto broken = co_await stream.write_all(all);
      whole = !broken;
    }
    if (whole) outgoing.wrote(bytes);
    if (!whole) outgoing.unstage();
    if (rules.after) rules.after(whole);
    if (!whole) stream.close();
  }
}

}  // namespace dpwa::net
