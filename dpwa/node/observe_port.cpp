#include "dpwa/node/observe_port.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/node/metrics_text.h"

namespace dpwa {

namespace asio = boost::asio;

std::string observe_token(const Config& config) {
  if (config.observe.port == 0 || config.observe.open) return {};
  try {
    return web::read_token(config.observe.token_file);
  } catch (const std::runtime_error& error) {
    fail_at_key(config, "observe.token_file", error.what());
  }
}

ObservePort::ObservePort(asio::io_context& io, const Config& config, const NodeEntry& at,
                         const std::string& address)
    : name_(at.name),
      address_(address),
      port_(config.observe.port),
      access_{observe_token(config), {at.host, at.name}},
      server_(io, [this](web::Request request) { return answer(std::move(request)); }) {}

void ObservePort::listen() {
  try {
    server_.listen(address_, port_);
    server_.serve();
    log(LogLevel::info, "node", "metrics on " + address_ + " port " + std::to_string(port_));
  } catch (const std::system_error& error) {
    log(LogLevel::error, "node", std::string("no metrics (observe.port): ") + error.what());
  }
}

asio::awaitable<web::Response> ObservePort::answer(web::Request request) {
  const bool live = request.path() == "/healthz", ready = request.path() == "/readyz";
  const auto needs = live || ready ? web::Needs::nothing : web::Needs::token;
  if (auto refused = web::refusal(request, access_, needs)) co_return std::move(*refused);
  if (!live && !ready && request.path() != "/metrics")
    co_return web::error_response(404, "not here; accepted: /healthz, /readyz, /metrics");
  if (live || ready) {
    const std::string state = co_await look();
    const bool has_model = state != "joining" && state != "waiting" && state != "unknown";
    co_return web::Response{.status = live || has_model ? 200U : 503U, .body = state + '\n'};
  }
  const std::string text = co_await describe_();
  const auto status = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Measured measured{name_, status};
  co_return web::Response{.type = metrics_type, .body = metrics_text({&measured, 1})};
}

asio::awaitable<std::string> ObservePort::look() {
  const TimePoint now = std::chrono::steady_clock::now();
  if (state_.empty() || now >= looked_ + std::chrono::seconds(1)) {
    looked_ = now;
    const std::string text = co_await describe_();
    const auto status = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    state_ = status.is_object() ? status.value("state", "unknown") : "unknown";
  }
  co_return state_;
}

}  // namespace dpwa
