#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"

namespace dpwa::world {

class World;

// What runs in a process of a World. Destroyed when the process is killed.
class Program {
 public:
  virtual ~Program() = default;
};

// The world as one process sees it. Everything that it asks for comes as an event: at once, late if
// the process is frozen, never if it has died.
class Environment {
 public:
  Environment(World& world, std::size_t process) : world_(world), process_(process) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  TimePoint now() const;  // monotonic, with an offset of the machine
  Random& random();
  const std::string& name() const;
  void after(Duration time, std::function<void()> action);
  // To the process that has this name then. Messages from one process to one name arrive in order;
  // those of a connection that breaks are lost. `refused`: what happens here when no process runs
  // there.
  void send(const std::string& to, std::function<void(Program&)> message,
            std::function<void()> refused = {});
  // A file is replaced as a whole. It is on the disk when `done` is called; after a kill before
  // that it may be there, or the former one.
  void write(const std::string& file, std::any content, std::function<void()> done);
  std::any read(const std::string& file) const;
  // The process ends here, or stands still: at once, whatever it is about to do. Its machine starts
  // another, or it goes on, after this time.
  void crash(Duration until_start);
  void burn(Duration until_start);  // and its disk is empty then
  void stop(Duration until_wake);
  // From now on nothing that it sends arrives, nor anything that is sent to it, for this time.
  void hide(Duration until_back);

 private:
  World& world_;
  const std::size_t process_;
};

struct WorldOptions {
  Duration delay = std::chrono::microseconds(200);  // of a message, at least
  Duration jitter = std::chrono::milliseconds(2);
  Duration disk = std::chrono::milliseconds(3);  // a write takes up to so long
  double through_cut = .3;  // of what is sent while a link is cut comes late; the rest is lost
};

// Many machines in one thread on a virtual clock: a queue of events ordered by time, then by the
// order in which they were made. The same seed gives the same run on every machine. Each machine
// has a name, a disk, a clock, and runs at most one process at a time.
class World {
 public:
  using Start = std::function<std::unique_ptr<Program>(Environment&)>;

  explicit World(std::uint64_t seed, WorldOptions options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // `start` makes the program of each of its processes.
  std::size_t add_machine(const std::string& name, Start start);
  std::size_t machines() const { return machines_.size(); }
  const std::string& name(std::size_t machine) const { return machines_[machine].name; }

  // --- faults; no effect where they make no sense
  void start(std::size_t machine);
  void kill(std::size_t machine);
  void freeze(std::size_t machine);
  void wake(std::size_t machine);
  void wipe(std::size_t machine);  // its disk
  // Its clock jumps, as at a start of the machine.
  void shift_clock(std::size_t machine, Duration by) { machines_[machine].clock += by; }
  // Nothing that `from` sends reaches `to`, or all does again. What is sent meanwhile is lost, or
  // comes late.
  void cut(std::size_t from, std::size_t to, bool is_cut);
  // Messages from one to the other take up to this time longer.
  void slow_down(std::size_t from, std::size_t to, Duration most);
  // Only machines of one side hear one another.
  void split(const std::function<bool(std::size_t machine)>& on_side);
  // All machines hear one another, and no link is slow.
  void heal();

  // From now on.
  void set(const WorldOptions& options) { options_ = options; }
  void run(Duration time);
  TimePoint now() const { return now_; }
  std::uint64_t events() const { return done_; }
  bool runs(std::size_t machine) const;
  bool frozen(std::size_t machine) const;
  Program* program(std::size_t machine) const;  // null: none runs
  const std::any* file(std::size_t machine, const std::string& name) const;

 private:
  friend class Environment;
  struct Disk {
    std::map<std::string, std::any> files;
  };
  struct Machine {
    std::string name;
    Start start;
    std::shared_ptr<Disk> disk;
    Duration clock{};                      // offset
    std::size_t process = 0;               // the last one; 0: none yet
    std::map<std::size_t, bool> cut;       // by receiver
    TimePoint hidden{};                    // until then
    std::map<std::size_t, Duration> slow;  // by receiver
  };
  struct Process {
    std::size_t machine = 0;
    std::shared_ptr<Disk> disk;
    bool alive = false;
    bool frozen = false;
    std::unique_ptr<Environment> environment;
    std::unique_ptr<Program> program;
    std::vector<std::function<void()>> backlog;       // while it is frozen
    std::unordered_map<std::size_t, TimePoint> last;  // arrival, by receiver
    struct Write {
      std::string file;
      std::any content;
    };
    std::map<std::uint64_t, Write> writes;  // under way
  };
  // What it does is kept apart from it, so that the queue moves little.
  struct Event {
    TimePoint at;
    std::uint64_t order = 0;
    std::size_t action = 0;  // in actions_
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void schedule(TimePoint at, std::function<void()> action);
  template <class Action>
  void in_process(std::size_t process, Action&& action);
  void send(std::size_t from, const std::string& to, std::function<void(Program&)> message,
            std::function<void()> refused);
  bool is_cut(const Machine& from, std::size_t to) const;
  void write(std::size_t process, std::string file, std::any content, std::function<void()> done);
  void end(std::size_t process);
  void replace(std::size_t process, Duration until_start, bool wipes);
  Duration up_to(Duration most);

  WorldOptions options_;
  Random random_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::uint64_t done_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_actions_;  // places
  std::vector<Machine> machines_;
  std::vector<std::unique_ptr<Process>> processes_;  // the first is none
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace dpwa::world
