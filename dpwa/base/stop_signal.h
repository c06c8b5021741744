#pragma once

// Signals of a program that runs until its work is done or it is told to stop. SIGHUP: read the
// cluster file again. SIGINT and SIGTERM: stop. While deferred, the first of these is noted, for
// the program to end where it is safe; any other ends the process at once with exit code 128 +
// signal. SIGPIPE is ignored: a log that nobody reads is no reason to end. So is SIGXFSZ: a write
// beyond the limit of file sizes fails like one on a full disk. Process-wide, as signals are;
// called by the main thread.
namespace dpwa::stop_signal {

void install();                // from here on a signal ends the process with its exit code
void defer(bool on);           // from here on the first signal is only noted; or no longer
int received();                // its number; 0 = none. Any thread.
bool take_reload();            // whether SIGHUP came since the last call
void limit(unsigned seconds);  // ends the process with 128 + received() after so long

}  // namespace dpwa::stop_signal
