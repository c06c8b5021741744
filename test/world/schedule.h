#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/world/world.h"
#include "test/world/group_member.h"

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
    scene,    // `first` gets a trap, `second` another, and a third is killed: the others decide
    split,    // into two sides that do not hear one another
    mend,
    slow,  // messages from `first` to `second`
  };
  Duration at{};
  Kind kind = Kind::kill;
  std::size_t first = 0;
  std::size_t second = 0;
  Trap trap{};
  Trap other{};
  std::uint64_t side = 0;  // a bit for each machine
};

struct Schedule {
  std::size_t machines = 3;
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

// To machines whose programs are GroupMembers.
void happen(const Fault& fault, World& world);
// All machines run, hear one another, and are left alone.
void calm_down(World& world);

// One line for each fault.
std::string words(const Schedule& schedule);

}  // namespace dpwa::world::testing
