// The picture of a cluster: nodes on a circle, servers inside it, and what moved between them in the last seconds.

import { cut, drawing, texts } from "./format.js";
import { healthOf } from "./tables.js";

const size = 400;
const middle = size / 2;

// Places on a circle, from the top and clockwise.
function circle(processes, radius) {
  return new Map(processes.map((process, i) => {
    const angle = 2 * Math.PI * i / processes.length - Math.PI / 2;
    return [process.name, { x: middle + radius * Math.cos(angle), y: middle + radius * Math.sin(angle), angle }];
  }));
}

// Bent towards the middle, and to one side, so that both directions of a pair are seen.
function curve(from, to) {
  const across = { x: to.y - from.y, y: from.x - to.x };
  const x = (from.x + to.x) / 2 + across.x * 0.12 + (middle - (from.x + to.x) / 2) * 0.25;
  const y = (from.y + to.y) / 2 + across.y * 0.12 + (middle - (from.y + to.y) / 2) * 0.25;
  const [fromX, fromY, x1, y1, toX, toY] = [from.x, from.y, x, y, to.x, to.y].map(place => place.toFixed(1));
  return `M${fromX} ${fromY}Q${x1} ${y1} ${toX} ${toY}`;
}

const ageOf = seconds => seconds < 1.5 ? 0 : seconds < 3 ? 1 : 2;

// Edges as [from, to, failed, age]: pulls; exchanges of a group; steps of workers at servers.
function edgesOf(status) {
  const edges = [];
  for (const [puller, peer, ok, failed, age] of status.pulls) {
    if (ok > 0) edges.push([peer, puller, false, ageOf(age)]);
    if (failed > 0) edges.push([peer, puller, true, ageOf(age)]);
  }
  for (const node of status.nodes) {
    const members = texts(node.collective?.members);
    const rank = members.indexOf(node.name);
    if (rank >= 0 && members.length > 1 && !node.collective.apart) {
      const next = members[(rank + 1) % members.length];
      edges.push([node.name, next, texts(node.collective.late).includes(next), node.steps_per_s > 0 ? 0 : 2]);
    }
    if (!node.kvstore) continue;
    for (const server of status.servers)
      edges.push([server.name, node.name, Boolean(server.error), node.received_per_s > 0 ? 0 : 2]);
  }
  return edges;
}

// The head of an arrow, at the rim of the circle of a node.
const arrow = () => drawing("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 19, refY: 4, markerWidth: 8,
                                        markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
                            drawing("path", { class: "head", d: "M0 0 8 4 0 8z" }));

export function drawGraph(parent, status, chosen, choose) {
  const many = status.nodes.length > 24;
  const places = circle(status.nodes, many ? 185 : 150);
  for (const [name, place] of circle(status.servers, status.servers.length > 1 ? 50 : 0)) places.set(name, place);
  const paths = new Map();  // of one element for each kind where there are many
  const edges = edgesOf(status).filter(([from, to]) => places.has(from) && places.has(to));
  for (const [i, [from, to, failed, age]] of edges.entries()) {
    const kind = `edge age${age}${failed ? " failed" : ""}`;
    const key = many ? kind : `${kind} edge${i}`;
    paths.set(key, (paths.get(key) ?? "") + curve(places.get(from), places.get(to)));
  }
  const svg = drawing("svg", { viewBox: `0 0 ${size} ${size}`, class: many ? "many" : "few", "aria-hidden": "true" });
  svg.append(drawing("defs", {}, arrow()));
  const head = many ? undefined : "url(#arrow)";
  for (const [kind, d] of paths) svg.append(drawing("path", { class: kind, d, "marker-end": head }));
  const radius = many ? Math.max(2.5, Math.min(6, 430 / status.nodes.length)) : 11;
  for (const process of [...status.servers, ...status.nodes]) {
    const { x, y, angle } = places.get(process.name);
    const isServer = status.servers.includes(process);
    const shape = {
      class: `node ${healthOf(process)}${process.name === chosen ? " chosen" : ""}`,
      onclick: () => choose(process.name),
    };
    const title = drawing("title", {}, `${process.name}: ${process.error ?? process.state ?? "no status"}`);
    svg.append(isServer
      ? drawing("rect", { ...shape, x: x - 10, y: y - 10, width: 20, height: 20, rx: 3 }, title)
      : drawing("circle", { ...shape, cx: x, cy: y, r: radius }, title));
    if (many && process.name !== chosen && !isServer) continue;
    const out = isServer ? 20 : many ? -18 : 26;
    const place = isServer ? { x, y: y + out } : { x: x + out * Math.cos(angle), y: y + out * Math.sin(angle) };
    svg.append(drawing("text", place, cut(process.name)));
  }
  parent.replaceChildren(svg);
}

export const graphTitles = {
  gossip: "Pulls of the last 5 seconds",
  collective: "Group",
  kvstore: "Workers and servers",
};

export const graphKeys = {
  gossip: "An arrow leads from a node to the one that pulled from it; dashed: a pull that failed. It fades with its age.",
  collective: "Lines join the ranks of a group in their order; dashed: the next rank is late.",
  kvstore: "Circles are workers, squares are servers. A full line: the worker received weights in the last seconds.",
};
