#include "dpwa/collective/terms.h"

#include <chrono>
#include <cstddef>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"
#include "dpwa/config/names.h"
#include "dpwa/wire/messages.h"

namespace dpwa::collective {
namespace {

constexpr auto nodes_of_file = "nodes of the cluster file";
constexpr auto engine_of_node = "engine of backend collective";
constexpr auto policy_of_node = "collective.on_lost_rank";
constexpr std::size_t longest_list = 200;  // bytes of a list of names that is shown as it is

}  // namespace

Settings file_terms(const Config& config, const std::string& engine) {
  std::string names;
  for (const NodeEntry& node : config.nodes) names += (names.empty() ? "" : ", ") + node.name;
  if (names.size() > longest_list)
    names = std::to_string(config.nodes.size()) + " names, hash " + std::to_string(hash_of(names));
  return {{nodes_of_file, names},
          {engine_of_node, engine},
          {policy_of_node,
           config::name_in(config::on_lost_rank_words, config.collective.on_lost_rank)}};
}

Settings::value_type model_term(const std::vector<Signature::Entry>& tensors) {
  std::string text;
  for (const auto& tensor : tensors) text += tensor.name + ' ' + tensor.form + '\n';
  return {"model",
          std::to_string(tensors.size()) + " tensors, hash " + std::to_string(hash_of(text))};
}

std::string missing_in(const group::GroupNode::State& state) {
  std::string names;
  for (const auto& [name, peer] : state.peers) {
    if (state.answers(peer)) continue;
    if (state.in_view() && state.view.member(name) == nullptr) continue;  // not expected
    names += (names.empty() ? "'" : ", '") + name;
    names += "' (" +
             (!peer.barred.empty() ? peer.barred
              : peer.refuses()     ? std::string("not running")
                                   : "no answer") +
             ")";
  }
  return names;
}

std::string minority_in(const group::GroupNode::State& state) {
  if (state.lacking.empty()) return "";
  std::string missing;
  for (const auto& [name, why] : state.lacking)
    missing += (missing.empty() ? "'" : ", '") + name + "' (" + why + ")";
  const std::size_t voters = state.view.voters().size();
  if (voters < state.view.members.size()) missing += "; a node that has just come has no vote yet";
  return std::to_string(voters - state.lacking.size()) + " of " + std::to_string(voters) +
         " nodes of the last group are not a majority of it; missing: " + missing;
}

std::string gone_in(const group::GroupNode::State& state, const GroupMembers& members) {
  std::string lost;
  for (const auto& member : members.members) {
    const auto peer = state.peers.find(member.id.name);
    if (peer == state.peers.end() || peer->second.id != member.id) continue;
    const std::string who = "'" + member.id.name + "' ";
    if (peer->second.leaves) return who + "has left";
    if (lost.empty() && !peer->second.lost.empty()) lost = who + peer->second.lost;
  }
  return lost;
}

std::string stranger_in(const group::GroupNode::State& state,
                        const std::map<std::string, std::string>& backends, bool waited) {
  if (state.in_view()) return "";
  std::string of_group, of_start;
  for (const auto& [name, peer] : state.peers) {
    const std::string who = "'" + name + "' ";
    if (peer.bars_us()) {
      if (of_start.empty()) of_start = who + peer.barred;
      continue;
    }
    if (!peer.id) {
      const auto backend = backends.find(name);
      if (backend != backends.end() && backend->second != "collective") {
        of_start = who + "runs backend " + to_plain_text(backend->second, wire::max_name_bytes);
      } else if (!waited && !peer.refuses()) {
        return "";  // it may be one of ours
      }
      continue;
    }
    const bool trains = state.view.votes(*peer.id);
    if (trains && peer.differs.empty()) return "";  // a group that admits this node
    std::string& found = trains ? of_group : of_start;
    const bool counts = trains || peer.differs.starts_with(nodes_of_file) ||
                        peer.differs.starts_with(engine_of_node) ||
                        peer.differs.starts_with(policy_of_node);
    if (counts && found.empty() && !peer.differs.empty()) found = who + "differs: " + peer.differs;
  }
  return of_group.empty() ? of_start : of_group;
}

}  // namespace dpwa::collective
