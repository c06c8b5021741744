#include "adapters/parallel/batch_search.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "adapters/parallel/saved_training.h"
#include "dpwa/base/process_memory.h"
#include "dpwa/parallel/largest_batch.h"

namespace dpwa {
namespace {

constexpr std::uint64_t beyond = 1ULL << 53;  // what any option allows

// Memory has to grow by this much before a line through the measurements is useful, and to a part
// of the budget, because small batches may be computed differently from large ones.
constexpr double telling_growth = 64.0 * (1 << 20);
constexpr double telling_part = 1.0 / 8;

// Restores everything at its end.
class Trial {
 public:
  explicit Trial(const SavedTraining& saved) : saved_(saved) {}
  ~Trial() { saved_.restore(); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

 private:
  const SavedTraining& saved_;
};

// By the host, the runtime of a device, or one of its libraries.
bool memory_refused(const std::exception& error) {
  const std::string_view text = error.what();
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"can't allocate memory", "out of memory", "ALLOC_FAILED"},
      [&](std::string_view words) { return text.find(words) != text.npos; });
}

}  // namespace

BatchSearch find_largest_batch(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                               const std::function<void(std::uint64_t)>& step,
                               const BatchSearchOptions& options) {
  const SavedTraining saved(module, optimizer);
  const auto fits = [&](std::uint64_t batch) {
    const Trial trial(saved);
    try {
      step(batch);
      return true;
    } catch (const c10::OutOfMemoryError&) {
    } catch (const std::bad_alloc&) {
    } catch (const c10::Error& error) {
      if (!memory_refused(error)) throw;
    }
    return false;
  };
  BatchSearch found;
  if (options.budget <= 0) {
    found.largest = largest_that_fits(options.limit, [&](std::uint64_t batch) {
      const bool good = fits(batch);
      options.tried({batch, good, 0});
      return good;
    });
  } else {
    // The first step is not measured: it also sets up state, such as moments, for all later steps.
    if (!fits(1)) return found;
    const auto measure = [&](std::uint64_t batch) {
      forget_peak();
      const bool good = fits(batch);
      // One that was refused took more than there is.
      const double bytes = good ? static_cast<double>(peak_bytes()) : 2 * options.budget;
      options.tried({batch, good && bytes <= options.budget, good ? bytes : 0});
      return bytes;
    };
    const double growth = std::max(telling_growth, telling_part * options.budget);
    const FittedBatch fitted =
        largest_within_budget(options.budget, options.limit, growth, measure);
    found.largest = fitted.largest;
    found.memory = fitted.line;
  }
  found.usable = with_margin(found.largest);
  // Where memory has room beyond the limit, that is margin enough.
  if (found.largest == options.limit && options.budget > 0)
    found.usable =
        std::min(options.limit, with_margin(found.memory.largest_within(options.budget, beyond)));
  return found;
}

}  // namespace dpwa
