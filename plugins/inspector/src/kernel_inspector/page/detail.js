// Everything about one row.

import {data} from "./data.js";
import {clock, el, plain, shown, time} from "./dom.js";

const PROSE = new Set(["turn", "text", "thinking", "context", "summary", "note"]);
const STATES = {ok: "done", error: "failed", denied: "refused", running: "no result yet", lost: "no result"};

let asked = 0;

export async function showDetail(box, lane, number, openLane, full = false) {
  const mine = ++asked;
  const got = await data.details(lane, number, full);
  if (mine !== asked) return;
  const row = got.row;
  if (!row) {
    box.replaceChildren(el("p", {class: "quiet"}, "There is no such row."));
    return;
  }
  const parts = [el("h2", {}, plain(row.title)),
    el("p", {class: "where"}, [clock(row.at), row.ms === undefined ? "" : time(row.ms), `turn ${row.turn + 1}`].filter(Boolean).join(" · "))];
  if (row.state) parts.push(el("span", {class: `verdict ${row.state}`}, STATES[row.state] || row.state));
  if (row.by) parts.push(el("span", {class: "verdict"}, `decided by ${row.by}`));
  if (row.aside) parts.push(el("span", {class: "verdict"}, "on a branch that was left"));
  if (row.lane) parts.push(el("button", {class: "more", type: "button", onclick: () => openLane(row.lane)}, "Open the agent's lane"));
  const again = () => showDetail(box, lane, number, openLane, true);
  for (const section of got.sections) parts.push(...made(section, row, again, full));
  box.replaceChildren(...parts);
  box.scrollTop = 0;
}

function made(section, row, again, full) {
  const body = bodyOf(section, row);
  if (section.cut && !full) body.push(el("button", {class: "more", type: "button", onclick: again},
    `Show all ${section.cut.toLocaleString()} characters`));
  if (section.closed) return [el("details", {}, el("summary", {}, plain(section.title)), body)];
  return [el("h3", {}, plain(section.title)), ...body];
}

function bodyOf(section, row) {
  if (section.kind === "text") {
    const prose = PROSE.has(row.kind) && section.title === "Text";
    return [el("pre", {class: prose ? "prose" : "", tabindex: "0"}, ...shown(section.text))];
  }
  if (section.kind === "diff") return [el("pre", {class: "gone", tabindex: "0", "aria-label": "before"}, ...shown(section.before)),
    el("pre", {class: "come", tabindex: "0", "aria-label": "after"}, ...shown(section.after))];
  if (section.kind === "fields") return [el("dl", {}, section.fields.map(([name, value]) =>
    [el("dt", {}, plain(name)), el("dd", {dir: "auto"}, ...shown(value))]).flat())];
  if (section.kind === "hooks") return [el("div", {class: "hooks"}, section.hooks.map((hook) => el("div", {class: hook.loud ? "loud" : ""},
    el("b", {}, plain(hook.plugin)), el("span", {}, plain(hook.event)), el("span", {class: "num"}, hook.time),
    el("p", {dir: "auto"}, ...shown(hook.answer)), hook.from && el("p", {class: "from", dir: "auto"}, ...shown(hook.from)))))];
  return [el("table", {}, el("thead", {}, el("tr", {}, section.head.map((h) => el("th", {scope: "col"}, h)))),
    el("tbody", {}, section.rows.map((r) => el("tr", {}, r.map((c) => el("td", {dir: "auto"}, ...shown(c)))))))];
}
