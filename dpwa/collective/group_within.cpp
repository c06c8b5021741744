#include "dpwa/collective/group_within.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/collective/error.h"
#include "dpwa/group/shared_entries.h"
#include "dpwa/wire/view_messages.h"

namespace dpwa::collective {
namespace {

using members::Entry;
using members::ProcessId;

constexpr std::chrono::milliseconds between_exchanges(1);

// Words of a rank on itself: keys of entries of no group.
constexpr std::uint64_t of_no_group = 0;
constexpr auto failed_word = "failed";
constexpr auto forming_word = "forming";
constexpr auto done_word = "done";

// What waits to be told to the others. Any thread.
class Outbox {
 public:
  void add(const Entry& entry) {
    const MutexLock lock(mutex_);
    entries_.push_back(entry);
  }
  std::vector<Entry> take() {
    const MutexLock lock(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Entry> entries_ DPWA_GUARDED_BY(mutex_);
};

// The frames (wire/view_messages.h) of all ranks, by rank.
std::vector<std::byte> frames_of_all(const StepGroup& all, const std::vector<Entry>& own) {
  std::vector<std::byte> bytes;
  for (const Entry& entry : own) {
    const auto frame = wire::encode(ProcessId{std::to_string(all.rank()), 1, 1}, entry);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  return allgather(all, "what the ranks of a subset tell", bytes);
}

std::vector<wire::ViewFrame> frames_in(std::span<const std::byte> rest) {
  const std::vector<wire::TypeBound> types{{wire::MessageType::view, wire::max_view_body_bytes}};
  std::vector<wire::ViewFrame> frames;
  while (rest.size() >= wire::header_bytes) {
    const auto header = wire::decode_header(rest.first<wire::header_bytes>(), 0, types);
    rest = rest.subspan(wire::header_bytes);
    if (!header || header->body_bytes > rest.size()) break;
    auto frame = wire::decode_view(rest.first(header->body_bytes));
    rest = rest.subspan(header->body_bytes);
    if (frame) frames.push_back(*std::move(frame));
  }
  return frames;
}

}  // namespace

std::unique_ptr<StepGroup> form_within(const StepGroup& all, const Connector& connector,
                                       const std::optional<GroupOptions>& options) {
  const auto outbox = std::make_shared<Outbox>();
  const auto entries =
      std::make_shared<group::SharedEntries>([outbox](const Entry& entry) { outbox->add(entry); });
  std::stop_source stop;
  struct StopAtEnd {
    std::stop_source& stop;
    ~StopAtEnd() { stop.request_stop(); }
  };
  std::future<std::unique_ptr<StepGroup>> forming;
  std::unique_ptr<StepGroup> group;
  std::exception_ptr failure;
  if (options) {
    GroupOptions own = *options;
    own.stop = stop.get_token();
    forming = std::async(std::launch::async,
                         [&connector, own, entries] { return connector.form(own, entries); });
  }
  const StopAtEnd ends_first{stop};  // if an operation of `all` fails
  for (std::string stage = options ? forming_word : done_word;;) {
    if (forming.valid() && forming.wait_for(between_exchanges) == std::future_status::ready) {
      try {
        group = forming.get();
        stage = done_word;
      } catch (const CollectiveError&) {
        failure = std::current_exception();
        stage = failed_word;
      }
    }
    std::vector<Entry> own = outbox->take();
    own.push_back({of_no_group, stage, {}});
    bool all_done = true;
    for (const wire::ViewFrame& frame : frames_in(frames_of_all(all, own))) {
      const auto* const entry = std::get_if<Entry>(&frame.message);
      if (entry == nullptr) continue;
      if (entry->group != of_no_group) {
        if (frame.from.name != std::to_string(all.rank())) entries->receive(frame.from, *entry);
        continue;
      }
      if (entry->key == failed_word) stop.request_stop();
      if (entry->key == forming_word) all_done = false;
    }
    if (all_done) break;
  }
  if (failure) std::rethrow_exception(failure);
  if (options && stop.stop_requested())
    throw CollectiveError(Failure::lost, "forming a group", group->engine(),
                          "another rank could not take part");
  return group;
}

}  // namespace dpwa::collective
