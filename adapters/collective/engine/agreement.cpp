#include "adapters/collective/engine/agreement.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "adapters/collective/engine/process_group.h"
#include "dpwa/base/random.h"

namespace dpwa::collective {

namespace {

// {hash, bytes of the text, payload, answers since it joined} of one member.
constexpr std::int64_t record_fields = 4;

at::Tensor gathered(const ProcessGroup& group, const at::Tensor& mine) {
  auto all = at::empty({group.size(), mine.numel()}, mine.options());
  gather_equal(group, all, mine);
  return all;
}

std::vector<std::string> texts_of_all(const ProcessGroup& group, const std::string& mine,
                                      const std::vector<std::int64_t>& lengths) {
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  auto padded = at::zeros({longest}, at::kByte);
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  const auto all = gathered(group, padded);
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto* from = static_cast<const char*>(all.data_ptr()) + rank * longest;
    texts.emplace_back(from, from + lengths[static_cast<std::size_t>(rank)]);
  }
  return texts;
}

constexpr std::int64_t at_work = -1;

// The next operations of all members.
struct Announcements {
  std::vector<std::int64_t> hashes, lengths, payloads;
  std::vector<std::int64_t> joined;  // how often each has answered since it joined, or at_work

  bool some_joined() const {
    return std::ranges::any_of(joined, [](std::int64_t count) { return count != at_work; });
  }
  std::size_t first_at_work() const {
    return static_cast<std::size_t>(std::ranges::find(joined, at_work) - joined.begin());
  }
  bool same() const {
    const std::size_t first = first_at_work();
    for (std::size_t rank = first; rank < joined.size(); ++rank) {
      if (joined[rank] != at_work) continue;
      if (hashes[rank] != hashes[first] || lengths[rank] != lengths[first]) return false;
    }
    return true;
  }
};

Announcements announce(const ProcessGroup& group, const std::string& text, std::int64_t payload,
                       std::int64_t joined) {
  auto record = at::empty({record_fields}, at::kLong);
  auto* fields = record.data_ptr<std::int64_t>();
  fields[0] = static_cast<std::int64_t>(hash_of(text));
  fields[1] = static_cast<std::int64_t>(text.size());
  fields[2] = payload;
  fields[3] = joined;
  const auto all = gathered(group, record);
  Announcements announced;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto* of_rank = all.data_ptr<std::int64_t>() + rank * record_fields;
    announced.hashes.push_back(of_rank[0]);
    announced.lengths.push_back(of_rank[1]);
    announced.payloads.push_back(of_rank[2]);
    announced.joined.push_back(of_rank[3]);
  }
  return announced;
}

// Joined members take part in the operation of the first member at work.
std::vector<std::string> texts_of(const ProcessGroup& group, const Announcements& announced,
                                  const std::string& text) {
  auto texts = texts_of_all(group, text, announced.lengths);
  const std::string of_first = texts[announced.first_at_work()];
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (announced.joined[rank] != at_work) texts[rank] = of_first;
  return texts;
}

}  // namespace

std::vector<std::int64_t> agree(const ProcessGroup& group, const Signature& mine,
                                std::int64_t payload) {
  const std::string text = mine.text();
  Announcements announced;
  std::optional<std::string> problem;
  group.run(mine.operation, [&] {
    announced = announce(group, text, payload, at_work);
    // A member with a problem of its own has a text that differs, unless all have the same problem.
    if (!announced.same() || announced.some_joined() || !mine.problem.empty())
      problem = disagreement(texts_of(group, announced, text), group.names());
  });
  if (problem) throw CollectiveError(Failure::mismatch, mine.operation, group.engine(), *problem);
  return announced.payloads;
}

Announced agree_as_joined(const ProcessGroup& group, std::int64_t answered) {
  const std::string name = "join";
  Announced result;
  std::optional<std::string> problem;
  group.run(name, [&] {
    const Announcements announced = announce(group, "", 0, answered);
    result.payloads = announced.payloads;
    const std::size_t first = announced.first_at_work();
    if (first == announced.joined.size()) {
      result.last =
          static_cast<int>(std::ranges::min_element(announced.joined) - announced.joined.begin());
      return;
    }
    const auto texts = texts_of(group, announced, "");
    problem = disagreement(texts, group.names());
    result.text = texts[first];
  });
  if (problem) throw CollectiveError(Failure::mismatch, name, group.engine(), *problem);
  return result;
}

void require_at_work(const ProcessGroup& group, const std::string& operation,
                     const std::vector<std::int64_t>& payloads, int first) {
  const auto joined = std::ranges::find(payloads, 0);
  if (joined == payloads.end()) return;
  throw CollectiveError(
      Failure::mismatch, operation, group.engine(),
      "rank " +
          shown_rank(static_cast<std::size_t>(first + (joined - payloads.begin())), group.names()) +
          " has joined");
}

namespace {

// Calls go to the back end itself, because names in c10d::ProcessGroup change between versions.
c10::intrusive_ptr<c10d::Backend> backend_of(const ProcessGroup& group, const at::Tensor& tensor) {
  return group.c10d()->getBackend(tensor.device().type());
}

constexpr std::chrono::milliseconds slice_of_a_wait(20);
constexpr std::chrono::microseconds shortest_pause(20);
constexpr std::chrono::microseconds longest_pause(1000);
constexpr std::chrono::milliseconds patience_with_a_broken_group(60);

}  // namespace

void gather_equal(const ProcessGroup& group, at::Tensor all, at::Tensor own) {
  all = all.view({-1});
  own = own.view({-1});
  bounded_wait(group, backend_of(group, own)->_allgather_base(all, own), {all, own});
}

void exchange_rows(const ProcessGroup& group, at::Tensor into, at::Tensor from,
                   std::vector<std::int64_t> received, std::vector<std::int64_t> sent) {
  bounded_wait(group, backend_of(group, from)->alltoall_base(into, from, received, sent),
               {into, from});
}

void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors) {
  if (group.ends_waits()) {
    work->wait();
    return;
  }
  using Clock = std::chrono::steady_clock;
  const bool in_slices = !group.is_stream_ordered(tensors.front().device());
  std::chrono::microseconds pause = shortest_pause;
  std::optional<Clock::time_point> broken_since;
  while (true) {
    const bool completed = work->isCompleted();
    if (completed || in_slices) {
      try {
        if (in_slices) {
          work->wait(slice_of_a_wait);
        } else {
          work->wait();
        }
        return;
      } catch (...) {
        // If it had not completed before, this may be only the end of the slice.
        if (completed) throw;
      }
    } else {
      // NCCL would take the limit of a wait for that of the operation, and abort the group.
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, longest_pause);
    }
    if (work->isCompleted() || !group.broken()) continue;
    const auto now = Clock::now();
    if (!broken_since) broken_since = now;
    if (now - *broken_since < patience_with_a_broken_group) continue;
    finish_aside([tensors, work] {
      try {
        work->wait();
      } catch (const std::exception&) {
        // As expected.
      }
    });
    throw std::runtime_error("the group is broken");  // callers name the operation
  }
}

std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors) {
  try {
    bounded_wait(group, work, tensors);
    return std::nullopt;
  } catch (...) {
    return group.error(what);
  }
}

}  // namespace dpwa::collective
