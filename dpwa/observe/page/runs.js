// The files of finished runs, side by side.

import { Chart } from "./charts.js";
import { element, median, number, short, sum } from "./format.js";

const curves = [
  ["Loss", "", "steps", "loss"],
  ["Accuracy", "test set", "evaluations", "accuracy"],
  ["Clock", "steps", "steps", "clock"],
  ["Distance", "of a blend", "steps", "distance"],
  ["Step time", "ms", "steps", "step_ms"],
  ["Wait for the network", "ms", "steps", "waited_ms"],
];

const last = list => list?.findLast(value => value !== null);

const mostTimes = 2000;  // that a chart has as they are
const mostParts = 720;

// So many ends of equal parts of the time.
function parts(all, count) {
  const n = Math.max(1, Math.min(mostParts, count));
  return Array.from({ length: n }, (_, i) => i === n - 1 ? all.at(-1) : all[0] + (i + 1) * (all.at(-1) - all[0]) / n);
}

// The values of all nodes of a run, each of which has times of its own: at all of these, or, where there are many or a
// mean over the nodes follows, in equal parts of the time. A value is the mean since the time before.
function joined(run, part, series, isAlone) {
  const nodes = Object.entries(run.nodes).filter(([, node]) => node[part][series]);
  const all = [...new Set(nodes.flatMap(([, node]) => node[part].time))].sort((a, b) => a - b);
  const most = Math.max(0, ...nodes.map(([, node]) => node[part].time.length));
  const time = all.length === 0 || (isAlone && all.length <= mostTimes) ? all : parts(all, most);
  const history = { time, nodes: {} };
  for (const [name, node] of nodes) {
    const own = node[part];
    let at = 0;
    history.nodes[name] = { [series]: time.map((t, i) => {
      const until = i === time.length - 1 ? Infinity : t;  // those after the last one, too
      let total = 0;
      let count = 0;
      for (; at < own.time.length && own.time[at] <= until; ++at) {
        if (own[series][at] === null) continue;
        total += own[series][at];
        ++count;
      }
      return count ? total / count : null;
    }) };
  }
  return history;
}

// The mean over the nodes of a run, as one line.
function mean(history, series, name) {
  const columns = Object.values(history.nodes).map(node => node[series]);
  const values = history.time.map((_, i) => {
    const row = columns.map(column => column[i]).filter(v => v !== null);
    return row.length ? sum(row) / row.length : null;
  });
  return { time: history.time, nodes: { [name]: { [series]: values } } };
}

// Several histories on one axis of time.
function merged(histories) {
  const time = [...new Set(histories.flatMap(h => h.time))].sort((a, b) => a - b);
  const nodes = {};
  for (const history of histories) {
    const index = new Map(history.time.map((t, i) => [t, i]));
    for (const [name, node] of Object.entries(history.nodes)) {
      nodes[name] = Object.fromEntries(Object.entries(node).map(([series, values]) =>
        [series, time.map(t => index.has(t) ? values[index.get(t)] : null)]));
    }
  }
  return { time, nodes };
}

// The names of runs without the folder that all of them share.
function namesOf(runs) {
  const parts = runs.map(run => run.name.replace(/\/+$/, "").split("/"));
  const differs = (part, i) => parts.some(other => other[i] !== part);
  const shared = runs.length > 1 ? parts[0].findIndex(differs) : parts[0].length - 1;
  return parts.map(p => p.slice(Math.max(0, shared)).join("/"));
}

export function showRuns(document_, table, charts) {
  const runs = document_.runs;
  const names = namesOf(runs);
  const of = (run, f) => Object.values(run.nodes).map(f);
  const rows = [
    ["nodes", run => Object.keys(run.nodes).length],
    ["steps", run => number(Math.max(...of(run, node => node.made)), 0)],
    ["seconds", run => number(Math.max(...of(run, node => last(node.steps.time) ?? 0)), 1)],
    ["last loss, median", run => short(median(of(run, node => last(node.steps.loss))))],
    ["last accuracy, median", run => short(median(of(run, node => last(node.evaluations.accuracy))))],
    ["step time, median ms", run => short(median(of(run, node => median(node.steps.step_ms ?? []))))],
    ...document_.differing.map(key => [key, run => run.settings[key] ?? run.summary[key] ?? "–"]),
  ];
  table.replaceChildren(
    element("thead", {}, element("tr", {}, element("th", {}, "run"), ...names.map(name => element("th", {}, name)))),
    element("tbody", {}, ...rows.map(([title, value]) =>
      element("tr", {}, element("td", {}, title), ...runs.map(run => element("td", {}, String(value(run))))))));
  for (const [title, unit, part, series] of curves) {
    const histories = runs.map((run, i) => {
      const history = joined(run, part, series, runs.length === 1);
      return runs.length > 1 ? mean(history, series, names[i]) : history;
    });
    const what = [unit, runs.length > 1 ? "mean over the nodes" : ""].filter(Boolean).join(", ");
    new Chart(charts, title, what, series, short, false).show(runs.length > 1 ? merged(histories) : histories[0], null);
  }
}
