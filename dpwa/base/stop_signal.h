#pragma once

// Signals of a program that runs until its work is done or it is told to stop. SIGHUP means that it
// reads the cluster file again; SIGINT and SIGTERM mean that it stops. While stopping is deferred,
// the first SIGINT or SIGTERM is only noted, and the program ends where that is safe. Any other one
// ends the process at once with exit code 128 + signal, and a line on stderr where the program gave
// its name. SIGPIPE is ignored, so the program keeps
// running when the reader of its log goes away. SIGXFSZ is ignored too: a write beyond the limit of
// file sizes then fails like one on a full disk. The functions change the whole process. The main
// thread calls them.
namespace dpwa::stop_signal {

// Only notes a SIGHUP from now on, for install() to come. A program that links LibTorch spends a
// third of a second before main(), in constructors; a SIGHUP in that time would end it. Such a
// program names this function in the section .preinit_array of its executable, whose entries run
// before all constructors.
void hold_reload();

// From now on a signal ends the process with its exit code. `program`: its name, which outlives the
// process's end, for the line then; null: it says nothing.
void install(const char* program = nullptr);
void defer(bool on);           // from now on, whether the first signal is only noted
int received();                // the number of the noted signal; 0 = none. Any thread.
bool take_reload();            // whether SIGHUP arrived since the last call
void limit(unsigned seconds);  // ends the process with 128 + received() after that time

// Stopping is deferred while it lives, and then as before.
class Deferral {
 public:
  Deferral();
  ~Deferral();
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;
  bool is_first() const { return !before_; }  // it was not deferred before

 private:
  const bool before_;
};

}  // namespace dpwa::stop_signal
