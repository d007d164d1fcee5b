// The page: what is chosen, what is drawn, which key does what.

import {data, exported} from "./data.js";
import {count, el, money, plain, time} from "./dom.js";
import {List} from "./list.js";
import {showDetail} from "./detail.js";
import {contextLegend, drawContext, drawTime, timeLegend} from "./charts.js";

const $ = (id) => document.getElementById(id);
const state = {session: null, lane: "", row: -1, turn: 0, tab: "context", turns: [], requests: {total: 0, columns: []}, spans: null};
const list = new List($("list"), $("room"), (number) => choose(number), (lane) => openLane(lane));

function tell(text) {
  $("told").hidden = !text;
  $("told").replaceChildren(text || "");
}

async function guarded(work) {
  try {
    return await work();
  } catch (error) {
    tell(String(error.message || error));
    return undefined;
  }
}

// The words that were searched for, in the details: marked without touching what is there.
function markFound(box) {
  if (!globalThis.Highlight) return;
  CSS.highlights.delete("found");
  const word = finder.asked.split(/\s+/).filter((w) => !/^(is|by|tool):/.test(w)).join(" ").toLowerCase();
  if (!word) return;
  const ranges = [], texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < 1000) {
    const text = texts.currentNode.data.toLowerCase();
    for (let at = text.indexOf(word); at >= 0 && ranges.length < 1000; at = text.indexOf(word, at + word.length)) {
      const range = new Range();
      range.setStart(texts.currentNode, at);
      range.setEnd(texts.currentNode, Math.min(at + word.length, texts.currentNode.length));
      ranges.push(range);
    }
  }
  if (!ranges.length) return;
  CSS.highlights.set("found", new Highlight(...ranges));
  const first = ranges.find((range) => range.getClientRects().length);
  const scroller = first?.startContainer.parentElement.closest("pre");
  if (scroller) scroller.scrollTop += first.getBoundingClientRect().top - scroller.getBoundingClientRect().top - 60;
  if (first) box.scrollTop += first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

const laneOf = (id) => state.session.lanes.find((lane) => lane.id === id);

