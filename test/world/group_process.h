#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/members/group_engine.h"
#include "dpwa/world/world.h"

namespace dpwa::world::testing {

// What happens to a process when it is about to send a message of one kind, or has just sent it.
struct Trap {
  enum class Does : std::uint8_t {
    ends,   // it, and another is started
    burns,  // and its disk
    stops,  // it: what it has not sent, it sends when it goes on
    hides,  // it from the others
  };
  std::size_t kind = 0;     // index in members::ViewMessage, or beyond: see StepMember
  std::uint64_t after = 0;  // so many others of the kind
  bool sends = true;        // that message still goes out
  Does does = Does::ends;
  Duration back{};
};

using Traps = std::map<std::string, std::vector<Trap>>;  // by name: a later process inherits them

// The trap that a message of this kind springs, which is no longer there then; none: it passes.
std::optional<Trap> spring(std::vector<Trap>& traps, std::size_t kind, bool sent);

// A process that takes part in the decisions on views: a GroupEngine with its disk and its
// messages, as group::GroupNode has them.
class GroupProcess : public Program {
 public:
  // The next view is asked for, or is to be without it; then the process ends and another starts.
  void renew() {
    if (view_.votes(id())) views().renew();
  }
  void leave() { leaves_ = true; }
  bool leaves() const { return leaves_; }
  const members::ViewEngine& engine() const { return engine_->views(); }
  const members::View& view() const { return view_; }
  const members::ProcessId& id() const { return engine().self(); }

 protected:
  // `options.view.self` and `seed` are found here; the rest as it is.
  GroupProcess(Environment& environment, Traps& traps, members::GroupEngineOptions options);

  // An event that has come: see World.
  virtual void ticked() = 0;                         // some times in each patience
  virtual void decided(const members::View&) = 0;    // it is on the disk
  virtual void installed(const members::View&) = 0;  // to be acted upon
  virtual void heard(const members::ProcessId&, const members::GroupMessage&) {}
  virtual void pumped() {}  // the last thing in each event

  void pump();
  members::ViewEngine& views() { return engine_->views(); }
  template <class Receiver, class Action>
  void tell(const std::string& to, Action action, std::function<void()> refused = {}) {
    environment_.send(
        to,
        [action = std::move(action)](Program& program) {
          auto& receiver = static_cast<Receiver&>(program);
          action(receiver);
          receiver.pump();
        },
        std::move(refused));
  }
  void tell_message(const std::string& to, const members::GroupMessage& message);
  // What happens to it now; none: it goes on.
  std::optional<Trap::Does> falls(std::size_t kind, bool sent);
  // It ends here; another starts after this time.
  void end(Duration until_start);

  std::vector<Trap>& traps_;
  Environment& environment_;
  bool halted_ = false;
  bool leaves_ = false;
  std::optional<members::GroupEngine> engine_;
  members::View view_;  // that is acted upon

 private:
  void tick();
  void pump_views();
  // Returns false: the rest has to wait.
  bool act();
  bool interrupts(std::optional<Trap::Does> sprung);

  const Duration beat_;
  std::deque<members::GroupEngine::Wishes> waiting_;  // for the disk
  bool waits_ = false;                                // for the disk, or stands still
};

}  // namespace dpwa::world::testing
