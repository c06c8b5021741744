#include "dpwa/kvworker/step_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "dpwa/snapshot/finite.h"

namespace dpwa::kvstore {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t cache_line = 64;
constexpr std::uint64_t version_of_init = 1;  // SliceState::version before the first update
// Keys without a push that a step looks at: a look costs a message, and a frozen model has many.
constexpr std::size_t refreshed_at_once = 8;

std::size_t in_cache_lines(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

// The mean of nothing has no other numbers, and other means are finite.
bool begins_finite(DType dtype, const SharedBytes& slice) {
  return slice->empty() || is_finite(dtype, std::span(*slice).first(size_of(dtype)));
}

bool whole(const std::vector<SharedBytes>& slices) {
  for (const SharedBytes& slice : slices)
    if (!slice) return false;
  return !slices.empty();
}

}  // namespace

kvclient::Outcome answer_to(WorkerSession& session, kvclient::Ticket ticket,
                            const std::string& what, ExchangeReport& report) {
  if (auto outcome = session.wait(ticket, what)) {
    if (is_error(outcome->kind)) throw std::runtime_error(outcome->problem);
    report.left_out |= outcome->left_out;
    return *std::move(outcome);
  }
  report.stopped = true;
  return {};
}

void ExchangeReport::add(const ExchangeReport& other) {
  stopped |= other.stopped;
  left_out |= other.left_out;
  dropped |= other.dropped;
  not_finite |= other.not_finite;
  buffers_not_finite |= other.buffers_not_finite;
  waited += other.waited;
}

std::size_t StepExchange::add(const WorkerModel::Value& value, const Lent& first, bool compresses) {
  Entry& entry = entries_.emplace_back();
  entry.name = value.name;
  entry.spec = value.spec;
  entry.compresses = compresses && session_.compression() != Compression::none;
  entry.buffers = value.is_buffers;
  entry.init = session_.client().init(value.name, value.spec, first.bytes, compresses);
  return entries_.size() - 1;
}

void StepExchange::wait_created() {
  for (Entry& entry : entries_) {
    if (const auto init = std::exchange(entry.init, std::nullopt))
      session_.wait_created(*init, entry.name, call_);
  }
  stage();
}

void StepExchange::stage() {
  if (!session_.client().uses_memory()) return;
  const auto room = [](const Entry& entry) {
    return entry.compresses ? 0 : in_cache_lines(entry.spec.bytes());
  };
  std::size_t total = 0;
  for (const Entry& entry : entries_) total += room(entry);
  if (total == 0) return;
  staging_ = AlignedBuffer::shared(total);
  session_.client().share(staging_);
  std::size_t at = 0;
  for (Entry& entry : entries_) {
    if (!entry.compresses) entry.staged = staging_.bytes().subspan(at, entry.spec.bytes());
    at += room(entry);
  }
}

void StepExchange::push(std::size_t index, Lent values, const kvclient::PushTerms& terms) {
  Entry& entry = entries_[index];
  if (has_pushed(index)) throw std::logic_error("key '" + entry.name + "' was pushed in this step");
  entry.step = terms.step;
  kvclient::PushTerms own = terms;
  own.wants_value = values_ == Values::with_push;
  entry.lent = std::move(values);
  if (!entry.lent.came) return send(index, std::move(own));
  entry.copying = true;
  copying_.push_back({index, std::move(own)});
  send_copied(/*all=*/false);
}

void StepExchange::send(std::size_t index, kvclient::PushTerms terms) {
  Entry& entry = entries_[index];
  std::span<const std::byte> values = entry.lent.bytes;
  if (!entry.staged.empty()) {
    std::memcpy(entry.staged.data(), values.data(), values.size());
    values = entry.staged;
    entry.lent = {};
  }
  entry.push = session_.client().push(entry.name, values, std::move(terms), priority(index));
}

void StepExchange::send_copied(bool all) {
  while (!copying_.empty()) {
    Copied& copied = copying_.front();
    Entry& entry = entries_[copied.index];
    if (!entry.lent.came(all)) return;
    entry.copying = false;
    send(copied.index, std::move(copied.terms));
    copying_.pop_front();
  }
}

void StepExchange::pull_pushed(std::uint64_t step) {
  send_copied(/*all=*/true);
  if (values_ == Values::with_push) return refresh_in_turn();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].push)
      entries_[i].pull = session_.client().pull(entries_[i].name, step + 1, priority(i));
  }
}

