#include "dpwa/observe/cluster_view.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dpwa/net/shown_numbers.h"
#include "dpwa/node/metrics_text.h"

namespace dpwa::observe {
namespace {

constexpr std::size_t most_points = 720;
constexpr std::size_t most_events = 200;
constexpr double longest_pull_age = 5;  // seconds

// A number of a status document under the name that the page has for it.
struct Quantity {
  const char* name;
  const char* path;  // a JSON pointer
};

// Those of the moment.
constexpr Quantity gauges[] = {{"clock", "/clock"},
                               {"loss", "/loss"},
                               {"to_mean", "/to_mean/distance"},
                               {"to_mean_relative", "/to_mean/relative"}};
// Those that grow. Of several with one name, the first that a document has.
constexpr Quantity counters[] = {{"steps", "/steps/count"},
                                 {"steps", "/published"},
                                 {"steps", "/clock"},
                                 {"received", "/bytes_received"},
                                 {"received", "/kvstore/bytes_received"},
                                 {"sent", "/bytes_served"},
                                 {"sent", "/kvstore/bytes_sent"},
                                 {"sent", "/gradient_bytes"},
                                 {"updates", "/updates"},
                                 {"compute", "/steps/compute_s"},
                                 {"publish", "/steps/publish_s"},
                                 {"blend", "/steps/blend_s"},
                                 {"wait", "/steps/wait_s"},
                                 {"cpu", "/process/cpu_s"}};
// The parts of a document that a row has as they are.
constexpr const char* parts[] = {"state",   "pulls_ok", "pulls_failed", "collective", "kvstore",
                                 "epoch",   "slices",   "bytes",        "updates",    "lost",
                                 "missing", "snapshot", "firewall",     "waits_for"};

std::optional<double> number_at(const Json& document, const char* path) {
  const Json::json_pointer pointer(path);
  if (!document.contains(pointer) || !document.at(pointer).is_number()) return std::nullopt;
  return document.at(pointer).get<double>();
}

Rates::Counters counters_of(const Json& document) {
  Rates::Counters found;
  for (const Quantity& counter : counters) {
    if (const auto value = number_at(document, counter.path)) found.emplace(counter.name, *value);
  }
  return found;
}

}  // namespace

ClusterView::ClusterView(std::string cluster, std::string backend)
    : cluster_(std::move(cluster)), backend_(std::move(backend)), curves_(most_points) {}

void ClusterView::add(ClusterStatus found, double time) {
  add_events(found, time);
  std::map<std::string, Curves::Values> values;
  for (const auto* const list : {&found.nodes, &found.servers}) {
    for (const NodeStatus& process : *list) {
      if (!absence_of(process).empty()) continue;
      rates_[process.name].add(time, counters_of(process.document));
    }
  }
  std::erase_if(rates_, [&](const auto& each) {
    const auto is_it = [&](const NodeStatus& one) { return one.name == each.first; };
    return std::ranges::none_of(found.nodes, is_it) && std::ranges::none_of(found.servers, is_it);
  });
  for (const NodeStatus& node : found.nodes) {
    if (absence_of(node).empty()) {
      pulls_.add(node, time);
      add_shown(node);
    }
    values[node.name] = values_of(node);
  }
  curves_.add(time, values);
  found_ = std::move(found);
  time_ = time;
}

// What has changed, and what the processes themselves say since the last look, by time.
void ClusterView::add_events(const ClusterStatus& found, double time) {
  std::vector<Event> fresh;
  for (Change& change : changes(found_, found))
    fresh.push_back({fresh.size(), time, std::move(change)});
  for (const auto* const list : {&found.nodes, &found.servers}) {
    for (const NodeStatus& process : *list) {
      if (!absence_of(process).empty()) continue;
      Told& told = told_[process.name];
      const std::uint64_t incarnation = count_in(process.document, "incarnation");
      if (incarnation != told.incarnation) told = {incarnation, 0};
      for (const Json& event : list_in(process.document, "events")) {
        if (!event.is_object() || count_in(event, "number") <= told.number) continue;
        told.number = count_in(event, "number");
        const std::string level = raw_text(event, "level");
        fresh.push_back(
            {fresh.size(),
             number_at(event, "/wall").value_or(time),
             {process.name, raw_text(event, "text"), level == "warn" || level == "error"}});
      }
    }
  }
  std::ranges::sort(fresh, {}, [](const Event& event) {
    return std::pair(event.time, event.number);  // in which they came
  });
  for (Event& event : fresh) {
    event.number = ++events_made_;
    events_.push_back(std::move(event));
    if (events_.size() > most_events) events_.pop_front();
  }
}

// A cluster has no more series than a node may show: nobody fills this memory.
void ClusterView::add_shown(const NodeStatus& process) {
  for (const auto& [name, value] : object_in(process.document, "shown").items()) {
    if (name.size() > ShownNumbers::longest_name || shown_.size() >= ShownNumbers::most_numbers)
      return;
    shown_.emplace("shown/" + name, name);
  }
}

Curves::Values ClusterView::values_of(const NodeStatus& process) const {
  Curves::Values values;
  if (!absence_of(process).empty()) return values;
  for (const Quantity& gauge : gauges) {
    if (const auto value = number_at(process.document, gauge.path)) values[gauge.name] = *value;
  }
  for (const auto& [series, name] : shown_) {
    const Json& all = object_in(process.document, "shown");
    const auto value = all.find(name);
    if (value != all.end() && value->is_number()) values[series] = value->get<double>();
  }
  if (const auto rates = rates_.find(process.name); rates != rates_.end()) {
    // A wait counts once it is over.
    for (const auto& [key, value] : rates->second.per_second())
      values[key + "_per_s"] = key == "wait" ? std::min(1.0, value) : value;
  }
  return values;
}

Json ClusterView::row_of(const NodeStatus& process) const {
  Json row{{"name", process.name}, {"address", process.address}, {"member", process.member}};
  if (process.joined) row["joined"] = true;
  if (const std::string absence = absence_of(process); !absence.empty()) {
    row["error"] = absence;
    return row;
  }
  for (const char* const part : parts) {
    if (process.document.contains(part)) row[part] = process.document.at(part);
  }
  const Json& gpus = list_in(object_in(process.document, "host"), "gpus");
  if (!gpus.empty()) row["gpus"] = gpus;
  for (const auto& [key, value] : values_of(process)) row[key] = value;
  return row;
}

Json ClusterView::status() const {
  Json out{{"mode", "live"}, {"cluster", cluster_}, {"backend", backend_}, {"time", time_}};
  out["nodes"] = Json::array();
  for (const NodeStatus& node : found_.nodes) out["nodes"].push_back(row_of(node));
  out["servers"] = Json::array();
  for (const NodeStatus& server : found_.servers) out["servers"].push_back(row_of(server));
  out["pulls"] = pulls_.to_json(time_, longest_pull_age);
  out["events"] = Json::array();
  for (const Event& event : events_) {
    out["events"].push_back({{"number", event.number},
                             {"time", event.time},
                             {"process", event.change.process},
                             {"words", event.change.words},
                             {"bad", event.change.is_bad}});
  }
  return out;
}

Json ClusterView::history() const {
  return curves_.to_json();
}

Json ClusterView::process(const std::string& name) const {
  for (const auto* const list : {&found_.nodes, &found_.servers}) {
    for (const NodeStatus& process : *list) {
      if (process.name == name && absence_of(process).empty()) return process.document;
    }
  }
  return nullptr;
}

std::string ClusterView::metrics() const {
  static const Json& none = *new Json;
  std::vector<Measured> measured;
  std::set<std::string> names;  // each once: one that joined may bear the name of a server
  for (const auto* const list : {&found_.nodes, &found_.servers}) {
    for (const NodeStatus& process : *list) {
      if (!names.insert(process.name).second) continue;
      measured.push_back({process.name, absence_of(process).empty() ? process.document : none});
    }
  }
  return metrics_text(measured);
}

}  // namespace dpwa::observe
