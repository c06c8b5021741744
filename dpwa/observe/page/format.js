// Elements and numbers of the page. Text from the network becomes text nodes alone, never markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  fill(made, attributes, children);
  return made;
}

export function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(made, attributes, children);
  return made;
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
}

const isNumber = value => typeof value === "number" && Number.isFinite(value);

// The texts of a list from the network; none where it is no list.
export const texts = value => Array.isArray(value) ? value.filter(each => typeof each === "string") : [];

export function number(value, decimals = 1) {
  if (!isNumber(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

// "12.3 MB"
export function bytes(value) {
  if (!isNumber(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; ++unit) value /= 1000;
  return `${number(value, unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}

export const percent = share => isNumber(share) ? `${number(100 * share, 0)} %` : "–";

// Few digits, for curves and tiles.
export function short(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1);
  return number(value, size >= 100 || value === 0 ? 0 : size >= 1 ? 2 : 3);
}

export function clockTime(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

export function median(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}

export const sum = values => values.filter(isNumber).reduce((total, value) => total + value, 0);

// A name where there is little room.
export const cut = name => name.length > 16 ? name.slice(0, 15) + "…" : name;

// "w2" before "w10".
export const byName = (a, b) => a.localeCompare(b, "en", { numeric: true });

export const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Colours of lines that can be told apart, also by most who see colours otherwise (Okabe and Ito).
export const lineColours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#7f7f7f"];
