#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"

namespace dpwa::kvserver {

// A server of the parameter server, with a thread of its own. When the other servers have gone on
// without it because it was silent, it begins again under a new incarnation: empty, until the
// others fill it. Used by one thread.
class StoreServer {
 public:
  // `name`: of kvstore.servers. Throws ConfigError when the file cannot be used for a server, or
  // the files of its security section cannot be used.
  StoreServer(Config config, const std::string& name);
  ~StoreServer();  // stops
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Listens and runs. Throws std::runtime_error when it cannot listen within `patience`.
  void start(Duration patience = Duration::zero());
  void stop();  // gives answers under way 300 ms; idempotent
  // Reads the files of the security section again. New connections use them;
  // existing connections continue. None: done, or there are no such files. Otherwise the reason in
  // one line, and the old files stay in use. Any thread.
  std::optional<std::string> reload_security();
  std::uint16_t port() const;  // in use, once started
  // Any thread. 0: it has not ended by itself. 1: it could not begin again. 2: it cannot start from
  // its snapshots, or its settings are not those of the others. The log has the reason.
  int failure() const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace dpwa::kvserver
