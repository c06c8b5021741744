#include "dpwa/session/requests.h"

#include <doctest/doctest.h>

namespace dpwa::session {
namespace {

using wire::MessageType;
using wire::TypeSet;

constexpr TypeSet of_news(MessageType::members, MessageType::reject);
constexpr TypeSet of_pull(MessageType::snapshot, MessageType::busy, MessageType::reject);

wire::FrameHeader header_of(MessageType type, std::uint32_t number) {
  return {type, number, 4};
}

}  // namespace

TEST_CASE("the answers to several requests come in any order, each once") {
  for (const bool news_first : {true, false}) {
    Requests requests;
    const auto news = requests.begin(of_news);
    const auto pull = requests.begin(of_pull);
    CHECK(news != pull);
    CHECK(requests.answers() == TypeSet(MessageType::members, MessageType::snapshot,
                                        MessageType::busy, MessageType::reject));
    const auto first = header_of(MessageType::members, news);
    const auto second = header_of(MessageType::snapshot, pull);
    CHECK(requests.answered(news_first ? first : second));
    CHECK(requests.waits_for(news) == !news_first);
    CHECK(requests.waits_for(pull) == news_first);
    CHECK(requests.answered(news_first ? second : first));
    CHECK(requests.answers() == TypeSet());
    CHECK_FALSE(requests.answered(first));
    CHECK_FALSE(requests.answered(second));
  }
}

// Every event in every state of one request, beside another one that stays under way.
TEST_CASE("only a request that is under way is answered, and by its own types") {
  enum class State { none, under_way, answered, ended };
  for (const State state : {State::none, State::under_way, State::answered, State::ended}) {
    CAPTURE(static_cast<int>(state));
    const auto brought = [&](Requests& requests) -> std::uint32_t {
      if (state == State::none) return 1000;
      const auto number = requests.begin(of_pull);
      if (state == State::answered) requests.answered(header_of(MessageType::busy, number));
      if (state == State::ended) requests.clear();
      return number;
    };
    const auto is_answered_by = [&](MessageType type) {
      Requests requests;
      const auto number = brought(requests);
      const auto other = requests.begin(of_news);
      const bool answered = requests.answered(header_of(type, number));
      CHECK(requests.waits_for(other));
      CHECK(requests.waits_for(number) == (state == State::under_way && !answered));
      return answered;
    };
    CHECK(is_answered_by(MessageType::snapshot) == (state == State::under_way));
    CHECK(is_answered_by(MessageType::reject) == (state == State::under_way));
    CHECK_FALSE(is_answered_by(MessageType::members));  // of the other request's types
    Requests requests;
    const auto number = brought(requests);
    CHECK(requests.answers() == (state == State::under_way ? of_pull : TypeSet()));
    requests.clear();
    CHECK(requests.answers() == TypeSet());
    CHECK(requests.begin(of_news) != number);
  }
}

}  // namespace dpwa::session
