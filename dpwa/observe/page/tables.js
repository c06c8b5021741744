// The tables of nodes and servers, and what is shown of the one that was chosen.

import { byName, bytes, drawing, element, number, percent, short, sum, texts } from "./format.js";

// "good", "warn", "bad" or "idle": how a process stands.
export function healthOf(process) {
  if (process.member === "left" && process.error) return "idle";
  if (process.error || process.state === "stale" || process.member === "dead" || texts(process.lost).length) return "bad";
  if (process.member === "suspect" || process.collective?.seeks || texts(process.missing).length) return "warn";
  return process.state === "training" || process.state === "up" ? "good" : "idle";
}

function notesOf(node) {
  if (node.error) return node.error;
  const notes = [];
  const count = (value, words) => value > 0 && notes.push(`${value} ${words}`);
  if (node.joined) notes.push(`joined at ${node.address}`);
  if (!["-", "alive"].includes(node.member)) notes.push(`member ${node.member}`);
  if (node.collective?.waits) notes.push(`waits for ${texts(node.collective.late).join(", ") || "others"}`);
  if (node.collective?.seeks) notes.push("seeks a group");
  if (typeof node.waits_for === "string") notes.push(`waits for ${node.waits_for}`);
  if (texts(node.lost).length) notes.push(`lost ${texts(node.lost).join(", ")}`);
  if (texts(node.missing).length) notes.push(`waits for ${texts(node.missing).join(", ")}`);
  count(node.firewall?.distance_clipped, "clipped");
  count((node.firewall?.distance_refused ?? 0) + (node.firewall?.not_finite ?? 0), "refused");
  count(node.kvstore?.dropped, "dropped");
  return notes.join(", ");
}

// Over the GPUs of the host of a node.
function meanOf(gpus, key) {
  const values = (gpus ?? []).map(gpu => gpu?.[key]).filter(Number.isFinite);
  return values.length ? sum(values) / values.length : undefined;
}

const stepParts = ["compute", "publish", "blend", "wait"];

// Where the time of the steps goes, as a bar.
function partsOf(row) {
  const shares = stepParts.map(part => row?.[`${part}_per_s`] ?? 0);
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (total === 0) return "–";
  const words = stepParts.map((part, i) => `${part} ${percent(shares[i] / total)}`).join(", ");
  const bar = drawing("svg", { class: "parts", viewBox: "0 0 100 10", preserveAspectRatio: "none" },
                      drawing("title", {}, words));
  let x = 0;
  for (const [i, share] of shares.entries()) {
    const width = 100 * share / total;
    bar.append(drawing("rect", { class: stepParts[i], x, y: 0, width, height: 10 }));
    x += width;
  }
  return bar;
}

// A column: its head, the value of a row to sort by, its text, and whether some row has it.
const column = (head, value, text = v => v ?? "–", kind = "") => ({ head, value, text, kind });

const nodeColumns = [
  column("node", row => row.name),
  column("state", row => row.error ? "no answer" : row.state, v => v ?? "–", "text"),
  column("clock", row => row.clock, v => number(v, 1)),
  column("loss", row => row.loss, v => number(v, 4)),
  column("to mean", row => row.to_mean, short),
  column("steps/s", row => row.steps_per_s, short),
  column("step ms", row => row.steps_per_s > 0 ? 1000 / row.steps_per_s : undefined, v => number(v, 1)),
  column("time", row => row.compute_per_s === undefined ? undefined : row, partsOf),
  column("CPU", row => row.cpu_per_s, percent),
  column("GPU", row => meanOf(row.gpus, "busy"), percent),
  column("GPU mem", row => meanOf(row.gpus, "memory_used_bytes"), bytes),
  column("in/s", row => row.received_per_s, bytes),
  column("out/s", row => row.sent_per_s, bytes),
  column("pulls ok", row => row.pulls_ok),
  column("failed", row => row.pulls_failed),
  column("rank", row => row.collective?.rank ?? row.kvstore?.rank),
  column("group", row => row.collective?.epoch),
  column("wait ms", row => row.kvstore?.waited_ms, v => number(v, 1)),
  column("notes", notesOf, v => v, "text notes"),
];

const serverColumns = [
  column("server", row => row.name),
  column("state", row => row.error ? "no answer" : row.state, v => v ?? "–", "text"),
  column("step", row => row.clock, v => number(v, 0)),
  column("slices", row => row.slices),
  column("held", row => row.bytes, bytes),
  column("updates/s", row => row.updates_per_s, short),
  column("snapshot", row => row.snapshot?.number),
  column("notes", notesOf, v => v, "text notes"),
];

const peerColumns = [
  column("peer", row => row.name),
  column("transport", row => row.transport, v => v ?? "–", "text"),
  column("score", row => row.score, v => number(v, 2)),
  column("ok", row => row.attempts_ok),
  column("failed", row => row.attempts_failed),
  column("last failure", row => row.last_failure, v => v ?? "–", "text"),
  column("clock", row => row.clock, v => number(v, 1)),
  column("ledger", row => row.ledger_balance, v => number(v, 1)),
];

