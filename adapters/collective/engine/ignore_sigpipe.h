#pragma once

namespace dpwa::collective {

// A write to a peer that has gone would end the process: ignores SIGPIPE unless the program has
// chosen what it does. Any thread.
void ignore_sigpipe();

}  // namespace dpwa::collective
