#include "dpwa/collective/bytes_group.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include "dpwa/collective/meeting.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collective {

Connector BytesGroup::connector(const std::string& engine) {
  Connector connector;
  connector.engine = engine;
  connector.form =
      [engine](const GroupOptions& options,
               const std::shared_ptr<group::SharedEntries>& entries) -> std::unique_ptr<StepGroup> {
    const auto broken = std::make_shared<std::atomic<bool>>(false);
    const Meeting meeting(entries, options, options.stop);
    const auto exchange = [&](const std::string& own) {
      return invitations_of_all(meeting, options, own, options.form_timeout);
    };
    const auto on_broken = [broken, then = options.on_broken] {
      if (!broken->exchange(true) && then) then();
    };
    try {
      auto formed = collectives::form_group(terms_of(options, on_broken, exchange));
      formed.group->set_timeout(options.timeout);
      return std::unique_ptr<StepGroup>(new BytesGroup(engine, options, std::move(formed), broken));
    } catch (const std::exception& error) {
      throw CollectiveError(Failure::lost, "forming a group", engine, error.what());
    }
  };
  return connector;
}

BytesGroup::BytesGroup(std::string engine, const GroupOptions& options,
                       collectives::FormedGroup formed, Broken broken)
    : StepGroup(options),
      engine_(std::move(engine)),
      formed_(std::move(formed)),
      broken_(std::move(broken)),
      queue_(std::make_unique<collectives::OperationQueue>()) {}

// The operation under way ends within milliseconds once the group is broken.
BytesGroup::~BytesGroup() {
  abort();
  queue_->end();
}

BytesGroup::WorkPtr BytesGroup::begin(std::size_t bytes, std::function<void()> perform) const {
  auto work = std::make_shared<collectives::Operation>(std::move(perform), bytes);
  queue_->add(work, bytes >= collectives::large_bytes);
  return work;
}

void BytesGroup::finish(const WorkPtr& work) const {
  queue_->finish(*work);
  work->rethrow();
}

BytesGroup::WorkPtr BytesGroup::begin_sum(std::span<std::byte> data, DType type,
                                          std::shared_ptr<std::byte> owner) const {
  return begin(data.size(), [this, data, type, owner = std::move(owner)] {
    formed_.group->allreduce(data, type, collectives::Reduction::sum);
  });
}

BytesGroup::WorkPtr BytesGroup::begin_broadcast(std::span<std::byte> data, int root) const {
  return begin(data.size(), [this, data, root] { formed_.group->broadcast(data, root); });
}

std::optional<CollectiveError> BytesGroup::wait(const WorkPtr& work,
                                                const std::string& what) const {
  try {
    finish(work);
    return std::nullopt;
  } catch (const std::exception& error) {
    return failure_of(what, error);
  }
}

std::shared_ptr<std::byte> BytesGroup::allocate(std::size_t bytes) const {
  if (auto lent = formed_.allocate ? formed_.allocate(bytes) : nullptr) return lent;
  const auto own = std::make_shared<AlignedBuffer>(bytes);
  return {own, own->bytes().data()};
}

CollectiveError BytesGroup::failure_of(const std::string& what, const std::exception& error) const {
  if (aborted()) return {Failure::lost, what, engine_, "the group was left while this ran"};
  const auto lost = lost_rank();
  return {Failure::lost, what, engine_,
          lost ? "rank " + std::to_string(*lost) + " has gone" : error.what()};
}

void BytesGroup::break_off(int rank) const noexcept {
  if (aborted_.exchange(true)) return;
  queue_->fail(std::make_exception_ptr(std::runtime_error("the group was left")));
  formed_.group->abort(rank);
}

std::optional<int> BytesGroup::lost_rank() const {
  const int lost = formed_.group->lost();
  return lost < 0 ? std::nullopt : std::optional(lost);
}

// The destructor of an engine's group tells the others that this member leaves in order.
void BytesGroup::leave(std::chrono::milliseconds limit) noexcept {
  if (aborted()) return;
  const auto work = begin(0, [this] { formed_.group->barrier(); });
  queue_->begin(*work);
  if (!queue_->wait(*work, std::chrono::steady_clock::now() + limit)) return abort();
  aborted_ = true;
}

void BytesGroup::run(const std::string& what, const std::function<void()>& operation) const {
  if (aborted()) throw CollectiveError(Failure::lost, what, engine_, "the group was left");
  try {
    operation();
  } catch (const CollectiveError&) {
    throw;
  } catch (const std::exception& error) {
    throw failure_of(what, error);
  }
}

void BytesGroup::gather(std::span<const std::byte> own, std::span<std::byte> all) const {
  finish(begin(all.size(), [this, own, all] { formed_.group->allgather(own, all); }));
}

void BytesGroup::broadcast(std::span<std::byte> data, int root) const {
  finish(begin_broadcast(data, root));
}

}  // namespace dpwa::collective
