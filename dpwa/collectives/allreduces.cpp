#include "dpwa/collectives/allreduces.h"

#include <array>
#include <vector>

#include "dpwa/collectives/exchanges.h"
#include "dpwa/collectives/plan.h"
#include "dpwa/collectives/reduce.h"

namespace dpwa::collectives {
namespace {

// Chunks that a member sends ahead of the one that it combines, so that the next is on its way.
constexpr std::size_t chunks_ahead = 2;

std::span<std::byte> room_in(AlignedBuffer& scratch, std::size_t bytes) {
  if (scratch.bytes().size() < bytes) scratch = AlignedBuffer(bytes);
  return scratch.bytes().first(bytes);
}

// Combines inputs of as many bytes into `result`, which may be one of them.
void combine(const Numbers& numbers, std::span<const std::byte* const> inputs,
             std::span<std::byte> result) {
  reduce(numbers.type, numbers.reduction, inputs, result.data(),
         result.size() / size_of(numbers.type));
}

// An all-reduce in parts. Each member combines its own part, chunk by chunk, of what all others
// send it, and sends the result to them. On each connection travel
//
//   contribution 0, contribution 1, contribution 2, result 0, contribution 3, result 1, ...
//
// where contribution k is chunk k of the receiver's part as the sender has it, and result k is
// chunk k of the sender's part. A result arrives where the receiver's own numbers were: they are no
// longer needed, because the result was made of them.
class InParts {
 public:
  InParts(Links& links, const Numbers& numbers, std::size_t chunk_bytes, AlignedBuffer& scratch)
      : links_(links),
        numbers_(numbers),
        chunk_bytes_(chunk_bytes),
        own_(byte_part_of(numbers.bytes.size(), links.size(), links.rank())),
        room_(room_in(scratch, slots * chunk_bytes * static_cast<std::size_t>(links.size()))),
        tickets_(slots * static_cast<std::size_t>(links.size())),
        inputs_(static_cast<std::size_t>(links.size())) {}

  void run() {
    const std::size_t chunks = chunks_of(numbers_.bytes.size(), links_.size(), chunk_bytes_);
    for (std::size_t step = 0; step < chunks + chunks_ahead; ++step) {
      if (step < chunks) contribute(step);
      if (step < chunks_ahead) continue;
      receive_results(step - chunks_ahead);
      combine_own(step - chunks_ahead);
    }
    finish(links_);
  }

 private:
  // Of contributions: those ahead and the one that is combined.
  static constexpr std::size_t slots = chunks_ahead + 1;

  // Calls `each` with the other ranks, from the next one on, so that not all members begin with the
  // same one.
  template <typename Each>
  void with_others(const Each& each) const {
    for (int distance = 1; distance < links_.size(); ++distance)
      each(wrapped(links_.rank() + distance, links_.size()));
  }

  std::span<std::byte> at(const Part& place) const {
    return numbers_.bytes.subspan(place.begin, place.bytes);
  }
  std::span<std::byte> chunk(int of_rank, std::size_t index) const {
    const Part part = byte_part_of(numbers_.bytes.size(), links_.size(), of_rank);
    return at(chunk_of(part, chunk_bytes_, index));
  }
  std::size_t slot(int rank, std::size_t index) const {
    return index % slots * static_cast<std::size_t>(links_.size()) + static_cast<std::size_t>(rank);
  }

  void contribute(std::size_t index) {
    const std::size_t bytes = chunk_of(own_, chunk_bytes_, index).bytes;
    with_others([&](int peer) {
      const std::size_t place = slot(peer, index);
      tickets_[place] = links_.receive(peer, room_.subspan(place * chunk_bytes_, bytes));
      links_.send(peer, chunk(peer, index));
    });
  }

  void receive_results(std::size_t index) {
    with_others([&](int peer) { links_.receive(peer, chunk(peer, index)); });
  }