void StepExchange::refresh_in_turn() {
  std::size_t asked = 0;
  for (std::size_t i = 0; i < entries_.size() && asked < refreshed_at_once; ++i) {
    refreshed_ = (refreshed_ + 1) % entries_.size();
    Entry& entry = entries_[refreshed_];
    if (entry.push) continue;
    entry.pull = session_.client().pull(entry.name, 0, priority(refreshed_), entry.version);
    ++asked;
  }
}

void StepExchange::pull_all() {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    entries_[i].pull = session_.client().pull(entries_[i].name, 0, priority(i));
}

void StepExchange::pull_updated(std::uint64_t clock) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].version > version_of_init)
      entries_[i].pull = session_.client().pull(entries_[i].name, clock, priority(i));
  }
}

std::uint64_t StepExchange::next_step(ExchangeReport& report) {
  std::vector<kvclient::Ticket> tickets;
  for (const Entry& entry : entries_)
    tickets.push_back(session_.client().pull(entry.name, 0, 0, any_version));
  std::uint64_t highest = 0;
  for (std::size_t i = 0; i < entries_.size() && !report.stopped; ++i) {
    const kvclient::Outcome outcome =
        answer_to(session_, tickets[i], "key '" + entries_[i].name + "'", report);
    highest = std::max(highest, outcome.next_step);
  }
  return highest;
}

bool StepExchange::untouched() const {
  return std::ranges::all_of(entries_,
                             [](const Entry& entry) { return entry.version <= version_of_init; });
}

std::string StepExchange::words_for(const Entry& entry) const {
  const bool in_steps = call_.empty() && values_ == Values::by_pull;
  const std::string words = words_for_key(entry.name, call_);
  return in_steps ? words + " (all workers have to push it in each step)" : words;
}

// Returns whether the value has come.
bool StepExchange::take(kvclient::Ticket ticket, std::size_t index, ExchangeReport& report,
                        const Write* write) {
  Entry& entry = entries_[index];
  const kvclient::Outcome outcome = answer_to(session_, ticket, words_for(entry), report);
  report.dropped |= outcome.kind == AnswerKind::dropped;
  (entry.buffers ? report.buffers_not_finite : report.not_finite) |=
      outcome.kind == AnswerKind::not_finite;
  if (outcome.left_out || write == nullptr || !whole(outcome.values)) return false;
  (*write)(index, outcome.values);
  entry.of_nothing = !std::ranges::all_of(outcome.values, [&](const SharedBytes& slice) {
    return begins_finite(entry.spec.dtype, slice);
  });
  entry.version = outcome.version;
  return true;
}

ExchangeReport StepExchange::finish(const Write& write) {
  const TimePoint began = Steady::now();
  ExchangeReport report;
  send_copied(/*all=*/true);
  for (std::size_t i = 0; i < entries_.size() && !report.stopped; ++i) {
    Entry& entry = entries_[i];
    if (!entry.push && !entry.pull) continue;
    bool came = !entry.push;  // a pull alone has its value, unless that is the known one
    // The push first: values may be written to the memory that it lends.
    if (entry.push) {
      came = take(*entry.push, i, report, values_ == Values::with_push ? &write : nullptr);
      if (report.stopped) break;
      entry.push.reset();
      entry.lent = {};
    }
    if (const auto pull = std::exchange(entry.pull, std::nullopt))
      came |= take(*pull, i, report, &write);
    // The answer to a push that was refused has no value.
    if (!came && report.complete())
      take(session_.client().pull(entry.name, entry.step + 1, priority(i)), i, report, &write);
  }
  report.waited = Steady::now() - began;
  return report;
}

ExchangeReport StepExchange::finish(WorkerModel& model) {
  model.begin_writes();
  const ExchangeReport report =
      finish([&model](std::size_t index, const Slices& slices) { model.write(index, slices); });
  model.end_writes();
  return report;
}

}  // namespace dpwa::kvstore
