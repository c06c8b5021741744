#include "adapters/collective/engine/ignore_sigpipe.h"

#include <csignal>

namespace dpwa::collective {

void ignore_sigpipe() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

}  // namespace dpwa::collective
