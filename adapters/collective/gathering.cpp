#include "adapters/collective/gathering.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include "adapters/collective/group_former.h"
#include "adapters/collective/session_store.h"
#include "adapters/collective/terms.h"
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

void Attempt::run(const std::shared_ptr<const Engine>& engine, GroupOptions options,
                  const std::shared_ptr<group::SharedEntries>& entries) {
  std::unique_ptr<ProcessGroup> result;
  std::string why;
  bool never = false;
  // NCCL connects with the first operation: a group that breaks ends its wait for that.
  options.stop = stop.get_token();
  options.on_broken = [source = stop]() mutable { source.request_stop(); };
  try {
    c10::intrusive_ptr<c10d::Store> store;
    if (!engine->has_members())
      store = c10::make_intrusive<SessionStore>(entries, options, stop.get_token());
    result = ProcessGroup::form(engine, store, options);
  } catch (const CollectiveError& error) {
    why = error.reason();
    never = error.failure() == Failure::mismatch;  // of all members, as they see it
  } catch (const std::exception& error) {
    why = error.what();
  }
  const MutexLock lock(mutex);
  group = std::move(result);
  problem = why;
  hopeless = never;
  done = true;
}

std::string not_together(const std::string& problem) {
  return "the nodes do not come together" + (problem.empty() ? "" : ": " + problem);
}

std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox) {
  NoticeBoard board(local.notes, config.self_index());
  const Settings terms = file_terms(config);
  group::GroupNode node(config, local, std::move(inbox), terms, terms.size());
  GroupFormer former(config, local, node, board);
  former.seek();
  auto formed =
      former.take(config.collective.start_wait, [&] { return !former.refusal().empty(); });
  node.forget();
  if (!formed) throw std::runtime_error(not_together(former.problem()));
  return std::move(formed->group);
}

}  // namespace dpwa::collective
