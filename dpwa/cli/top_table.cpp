#include "dpwa/cli/top_table.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sstream>

#include "dpwa/cli/text_table.h"
#include "dpwa/diagnosis/diagnose.h"
#include "dpwa/diagnosis/interval.h"

namespace dpwa::cli {
namespace {

using namespace observe;
using diagnosis::Activity;

std::string number_text(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string share_text(double part, double whole) {
  return whole > 0 ? number_text(100 * part / whole, "%.0f %%") : "-";
}

std::vector<std::string> row_of(const NodeStatus& status, const diagnosis::Interval& interval) {
  std::vector<std::string> row{status.name};
  if (const std::string absence = absence_of(status); !absence.empty()) {
    row.push_back(absence + "; address " + status.address);
    return row;
  }
  row.push_back(field_text(status.document, "clock", 0));
  row.push_back(field_text(status.document, "loss", 3));
  const auto found = interval.active.find(status.name);
  const Activity activity = found == interval.active.end() ? Activity() : found->second;
  const double all_s = activity.own_s + activity.wait_s;
  const bool steps = activity.steps > 0;
  row.push_back(steps ? number_text(activity.steps / activity.seconds, "%.1f") : "-");
  row.push_back(steps ? number_text(1e3 * activity.own_s / activity.steps, "%.2f") : "-");
  for (const double part_s : {activity.publish_s, activity.blend_s, activity.wait_s})
    row.push_back(share_text(part_s, all_s));
  row.push_back(share_text(activity.cpu_s, activity.seconds));
  row.push_back(share_text(activity.main_cpu_wait_s, activity.seconds));
  row.push_back(field_text(status.document, "state"));
  return row;
}

// "12:34:56 w2 'w3' does not answer", the latest first.
std::vector<std::string> latest_events(const ClusterStatus& found, std::size_t most) {
  struct Line {
    double wall;
    std::string text;
  };
  std::vector<Line> lines;
  for (const auto* processes : {&found.nodes, &found.servers}) {
    for (const NodeStatus& status : *processes) {
      for (const Json& event : list_in(status.document, "events")) {
        const auto wall = event.is_object() ? event.find("wall") : event.end();
        constexpr double latest = 1e11;  // of the years that a table can show
        if (wall == event.end() || !wall->is_number()) continue;
        if (!(*wall >= 0.0 && *wall <= latest)) continue;
        lines.push_back({wall->get<double>(), status.name + ' ' + field_text(event, "text")});
      }
    }
  }
  std::ranges::stable_sort(lines, std::ranges::greater(), &Line::wall);
  if (lines.size() > most) lines.resize(most);
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    const auto second = static_cast<std::time_t>(line.wall);
    std::tm time{};
    char text[16];
    ::localtime_r(&second, &time);
    std::strftime(text, sizeof text, "%H:%M:%S ", &time);
    texts.push_back(text + line.text);
  }
  return texts;
}

std::string cut(const std::string& line, std::size_t columns) {
  std::size_t end = std::min(line.size(), columns);
  while (end < line.size() && end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;  // not within a character
  return line.substr(0, end);
}

}  // namespace

std::vector<std::string> top_lines(const ClusterStatus& found,
                                   std::span<const diagnosis::Observation> observations,
                                   const TableSize& size) {
  const diagnosis::Interval interval = diagnosis::interval_of(observations);
  TextTable table({"node", "clock", "loss", "step/s", "own ms", "publish", "blend", "wait", "CPU",
                   "queue", "state"},
                  size.columns);
  for (const auto* processes : {&found.nodes, &found.servers})
    for (const NodeStatus& status : *processes) table.add(row_of(status, interval));
  std::ostringstream text;
  table.print(text);
  for (const auto& finding : diagnosis::diagnose(observations))
    text << finding.where << ": " << to_string(finding.cause) << " (dpwa why)\n";
  std::vector<std::string> lines;
  std::istringstream in(text.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  constexpr std::size_t usual_events = 8;
  const std::size_t room =
      size.rows == 0 ? usual_events : size.rows - std::min(size.rows, lines.size() + 2);
  const auto events = latest_events(found, room);
  if (!events.empty()) lines.emplace_back();
  lines.insert(lines.end(), events.begin(), events.end());
  if (size.rows == 0) return lines;
  lines.resize(std::min(lines.size(), size.rows - 1));  // the cursor stands in the last row
  for (std::string& line : lines) line = cut(line, size.columns);
  return lines;
}

}  // namespace dpwa::cli
