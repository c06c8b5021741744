#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpwa/collective/bytes_group.h"
#include "dpwa/collective/replica.h"
#include "dpwa/collective/shared_buffers.h"
#include "dpwa/collective/step_tally.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::collective {

// Which parameters travel together, by their places in the list: the last ones first, because
// backward() is likely to reach them first; each bucket of one type and, once it is full, of
// `bucket_bytes` at least, the first of less. The same on all nodes of a model. Pure.
std::vector<std::vector<std::size_t>> plan_buckets(const std::vector<TensorSpec>& parameters,
                                                   std::uint64_t bucket_bytes);

// The gradients of a node on their way through one group, one step after the other. A bucket is
// sent as soon as its gradients are there and the ones before it were sent, so that all members
// send in the same order. The mean is over samples: member k's gradient, a mean over its batch of
// b_k, has the weight b_k / (sum of b). Parameters without a gradient count as zeros.
//
// One thread at a time; the group outlives it.
class GradientExchange {
 public:
  // `parameters`: those that are trained, in the same order on all members.
  GradientExchange(const std::vector<TensorSpec>& parameters, const BytesGroup& group,
                   std::uint64_t bucket_bytes);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // The place of a gradient: numbers of the parameter's type, in the order of its shape. The memory
  // lives as long as the pointer.
  std::shared_ptr<std::byte> place(std::size_t parameter) const;

  // A step begins, with so many samples. What is written to a place is the gradient times weight().
  void begin(double samples);
  bool has_begun() const { return begun_; }
  double weight() const { return samples_ / unit_; }
  // The program has this gradient. Returns those that are to be added now: a whole bucket, once it
  // has all of them; empty before.
  std::span<const std::size_t> come(std::size_t parameter);
  bool has_come(std::size_t parameter) const { return came_[parameter]; }
  // The gradient is at its place, where it stays as it is until end().
  void add(std::size_t parameter);
  bool has(std::size_t parameter) const { return added_[parameter]; }

  // Ends the step. `own.samples` is not looked at. `used`: for each parameter whether this member
  // has a gradient of it.
  StepResult end(OwnStep own, const std::vector<bool>& used, SharedBuffers& buffers,
                 const WaitWords& waits);
  // After a step that has ended well: the mean is what lies at a place, divided by this number, and
  // counts for the parameters that some member used.
  double divisor() const;
  bool is_used(std::size_t parameter) const;
  std::uint64_t steps() const { return steps_; }

 private:
  struct Bucket;
  void send_full_buckets();
  void begin_message(OwnStep own, const std::vector<bool>& used);
  std::string words_for(std::size_t bucket) const;

  const BytesGroup& group_;
  std::vector<TensorSpec> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<std::size_t> offset_of_;  // in its bucket
  std::uint64_t steps_ = 0;
  StepTally last_;    // of the last step that has ended well
  double share_ = 1;  // sum_share()
  double unit_ = 1;   // samples of a member that was at work in it, on the average, times that
  // --- of the step under way
  double samples_ = 0;
  bool begun_ = false;
  std::vector<bool> came_;
  std::vector<bool> added_;
  std::size_t sent_ = 0;  // buckets
  std::vector<double> message_;
  BytesGroup::WorkPtr told_;
};

}  // namespace dpwa::collective