// A table that keeps its order, its focus and its choice while its rows change.
export class Table {
  constructor(table, columns, choose) {
    this.table = table;
    this.columns = columns;
    this.choose = choose;
    this.sort = { head: columns[0].head, down: false };
    this.body = element("tbody");
    this.table.append(element("thead"), this.body);
    if (choose) this.body.addEventListener("keydown", event => this.onKey(event));
  }

  show(rows, chosen) {
    const columns = this.columns.filter(c => ["notes", this.columns[0].head].includes(c.head) ||
      rows.some(row => c.value(row) !== undefined && c.value(row) !== null));
    const by = columns.find(c => c.head === this.sort.head) ?? columns[0];
    const sorted = [...rows].sort((a, b) => this.order(by.value(a), by.value(b)));
    const active = this.table.contains(document.activeElement) ? document.activeElement.dataset : {};
    this.table.tHead.replaceChildren(element("tr", {}, ...columns.map(c => this.head(c, by, rows, chosen))));
    const tabbed = sorted.some(row => row.name === chosen) ? chosen : sorted[0]?.name;
    this.body.replaceChildren(...sorted.map(row => this.row(row, columns, chosen, tabbed)));
    if (active.name !== undefined) this.focus(active.name);
    [...this.table.tHead.querySelectorAll("button")].find(one => one.dataset.head === active.head)?.focus({ preventScroll: true });
  }

  order(a, b) {
    const missing = value => value === undefined || value === null;
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    if (typeof a === "object") return 0;
    const up = typeof a === "number" ? a - b : byName(String(a), String(b));
    return this.sort.down ? -up : up;
  }

  head(c, by, rows, chosen) {
    const onclick = () => {
      this.sort = { head: c.head, down: this.sort.head === c.head && !this.sort.down };
      this.show(rows, chosen);
    };
    const direction = this.sort.down ? "descending" : "ascending";
    const arrow = c === by ? (this.sort.down ? " ↓" : " ↑") : "";
    return element("th", { scope: "col", class: c.kind, "aria-sort": c === by ? direction : undefined },
                   element("button", { type: "button", "data-head": c.head, onclick }, c.head, arrow));
  }

  row(row, columns, chosen, tabbed) {
    const made = element("tr", this.choose ? {
      tabindex: row.name === tabbed ? 0 : -1,
      "aria-selected": String(row.name === chosen),
      onclick: () => this.choose(row.name),
    } : {});
    made.dataset.name = row.name;
    for (const c of columns) {
      const cell = c.text(c.value(row));
      const class_ = c.head === "state" || (c.head === "notes" && row.error) ? `${c.kind} ${healthOf(row)}` : c.kind;
      made.append(element("td", { class: class_, title: c.head === this.columns[0].head ? cell : undefined }, cell));
    }
    return made;
  }

  focus(name) {
    const row = [...this.body.rows].find(each => each.dataset.name === name);
    row?.focus({ preventScroll: true });
    return row;
  }

  onKey(event) {
    const rows = [...this.body.rows];
    const at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined && rows[to]) {
      rows[to].focus();
      rows[to].scrollIntoView({ block: "nearest" });
      event.preventDefault();
    } else if (event.key === "Enter" && at >= 0) {
      this.choose(rows[at].dataset.name, true);
    }
  }
}

export const nodeTable = (table, choose) => new Table(table, nodeColumns, choose);
export const serverTable = (table, choose) => new Table(table, serverColumns, choose);

// The facts of one process from its whole status document, and its peers.
export function showDetail(parent, name, status, close) {
  const facts = ["state", "backend", "version", "encoding", "model_bytes", "published", "publishes_skipped",
                 "connections_accepted", "connections_refused", "protocol_errors", "security_failures",
                 "snapshots_served", "same_host_pulls", "members_unverified"];
  const list = element("dl");
  for (const key of facts) {
    if (status?.[key] === undefined || status[key] === null) continue;
    const text = key === "model_bytes" ? bytes(status[key]) : String(status[key]);
    list.append(element("div", {}, element("dt", {}, key.replaceAll("_", " ")), element("dd", {}, text)));
  }
  // What the user has sorted, scrolled to and focused stays while the facts change.
  if (parent.hidden || parent.dataset.name !== name) {
    const table = element("table");
    parent.peers = new Table(table, peerColumns);
    parent.dataset.name = name;
    parent.replaceChildren(element("div", { class: "bar" }, element("h2", {}, name),
                                   element("button", { type: "button", onclick: close }, "Close")),
                           list, element("div", { class: "scroll" }, table));
  }
  parent.children[1].replaceWith(status ? list : element("p", {}, "It has not answered."));
  const peers = Array.isArray(status?.peers) ? status.peers.filter(peer => typeof peer?.name === "string") : [];
  parent.peers.show(peers);
  parent.children[2].hidden = peers.length === 0;
  parent.hidden = false;
}
