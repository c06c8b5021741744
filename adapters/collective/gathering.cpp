#include "adapters/collective/gathering.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "adapters/collective/session_store.h"
#include "dpwa/collective/group_former.h"
#include "dpwa/collective/terms.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_node.h"

namespace dpwa::collective {

void require_engine(const Config& config) {
  try {
    make_engine(config.collective.engine);
  } catch (const CollectiveError& error) {
    fail_at_key(config, "collective.engine", error.engine() + ": " + error.reason());
  }
}

void require_device(const Config& config, const c10::Device& device) {
  if (device.is_cpu()) return;
  const std::string model = " for a model on " + device.str() + "; accepted: ";
  if (!device.is_cuda())
    fail_at_key(config, "backend",
                "'collective' is not offered" + model +
                    "gossip, or a model on a CUDA GPU or in host memory");
  if (config.collective.engine == CollectiveEngine::mpi)
    fail_at_key(config, "collective.engine", "mpi is not offered" + model + "dpwa, gloo, nccl");
}

Connector connector_of(const Config& config) {
  return connector_of(make_engine(config.collective.engine));
}

Connector connector_of(const Engine& engine) {
  return {
      engine.name, engine.setting, engine.has_members,
      [engine](const GroupOptions& options, const std::shared_ptr<group::SharedEntries>& entries) {
        c10::intrusive_ptr<c10d::Store> store;
        if (!engine.has_members)
          store = c10::make_intrusive<SessionStore>(
              std::make_shared<Meeting>(entries, options, options.stop), options.form_timeout);
        return ProcessGroup::form(engine, store, options);
      }};
}

std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox) {
  NoticeBoard board(local.notes, config.self_index());
  Connector connector = connector_of(config);
  const Settings terms = file_terms(config, connector.engine);
  group::GroupNode node(config, local, std::move(inbox), terms, terms.size());
  GroupFormer former(config, local, node, board, std::move(connector));
  former.seek();
  auto formed =
      former.take(config.collective.start_wait, [&] { return !former.refusal().empty(); });
  node.forget();
  if (!formed) throw std::runtime_error(not_together(former.problem()));
  return std::static_pointer_cast<ProcessGroup>(std::move(formed->group));
}

}  // namespace dpwa::collective
