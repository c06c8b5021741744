#include "adapters/collective/terms.h"

#include <algorithm>
#include <cstddef>

#include "adapters/collective/engine/signature.h"
#include "adapters/collective/next_group.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/config/names.h"
#include "dpwa/wire/messages.h"

namespace dpwa::collective {
namespace {

constexpr auto nodes_of_file = "nodes of the cluster file";
constexpr std::size_t longest_list = 200;  // bytes of a list of names that is shown as it is

// The words of a peer, which must not look like another line of the log.
std::string shown(const std::string& text) {
  return to_plain_text(text, longest_list);
}

std::string value_of(const Terms& terms, const std::string& name) {
  const auto found = std::ranges::find(terms, name, &Terms::value_type::first);
  return found == terms.end() ? "nothing" : found->second;
}

std::string differing(const std::string& name, const Terms& there, const Terms& here) {
  const std::string theirs = value_of(there, name);
  const std::string ours = value_of(here, name);
  if (theirs == ours) return "";
  return shown(name) + ": " + shown(theirs) + " there, " + shown(ours) + " here";
}

}  // namespace

Terms file_terms(const Config& config) {
  std::string names;
  for (const NodeEntry& node : config.nodes) names += (names.empty() ? "" : ", ") + node.name;
  if (names.size() > longest_list)
    names = std::to_string(config.nodes.size()) + " names, hash " + std::to_string(hash_of(names));
  return {{nodes_of_file, names}};
}

Terms settings_terms(const CollectiveConfig& config) {
  return {{"collective.bucket_bytes", std::to_string(config.bucket_bytes)},
          {"collective.compression", config::name_of(config.compression)},
          {"collective.average_buffers", config.average_buffers ? "true" : "false"},
          {"collective.on_lost_rank", config::name_of(config.on_lost_rank)},
          {"collective.minority", config::name_of(config.minority)}};
}

std::string difference(const Terms& there, const Terms& here) {
  if (there.empty() || here.empty()) return "";
  for (const Terms& terms : {here, there}) {
    for (const auto& [name, value] : terms) {
      if (std::string text = differing(name, there, here); !text.empty()) return text;
    }
  }
  return "";
}

std::string difference_of_files(const Terms& there, const Terms& here) {
  if (there.empty() || here.empty()) return "";
  return differing(nodes_of_file, there, here);
}

std::string missing_in(const std::vector<Sight>& sights) {
  std::string names;
  for (const Sight& sight : sights) {
    if (sight.reach == Sight::Reach::answers && !sight.finished && sight.notes.seeks) continue;
    const char* why = "answers, but waits for no group";
    if (sight.reach == Sight::Reach::refused) why = "not running";
    if (sight.reach == Sight::Reach::silent) why = "no answer";
    if (sight.finished) why = "has finished";
    if (sight.reach == Sight::Reach::answers && sight.notes.formed.epoch > 0) continue;
    names += (names.empty() ? "'" : ", '") + sight.name + "' (" + why + ")";
  }
  return names;
}

std::string stranger_in(const std::vector<Sight>& sights, std::size_t self) {
  const GroupNotes& own = sights[self].notes;
  if (own.formed.epoch > 0) return "";
  std::string of_group, of_start;
  for (std::size_t place = 0; place < sights.size(); ++place) {
    const Sight& sight = sights[place];
    if (place == self) continue;
    if (sight.reach == Sight::Reach::silent && !sight.given_up) return "";  // it may be one of ours
    if (sight.reach != Sight::Reach::answers || sight.finished || sight.notes.left) continue;
    const std::string who = "'" + sight.name + "' ";
    const bool trains = sight.notes.formed.epoch > 0;
    // It has formed the group that is about to form here, and which compares the settings.
    if (trains && sight.notes.formed == own.vote) return "";
    if (trains && sight.differs.empty()) return "";  // a group that takes this node in
    std::string differs = difference_of_files(sight.notes.terms, own.terms);
    if (trains) differs = sight.differs;
    std::string& found = trains ? of_group : of_start;
    if (!found.empty()) continue;
    if (!sight.backend.empty() && sight.backend != "collective") {
      found = who + "runs backend " + to_plain_text(sight.backend, wire::max_name_bytes);
    } else if (!differs.empty()) {
      found = who + "differs: " + differs;
    }
  }
  return of_group.empty() ? of_start : of_group;
}

}  // namespace dpwa::collective
