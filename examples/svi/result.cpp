#include "examples/svi/result.h"

#include <nlohmann/json.hpp>

namespace dpwa::svi {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Quality& quality) {
  return {{"log_likelihood", quality.log_likelihood},
          {"rmse", quality.rmse},
          {"within_50", quality.within_50},
          {"within_80", quality.within_80},
          {"within_95", quality.within_95}};
}

ordered_json json_of(const Curve& curve) {
  if (curve.x.empty()) return nullptr;
  return {{"columns", curve.columns},   {"x", curve.x},
          {"mean", curve.mean},         {"sd", curve.sd},
          {"model_sd", curve.model_sd}, {"train_x", curve.train_x},
          {"train_y", curve.train_y},   {"test_x", curve.test_x},
          {"test_y", curve.test_y}};
}

}  // namespace

std::string to_json(const SviResult& r) {
  const ordered_json json = {{"schema", 1},
                             {"node", r.node},
                             {"backend", r.backend},
                             {"dataset", config::name_in(data_names, r.options.data)},
                             {"posterior", config::name_in(posterior_names, r.options.posterior)},
                             {"exchange", config::name_in(exchange_names, r.options.exchange)},
                             {"hidden", r.options.hidden},
                             {"seed", r.options.seed},
                             {"steps", r.options.steps},
                             {"workers", r.workers},
                             {"rows", r.rows},
                             {"train_rows", r.train_rows},
                             {"test_rows", r.test_rows},
                             {"participants", r.participants},
                             {"refused", r.refused},
                             {"train_seconds", r.seconds},
                             {"own", json_of(r.own)},
                             {"final", json_of(r.final)},
                             {"curve", json_of(r.curve)}};
  return json.dump(2) + "\n";
}

}  // namespace dpwa::svi
