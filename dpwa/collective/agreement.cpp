#include "dpwa/collective/agreement.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "dpwa/base/random.h"

namespace dpwa::collective {

namespace {

// {hash, bytes of the text, payload, answers since it joined} of one member.
using Record = std::array<std::int64_t, 4>;

std::vector<std::string> texts_of_all(const StepGroup& group, std::string mine,
                                      const std::vector<std::int64_t>& lengths) {
  const auto longest = static_cast<std::size_t>(std::ranges::max(lengths));
  mine.resize(longest);
  std::string all(lengths.size() * longest, '\0');
  group.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(all.substr(rank * longest, static_cast<std::size_t>(lengths[rank])));
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

Announcements announce(const StepGroup& group, const std::string& text, std::int64_t payload,
                       std::int64_t joined) {
  const Record own{static_cast<std::int64_t>(hash_of(text)), static_cast<std::int64_t>(text.size()),
                   payload, joined};
  std::vector<Record> all(static_cast<std::size_t>(group.size()));
  group.gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  Announcements announced;
  for (const auto& [hash, length, said, answered] : all) {
    announced.hashes.push_back(hash);
    announced.lengths.push_back(length);
    announced.payloads.push_back(said);
    announced.joined.push_back(answered);
  }
  return announced;
}

// Joined members take part in the operation of the first member at work.
std::vector<std::string> texts_of(const StepGroup& group, const Announcements& announced,
                                  const std::string& text) {
  auto texts = texts_of_all(group, text, announced.lengths);
  const std::string of_first = texts[announced.first_at_work()];
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (announced.joined[rank] != at_work) texts[rank] = of_first;
  return texts;
}

}  // namespace

std::vector<std::int64_t> agree(const StepGroup& group, const Signature& mine,
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

Announced agree_as_joined(const StepGroup& group, std::int64_t answered) {
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

void require_at_work(const StepGroup& group, const std::string& operation,
                     const std::vector<std::int64_t>& payloads, int first) {
  const auto joined = std::ranges::find(payloads, 0);
  if (joined == payloads.end()) return;
  throw CollectiveError(
      Failure::mismatch, operation, group.engine(),
      "rank " +
          shown_rank(static_cast<std::size_t>(first + (joined - payloads.begin())), group.names()) +
          " has joined");
}

std::vector<std::byte> allgather(const StepGroup& group, const std::string& name,
                                 std::span<const std::byte> own) {
  const Signature signature{"allgather", {{name, "uint8 [*]"}}, {}};
  const auto counts = agree(group, signature, static_cast<std::int64_t>(own.size()));
  const auto most = static_cast<std::size_t>(std::ranges::max(counts));
  std::vector<std::byte> padded(own.begin(), own.end());
  padded.resize(most);
  std::vector<std::byte> rows(counts.size() * most);
  if (most > 0) group.run("allgather '" + name + "'", [&] { group.gather(padded, rows); });
  std::vector<std::byte> all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto row = std::span(rows).subspan(rank * most, static_cast<std::size_t>(counts[rank]));
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

void barrier(const StepGroup& group) {
  agree(group, {"barrier", {}, {}});
}

void broadcast(const StepGroup& group, const std::string& name, const std::string& form,
               std::span<std::byte> data, int root) {
  const Signature signature{"broadcast from rank " + std::to_string(root), {{name, form}}, {}};
  const auto payloads = agree(group, signature, /*payload=*/1);
  const std::string title = signature.operation + " '" + name + "'";
  require_at_work(group, title, {payloads[static_cast<std::size_t>(root)]}, root);
  if (!data.empty()) group.run(title, [&] { group.broadcast(data, root); });
}

}  // namespace dpwa::collective
