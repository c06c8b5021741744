#include "dpwa/net/other_settings.h"

#include "dpwa/snapshot/mark.h"

namespace dpwa {
namespace {

// Callers may state anything: what is remembered is bounded, and forgotten at once when it is full.
constexpr std::size_t most_known = 256;
constexpr std::size_t most_told = 4096;
constexpr std::size_t most_lines = 16;

}  // namespace

bool OtherSettings::learn(const Manifest& theirs) {
  if (theirs.fingerprint() != own_.fingerprint()) return false;
  if (known_.size() >= most_known) known_.clear();
  auto found = differences(settings_of(own_), settings_of(theirs));
  if (found.size() > most_lines) found.resize(most_lines);
  known_[theirs.stated_fingerprint()] = std::move(found);
  return true;
}

std::optional<std::vector<std::string>> OtherSettings::lines(const std::string& peer,
                                                             const Fingerprint& stated) {
  const auto found = known_.find(stated);
  if (found == known_.end()) return std::nullopt;
  std::vector<std::string> lines;
  if (told_.size() >= most_told) told_.clear();
  if (!told_.emplace(peer, stated).second) return lines;
  for (const SettingDifference& setting : found->second) {
    lines.push_back(setting.words(on_node(node_), on_node(peer)) +
                    "; their models are blended all the same");
  }
  return lines;
}

}  // namespace dpwa
