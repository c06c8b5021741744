#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// Callers with the model of this node and other settings (snapshot/mark.h). They are admitted,
// and each difference is a line for the log, once for each caller. No I/O; Rx thread only.
class OtherSettings {
 public:
  // `node`: the name of this one.
  OtherSettings(std::string node, const Manifest& own) : node_(std::move(node)), own_(own) {}

  // The fingerprint that this node states.
  const Fingerprint& stated() const { return own_.stated_fingerprint(); }
  // Remembers the settings of a manifest with the same model. False: it has another one.
  bool learn(const Manifest& theirs);
  // Of a caller that states this fingerprint: the lines that were not given yet. None: no such
  // manifest is remembered.
  std::optional<std::vector<std::string>> lines(const std::string& peer, const Fingerprint& stated);

 private:
  const std::string node_;
  const Manifest& own_;
  std::map<Fingerprint, std::vector<SettingDifference>> known_;
  std::set<std::pair<std::string, Fingerprint>> told_;
};

}  // namespace dpwa