// -- the head ----------------------------------------------------------------------------------------------------------
function drawHead() {
  const s = state.session;
  document.title = `${plain(s.title) || s.id} · kernel inspect`;
  $("title").replaceChildren(plain(s.title) || s.id);
  $("live").hidden = false;
  $("live").className = `pill ${s.gone ? "bad" : s.running && !exported ? "on" : ""}`;
  $("live").replaceChildren(s.gone ? "deleted" : exported ? "exported" : s.running ? "running" : "ended");
  if (!s.recorded) $("live").after($("unrecorded") || el("span", {id: "unrecorded", class: "pill",
    title: "Nothing was recorded beside this session: hooks and decisions are not known, times and parts are estimated"}, "not recorded, times estimated"));
  else $("unrecorded")?.remove();
  const parts = [s.id, s.model, s.mode && `mode ${s.mode}`, s.cwd, s.branch && `branch ${s.branch}`,
    s.began && new Date(s.began).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"}), time(s.ended - s.began)];
  $("meta").replaceChildren(...parts.filter(Boolean).map((part) => el("span", {title: plain(part)}, plain(part))));
  const told = [s.damaged && `${s.damaged} damaged line${s.damaged > 1 ? "s are" : " is"} left out.`,
    s.fault && `A part of the session could not be read (${s.fault}).`,
    s.gone && "The transcript was deleted; what was read of it is shown."].filter(Boolean);
  tell(told.join(" "));
  const t = s.totals, into = t.read + t.written + t.fresh, ms = t.ms, all = ms.model + ms.tools + ms.hooks + ms.waiting;
  const total = (name, value, ...notes) => el("div", {class: notes.filter(Boolean).length > 1 ? "total rich" : "total"}, el("span", {class: "label"}, name), el("b", {class: "num"}, value),
    el("span", {class: "note"}, notes.filter(Boolean).map((one, n) => [n ? ", " : "", one]).flat()));
  const note = (text, kind, query) => (query ? el("button", {type: "button", class: kind || "", title: `Show them (${query})`, onclick: () => ask(query)}, text)
    : el("i", {class: kind || ""}, text));
  const times = [["model", "assistant", ms.model], ["tools", "user", ms.tools], ["hooks", "context", ms.hooks], ["people", "calls", ms.waiting]];
  const now = laneOf("").context;
  $("totals").replaceChildren(
    total("Cost", money(t.usd), t.usd === null && note("not known")),
    total("Context now", count(now), s.window && note(`${Math.round(100 * now / s.window)}% of ${count(s.window)}`)),
    total("Tokens in", count(into), into && note(`${Math.round(100 * t.read / into)}% cached`)),
    total("Tokens out", count(t.out)),
    total("Requests", t.requests.toLocaleString(), t.breaks && note(`${t.breaks} cache break${t.breaks > 1 ? "s" : ""}`, "bad", "is:break"),
      t.retries && note(`${t.retries} failed`, "bad", "is:retry")),
    total("Tools", t.tools.toLocaleString(), t.errors && note(`${t.errors} failed`, "bad", "is:failed"),
      t.denied && note(`${t.denied} refused`, "warn", "is:refused"), t.asked && note(`${t.asked} asked`, "", "by:person")),
    el("div", {class: "total wide"}, el("span", {class: "label"}, `Time spent${t.estimated ? ", partly estimated" : ""}`),
      el("div", {class: "split", role: "img", "aria-label": times.map(([name, , v]) => `${name} ${time(v)}`).join(", ")},
        all ? times.filter(([, , v]) => v).map(([, color, v]) => el("span", {back: color, grow: v})) : ""),
      times.map(([name, color, v]) => el("span", {class: "key num", color}, name, el("b", {}, v ? time(v) : "0")))));
  $("lanes").hidden = s.lanes.length < 2;
  $("lanes").replaceChildren(...s.lanes.map((lane) => el("button", {type: "button", "aria-current": String(lane.id === state.lane),
    onclick: () => openLane(lane.id), title: plain(lane.title)},
    lane.id ? plain(lane.kind) : "main", el("i", {}, lane.id ? plain(lane.title) : `${lane.turns} turns`))));
}

// -- the overview ------------------------------------------------------------------------------------------------------
async function drawOverview() {
  for (const tab of ["context", "time"]) $(`tab-${tab}`).setAttribute("aria-selected", String(state.tab === tab));
  $("chart").setAttribute("aria-labelledby", `tab-${state.tab}`);
  const row = list.row(state.row);
  if (state.tab === "context") {
    const mine = row?.request;
    const column = mine === undefined ? -1 : state.requests.columns.findIndex((c) => mine >= c.first && mine < c.first + c.many);
    const wide = $("chart").clientWidth > 900;
    $("legend").replaceChildren(...(wide ? [] : contextLegend(state.requests.columns)));
    drawContext($("chart"), state.requests, state.session.window, column, wide, (number) => choose(number, {center: true}));
    return;
  }
  const turn = row ? row.turn : state.turn, lane = state.lane;
  if (!state.spans || state.spans.turn !== turn || state.spans.lane !== lane || state.spans.version !== state.session.version) {
    const got = await data.spans(lane, turn);
    state.spans = {...got, lane, version: state.session.version};
  }
  $("legend").replaceChildren(el("span", {class: "key", color: "page"}, `turn ${turn + 1}`), ...timeLegend());
  drawTime($("chart"), state.spans, state.session.lanes, state, (id, number) => (id === state.lane ? choose(number, {center: true}) : openLane(id, number)));
}

function setTab(tab) {
  state.tab = tab;
  guarded(drawOverview);
}

// -- choosing ----------------------------------------------------------------------------------------------------------
async function choose(number, how) {
  if (number < 0 || number >= list.total) return;
  state.row = number;
  list.select(number, how);
  await new Promise((done) => setTimeout(done, 30));  // a key that is held down passes rows by
  if (state.row !== number) return;
  await guarded(async () => {
    const row = await list.rowOf(number);
    if (state.row !== number) return;
    state.turn = row?.turn || 0;
    await Promise.all([showDetail($("detail"), state.lane, number, openLane), drawOverview()]);
    if (state.row === number) markFound($("detail"));
  });
}

async function openLane(id, number = 0) {
  const lane = laneOf(id);
  if (!lane) return;
  state.lane = id;
  list.running = state.session.running && !exported;
  list.show(id, lane.rows, state.session.began);
  await guarded(async () => {
    [state.requests, {turns: state.turns}] = await Promise.all([data.requests(id), data.turns(id)]);
    drawHead();
    await drawOverview();
    await choose(Math.min(number, lane.rows - 1), {center: number > 0});
  });
}

function jumpTurn(step) {
  const at = state.turns.findLastIndex((row) => row <= state.row);
  const inside = at >= 0 && state.turns[at] !== state.row;
  const next = step > 0 ? at + 1 : inside ? at : at - 1;
  if (state.turns[next] !== undefined) choose(state.turns[next]);
}

// -- search ------------------------------------------------------------------------------------------------------------
const finder = {hits: [], at: -1, timer: 0, asked: ""};

async function find() {
  const query = $("query").value;
  finder.asked = query;
  if (!query.trim()) return closeHits();
  const got = await guarded(() => data.search(query));
  if (!got || finder.asked !== query) return undefined;
  finder.hits = got.hits;
  finder.at = got.hits.length ? 0 : -1;
  $("hits").hidden = false;
  $("hits").replaceChildren(...got.hits.map((hit, n) => el("div", {class: "hit", role: "option", id: `hit-${n}`, "aria-selected": String(n === 0),
    onclick: () => go(n)}, el("b", {}, plain(hit.title)),
    el("span", {}, plain(hit.text.slice(0, hit.from)), el("mark", {}, plain(hit.text.slice(hit.from, hit.to))), plain(hit.text.slice(hit.to))))),
  el("div", {class: "quiet"}, got.hits.length ? `${got.hits.length}${got.cut ? " and more" : ""} found` : "Nothing found"));
  return undefined;
}

function ask(query) {
  $("query").value = query;
  $("query").focus();
  find();
}

function closeHits() {
  $("hits").hidden = true;
  finder.hits = [];
}

function move(step) {
  if (!finder.hits.length) return;
  $(`hit-${finder.at}`)?.setAttribute("aria-selected", "false");
  finder.at = (finder.at + step + finder.hits.length) % finder.hits.length;
  $(`hit-${finder.at}`).setAttribute("aria-selected", "true");
  $(`hit-${finder.at}`).scrollIntoView({block: "nearest"});
  $("query").setAttribute("aria-activedescendant", `hit-${finder.at}`);
}

function go(n) {
  const hit = finder.hits[n];
  if (!hit) return;
  closeHits();
  $("list").focus();
  if (hit.lane === state.lane) choose(hit.row, {center: true});
  else openLane(hit.lane, hit.row);
}

$("query").addEventListener("input", () => {
  clearTimeout(finder.timer);
  finder.timer = setTimeout(find, 180);
});
$("query").addEventListener("focus", () => $("query").value && $("hits").hidden && find());
$("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter") finder.hits.length ? go(finder.at) : find();
  else if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Escape") { closeHits(); $("list").focus(); }
  else return;
  event.preventDefault();
});
document.addEventListener("pointerdown", (event) => { if (!$("finder").contains(event.target) && !$("totals").contains(event.target)) closeHits(); });

