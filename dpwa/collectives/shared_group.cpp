#include "dpwa/collectives/shared_group.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/collectives/parts.h"
#include "dpwa/collectives/reduce.h"

namespace dpwa::collectives {
namespace {

constexpr std::size_t buffer_bytes = LentMemory::buffer_bytes;
// What a member reads to combine all inputs as a whole: below it a second wait costs more.
constexpr std::size_t small_bytes = std::size_t{128} << 10;

std::vector<const SharedBoard*> boards_of(const std::shared_ptr<LentMemory>& own,
                                          const std::vector<std::optional<BorrowedMemory>>& all) {
  std::vector<const SharedBoard*> boards;
  for (const auto& other : all) boards.push_back(other ? &other->board() : &own->board());
  return boards;
}

template <class Bytes>
Bytes piece_of(Bytes data, std::size_t from) {
  return data.subspan(from, std::min(buffer_bytes, data.size() - from));
}

void copy(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

SharedGroup::SharedGroup(int rank, std::shared_ptr<LentMemory> own,
                         std::vector<std::optional<BorrowedMemory>> others, std::size_t processors)
    : Group(rank, static_cast<int>(others.size())),
      own_(std::move(own)),
      others_(std::move(others)),
      wait_(rank, own_->board(), boards_of(own_, others_), processors) {}

// A broken group is not left in order: no farewell.
SharedGroup::~SharedGroup() {
  leaves_ = true;
  if (ends_ && is_broken()) ends_->break_off(lost(), "the group is broken");
}

// Of several members that end the first one is to blame, for whose sake the others have left.
void SharedGroup::watch(std::vector<std::optional<LinkSocket>> sockets,
                        std::function<void(int)> on_broken) {
  ends_ = std::make_unique<LinkWatch>(
      rank(), std::move(sockets),
      [this, on_broken = std::move(on_broken)](int rank) {
        if (leaves_) return;
        if (!is_broken()) wait_.break_off(rank);
        if (on_broken) on_broken(lost());
      },
      [this](int rank) { wait_.left(rank); });
}

const std::byte* SharedGroup::buffer_of(int rank, std::size_t turn) const {
  const auto& other = others_[static_cast<std::size_t>(rank)];
  return other ? other->buffer(turn) : own_->buffer(turn);
}

std::vector<const std::byte*> SharedGroup::buffers_of_all(std::size_t turn) const {
  std::vector<const std::byte*> buffers;
  for (int rank = 0; rank < size(); ++rank) buffers.push_back(buffer_of(rank, turn));
  return buffers;
}

void SharedGroup::meet() {
  wait_.await_all(wait_.arrive());
}

// An operation that one member has not ended well ends for all.
template <typename Operation>
void SharedGroup::run(const Operation& operation) {
  try {
    operation();
  } catch (...) {
    wait_.break_off(lost());
    throw;
  }
}

void SharedGroup::allreduce(std::span<std::byte> data, DType type, Reduction reduction) {
  run([&] { combine(data, {type, reduction}); });
}

void SharedGroup::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  run([&] { gather(own, all); });
}

void SharedGroup::broadcast(std::span<std::byte> data, int root) {
  DPWA_INVARIANT(root >= 0 && root < size(), "a root is a member", root, size());
  run([&] { hand_out(data, root); });
}

void SharedGroup::alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                           std::span<std::byte> into, std::span<const std::size_t> received) {
  run([&] { exchange(from, sent, into, received); });
}

void SharedGroup::barrier() {
  run([&] { meet(); });
}

// In a first phase all say where their data lies. Those whose data lies elsewhere have put the
// first piece into a buffer by then.
void SharedGroup::combine(std::span<std::byte> data, Numbers numbers) {
  if (data.empty() || size() == 1) return;
  if (data.size() <= small_bytes / static_cast<std::size_t>(size()))
    return allreduce_small(data, numbers);
  const auto offset = own_->offset_of(data);
  const std::size_t place = places_used_++ % SharedBoard::places;
  own_->board().place[place].offset.store(offset.value_or(SharedBoard::no_place),
                                          std::memory_order_relaxed);
  if (!offset) copy(own_->buffer(turn_), piece_of(data, 0));
  meet();
  std::vector<const std::byte*> inputs;
  bool some_there = false;
  for (const auto& other : others_) {
    const std::uint64_t at =
        other ? other->board().place[place].offset.load(std::memory_order_relaxed)
              : offset.value_or(SharedBoard::no_place);
    const bool there = at != SharedBoard::no_place;
    some_there = some_there || there;
    if (!there) continue;
    inputs.push_back(other ? other->at(at, data.size()) : data.data());
    if (inputs.back() == nullptr) throw GroupBroken(-1, "a member lends no such memory");
  }
  if (inputs.size() == others_.size()) return allreduce_in_place(data, inputs, numbers);
  allreduce_pieces(data, numbers, /*first_is_there=*/!some_there);
}

void SharedGroup::allreduce_small(std::span<std::byte> data, Numbers numbers) {
  const std::size_t turn = turn_++;
  copy(own_->buffer(turn), data);
  meet();
  reduce(numbers.type, numbers.reduction, buffers_of_all(turn), data.data(),
         data.size() / size_of(numbers.type));
}

// While a piece is combined and handed over, the next one is on its way.
void SharedGroup::allreduce_pieces(std::span<std::byte> data, Numbers numbers,
                                   bool first_is_there) {
  const std::size_t number_bytes = size_of(numbers.type);
  std::optional<std::uint64_t> filled;  // the phase in which all have filled their buffers
  if (!first_is_there) {
    copy(own_->buffer(turn_), piece_of(data, 0));
    filled = wait_.arrive();
  }
  for (std::size_t from = 0; from < data.size(); from += buffer_bytes) {
    const std::span<std::byte> piece = piece_of(data, from);
    const std::size_t turn = turn_++;
    if (filled) wait_.await_all(*filled);
    std::vector<const std::byte*> inputs = buffers_of_all(turn);
    const auto [begin, end] = part_of(piece.size() / number_bytes, size(), rank());
    for (const std::byte*& input : inputs) input += begin * number_bytes;
    std::byte* const result = own_->buffer(turn) + begin * number_bytes;
    reduce(numbers.type, numbers.reduction, inputs, result, end - begin);
    const std::uint64_t combined = wait_.arrive();
    const std::size_t next = from + buffer_bytes;
    if (next < data.size()) {
      copy(own_->buffer(turn_), piece_of(data, next));
      filled = wait_.arrive();
    }
    wait_.await_all(combined);
    copy(piece.data() + begin * number_bytes, {result, (end - begin) * number_bytes});
    copy_parts_of_others(piece, buffers_of_all(turn), number_bytes);
  }
}

void SharedGroup::allreduce_in_place(std::span<std::byte> data,
                                     const std::vector<const std::byte*>& inputs, Numbers numbers) {
  const std::size_t number_bytes = size_of(numbers.type);
  const auto [begin, end] = part_of(data.size() / number_bytes, size(), rank());
  std::vector<const std::byte*> parts = inputs;
  for (const std::byte*& input : parts) input += begin * number_bytes;
  reduce(numbers.type, numbers.reduction, parts, data.data() + begin * number_bytes, end - begin);
  meet();
  copy_parts_of_others(data, inputs, number_bytes);
  meet();  // the caller may write to its data again
}

void SharedGroup::copy_parts_of_others(std::span<std::byte> data,
                                       const std::vector<const std::byte*>& sources,
                                       std::size_t number_bytes) {
  for (int step = 1; step < size(); ++step) {  // not all from the same one at the same time
    const int from = (rank() + step) % size();
    const auto [begin, end] = part_of(data.size() / number_bytes, size(), from);
    copy(data.data() + begin * number_bytes,
         {sources[static_cast<std::size_t>(from)] + begin * number_bytes,
          (end - begin) * number_bytes});
  }
}

void SharedGroup::gather(std::span<const std::byte> own, std::span<std::byte> all) {
  DPWA_INVARIANT(all.size() == own.size() * static_cast<std::size_t>(size()),
                 "there is room for the data of all", own.size(), all.size());
  for (std::size_t from = 0; from < own.size(); from += buffer_bytes) {
    const std::span<const std::byte> piece = piece_of(own, from);
    const std::size_t turn = turn_++;
    copy(own_->buffer(turn), piece);
    meet();
    for (int rank = 0; rank < size(); ++rank) {
      copy(all.data() + static_cast<std::size_t>(rank) * own.size() + from,
           {buffer_of(rank, turn), piece.size()});
    }
  }
}

void SharedGroup::hand_out(std::span<std::byte> data, int root) {
  for (std::size_t from = 0; from < data.size(); from += buffer_bytes) {
    const std::span<std::byte> piece = piece_of(data, from);
    const std::size_t turn = turn_++;
    if (rank() == root) copy(own_->buffer(turn), piece);
    meet();
    if (rank() != root) copy(piece.data(), {buffer_of(root, turn), piece.size()});
  }
}

std::vector<std::size_t> SharedGroup::counts_of_all(std::span<const std::size_t> sent) {
  std::vector<std::size_t> counts(sent.size() * sent.size());
  gather(std::as_bytes(sent), std::as_writable_bytes(std::span(counts)));
  return counts;
}

void SharedGroup::exchange(std::span<const std::byte> from, std::span<const std::size_t> sent,
                           std::span<std::byte> into, std::span<const std::size_t> received) {
  const auto members = static_cast<std::size_t>(size());
  const std::vector<std::size_t> counts = counts_of_all(sent);
  std::size_t longest = 0;
  std::vector<std::size_t> starts;  // of what each sends to this member
  std::vector<std::size_t> places;  // where it goes
  std::size_t place = 0;
  for (std::size_t rank = 0; rank < members; ++rank) {
    const std::span row(counts.data() + rank * members, members);
    const auto own = row.begin() + this->rank();
    starts.push_back(std::accumulate(row.begin(), own, std::size_t{0}));
    longest = std::max(longest, std::accumulate(own, row.end(), starts.back()));
    if (*own != received[rank]) throw GroupBroken(-1, "a member sends another number of rows");
    places.push_back(place);
    place += received[rank];
  }
  for (std::size_t at = 0; at < longest; at += buffer_bytes) {
    const std::size_t turn = turn_++;
    if (at < from.size()) copy(own_->buffer(turn), piece_of(from, at));
    meet();
    for (std::size_t rank = 0; rank < members; ++rank) {
      const std::size_t begin = std::max(at, starts[rank]);
      const std::size_t end = std::min(at + buffer_bytes, starts[rank] + received[rank]);
      if (begin >= end) continue;
      copy(into.data() + places[rank] + (begin - starts[rank]),
           {buffer_of(static_cast<int>(rank), turn) + (begin - at), end - begin});
    }
  }
}

}  // namespace dpwa::collectives
