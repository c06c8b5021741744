// The page of dpwa dashboard: asks the server once a second and shows what it says.

import { Chart } from "./charts.js";
import { bytes, clockTime, element, median, number, percent, short, sum } from "./format.js";
import { drawGraph, graphKeys, graphTitles } from "./graph.js";
import { showRuns } from "./runs.js";
import { healthOf, nodeTable, serverTable, showDetail } from "./tables.js";

const $ = id => document.getElementById(id);
const period = 1000;  // ms
const mostPoints = 1440;  // twice those of the dashboard, which then has evenly spaced ones of the whole time

// The token comes in the fragment, which no server sees, and stays in this tab.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

async function ask(path) {
  const token = takeToken();
  const response = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (response.status === 401) return askForToken();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  // A document of a node is data from the network, and may have any keys.
  return JSON.parse(await response.text(), (key, value) => ["toString", "valueOf"].includes(key) ? undefined : value);
}

function askForToken() {
  $("live").hidden = true;
  $("ask-token").hidden = false;
  return new Promise(() => {});  // the form loads the page again
}

$("ask-token").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  location.reload();
});

const charts = [
  ["Loss", "latest batch", "loss"],
  ["Clock", "steps", "clock"],
  ["Distance", "to the mean model", "to_mean"],
  ["Speed", "steps/s", "steps_per_s"],
  ["Waits", "share of the time", "wait_per_s", percent],
  ["Received", "per second", "received_per_s", bytes],
  ["Sent", "per second", "sent_per_s", bytes],
];

