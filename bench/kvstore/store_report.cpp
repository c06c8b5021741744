#include "bench/kvstore/store_report.h"

#include <ostream>

#include "bench/measure/machine.h"
#include "bench/quantity.h"

namespace dpwa::bench {
namespace {

std::string counted(std::size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

double median_us(const GroupWindow& window) {
  return window.latency_us;
}

// By which factor the store takes less time, or more than bare sockets, window by window.
Range speed_ratios(const Series& store, const std::vector<double>& other_us, bool inverse) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(store.windows.size(), other_us.size()); ++i) {
    const double ratio = other_us[i] / median_us(store.windows[i]);
    values.push_back(inverse ? 1 / ratio : ratio);
  }
  return range_of(values);
}

Json json_of_peer(const StepPeer& peer) {
  if (!peer.absent.empty()) return {{"absent", peer.absent}};
  return {{"name", peer.name},
          {"steps", peer.times_us.size()},
          {"step_us",
           {{"median", quantile(peer.times_us, 0.5)}, {"p99", quantile(peer.times_us, 0.99)}}},
          {"cpu_s", peer.cpu_s},
          {"windows",
           {{"count", peer.window_us.size()}, {"step_us", json_of(range_of(peer.window_us))}}}};
}

// Bytes per push, over all windows.
double per_push(const Series& store, const std::function<double(const GroupWindow&)>& bytes) {
  double sum = 0;
  double pushes = 0;
  for (const GroupWindow& window : store.windows) {
    sum += bytes(window);
    pushes += static_cast<double>(window.pulls);
  }
  return pushes == 0 ? 0 : sum / pushes;
}

}  // namespace

std::string title_of(const StoreSettings& settings) {
  return "kvstore " + size_text(settings.bytes) +
         (settings.keys == 1 ? std::string() : " in " + std::to_string(settings.keys) + " keys") +
         ", " + counted(settings.workers, "worker") + ", " + counted(settings.servers, "server") +
         (settings.replicas == 0 ? std::string() : " with replicas") + ", " + settings.type + ", " +
         settings.transport +
         (settings.optimizer == "none" ? std::string() : ", " + settings.optimizer) +
         (settings.compression == "none" ? std::string() : ", " + settings.compression) +
         (settings.ping_pong ? ", ping-pong" : "");
}

Json store_document(const StoreSettings& settings, const StoreMeasured& measured) {
  const Series& store = measured.store;
  Json document = {{"kind", "kvstore"},
                   {"bytes", settings.bytes},
                   {"workers", settings.workers},
                   {"servers", settings.servers},
                   {"type", settings.type},
                   {"transport", settings.transport},
                   {"optimizer", settings.optimizer},
                   {"compression", settings.compression},
                   {"ping_pong", settings.ping_pong}};
  // Known by the same settings as documents that have neither.
  if (settings.keys != 1) document["keys"] = settings.keys;
  if (settings.replicas != 0) document["replicas"] = settings.replicas;
  document.update(figures_of(store, measured.reports));
  document["windows"] = windows_of(store);
  const double exchanged =
      per_push(store, [](const GroupWindow& w) { return static_cast<double>(w.bytes); });
  document["pushed_bytes"] = exchanged - static_cast<double>(settings.bytes);
  document["tcp_bytes"] = per_push(store, [](const GroupWindow& w) { return w.tcp_bytes; });
  for (const Series& raw : measured.raw) {
    document["raw"] = figures_of(raw, measured.raw_reports);
    document["raw"]["windows"] = windows_of(raw);
    std::vector<double> times;
    for (const GroupWindow& window : raw.windows) times.push_back(window.latency_us);
    document["latency_ratio_to_raw"] = json_of(speed_ratios(store, times, true));
  }
  for (const StepPeer& peer : measured.peers) {
    document[peer.key] = json_of_peer(peer);
    document["ratio_to_" + peer.key] =
        peer.absent.empty() ? json_of(speed_ratios(store, peer.window_us, false)) : Json(nullptr);
  }
  document["noise"] = json_of(measured.noise);
  document["settings"] = machine_settings();
  document["settings"]["congestion_control"] = measured.reports.front().at("congestion_control");
  return document;
}

void print_store(const Json& document, std::ostream& out) {
  const auto range_text = [](const Json& range) {
    return number_text(range.at("median"), 2) + " (" + number_text(range.at("min"), 2) + " to " +
           number_text(range.at("max"), 2) + ")";
  };
  print_figures(document, out);
  out << "  pushed            " << size_text(document.at("pushed_bytes")) << " a push, "
      << size_text(document.at("tcp_bytes")) << " of TCP for it and its answer\n";
  if (document.contains("raw")) {
    out << "bare-socket ping-pong in the same windows\n";
    print_figures(document.at("raw"), out);
    out << "times its latency   " << range_text(document.at("latency_ratio_to_raw")) << '\n';
  }
  for (const auto& [key, name] :
       {std::pair("gloo", "c10d Gloo"), std::pair("ps_lite", "ps-lite")}) {
    if (!document.contains(key)) continue;
    const Json& peer = document.at(key);
    if (peer.contains("absent")) {
      out << name << ": absent: " << peer.at("absent").get<std::string>() << '\n';
      continue;
    }
    const Json& times = peer.at("step_us");
    out << peer.at("name").get<std::string>() << ": " << time_text(times.at("median"))
        << " median, " << time_text(times.at("p99")) << " p99; speed of the store in its units "
        << range_text(document.at(std::string("ratio_to_") + key)) << '\n';
  }
}

}  // namespace dpwa::bench
