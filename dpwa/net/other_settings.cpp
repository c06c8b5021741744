#include "dpwa/net/other_settings.h"

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
  auto differences = setting_differences(own_, theirs);
  if (differences.size() > most_lines) differences.resize(most_lines);
  known_[theirs.stated_fingerprint()] = std::move(differences);
  return true;
}

std::optional<std::vector<std::string>> OtherSettings::lines(const std::string& peer,
                                                             const Fingerprint& stated) {
  const auto found = known_.find(stated);
  if (found == known_.end()) return std::nullopt;
  std::vector<std::string> lines;
  if (told_.size() >= most_told) told_.clear();
  if (!told_.emplace(peer, stated).second) return lines;
  for (const auto& [what, here, there] : found->second) {
    lines.push_back("'" + peer + "' has " + what + " " + there + ", and this node " + here +
                    ": their models are blended all the same");
  }
  return lines;
}

}  // namespace dpwa
