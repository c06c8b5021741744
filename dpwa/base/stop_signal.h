#pragma once

// Signals of a program that runs until its work is done or it is told to stop. SIGHUP means that it
// reads the cluster file again. SIGINT and SIGTERM mean that it stops; SIGUSR1 and SIGUSR2 that its
// machine will be taken away (a notice of a preemption, as batch systems send it), so that it
// stops, too. While stopping is deferred, the first of these four is only noted, and the program
// ends where that is safe. A later SIGINT ends the process at once, and so does a later SIGTERM,
// but for one that follows a notice, or another SIGTERM within five seconds: launchers send it to a
// process and to its group. The process says so on stderr where the program gave its name. SIGPIPE
// is ignored, so the program keeps running when the reader of its log goes away. SIGXFSZ is ignored
// too: a write beyond the limit of file sizes then fails like one on a full disk. The functions
// change the whole process. The main thread calls them.
namespace dpwa::stop_signal {

// For the time before install(): from now on a SIGHUP is only noted, and the others end the process
// with its exit code. A program that links LibTorch spends a third of a second before main(), in
// constructors; a SIGHUP in that time would end it, and the first process of a container would hear
// no signal at all. Such a program names this function in the section .preinit_array of its
// executable, whose entries run before all constructors. Libraries are loaded before that: a
// signal of that time waits for this function, or for install(), where the starter has blocked it
// (`env --block-signal`).
void install_early();

// From now on a signal ends the process with its exit code. `program`: its name, which outlives the
// process's end, for the line then; null: it says nothing.
void install(const char* program = nullptr);
void defer(bool on);           // from now on, whether the first signal is only noted
int received();                // the number of the noted signal; 0 = none. Any thread.
bool preempted();              // whether it was a notice. Any thread.
bool take_reload();            // whether SIGHUP arrived since the last call
void limit(unsigned seconds);  // ends it so long after a signal; from now on, if one is noted
// The time from the first signal until the process is killed: it ends a second before, wherever it
// is, and limit() has no effect.
void set_grace(unsigned seconds);

// A process that ends by limit() or set_grace() has 128 + the number, and 143 after a notice.
// Of a program that ends because of the noted signal: 128 + its number; after a notice 143, as
// after SIGTERM, or what set_preempted_code() was given.
int exit_code();
void set_preempted_code(int code);

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
