#pragma once

// Signals of a command that runs until it is told to stop. Process-wide, as signals are.
namespace dpwa::cli::stop_signal {

// From here on the first SIGINT or SIGTERM is noted, a second one ends the process at once with
// 128 + its number; SIGHUP is noted.
void install();
int received();      // 0: none
bool take_reload();  // whether SIGHUP has come since the last call

}  // namespace dpwa::cli::stop_signal
