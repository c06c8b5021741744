#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dpwa/base/threads.h"
#include "dpwa/config/config.h"
#include "dpwa/security/tls_context.h"

namespace dpwa {

// How a node proves its identity and checks that of others: the files of the security section, and
// the TLS context made from them. Any thread.
class Security {
 public:
  // `place`: what "{name}" in the paths stands for. `name`: of the node that the own certificate
  // must name; empty: any. Throws ConfigError with the line of the key when a file cannot be used.
  // The mode is psk or mtls.
  Security(const Config& config, const std::string& place, std::string name);

  // For the connections that begin now.
  std::shared_ptr<const TlsContext> context() const;
  // Reads the files again. None: new connections use the new contents, and existing connections
  // continue. Otherwise the result is the reason in one line, and nothing changes.
  std::optional<std::string> reload();

 private:
  KeyedResult<std::shared_ptr<const TlsContext>> load() const;

  const SecurityConfig config_;  // with "{name}" replaced
  const std::string name_;
  mutable Mutex mutex_;
  std::shared_ptr<const TlsContext> context_ DPWA_GUARDED_BY(mutex_);
};

// Null when the mode is insecure or not given.
std::shared_ptr<Security> make_security(const Config& config);
// For a program that is not a node of the file, such as dpwa status. "{name}" in a path becomes
// `name`, or, when that is empty, the first node or server of the file whose files can be used.
// Null also where a path has "{name}" and the file names neither, because a launcher names the
// nodes.
std::shared_ptr<Security> make_observer_security(const Config& config, const std::string& name);

// For programs with keys in memory. From now on the process leaves no core dump, and no other
// process of its user can read its memory or trace it; root can. DPWA_CORE_DUMPS=1 in the
// environment switches this off. It holds for the process and the children that it forks, but not
// for programs that it starts. Throws ConfigError when DPWA_CORE_DUMPS is neither 0 nor 1.
void forbid_core_dumps();

}  // namespace dpwa
