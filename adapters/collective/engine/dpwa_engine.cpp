#include <atomic>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "adapters/collective/engine/dpwa_group.h"
#include "adapters/collective/engine/engine.h"
#include "dpwa/collective/meeting.h"
#include "dpwa/collectives/form_group.h"

namespace dpwa::collective {
namespace {

// The project's own groups (dpwa/collectives) behind c10d.
Connection form_dpwa(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
  const auto told = std::make_shared<std::atomic<bool>>(false);
  const auto on_broken = [told, then = options.on_broken] {
    if (!told->exchange(true) && then) then();
  };
  auto formed = collectives::form_group(terms_of(options, on_broken, [&](const std::string& own) {
    return invitations_of_all(*store, options, own);
  }));
  formed.group->set_timeout(options.timeout);
  auto backend = c10::make_intrusive<DpwaGroup>(std::move(formed.group), std::move(formed.allocate),
                                                on_broken);
  auto all = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
  all->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA})
    all->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM,
                    c10::intrusive_ptr<c10d::Backend>(backend));
  return {.group = all,
          .lost_rank = [group = backend.get()] { return group->lost_rank(); },
          .abandon = [group = backend.get()](int rank) { group->abandon(rank); },
          .ends_waits = true,
          .setting = formed.setting};
}

}  // namespace

EngineSupport dpwa_engine() {
  return {EngineKind::dpwa, "dpwa", "", [] { return Engine{.name = "dpwa", .form = form_dpwa}; }};
}

}  // namespace dpwa::collective
