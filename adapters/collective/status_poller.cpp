#include "adapters/collective/status_poller.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "adapters/collective/gathering.h"
#include "dpwa/base/backoff.h"
#include "dpwa/base/settings.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

constexpr auto between_questions_to_the_lost = 1000ms;
constexpr auto between_questions_to_the_silent = 100ms;  // until they are given up
constexpr Backoff backoff_of_questions{3ms, 1000ms, 0.25};

std::string text_in(const nlohmann::json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t incarnation_in(const nlohmann::json& document) {
  const auto found = document.find("incarnation");
  return found != document.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// Whether it may change the decision on the next group.
bool is_news(const MemberView& before, const MemberView& now) {
  const auto facts = [](const MemberView& view) {
    const GroupNotes& notes = view.notes;
    return std::tie(view.reach, view.given_up, view.finished, view.incarnation, view.differs,
                    notes.formed, notes.seeks, notes.apart, notes.left, notes.vote,
                    notes.store_port, notes.lost);
  };
  return facts(before) != facts(now);
}

}  // namespace

StatusPoller::StatusPoller(const Config& config, LocalProcess& local, const NoticeBoard& board,
                           AdaptiveTimeout& patience)
    : StatusPoller(
          config, local, board, patience,
          [&](const std::vector<std::size_t>& places) {
            return ask_for_status(config, local, places, patience.of_a_look());
          },
          std::chrono::steady_clock::now) {}

StatusPoller::StatusPoller(const Config& config, LocalProcess& local, const NoticeBoard& board,
                           AdaptiveTimeout& patience, Ask ask, TimeSource now)
    : config_(config),
      local_(local),
      board_(board),
      patience_(patience),
      ask_(std::move(ask)),
      now_(std::move(now)),
      random_(derive_seed(local.incarnation, {config.self_index()})) {
  nodes_.resize(config.nodes.size());
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    nodes_[place].view.name = config.nodes[place].name;
}

TimePoint StatusPoller::turn_of(std::size_t place) const {
  if (place == config_.self_index()) return TimePoint::max();
  const Memory& memory = nodes_[place];
  const auto lost = board_.read().lost;
  const bool given_up = memory.view.given_up || std::ranges::find(lost, place) != lost.end();
  return given_up ? memory.asked + between_questions_to_the_lost : memory.turn;
}

TimePoint StatusPoller::next_turn() const {
  TimePoint next = TimePoint::max();
  for (std::size_t place = 0; place < nodes_.size(); ++place) next = std::min(next, turn_of(place));
  return next;
}

void StatusPoller::expect_news() {
  for (Memory& memory : nodes_) {
    memory.without_news = 0;
    memory.turn = {};
  }
}

void StatusPoller::see(Memory& memory, const StatusAnswer& answer, TimePoint now) {
  MemberView& view = memory.view;
  memory.asked = now;
  const auto document = nlohmann::json::parse(answer.json, nullptr, false);
  if (answer.error.empty() && document.is_object()) {
    view.reach = MemberView::Reach::answers;
    view.given_up = false;
    view.finished = text_in(document, "state") == "finished";
    view.incarnation = incarnation_in(document);
    view.notes = group_notes_in(document, nodes_.size());
    view.differs =
        first_difference({local_.name, board_.read().terms}, {view.name, view.notes.terms})
            .value_or("");
    view.backend = text_in(document, "backend");
    memory.silent_since.reset();
    memory.refused_before = false;
    return;
  }
  // Refused twice: a single refusal may come from a machine that is short of resources.
  const bool twice = answer.nobody_listens && memory.refused_before;
  view.reach = twice ? MemberView::Reach::refused : MemberView::Reach::silent;
  memory.refused_before = answer.nobody_listens;
  if (!memory.silent_since) memory.silent_since = now;
  view.given_up = now - *memory.silent_since >= patience_.before_lost();
}

std::vector<MemberView> StatusPoller::look() {
  const TimePoint begun = now_();
  std::vector<std::size_t> asked;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (turn_of(place) <= begun) asked.push_back(place);
  }
  const auto answers = ask_(asked);
  const TimePoint now = now_();
  bool all_answered = !asked.empty();
  bool news = false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Memory& memory = nodes_[asked[i]];
    const MemberView before = memory.view;
    see(memory, answers[i], now);
    all_answered = all_answered && memory.view.reach == MemberView::Reach::answers;
    news = news || is_news(before, memory.view);
    const bool silent = memory.view.reach == MemberView::Reach::silent;
    const Duration pause = backoff_of_questions.delay(++memory.without_news, random_);
    memory.turn =
        now + (silent ? std::min<Duration>(pause, between_questions_to_the_silent) : pause);
  }
  if (all_answered) patience_.answered(now - begun);
  if (news) expect_news();
  MemberView& self = nodes_[config_.self_index()].view;
  self.reach = MemberView::Reach::answers;
  self.incarnation = local_.incarnation;
  self.notes = board_.read();
  std::vector<MemberView> views;
  for (const Memory& memory : nodes_) views.push_back(memory.view);
  return views;
}

}  // namespace dpwa::collective