class Live {
  constructor() {
    this.chosen = null;
    this.history = { time: [], nodes: {} };
    this.nodes = nodeTable($("nodes"), (name, focus) => this.choose(name, focus));
    this.servers = serverTable($("servers"), (name, focus) => this.choose(name, focus));
    this.charts = charts.map(([title, unit, series, text]) => new Chart($("charts"), title, unit, series, text));
    $("filter").addEventListener("input", () => this.draw());
    document.addEventListener("keydown", event => {
      if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
        $("filter").focus();
        event.preventDefault();
      } else if (event.key === "Escape") {
        this.close();
      }
    });
  }

  async run() {
    this.history = await ask("/api/history");
    for (const kept of Object.values(this.history.nodes)) this.addCharts(Object.keys(kept));
    for (;;) {
      const begun = performance.now();
      try {
        this.take(await ask("/api/status"));
        if (this.history.time.length >= mostPoints) this.history = await ask("/api/history");
      } catch (error) {
        $("health").textContent = `the dashboard does not answer (${error.message})`;
        $("health").className = "bad";
      }
      await new Promise(done => setTimeout(done, Math.max(100, period - (performance.now() - begun))));
    }
  }

  // One for each number that programs show, such as an accuracy.
  addCharts(keys) {
    for (const series of keys.filter(key => key.startsWith("shown/"))) {
      if (this.charts.some(chart => chart.series === series)) continue;
      this.charts.push(new Chart($("charts"), series.slice("shown/".length), "", series));
    }
  }

  take(status) {
    for (const node of status.nodes) this.addCharts(Object.keys(node));
    const isNew = status.time > (this.history.time.at(-1) ?? 0);
    this.status = status;
    if (isNew) this.append(status);
    this.draw();
    if (this.chosen) this.detail();
  }

  // Adds a point to every curve.
  append(status) {
    const count = this.history.time.push(status.time);
    for (const node of status.nodes) this.history.nodes[node.name] ??= {};
    for (const [name, kept] of Object.entries(this.history.nodes)) {
      const node = status.nodes.find(each => each.name === name) ?? {};
      for (const { series } of this.charts) {
        const column = kept[series] ??= Array(count - 1).fill(null);
        column.push(typeof node[series] === "number" ? node[series] : null);
      }
    }
  }

  draw() {
    const status = this.status;
    if (!status) return;
    $("live").hidden = false;
    document.title = `${status.cluster} – dpwa`;
    $("title").textContent = status.cluster;
    $("subtitle").textContent = `${status.backend} · ${clockTime(status.time)}`;
    this.drawHealth([...status.nodes, ...status.servers]);
    this.drawTiles(status);
    $("graph-title").textContent = graphTitles[status.backend] ?? "Nodes";
    $("graph-key").textContent = graphKeys[status.backend] ?? "";
    drawGraph($("graph"), status, this.chosen, name => this.choose(name));
    for (const chart of this.charts) chart.show(this.history, this.chosen);
    const wanted = $("filter").value.toLowerCase();
    const matches = node => `${node.name} ${node.state ?? ""} ${node.error ?? ""}`.toLowerCase().includes(wanted);
    this.nodes.show(status.nodes.filter(matches), this.chosen);
    $("parts-key").hidden = !status.nodes.some(node => node.compute_per_s !== undefined);
    $("servers-card").hidden = status.servers.length === 0;
    this.servers.show(status.servers, this.chosen);
    this.drawEvents(status.events);
  }

  drawHealth(processes) {
    const bad = processes.filter(process => healthOf(process) === "bad");
    const names = bad.slice(0, 3).map(process => process.name).join(", ") + (bad.length > 3 ? " …" : "");
    const text = processes.length === 0 ? "no process is known yet"
      : bad.length === 0 ? "all answer"
      : `${bad.length} of ${processes.length}: ${names} ${bad.length > 1 ? "need" : "needs"} attention`;
    if ($("health").textContent === text) return;
    $("health").textContent = text;
    $("health").className = processes.length === 0 ? "warn" : bad.length === 0 ? "good" : "bad";
  }

  drawTiles(status) {
    const nodes = status.nodes;
    const of = key => nodes.map(node => node[key]);
    const ok = sum(of("pulls_ok"));
    const failed = sum(of("pulls_failed"));
    const ofServers = `${status.servers.filter(server => !server.error).length} of ${status.servers.length}`;
    const tiles = [
      [`${nodes.filter(node => !node.error).length} of ${nodes.length}`, "nodes answer"],
      [number(median(of("clock")), 0), "clock, median"],
      [short(median(of("loss"))), "loss, median"],
      of("to_mean_relative").some(Number.isFinite)
        ? [`${short(100 * median(of("to_mean_relative")))} %`, "from the mean model, median"] : null,
      [short(sum(of("steps_per_s"))), "steps/s, all nodes"],
      [bytes(sum(of("received_per_s"))) + "/s", "received, all nodes"],
      ok + failed > 0 ? [`${number(100 * ok / (ok + failed), 1)} %`, "of pulls succeed"] : null,
      status.servers.length ? [ofServers, "servers answer"] : null,
    ];
    $("tiles").replaceChildren(...tiles.filter(Boolean).map(([value, title]) =>
      element("div", { class: "tile" }, element("b", {}, value), element("span", {}, title))));
  }

  drawEvents(events) {
    const newest = events.at(-1)?.number ?? 0;
    if (newest === this.newest) return;
    this.newest = newest;
    const items = events.toReversed().map(event =>
      element("li", { class: event.bad ? "bad" : "" }, element("time", {}, clockTime(event.time)),
              `${event.process} ${event.words}`));
    $("events").replaceChildren(...(items.length ? items : [element("li", {}, "none yet")]));
  }

  choose(name, focus = false) {
    this.chosen = name;
    this.draw();
    this.detail().then(() => focus && $("detail").focus());
  }

  async detail() {
    const name = this.chosen;
    const status = await ask(`/api/process?name=${encodeURIComponent(name)}`);
    if (name === this.chosen) showDetail($("detail"), name, status, () => this.close());
  }

  close() {
    const name = this.chosen;
    this.chosen = null;
    $("detail").hidden = true;
    this.draw();
    if (name) this.nodes.focus(name);
  }
}

const first = await ask("/api/status");
if (first.mode === "runs") {
  $("runs").hidden = false;
  $("title").textContent = first.runs.length === 1 ? first.runs[0].name : `${first.runs.length} runs`;
  showRuns(first, $("run-table"), $("run-charts"));
} else {
  await new Live().run();
}
