#include "dpwa/collective/step_record.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/collective/step_tally.h"

namespace dpwa::collective {

TEST_CASE("what a member sends with a step is read from the sums of all") {
  constexpr std::size_t ranks = 3;
  const std::vector<std::vector<bool>> used{{true, false}, {true, false}, {false, false}};
  const std::vector<OwnStep> sent{
      {32, false, false, 5, 0U}, {16, false, true, (1U << 28) - 1, 7U}, {0, true, false, 0, {}}};
  std::vector<double> sums(step_words(ranks, 2));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> words(sums.size());
    write_step(words, rank, ranks, sent[rank], used[rank]);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += words[i];
  }
  const StepTally tally = tally_of(sums, ranks);
  CHECK(tally.samples == 48);
  CHECK(tally.joined == 1);
  CHECK(tally.first_stopping == 1);
  CHECK(tally.first_at_work == 0);
  CHECK(tally.notes == std::vector<std::uint32_t>{5, (1U << 28) - 1, 0});
  CHECK(tally.weights == std::vector<std::optional<std::uint32_t>>{0, 7, std::nullopt});
  CHECK(is_used(sums, ranks, 0));
  CHECK_FALSE(is_used(sums, ranks, 1));
}

TEST_CASE("a step is open until its exchange has ended, well or not") {
  StepRecord steps;
  CHECK(steps.is_open());
  StepResult failed;
  failed.error = CollectiveError(Failure::lost, "averaging", "dpwa", "rank 1 has gone");
  steps.exchanged(failed);
  CHECK_FALSE(steps.is_open());
  CHECK_FALSE(steps.has_spent_gradients());
  StepTally tally;
  tally.notes = {0, 0, 0};
  tally.joined = 1;
  steps.exchanged({tally, {}, {}, 4});
  CHECK(steps.has_spent_gradients());
  steps.exchanged(failed);
  CHECK(steps.has_spent_gradients());
  CHECK_FALSE(steps.take(tally));
  const StepReport report = steps.end_step(8);
  CHECK(report.clock == 8);
  CHECK(report.participants == 2);
  CHECK(report.outcome == Outcome::averaged);
  CHECK(report.bytes == 4);
  CHECK(steps.averaged_bytes() == 4);
  CHECK(steps.is_open());
  CHECK_FALSE(steps.has_spent_gradients());
  steps.take_over();
  steps.exchanged({tally, {}, {}, 0});
  CHECK(steps.is_taken_over());
}

TEST_CASE("the rank that worked last counts at the end where some ran out of data before") {
  StepRecord steps;
  StepTally tally;
  tally.notes = {0, 0};
  tally.first_at_work = 0;
  steps.take(tally);
  CHECK_FALSE(steps.last_at_work());
  tally.joined = 1;
  tally.first_at_work = 1;
  steps.take(tally);
  tally.joined = 2;
  tally.first_at_work = -1;
  steps.take(tally);
  CHECK(steps.last_at_work() == 1);
  steps.enter_group();  // with other ranks, of which all have one model
  steps.take(tally);
  CHECK_FALSE(steps.last_at_work());
}

TEST_CASE("nodes enter the next group once all have told that it has formed") {
  StepRecord steps;
  StepTally tally;
  CHECK_FALSE(steps.all_have_next_group());
  for (const auto& notes : {std::vector<std::uint32_t>{0, 0}, {5, 0}, {5, 7}}) {
    tally.notes = notes;
    steps.take(tally);
    CHECK_FALSE(steps.all_have_next_group());
  }
  tally.notes = {5, 5};
  steps.take(tally);
  CHECK(steps.all_have_next_group());
  CHECK_FALSE(steps.all_have_next_group());  // once
}

TEST_CASE("that a node is told to stop is new once") {
  StepRecord steps;
  StepTally tally;
  tally.notes = {0, 0};
  CHECK_FALSE(steps.take(tally));
  tally.first_stopping = 1;
  CHECK(steps.take(tally));
  CHECK_FALSE(steps.take(tally));
  CHECK(steps.all_stop());
}

TEST_CASE("the ranks whose weights differ are those that are not like most") {
  using Sums = std::vector<std::optional<std::uint32_t>>;
  using Ranks = std::vector<std::size_t>;
  CHECK(differing_ranks(Sums{}).empty());
  CHECK(differing_ranks(Sums{std::nullopt, std::nullopt}).empty());
  CHECK(differing_ranks(Sums{7, std::nullopt, 7}).empty());
  CHECK(differing_ranks(Sums{7, 8, 8}) == Ranks{0});
  CHECK(differing_ranks(Sums{7, 8}) == Ranks{1});
  CHECK(differing_ranks(Sums{std::nullopt, std::nullopt, 0, 9, 0}) == Ranks{3});
  CHECK(differing_ranks(Sums{7, 8, 9}) == Ranks{1, 2});
}

}  // namespace dpwa::collective
