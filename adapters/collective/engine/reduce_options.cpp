#include "adapters/collective/engine/reduce_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "adapters/collective/engine/tensor_form.h"

namespace dpwa::collective {

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::average:
      return "average";
    case Reduction::sum:
      return "sum";
    case Reduction::min:
      return "min";
    case Reduction::max:
      return "max";
  }
  return "?";
}

const char* name_of(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::fp16:
      return "fp16";
    case Compression::bf16:
      return "bf16";
  }
  return "?";
}

std::string text_of(const ReduceOptions& options) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<double>::max_digits10);
  text << name_of(options.reduction) << " prescale " << options.prescale << " postscale "
       << options.postscale << " compression " << name_of(options.compression);
  return text.str();
}

ReduceOptions reduce_options_of(const std::string& text) {
  std::istringstream words(text);
  words.imbue(std::locale::classic());
  std::string reduction, prescale, postscale, compression, name;
  ReduceOptions options;
  words >> reduction >> prescale >> options.prescale >> postscale >> options.postscale >>
      compression >> name;
  bool known = static_cast<bool>(words);
  const auto take = [&](auto& target, const std::string& word, const auto& all) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& one) { return name_of(one) == word; });
    known = known && found != all.end();
    if (known) target = *found;
  };
  take(options.reduction, reduction,
       std::array{Reduction::average, Reduction::sum, Reduction::min, Reduction::max});
  take(options.compression, name,
       std::array{Compression::none, Compression::fp16, Compression::bf16});
  if (!known) throw std::invalid_argument("'" + text + "' is no reduction");
  return options;
}

std::string reduction_problem(const at::Tensor& tensor, const ReduceOptions& options) {
  if (!tensor.defined()) return "there is no tensor";
  if (tensor.layout() != at::kStrided) return "the tensor is not dense";
  const auto type = tensor.scalar_type();
  const bool floating = at::isFloatingType(type);
  if (!floating && !at::isIntegralType(type, /*includeBool=*/true)) {
    return type_name(type) + " cannot be reduced";
  }
  const bool adds = options.reduction == Reduction::sum || options.reduction == Reduction::average;
  if (type == at::kBool && adds) return "bool cannot be added; use min, max or an integer type";
  if (floating) return {};
  if (options.reduction == Reduction::average) {
    return type_name(type) + " cannot be averaged; use sum or a floating-point type";
  }
  if (options.prescale != 1 || options.postscale != 1) return type_name(type) + " cannot be scaled";
  return {};
}

}  // namespace dpwa::collective