  void combine_own(std::size_t index) {
    const std::span<std::byte> own = at(chunk_of(own_, chunk_bytes_, index));
    with_others([&](int peer) {
      const std::size_t place = slot(peer, index);
      await_received(links_, peer, tickets_[place]);
      inputs_[static_cast<std::size_t>(peer)] = room_.data() + place * chunk_bytes_;
    });
    inputs_[static_cast<std::size_t>(links_.rank())] = own.data();
    if (!own.empty()) combine(numbers_, inputs_, own);
    with_others([&](int peer) { links_.send(peer, own); });
  }

  Links& links_;
  const Numbers numbers_;
  const std::size_t chunk_bytes_;
  const Part own_;
  const std::span<std::byte> room_;     // for each slot and rank a chunk
  std::vector<Links::Ticket> tickets_;  // likewise
  std::vector<const std::byte*> inputs_;
};

}  // namespace

void allreduce_whole(Links& links, const Numbers& numbers, AlignedBuffer& scratch) {
  const std::size_t bytes = numbers.bytes.size();
  const auto members = static_cast<std::size_t>(links.size());
  const std::span<std::byte> all = room_in(scratch, bytes * members);
  gather_all(links, numbers.bytes, all);
  std::vector<const std::byte*> inputs(members);
  for (std::size_t rank = 0; rank < members; ++rank) inputs[rank] = all.data() + rank * bytes;
  combine(numbers, inputs, numbers.bytes);
}

void allreduce_in_parts(Links& links, const Numbers& numbers, std::size_t chunk_bytes,
                        AlignedBuffer& scratch) {
  InParts(links, numbers, chunk_bytes, scratch).run();
}

// The members stand in a ring, and each sends to the next one alone, in 2 (size - 1) steps. In the
// first half a member gets the sum of some part so far, adds its own, and passes it on; in the
// second half it passes on complete parts. A step is made chunk by chunk, and each chunk goes on as
// soon as it is there.
void allreduce_by_ring(Links& links, const Numbers& numbers, std::size_t chunk_bytes,
                       AlignedBuffer& scratch) {
  const int size = links.size();
  const int next = wrapped(links.rank() + 1, size);
  const int previous = wrapped(links.rank() - 1, size);
  const std::size_t chunks = chunks_of(numbers.bytes.size(), size, chunk_bytes);
  constexpr std::size_t slots = chunks_ahead + 1;
  const std::span<std::byte> room = room_in(scratch, slots * chunk_bytes);
  const std::size_t half = chunks * static_cast<std::size_t>(size - 1);
  const std::size_t messages = 2 * half;
  // Message m of step m / chunks is about this chunk of the numbers, as the receiver counts.
  const auto place = [&](std::size_t message) {
    const int step = static_cast<int>(message / chunks);
    const Part part =
        byte_part_of(numbers.bytes.size(), size, wrapped(links.rank() - 1 - step, size));
    const Part chunk = chunk_of(part, chunk_bytes, message % chunks);
    return numbers.bytes.subspan(chunk.begin, chunk.bytes);
  };
  const Part own = byte_part_of(numbers.bytes.size(), size, links.rank());
  for (std::size_t index = 0; index < chunks; ++index) {
    const Part chunk = chunk_of(own, chunk_bytes, index);
    links.send(next, numbers.bytes.subspan(chunk.begin, chunk.bytes));
  }
  std::vector<Links::Ticket> tickets(slots);
  std::size_t posted = 0;
  for (std::size_t message = 0; message < messages; ++message) {
    for (; posted < messages && posted < message + slots; ++posted) {
      const std::span<std::byte> target = place(posted);
      const std::size_t slot = posted % slots;
      const bool partial = posted < half;
      tickets[slot] = links.receive(
          previous, partial ? room.subspan(slot * chunk_bytes, target.size()) : target);
    }
    await_received(links, previous, tickets[message % slots]);
    const std::span<std::byte> target = place(message);
    if (message < half && !target.empty()) {
      const std::array<const std::byte*, 2> inputs{room.data() + message % slots * chunk_bytes,
                                                   target.data()};
      combine(numbers, inputs, target);
    }
    if (message + chunks < messages) links.send(next, target);
  }
  finish(links);
}

}  // namespace dpwa::collectives