// -- keys --------------------------------------------------------------------------------------------------------------
const KEYS = {"j, ↓": "next row", "k, ↑": "previous row", "n, p": "next and previous turn", "g, G": "first and last row", "Enter": "read the details",
  "Esc": "back to the timeline", "/": "search; is:failed, is:refused, is:break, by:person and tool:bash choose rows", "c, w": "context, time", "[, ]": "previous and next lane", "t": "light or dark", "?": "these keys"};
$("help").append(el("dl", {}, Object.entries(KEYS).map(([keys, what]) => [el("dt", {}, keys.split(", ").map((k) => [el("kbd", {}, k), " "]).flat()),
  el("dd", {}, what)]).flat()), el("form", {method: "dialog"}, el("button", {class: "more"}, "Close")));

const ACTIONS = {
  j: () => choose(state.row + 1), ArrowDown: () => choose(state.row + 1), k: () => choose(state.row - 1), ArrowUp: () => choose(state.row - 1),
  n: () => jumpTurn(1), p: () => jumpTurn(-1), g: () => choose(0), Home: () => choose(0), G: () => choose(list.total - 1), End: () => choose(list.total - 1),
  PageDown: () => choose(Math.min(list.total - 1, state.row + list.page)), PageUp: () => choose(Math.max(0, state.row - list.page)),
  Enter: () => $("detail").focus(), Escape: () => { closeHits(); $("list").focus(); }, "/": () => $("query").select(), t: () => theme(true),
  c: () => setTab("context"), w: () => setTab("time"), "[": () => besideLane(-1), "]": () => besideLane(1), "?": () => $("help").showModal(),
};
const EVERYWHERE = new Set(["/", "t", "?", "Escape", "c", "w", "[", "]", "n", "p", "j", "k"]);

