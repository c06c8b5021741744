#include "dpwa/collective/reduce_options.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "dpwa/config/names.h"

namespace dpwa::collective {

namespace {

constexpr config::Word<Reduction> reduction_words[] = {{"average", Reduction::average},
                                                       {"sum", Reduction::sum},
                                                       {"min", Reduction::min},
                                                       {"max", Reduction::max}};

}  // namespace

const char* name_of(Reduction reduction) {
  return config::name_in(reduction_words, reduction);
}

std::string text_of(const ReduceOptions& options) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<double>::max_digits10);
  text << name_of(options.reduction) << " prescale " << options.prescale << " postscale "
       << options.postscale << " compression "
       << config::name_in(config::compression_words, options.compression);
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
  const auto take = [&known](auto& target, const std::string& word, const auto& words) {
    const auto found =
        std::ranges::find_if(words, [&](const auto& one) { return one.name == word; });
    known = known && found != std::end(words);
    if (known) target = found->value;
  };
  take(options.reduction, reduction, reduction_words);
  take(options.compression, name, config::compression_words);
  if (!known) throw std::invalid_argument("'" + text + "' is no reduction");
  return options;
}

}  // namespace dpwa::collective
