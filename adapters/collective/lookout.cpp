#include "adapters/collective/lookout.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "adapters/collective/gathering.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

constexpr auto between_questions_to_the_lost = 1000ms;

std::string text_in(const nlohmann::json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t incarnation_in(const nlohmann::json& document) {
  const auto found = document.find("incarnation");
  return found != document.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

Lookout::Lookout(const Config& config, LocalProcess& local, const NoticeBoard& board,
                 Patience& patience)
    : config_(config), local_(local), board_(board), patience_(patience) {
  nodes_.resize(config.nodes.size());
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    nodes_[place].sight.name = config.nodes[place].name;
}

bool Lookout::to_ask(std::size_t place, TimePoint now) const {
  if (place == config_.self_index()) return false;
  const Memory& memory = nodes_[place];
  const auto lost = board_.read().lost;
  const bool given_up = memory.sight.given_up || std::ranges::find(lost, place) != lost.end();
  return !given_up || now - memory.asked >= between_questions_to_the_lost;
}

void Lookout::see(Memory& memory, const StatusAnswer& answer, TimePoint now) {
  Sight& sight = memory.sight;
  memory.asked = now;
  const auto document = nlohmann::json::parse(answer.json, nullptr, false);
  if (answer.error.empty() && document.is_object()) {
    sight.reach = Sight::Reach::answers;
    sight.given_up = false;
    sight.finished = text_in(document, "state") == "finished";
    sight.incarnation = incarnation_in(document);
    sight.notes = group_notes_in(document, nodes_.size());
    sight.differs = difference(sight.notes.terms, board_.read().terms);
    sight.backend = text_in(document, "backend");
    memory.silent_since.reset();
    memory.refused_before = false;
    return;
  }
  // Refused twice: a single refusal may come from a machine that is short of resources.
  const bool twice = answer.nobody_listens && memory.refused_before;
  sight.reach = twice ? Sight::Reach::refused : Sight::Reach::silent;
  memory.refused_before = answer.nobody_listens;
  if (!memory.silent_since) memory.silent_since = now;
  sight.given_up = now - *memory.silent_since >= patience_.before_lost();
}

std::vector<Sight> Lookout::look() {
  const TimePoint begun = std::chrono::steady_clock::now();
  std::vector<std::size_t> asked;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (to_ask(place, begun)) asked.push_back(place);
  }
  const auto answers = ask_for_status(config_, local_, asked, patience_.of_a_look());
  const TimePoint now = std::chrono::steady_clock::now();
  bool all_answered = !asked.empty();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    see(nodes_[asked[i]], answers[i], now);
    all_answered = all_answered && nodes_[asked[i]].sight.reach == Sight::Reach::answers;
  }
  if (all_answered) patience_.answered(now - begun);
  Sight& self = nodes_[config_.self_index()].sight;
  self.reach = Sight::Reach::answers;
  self.incarnation = local_.incarnation;
  self.notes = board_.read();
  std::vector<Sight> sights;
  for (const Memory& memory : nodes_) sights.push_back(memory.sight);
  return sights;
}

}  // namespace dpwa::collective
