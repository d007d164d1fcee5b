// Two pictures: what each request consisted of, and what ran when in a turn.

import {count, el, plain, svg, time} from "./dom.js";

export const PARTS = {fixed: "system and tools", system: "system prompt", tools: "tool definitions", context: "context", user: "people",
  assistant: "answers", thinking: "thinking", calls: "calls", results: "results"};
const CACHE = {read: "cache read", written: "cache written", fresh: "not cached"};
const KINDS = {model: "model", tool: "tools", hooks: "hooks", waiting: "waiting for a person"};

function key(name, color, value) {
  return el("span", {class: "key", color}, name, value && el("b", {}, value));
}

export function contextLegend(columns) {
  const there = Object.keys(PARTS).filter((part) => columns.some((c) => c.parts?.[part]));
  return [...there.map((part) => key(PARTS[part], part)), el("span", {class: "gap"}), ...Object.entries(CACHE).map(([part, name]) => key(name, part))];
}

export function timeLegend() {
  return Object.entries(KINDS).map(([kind, name]) => key(name, {model: "assistant", tool: "user", hooks: "context", waiting: "calls"}[kind]));
}

function tip(node, content) {
  const box = () => document.getElementById("tip") || document.body.appendChild(el("div", {id: "tip", role: "tooltip"}));
  node.addEventListener("pointermove", (event) => {
    const made = box();
    if (made.owner !== node) { made.replaceChildren(...content()); made.owner = node; }
    const {width, height} = made.getBoundingClientRect();
    made.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    made.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
  });
  node.addEventListener("pointerleave", () => document.getElementById("tip")?.remove());
}

function scale(most) {
  const rough = most / 3, power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) || power;
}

// What the chosen request consisted of, in numbers; without one, the last.
function values(c, tokens) {
  const line = ([part, name]) => el("div", {}, el("span", {class: "key", color: part}, name), el("b", {class: "num"}, count(c.parts?.[part] ?? c[part] ?? 0)));
  return el("div", {class: "values"}, el("p", {}, el("b", {}, c.many > 1 ? `Requests ${c.first + 1} to ${c.first + c.many}` : `Request ${c.number + 1}`),
    ` ${count(tokens)} tokens`, c.broke ? el("span", {class: "bad"}, ` cache broken: ${plain(why(c.broke))}`) : ""),
  el("div", {class: "columns"}, el("div", {}, Object.entries(PARTS).filter(([p]) => c.parts?.[p] || (p !== "fixed" && !c.estimated)).map(line)),
    el("div", {}, Object.entries(CACHE).map(line))));
}

