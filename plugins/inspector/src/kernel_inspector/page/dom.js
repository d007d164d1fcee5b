// Elements and words. Whatever a stranger wrote becomes a text node, never markup.

export function el(name, attributes, ...children) {
  const made = document.createElement(name);
  fill(made, attributes, children);
  return made;
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(made, attributes, children);
  return made;
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "color") made.style.setProperty("--c", `var(--${value})`);
    else if (key === "grow") made.style.flexGrow = value;
    else if (key === "back") made.style.background = `var(--${value})`;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false || child === "") continue;
    made.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
}

// Characters that turn the reading direction, or are not seen, are shown by their number.
const UNSEEN = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/;
const EACH = new RegExp(UNSEEN.source, "g");

export function plain(text) {
  const value = String(text ?? "");
  return UNSEEN.test(value) ? value.replace(EACH, (c) => `<U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`) : value;
}

export function shown(text) {
  const value = String(text ?? "");
  if (!UNSEEN.test(value)) return [value];
  const parts = [];
  let from = 0, many = 0;
  for (const found of value.matchAll(EACH)) {
    if (++many > 2000) break;
    parts.push(value.slice(from, found.index));
    parts.push(el("span", {class: "char"}, `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    from = found.index + found[0].length;
  }
  parts.push(plain(value.slice(from)));
  return parts;
}

export function time(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)}m ${String(Math.round(ms % 60000 / 1000)).padStart(2, "0")}s`;
  return `${Math.floor(ms / 3600000)}h ${String(Math.round(ms % 3600000 / 60000)).padStart(2, "0")}m`;
}

export function since(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const tail = `${String(Math.floor(s / 60) % 60).padStart(s < 3600 ? 1 : 2, "0")}:${String(s % 60).padStart(2, "0")}`;
  return s < 3600 ? tail : `${Math.floor(s / 3600)}:${tail}`;
}

export function count(n) {
  if (n === undefined || n === null) return "–";
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1000).toFixed(n < 9950 ? 1 : 0)}k`;
  if (n < 1e9) return `${(n / 1e6).toFixed(n < 9.95e6 ? 2 : n < 99.5e6 ? 1 : 0)}M`;
  return `${(n / 1e9).toFixed(2)}B`;
}

export function money(usd) {
  if (usd === undefined || usd === null) return "–";
  return usd === 0 ? "$0" : usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(usd < 10 ? 3 : 2)}`;
}

export function clock(ms) {
  return ms ? new Date(ms).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"}) : "";
}