function besideLane(step) {
  const lanes = state.session.lanes, at = lanes.findIndex((lane) => lane.id === state.lane) + step;
  if (lanes[at]) openLane(lanes[at].id);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea") || $("help").open || !state.session) return;
  const inList = event.target === $("list") || event.target === document.body;
  if (!ACTIONS[event.key] || !(inList || EVERYWHERE.has(event.key))) return;
  event.preventDefault();
  ACTIONS[event.key]();
});
$("tab-context").addEventListener("click", () => setTab("context"));
$("tab-time").addEventListener("click", () => setTab("time"));
$("keys").addEventListener("click", () => $("help").showModal());

// -- light and dark ----------------------------------------------------------------------------------------------------
function theme(turn) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let now = null;
  try { now = localStorage.getItem("kernel-inspect-theme"); } catch { /* a file may not keep anything */ }
  now = document.documentElement.dataset.theme || now || (dark ? "dark" : "light");
  if (turn) {
    now = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("kernel-inspect-theme", now); } catch { /* as above */ }
  }
  document.documentElement.dataset.theme = now;
  $("theme").replaceChildren(now === "dark" ? "☀" : "☾");
}
$("theme").addEventListener("click", () => theme(true));

// -- life --------------------------------------------------------------------------------------------------------------
let busy = false, again = false;

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  await guarded(async () => {
    const session = await data.session();
    const first = !state.session, before = state.session;
    state.session = session;
    if (first) {
      await openLane("");
    } else if (session.version !== before.version || session.running !== before.running || session.gone !== before.gone) {
      const lane = laneOf(state.lane) || session.lanes[0];
      list.running = session.running;
      list.refresh(lane.rows, session.began);
      [state.requests, {turns: state.turns}] = await Promise.all([data.requests(lane.id), data.turns(lane.id)]);
      drawHead();
      await drawOverview();
      const chosen = list.row(state.row);
      if (state.row < 0 || chosen?.state === "running") await choose(Math.max(0, state.row));
    }
  });
  busy = false;
  if (again) { again = false; setTimeout(refresh, 150); }
}

theme(false);
let size = 0;
new ResizeObserver(() => { clearTimeout(size); size = setTimeout(() => state.session && guarded(drawOverview), 120); }).observe($("chart"));
await refresh();
$("list").focus({preventScroll: true});
document.documentElement.dataset.ready = "yes";
data.watch(refresh, (lost) => (lost ? tell("kernel inspect has ended; what was read is shown.") : drawHead()));
