// The timeline: as many rows as fit on the screen, however long the session is. Rows come from the server in pieces.

import {data} from "./data.js";
import {el, money, plain, since, time, count} from "./dom.js";

const PIECE = 200;
const COLORS = {turn: "user", text: "assistant", thinking: "thinking", tool: "calls", context: "context", summary: "results",
  compaction: "results", note: "system", hooks: "context", retry: "error"};
const WORDS = {workingDir: "folder", promptTool: "person", subcommands: "rules", asyncAgent: "nobody"};

export class List {
  constructor(box, room, choose, openLane) {
    this.box = box;
    this.room = room;
    this.choose = choose;
    this.openLane = openLane;
    this.height = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--row"), 10) || 27;
    this.show("", 0, 0);
    box.addEventListener("scroll", () => this.draw(), {passive: true});
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(lane, total, began) {
    this.lane = lane;
    this.total = total;
    this.began = began;
    this.chosen = -1;
    this.pieces = new Map();
    this.rows = new Map();
    this.room.replaceChildren();
    this.size();
    this.box.scrollTop = 0;
    this.draw();
  }

  // More rows, or others of the same: what is seen is asked for again.
  refresh(total, began) {
    const atEnd = this.box.scrollTop + this.box.clientHeight >= this.room.offsetHeight - this.height * 1.5;
    const grown = total > this.total;
    this.total = total;
    this.began = began;
    this.size();
    const old = this.pieces;
    this.pieces = new Map();
    for (const [number, piece] of old) if (piece.rows) this.pieces.set(number, {rows: piece.rows, stale: true});
    if (grown && atEnd) this.box.scrollTop = this.room.offsetHeight;
    this.draw();
  }

  size() {
    this.room.style.height = `${this.total * this.height}px`;
  }

  row(number) {
    return this.pieces.get(Math.floor(number / PIECE))?.rows?.[number % PIECE];
  }

  async load(number) {
    const piece = this.pieces.get(number);
    if (piece && !piece.stale) return piece.coming;
    const fresh = {rows: piece?.rows};
    this.pieces.set(number, fresh);
    const lane = this.lane;
    fresh.coming = data.rows(lane, number * PIECE, PIECE).then((got) => {
      if (this.pieces.get(number) !== fresh || lane !== this.lane) return;
      fresh.rows = got.rows;
      for (let n = number * PIECE; n < (number + 1) * PIECE; n++) this.drop(n);
      this.draw();
    }).catch(() => this.pieces.delete(number));
    return fresh.coming;
  }

  async rowOf(number) {
    await this.load(Math.floor(number / PIECE));
    return this.row(number);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 6);
    const last = Math.min(this.total, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 6);
    for (const number of [...this.rows.keys()]) if (number < first || number >= last) this.drop(number);
    for (let piece = Math.floor(first / PIECE); piece * PIECE < last; piece++) this.load(piece);
    for (let number = first; number < last; number++) {
      if (this.rows.has(number)) continue;
      const made = this.make(number);
      this.rows.set(number, made);
      this.room.append(made);
    }
  }

  drop(number) {
    this.rows.get(number)?.remove();
    this.rows.delete(number);
  }

  make(number) {
    const row = this.row(number);
    const made = el("div", {class: row ? `row ${row.kind} ${row.state === "running" && !this.running ? "lost" : row.state || ""} ${row.aside ? "aside" : ""}` : "row blank", role: "option",
      id: `row-${number}`, "aria-posinset": number + 1, "aria-setsize": this.total, "aria-selected": String(number === this.chosen),
      color: row && COLORS[row.kind], onclick: () => this.choose(number)});
    made.style.top = `${number * this.height}px`;
    if (row) made.append(...this.cells(row));
    return made;
  }

  cells(row) {
    const badges = el("span", {class: "badges"});
    const badge = (text, kind, more) => badges.append(el("span", {class: `badge ${kind || ""}`, ...more}, text));
    if (row.kind === "turn") {
      if (row.tools) badge(`${row.tools} tool${row.tools > 1 ? "s" : ""}`);
      if (row.errors) badge(`${row.errors} failed`, "error");
      if (row.out) badge(`${count(row.out)} out`);
      if (row.usd) badge(money(row.usd));
    }
    if (row.state === "denied") badge("refused", "denied");
    else if (row.state === "error" && row.kind === "tool") badge("failed", "error");
    else if (row.state === "running" && this.running) badge("running");
    else if (row.state === "running" || row.state === "lost") badge("no result", "denied");
    if (row.by) badge(WORDS[row.by] || row.by, row.by === "person" ? "person" : row.state === "denied" ? "denied" : "",
      {title: `decided by: ${row.by}`});
    if (row.lane) badge("agent →", "lane", {onclick: (event) => { event.stopPropagation(); this.openLane(row.lane); }});
    return [el("span", {class: "when"}, row.at ? since(row.at - this.began) : ""), el("span", {class: "kind"}),
      el("span", {class: "name"}, plain(row.title)), el("span", {class: "text", dir: "auto"}, plain(row.text)), badges,
      el("span", {class: "took"}, time(row.ms))];
  }

  select(number, {center = false} = {}) {
    if (this.rows.get(this.chosen)) this.rows.get(this.chosen).setAttribute("aria-selected", "false");
    this.chosen = number;
    const top = number * this.height, bottom = top + this.height;
    if (center || top < this.box.scrollTop || bottom > this.box.scrollTop + this.box.clientHeight) {
      const room = center || Math.abs(top - this.box.scrollTop) > this.box.clientHeight * 2 ? this.box.clientHeight / 2 : 2 * this.height;
      this.box.scrollTop = top < this.box.scrollTop || center ? top - room : bottom - this.box.clientHeight + room;
    }
    this.draw();
    this.rows.get(number)?.setAttribute("aria-selected", "true");
    this.box.setAttribute("aria-activedescendant", `row-${number}`);
  }

  get page() {
    return Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
  }
}
