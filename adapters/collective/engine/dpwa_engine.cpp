#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "adapters/collective/engine/dpwa_group.h"
#include "adapters/collective/engine/engine.h"
#include "dpwa/base/processors.h"
#include "dpwa/collectives/local_meeting.h"
#include "dpwa/collectives/shared_group.h"

namespace dpwa::collective::dpwa_engine {
namespace {

using collectives::BorrowedMemory;
using collectives::LentMemory;
using collectives::LocalMeeting;
using collectives::SharedGroup;

std::string key_of(int rank) {
  return "invitation/" + std::to_string(rank);
}

// What each rank says, by rank.
std::vector<std::string> exchange(c10d::Store& store, const GroupOptions& options,
                                  const std::string& own) {
  store.set(key_of(options.rank), std::vector<std::uint8_t>(own.begin(), own.end()));
  std::vector<std::string> all;
  for (int rank = 0; rank < options.size; ++rank) {
    const auto text = store.get(key_of(rank));
    all.emplace_back(text.begin(), text.end());
  }
  return all;
}

class DpwaEngine final : public Engine {
 public:
  const std::string& name() const override { return name_; }

  Connection form(const c10::intrusive_ptr<c10d::Store>& store,
                  const GroupOptions& options) const override {
    LocalMeeting meeting;
    const auto invitations = exchange(*store, options, meeting.invitation());
    if (!LocalMeeting::are_local(invitations))
      throw std::runtime_error("engine dpwa: the ranks are on several hosts");
    auto own = LentMemory::create();
    if (!own) throw std::runtime_error("engine dpwa: no memory to share");
    LocalMeeting::Terms terms;
    terms.rank = options.rank;
    terms.group = options.members ^ options.epoch;
    terms.until = std::chrono::steady_clock::now() + options.form_timeout;
    std::vector<std::optional<BorrowedMemory>> memory;
    std::vector<std::pair<int, ipc::MessageSocket>> sockets;
    for (auto& member : meeting.meet(invitations, *own, terms)) {
      const auto rank = static_cast<int>(memory.size());
      memory.push_back(member ? std::optional(std::move(member->memory)) : std::nullopt);
      if (member) sockets.emplace_back(rank, std::move(member->socket));
    }
    auto group = std::make_unique<SharedGroup>(options.rank, own, std::move(memory),
                                               processor_count());
    group->set_timeout(options.timeout);
    auto backend = c10::make_intrusive<DpwaGroup>(
        std::move(group), [own](std::size_t bytes) { return own->allocate(bytes); },
        std::move(sockets), options.on_broken);
    auto all = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
    all->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA})
      all->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::intrusive_ptr<c10d::Backend>(backend));
    return {all, [group = backend.get()] { return group->lost_rank(); },
            [group = backend.get()](int rank) { group->abandon(rank); }, /*ends_waits=*/true};
  }

 private:
  std::string name_ = "dpwa";
};

}  // namespace

std::string absent() {
  return {};
}
std::unique_ptr<Engine> make() {
  return std::make_unique<DpwaEngine>();
}

}  // namespace dpwa::collective::dpwa_engine
