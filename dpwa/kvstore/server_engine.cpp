#include "dpwa/kvstore/server_engine.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace dpwa::kvstore {
namespace {

WatchOptions with_replicas(WatchOptions options, bool replicas) {
  options.replicas = replicas;
  return options;
}

template <typename Type, typename... Types>
constexpr bool is_one_of = (std::is_same_v<Type, Types> || ...);

}  // namespace

ServerEngine::ServerEngine(const ServerOptions& options, const MemberId& self,
                           const std::vector<std::string>& servers, TimePoint now)
    : options_(options),
      epochs_(self, servers, options.retry),
      watch_(with_replicas(options.watch, options.shard.replicas), self, now),
      shard_(options.shard, self.name) {}

Beat ServerEngine::beat() const {
  return {epoch().number, shard_.clock(), false, false, 0, shard_.snapshot(), shard_.filled()};
}

void ServerEngine::take_up_epoch(TimePoint now) {
  if (!epoch().has(self())) {
    // One that has just started learns of the others first, and is taken in later.
    deposed_ = member_;
    return;
  }
  member_ = true;
  watch_.installed(epoch(), now);
  shard_.install(epoch(), now);
  tell_passed();
}

void ServerEngine::tell_passed() {
  for (const auto& [worker, count] : barriers_.take_passed(epoch())) {
    outgoing_.push_back({worker, 0, Barrier{epoch().number, count, false}});
  }
}

void ServerEngine::receive(const MemberId& from, std::uint64_t tag, Message message,
                           TimePoint now) {
  if (deposed_) return;
  std::visit(
      [&](auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Beat>) {
          watch_.heard(from, content, now);
          shard_.announce_snapshot(content.snapshot);
          epochs_.compare(from.name, content.epoch);
        } else if constexpr (is_one_of<Content, Ballot, Promise, Proposal, Vote, EpochNews,
                                       AskEpoch>) {
          if (epochs_.receive(from, content, now)) take_up_epoch(now);
        } else if constexpr (std::is_same_v<Content, Barrier>) {
          epochs_.compare(from.name, content.epoch);
          barriers_.reached(from, content.count, content.waits);
          if (member_) tell_passed();
        } else if constexpr (is_one_of<Content, Init, Push, Pull, StateMessage>) {
          epochs_.compare(from.name, content.epoch);
          shard_.receive(from, tag, std::move(content), now);
        } else if constexpr (!std::is_same_v<Content, Answer>) {
          epochs_.compare(from.name, content.epoch);
          shard_.receive(from, std::move(content), now);
        }
      },
      message);
}

void ServerEngine::tick(TimePoint now) {
  if (deposed_) return;
  epochs_.tick(now);
  shard_.tick(now);
  if (beaten_ != TimePoint::min() && now - beaten_ < options_.beat) return;
  beaten_ = now;
  for (const ServerEntry& server : epoch().servers) {
    if (server.id.name != self().name) outgoing_.push_back({server.id.name, 0, beat()});
  }
  if (epochs_.proposing()) return;
  const std::uint64_t before = epoch().number;
  if (auto next = watch_.successor(epoch(), beat(), now)) epochs_.propose(*std::move(next), now);
  if (epoch().number != before) take_up_epoch(now);  // this server alone is the majority
}

std::vector<Outgoing> ServerEngine::take() {
  for (auto& [to, message] : epochs_.take()) {
    outgoing_.push_back(
        {to, 0, std::visit([](auto& content) { return Message(std::move(content)); }, message)});
  }
  for (Outgoing& each : shard_.take()) outgoing_.push_back(std::move(each));
  return std::exchange(outgoing_, {});
}

}  // namespace dpwa::kvstore
