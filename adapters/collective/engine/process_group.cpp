#include "adapters/collective/engine/process_group.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/exchange.h"
#include "dpwa/base/aside.h"

namespace dpwa::collective {

std::unique_ptr<ProcessGroup> ProcessGroup::form(Engine engine,
                                                 const c10::intrusive_ptr<c10d::Store>& store,
                                                 const GroupOptions& wanted) {
  ignore_sigpipe();
  const auto broken = std::make_shared<std::atomic<bool>>(false);
  GroupOptions options = wanted;
  options.on_broken = [broken, then = wanted.on_broken] {
    broken->store(true);
    if (then) then();
  };
  Connection connection;
  try {
    if (store) store->setTimeout(options.form_timeout);
    connection = engine.form(store, options);
  } catch (...) {
    throw translate(std::current_exception(), "forming a group", engine.name);
  }
  return std::unique_ptr<ProcessGroup>(
      new ProcessGroup(std::move(engine), options, std::move(connection), broken));
}

ProcessGroup::ProcessGroup(Engine engine, const GroupOptions& options, Connection connection,
                           std::shared_ptr<const std::atomic<bool>> broken)
    : StepGroup(options),
      engine_(std::move(engine)),
      connection_(std::move(connection)),
      broken_(std::move(broken)) {}

ProcessGroup::~ProcessGroup() {
  abort();
  finish_aside([group = std::move(connection_.group)]() mutable { group.reset(); });
}

void ProcessGroup::abandon(int rank) noexcept {
  if (!connection_.abandon) return abort();
  if (aborted_.exchange(true)) return;
  try {
    connection_.abandon(rank);
  } catch (const std::exception&) {
    // As in abort().
  }
}

void ProcessGroup::abort() noexcept {
  if (aborted_.exchange(true)) return;
  try {
    connection_.group->abort();
  } catch (const std::exception&) {
    // The engine cannot abort: its timeout ends the operations under way.
  }
}

void ProcessGroup::leave(std::chrono::milliseconds limit) noexcept {
  if (aborted()) return;
  try {
    c10d::BarrierOptions options;
    options.timeout = limit;
    // A limit of a wait would be that of the operation for engines that have one.
    connection_.group->barrier(options)->wait(ends_waits() ? limit : kNoTimeout);
    connection_.group->shutdown();
    aborted_ = true;
  } catch (const std::exception&) {
    abort();
  }
}

CollectiveError ProcessGroup::error(const std::string& what) const {
  const auto error = translate(std::current_exception(), what, engine());
  if (error.failure() != Failure::lost) return error;
  if (aborted()) return {Failure::lost, what, engine(), "the group was left while this ran"};
  const auto lost = lost_rank();
  if (!lost) return error;
  return {Failure::lost, what, engine(), "rank " + std::to_string(*lost) + " has gone"};
}

void ProcessGroup::run(const std::string& what, const std::function<void()>& operation) const {
  try {
    if (aborted()) throw CollectiveError(Failure::lost, what, engine(), "the group was left");
    operation();
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    throw error(what);
  }
}

// Exchanges of bytes go through tensors, because an operation of a broken group may be left running
// (bounded_wait).
void ProcessGroup::gather(std::span<const std::byte> own, std::span<std::byte> all) const {
  const at::Tensor sent = at::empty({static_cast<std::int64_t>(own.size())}, at::kByte);
  const at::Tensor received = at::empty({static_cast<std::int64_t>(all.size())}, at::kByte);
  std::memcpy(sent.mutable_data_ptr(), own.data(), own.size());
  gather_equal(*this, received, sent);
  std::memcpy(all.data(), received.const_data_ptr(), all.size());
}

void ProcessGroup::broadcast(std::span<std::byte> data, int root) const {
  std::vector<at::Tensor> list{at::empty({static_cast<std::int64_t>(data.size())}, at::kByte)};
  if (rank() == root) std::memcpy(list.front().mutable_data_ptr(), data.data(), data.size());
  c10d::BroadcastOptions options;
  options.rootRank = root;
  bounded_wait(*this, connection_.group->broadcast(list, options), list);
  if (rank() != root) std::memcpy(data.data(), list.front().const_data_ptr(), data.size());
}

void ignore_sigpipe() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

}  // namespace dpwa::collective
