#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/world/world.h"
#include "test/world/group_process.h"

namespace dpwa::world::testing {

struct Fault {
  enum class Kind : std::uint8_t {
    kill,
    start,
    freeze,
    wake,
    cut,      // nothing from `first` reaches `second`
    heal,     // it does
    replace,  // by an empty machine
    scene,
    split,  // into two sides that do not hear one another
    mend,
    slow,     // messages from `first` to `second`
    behead,   // the first in order of seniority is killed
    leave,    // the members of one side
    outage,   // the processes of one side end, and others are started
    recover,  // all machines run and hear one another
    trap,     // set for `first`
  };
  // What a scene begins with: the reason for a change.
  enum class Opening : std::uint8_t {
    loss,   // one of the others is killed, and mostly started
    renew,  // leader or rival wants another view
    part,   // leader and rival do not hear each other: both propose
  };
  Duration at{};
  Kind kind = Kind::kill;
  std::size_t first = 0;
  std::size_t second = 0;
  std::uint64_t side = 0;  // a bit for each machine
  Duration more{};         // of a slow link, at most
  // A scene. Its roles go by seniority in the latest view, beginning with the `first` one: leader,
  // rival, the others.
  Opening opening = Opening::loss;
  std::array<std::vector<Trap>, 3> traps{};  // by role

  // Programs have to be GroupProcesses.
  bool is_of_groups() const {
    using enum Kind;
    return kind == scene || kind == behead || kind == leave || kind == outage || kind == recover;
  }
};

struct Schedule {
  std::size_t machines = 3;
  std::size_t minimum = 0;  // ViewOptions
  std::size_t servers = 0;  // so many of the machines, from the first; 0: all are equal
  bool odd = false;         // the settings of the last machine differ
  // Two machines that do not hear each other at the end.
  std::optional<std::pair<std::size_t, std::size_t>> apart;
  std::uint64_t lost = 0;  // a bit for each machine that is not started any more at the end
  bool loses_disks = false;
  bool spoils = false;  // some of the states that are transferred
  Duration jitter{};    // of messages
  Duration disk{};
  Duration patience{};
  std::vector<Duration> starts;  // by machine
  std::vector<Fault> faults;     // in the order of their times
};

// The same seed gives the same schedule on every machine.
Schedule draw(std::uint64_t seed);

// To machines whose programs are GroupProcesses.
void happen(const Fault& fault, World& world, Traps& traps);
// The starts of the machines, by machine, and then the faults, in the order of their times.
std::vector<Fault> in_order(const std::vector<Duration>& starts, const std::vector<Fault>& faults);
// Each at its time, from the beginning of the world on.
void suffer(const std::vector<Fault>& in_order, World& world, Traps& traps);
// All machines but the lost ones run, hear one another, and are left alone.
void calm_down(World& world, Traps& traps, std::uint64_t lost);

// One line for each fault.
std::string words(const Schedule& schedule);

}  // namespace dpwa::world::testing