export function drawContext(box, got, window, chosen, wide, choose) {
  document.getElementById("tip")?.remove();
  const columns = got.columns;
  if (!columns.length) {
    box.replaceChildren(el("p", {class: "quiet"}, "No request yet."));
    return;
  }
  const width = Math.max(300, box.clientWidth - 20 - (wide ? 348 : 0)), height = box.clientHeight - 8, left = 40, top = 12, strip = 10;
  const floor = height - strip - 20;
  const tokens = columns.map((c) => (c.read || 0) + (c.written || 0) + (c.fresh || 0) || Object.values(c.parts || {}).reduce((a, b) => a + b, 0));
  let most = Math.max(1, ...tokens) * 1.06;
  if (window && window < most * 1.6) most = Math.max(most, window * 1.03);
  const step = Math.min(54, (width - left - 4) / columns.length), bar = Math.max(1, step - (step > 5 ? Math.min(8, step * 0.24) : 0));
  const y = (n) => floor - (floor - top) * n / most;
  const made = svg("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `Context of ${got.total} requests, at most ${count(Math.round(Math.max(...tokens)))} tokens, ${columns.filter((c) => c.broke).length} cache breaks`});
  for (let n = scale(most); n < most; n += scale(most)) made.append(
    svg("line", {class: "grid", x1: left, x2: width, y1: y(n), y2: y(n)}), svg("text", {x: left - 6, y: y(n) + 3.5, "text-anchor": "end"}, count(n)));
  made.append(svg("line", {class: "grid", x1: left, x2: width, y1: floor, y2: floor}), svg("text", {x: left - 6, y: floor + strip + 1, "text-anchor": "end"}, "cache"));
  if (window && window <= most) made.append(svg("line", {class: "window", x1: left, x2: width, y1: y(window), y2: y(window)}),
    svg("text", {x: width, y: y(window) - 3, "text-anchor": "end"}, `window ${count(window)}`));
  let turn = -1, labelled = -100;
  columns.forEach((c, n) => {
    const x = left + n * step + (step - bar) / 2;
    const group = svg("g", {class: `column ${n === chosen ? "chosen" : ""}`, onclick: () => choose(c.row)},
      svg("rect", {class: "back", x: left + n * step, y: 0, width: step, height}));
    if ((c.turn || 0) !== turn) {
      turn = c.turn || 0;
      if (x - labelled > 62) {
        labelled = x;
        if (n) group.append(svg("line", {class: "turn", x1: left + n * step, x2: left + n * step, y1: top, y2: height}));
        group.append(svg("text", {x: left + n * step + 3, y: height - 2}, `turn ${turn + 1}`));
      }
    }
    let base = 0;
    for (const part of Object.keys(PARTS)) {
      const size = c.parts?.[part] || 0;
      if (!size) continue;
      const h = Math.max(0.5, y(base) - y(base + size));
      group.append(svg("rect", {class: `f-${part}`, x, width: bar, y: y(base) - h, height: h}));
      base += size;
    }
    const whole = tokens[n] || 1;
    let at = x;
    for (const part of ["read", "written", "fresh"]) {
      const w = bar * (c[part] || 0) / whole;
      if (w) group.append(svg("rect", {class: `f-${part}`, x: at, width: w, y: floor + 3, height: strip}));
      at += w;
    }
    if (c.broke) group.append(svg("path", {class: "broke", d: `M${x + bar / 2 - 4.5} ${Math.max(1, y(base) - 10)}h9l-4.5 7z`}));
    tip(group, () => tipOf(c, tokens[n]));
    made.append(group);
  });
  const shown = chosen >= 0 ? chosen : columns.length - 1;
  box.replaceChildren(made, ...(wide ? [values(columns[shown], tokens[shown])] : []));
}

function tipOf(c, tokens) {
  const line = (color, name, value) => el("tr", {}, el("td", {}, el("span", {class: "dot", color}), name), el("td", {class: "num"}, count(value)));
  return [el("b", {}, c.many > 1 ? `The largest of ${c.many} requests` : `Request ${c.number + 1}`), ` · ${count(tokens)} tokens`,
    c.ms !== undefined ? ` · ${time(c.ms)}` : "", c.estimated ? " · parts estimated" : "",
    c.broke ? el("div", {class: "bad"}, `Cache broken: ${plain(why(c.broke))}, ${count(c.lost)} tokens again`) : "",
    el("table", {}, Object.keys(PARTS).filter((p) => c.parts?.[p]).map((p) => line(p, PARTS[p], c.parts[p])),
      Object.entries(CACHE).filter(([p]) => c[p]).map(([p, name]) => line(p, name, c[p])))].filter(Boolean);
}

export function why(broke) {
  return {unknown: "nothing that was sent had changed", time: "more than five minutes had passed", model: "another model"}[broke] || broke;
}

export function drawTime(box, got, lanes, chosen, choose) {
  document.getElementById("tip")?.remove();
  if (!got.spans.length) {
    box.replaceChildren(el("p", {class: "quiet"}, "Nothing was timed in this turn."));
    return;
  }
  const width = Math.max(300, box.clientWidth - 20), left = 128, track = 19, total = Math.max(1, got.ended - got.began);
  const x = (at) => left + (width - left - 6) * (at - got.began) / total;
  const made = svg("svg", {role: "img", "aria-label": `What ran when in turn ${got.turn + 1}: ${got.spans.length} spans in ${time(total)}`});
  const tick = scale(total * 0.6);
  const grid = svg("g", {});
  made.append(grid);
  let line = 0;
  for (const lane of [...new Set(got.spans.map((s) => s.lane))]) {
    const mine = got.spans.filter((s) => s.lane === lane).sort((a, b) => a.start - b.start || b.ms - a.ms);
    const ends = [];
    const first = line;
    for (const span of mine) {
      let at = ends.findIndex((end) => end <= span.start + 0.5);
      if (at < 0) at = ends.push(0) - 1;
      ends[at] = span.start + span.ms;
      const from = x(span.start), long = Math.max(2, x(span.start + span.ms) - from - 0.5), y = 18 + (first + at) * track;
      const color = span.state === "error" ? "error" : span.state === "denied" ? "denied" : span.kind;
      const node = svg("g", {class: `span ${lane === chosen.lane && span.row === chosen.row ? "chosen" : ""}`, onclick: () => choose(span.lane, span.row)},
        svg("rect", {class: `f-${color}`, x: from, y, width: long, height: track - 3, rx: 2}));
      const room = Math.floor((long - 8) / 6.2);
      if (room > 3) node.append(svg("text", {x: from + 4, y: y + 12}, plain(span.title).slice(0, room)));
      tip(node, () => [el("b", {}, plain(span.title)), el("div", {}, `${KINDS[span.kind]} · ${time(span.ms)} · after ${time(span.start - got.began)}`)]);
      made.append(node);
    }
    const named = lanes.find((l) => l.id === lane);
    made.append(svg("text", {class: "name", x: 0, y: 30 + first * track}, lane ? plain(named?.title || named?.kind || lane).slice(0, 20) : "main"));
    line = first + ends.length;
    grid.append(svg("line", {class: "grid", x1: 0, x2: width, y1: 18 + line * track - 1.5, y2: 18 + line * track - 1.5}));
  }
  const height = Math.max(24 + line * track, box.clientHeight - 10);
  for (let at = 0; at <= total; at += tick) grid.append(svg("line", {class: "grid", x1: x(got.began + at), x2: x(got.began + at), y1: 14, y2: height}),
    svg("text", {x: x(got.began + at) + 3, y: 10}, at ? time(at) : "0"));
  made.setAttribute("viewBox", `0 0 ${width} ${height}`);
  made.setAttribute("height", height);
  box.replaceChildren(made);
}
