#include "adapters/collective/group_session.h"

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/collective/gathering.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds patience_for_the_news(200);
constexpr std::chrono::seconds patience_with_the_others(5);
constexpr std::chrono::milliseconds between_looks(20);

}  // namespace

GroupSession::GroupSession(const Config& config, LocalProcess& local, Settings terms)
    : config_(config),
      local_(local),
      board_(local.notes, config.self_index(), std::move(terms)),
      patience_(config.collective.lost_after),
      assembler_(config, local, board_, patience_) {}

GroupSession::~GroupSession() {
  drop();
}

Place GroupSession::place() const {
  return {static_cast<std::size_t>(group_->rank()), static_cast<std::size_t>(group_->size())};
}

const std::string& GroupSession::name_of(int rank) const {
  return config_.nodes[membership_.members[static_cast<std::size_t>(rank)].place].name;
}

void GroupSession::take_up(Assembler::Formed formed) {
  drop();
  before_ = std::exchange(membership_, std::move(formed.membership));
  group_ = std::move(formed.group);
  watch_ = std::make_unique<RankWatch>(config_, local_, board_, patience_, membership_, group_);
}

void GroupSession::drop() {
  std::erase_if(retired_, [](const auto& watch) { return watch->stopped(); });
  if (!group_) return;
  watch_->stop();
  retired_.push_back(std::move(watch_));
  group_->abort();  // which the watch may keep for a moment
  group_.reset();
}

void GroupSession::forget() {
  drop();
  board_.change([](GroupNotes& notes) {
    notes.formed = {};
    notes.vote = {};
  });
}

void GroupSession::note_apart(bool apart) {
  board_.change([apart](GroupNotes& notes) { notes.apart = apart; });
}

void GroupSession::note_left() {
  board_.change([](GroupNotes& notes) { notes.left = true; });
}

void GroupSession::leave() {
  note_left();
  if (!group_) return;
  drop();
  const auto until = SteadyClock::now() + patience_with_the_others;
  try {
    for (auto unaware = others(); !unaware.empty() && SteadyClock::now() < until;) {
      const auto answers = ask_for_status(config_, local_, unaware, patience_for_the_news);
      std::vector<std::size_t> still;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!goes_on_without_this(answers[i])) still.push_back(unaware[i]);
      }
      unaware = std::move(still);
      if (!unaware.empty()) std::this_thread::sleep_for(between_looks);
    }
  } catch (const std::exception&) {
    // Such as no file descriptors: it leaves untold.
  }
}

bool GroupSession::goes_on_without_this(const StatusAnswer& answer) const {
  if (!answer.error.empty()) return answer.nobody_listens;
  const GroupNotes notes =
      group_notes_in(nlohmann::json::parse(answer.json, nullptr, false), config_.nodes.size());
  const bool votes = notes.vote.epoch > membership_.epoch &&
                     !notes.vote.includes(config_.self_index(), local_.incarnation);
  return votes || notes.left || notes.apart || notes.formed.epoch != membership_.epoch;
}

std::vector<std::size_t> GroupSession::others() const {
  std::vector<std::size_t> places;
  for (const auto& member : membership_.members) {
    if (member.place != config_.self_index()) places.push_back(member.place);
  }
  return places;
}

std::string GroupSession::missed() const {
  std::string names;
  for (const auto& member : before_.members) {
    if (membership_.find(member.place) == nullptr)
      names += (names.empty() ? "'" : ", '") + config_.nodes[member.place].name + "'";
  }
  return names;
}

std::string GroupSession::suspect() const {
  if (!together()) return "";
  if (std::string lost = watch_->lost(); !lost.empty()) return lost;
  const auto rank = group_->lost_rank();
  if (!rank || *rank == group_->rank()) return "";
  return "'" + name_of(*rank) + "' is lost";
}

std::string GroupSession::lost_node() const {
  if (!together()) return "";
  const auto until = SteadyClock::now() + patience_for_the_news;
  while (true) {
    if (std::string known = suspect(); !known.empty()) return known;
    if (SteadyClock::now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::string silent;
  for (const auto& answer : ask_for_status(config_, local_, others(), patience_for_the_news)) {
    if (!answer.error.empty()) silent += (silent.empty() ? "'" : ", '") + answer.name + "'";
  }
  return silent.empty() ? "" : "no answer from " + silent;
}

}  // namespace dpwa::collective
