#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "dpwa/observe/changes.h"
#include "dpwa/observe/cluster_query.h"
#include "dpwa/observe/curves.h"
#include "dpwa/observe/rates.h"
#include "dpwa/observe/recent_pulls.h"

namespace dpwa::observe {

// A cluster over time, as the page shows it: docs/OBSERVE.md lists the fields. Time is an argument,
// in seconds since 1970. One thread.
class ClusterView {
 public:
  // `cluster`, `backend`: of the file.
  ClusterView(std::string cluster, std::string backend);

  void add(ClusterStatus found, double time);

  Json status() const;                          // now: nodes, servers, recent pulls, events
  Json history() const;                         // the curves of all nodes
  Json process(const std::string& name) const;  // its whole document; null: none
  std::string metrics() const;                  // of all processes, for Prometheus

 private:
  struct Event {
    std::uint64_t number;
    double time;
    Change change;
  };

  // How far the events of a process are known.
  struct Told {
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;
  };

  void add_events(const ClusterStatus& found, double time);
  void add_shown(const NodeStatus& process);
  Json row_of(const NodeStatus& process) const;
  Curves::Values values_of(const NodeStatus& process) const;

  const std::string cluster_;
  const std::string backend_;
  ClusterStatus found_;
  double time_ = 0;
  std::map<std::string, Rates> rates_;
  std::map<std::string, Told> told_;
  RecentPulls pulls_;
  Curves curves_;
  std::map<std::string, std::string> shown_;  // names of ShownNumbers, by series
  std::deque<Event> events_;
  std::uint64_t events_made_ = 0;
};

}  // namespace dpwa::observe
