#pragma once

#include <cstddef>
#include <span>

#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The model as gossip sees it: memory described by a manifest, on the host or on a device. Trainer
// thread only.
class Parameters {
 public:
  virtual ~Parameters() = default;
  virtual const Manifest& manifest() const = 0;

  // Memory for snapshots and for what lands, page-locked where an accelerator copies to and from
  // it. `shared`: other processes of this host are to map it, where that is possible.
  virtual AlignedBuffer allocate(std::size_t bytes, bool shared) {
    return AlignedBuffer::of_host(bytes, shared);
  }

  // Locks the pages of memory that another process has allocated for the passes of this one.
  virtual void lock(AlignedBuffer& /*memory*/) {}

  // Begins to copy the parameters, as they are at this moment, into `snapshot`. The parameters may
  // change as soon as it returns; `snapshot` is complete once unfinished_copies() no longer counts
  // it.
  virtual void copy_out(std::span<std::byte> snapshot) = 0;

  // Begins to bring what has landed, landing.range(), to where blend() reads it, for the blend that
  // comes next. `landing` stays as it is until then. Host memory is there already.
  virtual void fetch(const Landing& /*landing*/) {}
  // Whether it is there, so that its blend holds nothing up. Never waits.
  virtual bool fetched() { return true; }

  // Begins to blend what has landed, landing.range(), into the regions that interpolate: delta or
  // lerp with `factor` by the landing's mode. Counters and carried tensors stay. `landing` may be
  // overwritten once landing_is_free() is true.
  virtual void blend(const Landing& landing, double factor) = 0;

  // blend(), then copy_out() of the result; in one pass over memory where that is possible.
  virtual void blend_and_copy_out(const Landing& landing, double factor,
                                  std::span<std::byte> snapshot) {
    blend(landing, factor);
    copy_out(snapshot);
  }

  // Whether no copy to or from host memory is under way. Never waits.
  virtual bool settled() { return true; }
  // How many copy_out() may be under way at once; and how many of the last ones are. Never waits.
  virtual std::size_t copies_at_once() const { return 1; }
  virtual std::size_t unfinished_copies() { return settled() ? 0 : 1; }
  // Whether what landed last has left its memory, which may be overwritten. Never waits.
  virtual bool landing_is_free() { return settled(); }

  // Overwrites everything, carried tensors too.
  virtual void assign(std::span<const std::byte> snapshot) = 0;
};

}  // namespace dpwa
