// Curves of nodes over time. Up to eight nodes have a line each; more are a band from the least to the greatest value
// with the median in it, and a line for the chosen node.

import { clockTime, cut, element, lineColours, median, number, short, style } from "./format.js";

const eachUpTo = lineColours.length;
const height = 170;

// All zeros lie at the bottom of 0 to 1.
const range = (_, low, high) =>
  low === null ? [low, high] : low === 0 && high === 0 ? [0, 1] : uPlot.rangeNum(low, high, 0.1, true);

export class Chart {
  // `series`: the key in the history, such as "loss". `text`: of a value. `isLive`: x is the wall clock, else seconds
  // of a run.
  constructor(parent, title, unit, series, text = short, isLive = true) {
    this.series = series;
    this.text = text;
    this.isLive = isLive;  // one without a value did not answer then
    this.timeText = isLive ? clockTime : seconds => `${number(seconds, 0)} s`;
    this.box = element("div");
    this.card = element("section", { class: "card chart", "aria-label": title },
                        element("h2", {}, title + " ", element("small", {}, unit)), this.box);
    parent.append(this.card);
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.drop();
      if (this.last) this.show(...this.last);
    });
  }

  // `history`: {time: [...], nodes: {name: {series: [...]}}}. Hidden while no node has a value.
  show(history, chosen) {
    this.last = [history, chosen];
    const names = Object.keys(history.nodes).filter(name => history.nodes[name][this.series]?.some(v => v !== null));
    this.card.hidden = names.length === 0;
    if (names.length === 0) return;
    const column = name => history.nodes[name][this.series];
    const many = names.length > eachUpTo;
    const lines = many ? this.band(names.map(column), history.time.length) : names.map(column);
    const titles = many ? ["least", "median", "greatest"] : names;
    if (many && names.includes(chosen)) {
      lines.push(column(chosen));
      titles.push(chosen);
    }
    const shape = JSON.stringify(titles);
    if (shape !== this.shape) this.drop();
    this.shape = shape;
    const data = [history.time, ...lines];
    this.isSparse = history.time.length <= 12;  // a single value has no line
    if (this.plot) this.plot.setData(data);
    else this.begin(titles, many, data);
  }

  band(columns, count) {
    const rows = Array.from({ length: count }, (_, i) => columns.map(column => column[i]).filter(v => v !== null));
    const of = choose => rows.map(row => row.length ? choose(row) : null);
    return [of(row => Math.min(...row)), of(median), of(row => Math.max(...row))];
  }

  begin(titles, many, data) {
    const axis = { stroke: style("--soft"), grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false },
                   font: "11px system-ui, sans-serif" };
    const crowd = style("--crowd");
    const colour = i => !many ? lineColours[i] : [crowd, style("--text"), crowd, style("--accent")][i];
    const value = (_, raw) => this.text(raw);
    const values = (_, ticks) => ticks.map(this.text);
    const times = (_, ticks) => ticks.map(this.timeText);
    this.plot = new uPlot({
      width: this.box.clientWidth || 300,
      height,
      legend: { show: titles.length <= eachUpTo },
      cursor: { y: false },
      scales: { x: { time: false }, y: { range } },
      axes: [{ ...axis, space: 75, size: 30, values: times }, { ...axis, size: 58, values }],
      series: [
        { label: "at", value: (_, raw) => raw === null ? "–" : this.timeText(raw) },
        ...titles.map((title, i) => ({ label: cut(title), value, stroke: colour(i), width: many && i === 1 ? 2 : 1.4,
                                       points: { show: () => this.isSparse, size: 5 }, spanGaps: !this.isLive })),
      ],
      bands: many ? [{ series: [3, 1], fill: crowd }] : [],
    }, data, this.box);
  }

  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height });
  }

  drop() {
    this.plot?.destroy();
    this.plot = null;
    this.shape = null;
  }
}
