#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/kvworker/worker_session.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvstore {

// The outcome of the pushes and pulls of one step.
struct ExchangeReport {
  bool stopped = false;     // told to stop while it waited; not all values have arrived
  bool left_out = false;    // the others went on without this worker; not all values have arrived
  bool dropped = false;     // a push came after its round was closed, and was dropped
  bool not_finite = false;  // a push of a gradient was refused
  bool buffers_not_finite = false;
  Duration waited{};

  bool complete() const { return !stopped && !left_out; }
  void add(const ExchangeReport& other);
};

// The answer to one request; `what` is for the log. Without content when told to stop, or left out,
// which the report then says. Throws std::runtime_error when a server refuses it.
kvclient::Outcome answer_to(WorkerSession& session, kvclient::Ticket ticket,
                            const std::string& what, ExchangeReport& report);

// Keys that are pushed and pulled step by step: the parameters of a model, or their gradients. The
// keys come in the order in which the forward pass needs them, the same on all workers; the first
// ones have the highest priority. A push of values that come from a device leaves once their copy
// is complete, which nothing waits for before the pulls. Used by the training thread; ends before
// the session does, or together with it.
class StepExchange {
 public:
  enum class Values {
    by_pull,    // by a pull after all pushes; they hold what the type of the store promises
    with_push,  // the answer to each push has the value, which saves a message: dist_async
  };
  // `call`: what all workers have to call in each step, for the lines of one that waits for them;
  // empty: they make steps.
  StepExchange(WorkerSession& session, Values values, std::string call = {})
      : session_(session), values_(values), call_(std::move(call)) {}

  // Inits the key: the value of the first worker counts, and only the first init of a key.
  // `compresses`: see StoreClient::init. Returns its index.
  std::size_t add(const WorkerModel::Value& value, const Lent& first, bool compresses);
  // All inits are done. Throws std::runtime_error as WorkerSession::wait_created. From then on
  // gradients are copied to memory that the servers of this host read, if there are any: one copy
  // in the cache instead of a way over TCP.
  void wait_created();
  std::size_t size() const { return entries_.size(); }

  // At most once for each key and step. The use of `values` is over when the step is finished.
  void push(std::size_t index, Lent values, const kvclient::PushTerms& terms);
  bool has_pushed(std::size_t index) const {
    return entries_[index].push.has_value() || entries_[index].copying;
  }

  // Asks for the values of what was pushed in this step; with_push, where they come by themselves,
  // for those of some other keys in turn: other workers may push what this one does not.
  void pull_pushed(std::uint64_t step);
  // Asks for the values of all keys, as they are.
  void pull_all();
  // After that, of the keys that have ever been updated: with all pushes of steps below `clock`.
  // The servers would wait for ever for those of a key that nobody pushes.
  void pull_updated(std::uint64_t clock);
  // The highest step with which this worker has to go on pushing one of the keys, if `report` is
  // complete after it.
  std::uint64_t next_step(ExchangeReport& report);
  // Whether none of the values that have come was ever updated.
  bool untouched() const;
  // Of a key that is a mean: after finish(), whether its last value is the mean of nothing, in one
  // of its slices at least, because no push of it counted (kvstore::Merge).
  bool is_of_nothing(std::size_t index) const { return entries_[index].of_nothing; }
  // Waits for all of it, and gives what has come to `write`, by index. Throws std::runtime_error
  // that names the key when a server refuses a request.
  using Write = std::function<void(std::size_t index, const Slices& slices)>;
  ExchangeReport finish(const Write& write);
  // The same with the values of a model, whose keys these are.
  ExchangeReport finish(WorkerModel& model);

 private:
  struct Entry {
    std::string name;
    ValueSpec spec;
    std::optional<kvclient::Ticket> init;
    std::optional<kvclient::Ticket> push;
    std::optional<kvclient::Ticket> pull;
    std::uint64_t step = 0;
    std::uint64_t version = 0;  // of the last value that arrived
    bool of_nothing = false;    // that value has a slice that begins with a NaN
    Lent lent;
    bool copying = false;  // its push waits for the copy from the device
    bool compresses = false;
    bool buffers = false;
    std::span<std::byte> staged{};  // of staging_; empty: values are sent from where they are
  };
  // A push whose values are on their way to the host.
  struct Copied {
    std::size_t index = 0;
    kvclient::PushTerms terms;
  };
  void stage();
  void refresh_in_turn();
  void send(std::size_t index, kvclient::PushTerms terms);
  // The pushes whose copies are complete; or all, after a wait for them.
  void send_copied(bool all);
  int priority(std::size_t index) const { return -static_cast<int>(index); }
  std::string words_for(const Entry& entry) const;  // of a wait for its value
  bool take(kvclient::Ticket ticket, std::size_t index, ExchangeReport& report, const Write* write);

  WorkerSession& session_;
  const Values values_;
  const std::string call_;
  std::vector<Entry> entries_;
  AlignedBuffer staging_;
  std::deque<Copied> copying_;  // in the order of the pushes
  std::size_t refreshed_ = 0;   // the key that was asked for last in turn
};

}  // namespace dpwa::kvstore
