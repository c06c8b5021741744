#include "adapters/collective/terms.h"

#include <cstddef>

#include "adapters/collective/next_group.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"
#include "dpwa/config/names.h"
#include "dpwa/wire/messages.h"

namespace dpwa::collective {
namespace {

constexpr auto nodes_of_file = "nodes of the cluster file";
constexpr std::size_t longest_list = 200;  // bytes of a list of names that is shown as it is

}  // namespace

Settings file_terms(const Config& config) {
  std::string names;
  for (const NodeEntry& node : config.nodes) names += (names.empty() ? "" : ", ") + node.name;
  if (names.size() > longest_list)
    names = std::to_string(config.nodes.size()) + " names, hash " + std::to_string(hash_of(names));
  return {{nodes_of_file, names}};
}

Settings settings_terms(const CollectiveConfig& config) {
  return {{"collective.bucket_bytes", std::to_string(config.bucket_bytes)},
          {"collective.compression", config::name_of(config.compression)},
          {"collective.average_buffers", config.average_buffers ? "true" : "false"},
          {"collective.on_lost_rank", config::name_of(config.on_lost_rank)},
          {"collective.minority", config::name_of(config.minority)}};
}

std::string missing_in(const std::vector<MemberView>& views) {
  std::string names;
  for (const MemberView& view : views) {
    if (view.reach == MemberView::Reach::answers && !view.finished && view.notes.seeks) continue;
    const char* why = "answers, but waits for no group";
    if (view.reach == MemberView::Reach::refused) why = "not running";
    if (view.reach == MemberView::Reach::silent) why = "no answer";
    if (view.finished) why = "has finished";
    if (view.reach == MemberView::Reach::answers && view.notes.formed.epoch > 0) continue;
    names += (names.empty() ? "'" : ", '") + view.name + "' (" + why + ")";
  }
  return names;
}

std::string stranger_in(const std::vector<MemberView>& views, std::size_t self) {
  const GroupNotes& own = views[self].notes;
  if (own.formed.epoch > 0) return "";
  std::string of_group, of_start;
  for (std::size_t place = 0; place < views.size(); ++place) {
    const MemberView& view = views[place];
    if (place == self) continue;
    if (view.reach == MemberView::Reach::silent && !view.given_up)
      return "";  // it may be one of ours
    if (view.reach != MemberView::Reach::answers || view.finished || view.notes.left) continue;
    const std::string who = "'" + view.name + "' ";
    const bool trains = view.notes.formed.epoch > 0;
    // It has formed the group that is about to form here, and which compares the settings.
    if (trains && view.notes.formed == own.vote) return "";
    if (trains && view.differs.empty()) return "";  // a group that takes this node in
    const bool counts = trains || view.differs.starts_with(nodes_of_file);
    std::string& found = trains ? of_group : of_start;
    if (!found.empty()) continue;
    if (!view.backend.empty() && view.backend != "collective") {
      found = who + "runs backend " + to_plain_text(view.backend, wire::max_name_bytes);
    } else if (counts && !view.differs.empty()) {
      found = who + "differs: " + view.differs;
    }
  }
  return of_group.empty() ? of_start : of_group;
}

}  // namespace dpwa::collective
