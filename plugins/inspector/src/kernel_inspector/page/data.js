// Where the data comes from: the server that sent this page, or the page itself where it was exported.

const held = document.getElementById("session-data");
const embedded = held ? JSON.parse(held.textContent) : null;
const token = location.hash.slice(1);

async function ask(path, query) {
  const address = `/api/${path}?${new URLSearchParams(query || {})}`;
  const answer = await fetch(address, {headers: {Authorization: `Bearer ${token}`}, cache: "no-store"});
  if (!answer.ok) throw new Error(answer.status === 401 ? "This address lacks its token: open the one that kernel inspect printed."
    : `The server answered ${answer.status}: ${(await answer.text()).slice(0, 200)}`);
  return answer.json();
}

const served = {
  session: () => ask("session"),
  rows: (lane, first, many) => ask("rows", {lane, first, many}),
  turns: (lane) => ask("turns", {lane}),
  requests: (lane) => ask("requests", {lane}),
  spans: (lane, turn) => ask("spans", {lane, turn}),
  details: (lane, row, full) => ask("details", full ? {lane, row, full: 1} : {lane, row}),
  search: (q) => ask("search", {q}),
  // Server-sent events, read by hand: EventSource cannot send the token in a header.
  async watch(changed, lost) {
    for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
      try {
        const answer = await fetch("/api/watch", {headers: {Authorization: `Bearer ${token}`}});
        if (!answer.ok) throw new Error(String(answer.status));
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        wait = 500;
        lost(false);
        for (let text = ""; ;) {
          const {value, done} = await reader.read();
          if (done) break;
          text = (text + value).slice(-4096);
          const last = text.lastIndexOf("\n\n");
          if (last >= 0) {
            if (text.slice(0, last).includes("data:")) changed();
            text = text.slice(last + 2);
          }
        }
      } catch { /* the server ended, or sleeps */ }
      lost(true);
      await new Promise((done) => setTimeout(done, wait));
    }
  },
};

// The same words as in search.py.
const FILTER = /^(?:is|by|tool):\S+$/;
const CHOSEN_STATES = {failed: "error", refused: "denied", running: "running", lost: "lost"};

function fits(row, broken, key, value) {
  if (key === "tool") return row.kind === "tool" && (row.title || "").toLowerCase() === value;
  if (key === "by") return (row.by || "").toLowerCase() === value;
  if (CHOSEN_STATES[value]) return row.state === CHOSEN_STATES[value] && (value !== "failed" || row.kind === "tool");
  return value === "break" ? broken : row.kind === value;
}

function textsOf(section) {
  if (section.kind === "text") return [section.text];
  if (section.kind === "diff") return [section.before, section.after];
  return [];
}

const kept = embedded && {
  session: async () => embedded.session,
  rows: async (lane, first, many) => {
    const rows = embedded.lanes[lane].rows;
    return {first, total: rows.length, rows: rows.slice(first, first + many)};
  },
  turns: async (lane) => ({turns: embedded.lanes[lane].turns}),
  requests: async (lane) => embedded.lanes[lane].requests,
  spans: async (lane, turn) => embedded.lanes[lane].spans[turn] || {turn, began: 0, ended: 0, spans: []},
  details: async (lane, row) => ({row: embedded.lanes[lane].rows[row], number: row, lane, sections: embedded.lanes[lane].details[row] || []}),
  search: async (q) => {
    const filters = q.toLowerCase().split(/\s+/).filter((w) => FILTER.test(w)).map((w) => w.split(/:(.*)/s));
    const wanted = q.toLowerCase().split(/\s+/).filter((w) => !FILTER.test(w)).join(" ");
    const hits = [];
    for (const [lane, one] of Object.entries(embedded.lanes)) {
      const broken = new Set(one.requests.columns.filter((c) => c.broke).map((c) => c.row));
      for (let row = 0; row < one.rows.length && (wanted || filters.length); row++) {
        if (!filters.every(([key, value]) => fits(one.rows[row], broken.has(row), key, value))) continue;
        const texts = [`${one.rows[row].title || ""} ${one.rows[row].text || ""}`, ...(one.details[row] || []).flatMap(textsOf)];
        const text = texts.find((t) => t.toLowerCase().includes(wanted));
        if (text === undefined) continue;
        const at = text.toLowerCase().indexOf(wanted), from = Math.max(0, at - 60);
        hits.push({lane, row, kind: one.rows[row].kind, title: one.rows[row].title,
          text: text.slice(from, at + wanted.length + 120).replace(/\s/g, " "), from: at - from, to: at - from + wanted.length});
        if (hits.length >= 300) return {hits, cut: true};
      }
    }
    return {hits, cut: false};
  },
  watch: async () => {},
};

export const data = kept || served;
export const exported = Boolean(embedded);
