#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/members/vote.h"

namespace dpwa::group {

// What a process of a group keeps for the next one of its name on this machine (members/vote.h): a
// file that it holds locked while it lives. So once another process gets the lock, the kernel says
// that the former one has ended, and the file says how it voted last. It need not survive the
// machine: what is from before its last start does not count. A file that cannot be written costs
// the votes of the dead, and nothing else. One owner, one thread.
class KeptFile {
 public:
  // `name`: of the file, in a folder of this user alone: $XDG_RUNTIME_DIR, or one beside the
  // temporary files.
  explicit KeptFile(const std::string& name);

  const std::optional<members::Kept>& former() const { return former_; }
  void write(const members::Kept& kept);
  void remove();  // nobody will ask for it

 private:
  std::filesystem::path file_;
  FileDescriptor locked_;  // not valid: another process of the name lives, or there is no folder
  std::optional<members::Kept> former_;
};

}  // namespace dpwa::group
