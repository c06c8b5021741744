#include "dpwa/observe/routes.h"

#include <stdexcept>
#include <utility>

#include "dpwa/node/metrics_text.h"
#include "dpwa/observe/cluster_poller.h"
#include "dpwa/observe/page_files.h"
#include "dpwa/observe/run_files.h"

namespace dpwa::observe {
namespace {

web::Response json(const Json& document) {
  return {.type = "application/json", .body = document.dump()};
}

}  // namespace

Routes page_routes() {
  Routes routes;
  for (const PageFile& file : page_files()) {
    routes[file.path] = {web::Needs::own_host, [&file](const web::Request&) {
                           return web::Response{.type = file.type, .body = std::string(file.text)};
                         }};
  }
  routes["/healthz"] = {web::Needs::nothing,
                        [](const web::Request&) { return web::Response{.body = "ok\n"}; }};
  return routes;
}

Routes live_routes(const ClusterPoller& poller) {
  const auto route = [&poller](auto describe) {
    return Route{
        web::Needs::token, [&poller, describe](const web::Request& request) {
          return poller.view([&](const ClusterView& view) { return describe(view, request); });
        }};
  };
  using web::Request;
  return {{"/api/status",
           route([](const ClusterView& view, const Request&) { return json(view.status()); })},
          {"/api/history",
           route([](const ClusterView& view, const Request&) { return json(view.history()); })},
          {"/api/process", route([](const ClusterView& view, const Request& request) {
             return json(view.process(request.parameter("name")));
           })},
          {"/metrics", route([](const ClusterView& view, const Request&) {
             return web::Response{.type = metrics_type, .body = view.metrics()};
           })}};
}

Routes run_routes(std::vector<std::filesystem::path> folders) {
  return {{"/api/status", {web::Needs::token, [folders = std::move(folders)](const web::Request&) {
                             try {
                               return json(read_runs(folders));
                             } catch (const std::runtime_error& error) {
                               return web::error_response(500, error.what());
                             }
                           }}}};
}

web::Response answer(const web::Request& request, const web::Access& access, const Routes& routes) {
  const auto route = routes.find(request.path());
  const auto needs = route == routes.end() ? web::Needs::token : route->second.needs;
  if (auto refused = web::refusal(request, access, needs)) return std::move(*refused);
  return route == routes.end() ? web::error_response(404, "not here")
                               : route->second.answer(request);
}

}  // namespace dpwa::observe
