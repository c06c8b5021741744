#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dpwa/web/access.h"
#include "dpwa/web/http.h"

namespace dpwa::observe {

class ClusterPoller;

// What the dashboard serves, by path. A route is called on the server's thread.
struct Route {
  web::Needs needs = web::Needs::token;
  std::function<web::Response(const web::Request&)> answer;
};
using Routes = std::map<std::string, Route, std::less<>>;

// The files of the page, and /healthz. Without a token: they say nothing about a cluster.
Routes page_routes();
// /metrics, and below /api/ what the page shows of a running cluster. `poller` outlives them.
Routes live_routes(const ClusterPoller& poller);
// Below /api/ what the page shows of the runs in these folders, which are read at each request.
Routes run_routes(std::vector<std::filesystem::path> folders);

// Pure, as far as the routes are.
web::Response answer(const web::Request& request, const web::Access& access, const Routes& routes);

}  // namespace dpwa::observe
