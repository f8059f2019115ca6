// web.js - keeps an open page true. Without it the page is the same, as of when it was loaded.
// The server renders; this file fetches the page again when a stream says that something is new, and
// changes in place what differs. It draws the grid of ranks. It sends its origin only GET and confirmed orders.
"use strict";

const REFRESH_MS = 300; // at most so often
const AGAIN_MS = 500; // what was kept for others was older than the news
const IDLE_REFRESH_MS = 5000; // also while only steps grow
const skew = Date.now() - Number(document.body.dataset.now); // this clock less the server's

// --- times

function ageText(seconds) {
  if (seconds < 120) return `${Math.max(0, seconds)} s ago`;
  if (seconds < 120 * 60) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Text between two ` is for typing, and shown as code.
function putText(node, text) {
  if (node.textContent === text.replaceAll("`", "")) return;
  node.replaceChildren(...text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part)));
}

function make(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function showTimes() {
  const now = Date.now() - skew;
  for (const time of document.querySelectorAll("time[data-age]"))
    setText(time, ageText(Math.floor((now - Number(time.dataset.age)) / 1000)));
  for (const time of document.querySelectorAll("time[data-until]")) {
    const left = Math.round((Number(time.dataset.until) - now) / 1000);
    setText(time, left > 120 ? `in ${Math.floor(left / 60)} min` : left > 0 ? `in ${left} s` : "now");
  }
}

// --- changing the page in place

function sameAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
}

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute("data-keep") || (old.dataset && fresh.dataset && fresh.dataset.part)) return;
  sameAttributes(old, fresh);
  morphChildren(old, fresh);
}

// Rows with an id stay the same row wherever they move: the journal grows at its head.
function morphChildren(old, fresh) {
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const known = want.id ? [...old.children].find((child) => child.id === want.id) : null;
    if (known && known !== at) old.insertBefore(known, at);
    const have = known || (at && !(want.id && !known) && !(at.id && at.id !== want.id) ? at : null);
    if (have === null) {
      old.insertBefore(document.importNode(want, true), at);
      continue;
    }
    const next = have.nextSibling;
    morph(have, want);
    at = next;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Parts that take the server longer than the rest of the page.
async function loadParts() {
  for (const part of document.querySelectorAll("[data-part]")) {
    const answer = await fetch(part.dataset.part);
    if (!answer.ok) continue;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (fresh && part.isConnected) morphChildren(part, fresh);
  }
  showTimes();
}

let fetching = false;
let wanted = false;
let newsAt = 0; // on the server's clock: an answer that was begun before does not have the news
let lastFetch = 0;

async function refresh() {
  if (fetching) {
    wanted = true;
    return;
  }
  fetching = true;
  const wait = lastFetch + REFRESH_MS - performance.now();
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  lastFetch = performance.now();
  let old = false;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    old = answer.ok && Number(answer.headers.get("X-Muster-Began")) < newsAt;
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = document.getElementById("main");
      const began = performance.now();
      morphChildren(main, fresh.getElementById("main"));
      if (heat) heat.placeMode();
      showTimes();
      document.body.dataset.updateMs = (performance.now() - began).toFixed(1);
      await loadParts();
      document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
    }
  } catch {
    // the stream tells what is wrong
  }
  fetching = false;
  if (wanted || old) {
    setTimeout(refresh, wanted ? 0 : AGAIN_MS);
    wanted = false;
  }
}

// --- the grid of ranks

const STATES = {
  ".": "not there", j: "joining", t: "training", s: "in a save",
  k: "stuck", q: "silent", l: "left", x: "lost",
};
// What a host shows of its ranks when a cell is a host: the first of these that one is in.
const WORST = "xkq.jslt";
const TALLEST = 430; // pixels of the grid

class Heat {
  constructor(box, url) {
    this.url = url;
    this.box = box;
    this.mode = "state";
    this.data = null;
    this.cursor = -1;
    this.painted = [];
    this.readColours();
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-describedby", "heat-says");
    this.says = document.createElement("output");
    this.says.id = "heat-says";
    box.append(this.canvas, this.says);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.select(-1));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.select(-1));
    new ResizeObserver(() => this.draw()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      this.draw();
    });
    this.placeMode();
  }

  placeMode() {
    const group = document.getElementById("heat-mode");
    if (!group) return;
    group.hidden = false;
    for (const button of group.children) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === this.mode));
      button.onclick = () => {
        this.mode = button.dataset.mode;
        this.placeMode();
        this.draw();
      };
    }
  }

  // A frame without the hosts: they are asked for when they changed.
  async take(frame) {
    if (!this.layout || this.layout.layout !== frame.layout) {
      const answer = await fetch(this.url);
      if (!answer.ok) return;
      this.layout = await answer.json();
      frame = this.layout;
    }
    const began = performance.now();
    this.data = frame;
    this.draw();
    document.body.dataset.heatMs = (performance.now() - began).toFixed(1);
  }

  // How large cells can be, so that so many fit.
  pitchFor(count) {
    let pitch = 19;
    while (pitch > 5 && Math.ceil(count / Math.floor(this.width / pitch)) * pitch > TALLEST) pitch--;
    return pitch;
  }

  // One cell a rank; too many for this width: one a host.
  arrange() {
    const { order, hosts, layout } = this.layout;
    const width = Math.max(40, this.box.clientWidth);
    if (this.arranged === layout && this.width === width) return;
    this.arranged = layout;
    this.width = width;
    this.pitch = this.pitchFor(order.length);
    const tall = Math.ceil(order.length / Math.floor(width / this.pitch)) * this.pitch > TALLEST;
    const byHost = tall && hosts.length < order.length;
    this.cells = [];
    let at = 0;
    for (const [host, count] of hosts) {
      const ranks = order.slice(at, at + count);
      if (byHost) this.cells.push({ host, ranks });
      else for (const rank of ranks) this.cells.push({ host, ranks: [rank] });
      at += count;
    }
    if (byHost) this.pitch = this.pitchFor(this.cells.length);
    this.columns = Math.max(1, Math.floor(width / this.pitch));
    this.height = Math.ceil(this.cells.length / this.columns) * this.pitch;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.painted = [];
    this.inked = [];
  }

  stateOf(cell) {
    const states = this.data.states;
    if (cell.ranks.length === 1) return states[cell.ranks[0]];
    let worst = WORST.length;
    for (const rank of cell.ranks) worst = Math.min(worst, WORST.indexOf(states[rank]));
    return WORST[worst];
  }

  lagOf(cell) {
    let most = 0;
    for (const rank of cell.ranks) most = Math.max(most, this.data.lags[rank]);
    return most;
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = { mark: read("--mark"), edge: read("--ink"), lag: read("--lag").split(",").map((colour) => colour.trim()) };
    for (const state of Object.keys(STATES)) this.colours[state] = read(`--cell-${state === "." ? "m" : state}`);
    this.painted = [];
  }

  colourOf(cell, state, most) {
    if (this.mode === "state") return this.colours[state];
    if (".lx".includes(state)) return this.colours["."];
    const scale = this.colours.lag;
    return scale[Math.round((this.lagOf(cell) / Math.max(1, most)) * (scale.length - 1))];
  }

  // Only cells that changed are painted again.
  draw() {
    if (!this.data || !this.layout) return;
    this.arrange();
    const pen = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    let most = 0;
    for (const lag of this.data.lags) if (lag > most) most = lag;
    const size = this.pitch - (this.pitch > 12 ? 2 : 1);
    for (let index = 0; index < this.cells.length; index++) {
      const cell = this.cells[index];
      const state = this.stateOf(cell);
      const colour = this.colourOf(cell, state, most);
      const look = `${colour}${state}${index === this.cursor ? "+" : ""}`;
      if (this.painted[index] === look) continue;
      this.painted[index] = look;
      this.paint(pen, index, size, colour, state);
    }
    this.label(most);
  }

  paint(pen, index, size, colour, state) {
    const x = (index % this.columns) * this.pitch;
    const y = Math.floor(index / this.columns) * this.pitch;
    if (this.inked[index]) pen.clearRect(x, y, this.pitch, this.pitch);
    this.inked[index] = true;
    pen.fillStyle = colour;
    pen.fillRect(x, y, size, size);
    this.markCell(pen, state, x, y, size);
    if (index !== this.cursor) return;
    pen.strokeStyle = this.colours.edge;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }

  // Lost is crossed out, silent and stuck have a bar: not told by colour alone.
  markCell(pen, state, x, y, size) {
    if (!"xqk".includes(state)) return;
    pen.strokeStyle = this.colours.mark;
    pen.lineWidth = Math.max(1, size / 7);
    pen.beginPath();
    if (state === "x") {
      pen.moveTo(x + size * 0.2, y + size * 0.2);
      pen.lineTo(x + size * 0.8, y + size * 0.8);
      pen.moveTo(x + size * 0.8, y + size * 0.2);
      pen.lineTo(x + size * 0.2, y + size * 0.8);
    } else if (state === "q") {
      pen.moveTo(x + size * 0.2, y + size * 0.5);
      pen.lineTo(x + size * 0.8, y + size * 0.5);
    } else {
      pen.moveTo(x + size * 0.5, y + size * 0.2);
      pen.lineTo(x + size * 0.5, y + size * 0.8);
    }
    pen.stroke();
  }

  label(most) {
    const what = this.cells.length < this.data.states.length ? "a cell is a host and shows its worst rank" : "a cell is a rank, host by host";
    const count = this.data.states.length;
    this.canvas.setAttribute("aria-label", `${count} ranks, ${what}; the table below has those that need a look`);
    if (this.cursor >= 0) return;
    const furthest = this.data.frontier.toLocaleString("en");
    const lag = most === 0 ? `All ranks that are there are at step ${furthest}.` :
      `Steps behind the furthest rank (step ${furthest}): dark 0, bright ${most}.`;
    setText(this.says, this.mode === "state" ? `${count.toLocaleString("en")} ranks: ${what}.` : lag);
  }

  point(event) {
    if (!this.cells) return;
    const column = Math.floor(event.offsetX / this.pitch);
    const index = Math.floor(event.offsetY / this.pitch) * this.columns + column;
    this.select(column < this.columns && index < this.cells.length ? index : -1);
  }

  key(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
    if (!this.cells || !(event.key in moves)) return;
    event.preventDefault();
    const to = this.cursor < 0 ? 0 : this.cursor + moves[event.key];
    if (to >= 0 && to < this.cells.length) this.select(to);
  }

  select(index) {
    if (index === this.cursor) return;
    this.cursor = index;
    if (index >= 0) {
      const cell = this.cells[index];
      const lag = this.lagOf(cell);
      const who = cell.ranks.length === 1 ? `Rank ${cell.ranks[0]} on ${cell.host || "no host"}` : `${cell.host}, ${cell.ranks.length} ranks`;
      setText(this.says, `${who}: ${STATES[this.stateOf(cell)]}, step ${(this.data.frontier - lag).toLocaleString("en")}, ${lag} behind.`);
    }
    this.draw();
  }
}

let heat = null;

// --- the time line

// What is shown of it stands in the address. The links below it are a window further in, out, earlier and later.
const LEAST_MS = 1000; // of a window, as time_line.c
const LEAST_DRAG = 5; // pixels; less is a click

function lineShown(line) {
  const { from, to, first, last } = line.dataset;
  const shown = { from: Number(from), to: Number(to), first: Number(first), last: Number(last) };
  // A window that was just asked for counts before the server has drawn it.
  const [begin, end] = ["from", "to"].map((name) => Number(new URLSearchParams(location.search).get(name)));
  if (begin >= shown.first && begin < end && end <= shown.last) Object.assign(shown, { from: begin, to: end });
  return shown;
}

function showWindow(search) {
  history.replaceState(null, "", location.pathname + search);
  refresh();
}

function zoomTo(line, from, to) {
  const { first, last } = lineShown(line);
  const span = Math.max(LEAST_MS, to - from);
  const begin = Math.round(Math.max(first, Math.min(from, last - span)));
  const end = Math.round(Math.min(last, begin + span));
  showWindow(begin <= first && end >= last ? "" : `?from=${begin}&to=${end}`);
}

function timeAt(line, x) {
  const { left, width } = line.getBoundingClientRect();
  const { from, to } = lineShown(line);
  return from + (to - from) * Math.max(0, Math.min(1, (x - left) / width));
}

let drag = null; // from the press of the button on

function drawDrag(x) {
  const { left, width } = drag.line.getBoundingClientRect();
  const begin = Math.max(0, Math.min(drag.x, x) - left);
  const end = Math.min(width, Math.max(drag.x, x) - left);
  drag.far = drag.far || Math.abs(x - drag.x) >= LEAST_DRAG;
  if (!drag.pick.isConnected) drag.line.append(drag.pick); // the page was changed meanwhile
  for (const [name, value] of Object.entries({ class: "pick", x: begin, y: 0, width: drag.far ? end - begin : 0, height: 52 }))
    drag.pick.setAttribute(name, value);
}

function beginDrag(event) {
  const line = event.target.closest(".line svg[data-from]");
  if (!line || event.button !== 0) return;
  const pick = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  drag = { line, x: event.clientX, pick, far: false };
}

function endDrag(event) {
  if (!drag) return;
  const { line, x, far, pick } = drag;
  pick.remove();
  if (event.type === "pointerup" && far) {
    zoomTo(line, ...[timeAt(line, x), timeAt(line, event.clientX)].sort((a, b) => a - b));
    // The click that follows is none on the round below.
    const stop = (click) => click.preventDefault();
    addEventListener("click", stop, true);
    setTimeout(() => removeEventListener("click", stop, true));
  }
  drag = null;
}

function zoomByWheel(event) {
  const line = event.ctrlKey && event.target.closest(".line svg[data-from]"); // the wheel alone moves the page
  if (!line) return;
  event.preventDefault();
  const at = timeAt(line, event.clientX);
  const { from, to } = lineShown(line);
  const factor = event.deltaY < 0 ? 0.7 : 1 / 0.7;
  zoomTo(line, at - (at - from) * factor, at + (to - at) * factor);
}

function zoomByLink(event) {
  const link = event.target.closest(".zoom a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  showWindow(link.search);
}

function zoomByKey(event) {
  const figure = event.target.closest("figure.line");
  if (!figure || event.ctrlKey || event.metaKey || event.altKey) return;
  const link = figure.querySelector(`.zoom a[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
  if (!link) return;
  event.preventDefault();
  showWindow(link.search);
}

function watchLine() {
  document.addEventListener("pointerdown", beginDrag);
  document.addEventListener("pointermove", (event) => drag && drawDrag(event.clientX));
  document.addEventListener("pointerup", endDrag);
  document.addEventListener("pointercancel", endDrag);
  document.addEventListener("dragstart", (event) => drag && event.preventDefault()); // of a link
  document.addEventListener("wheel", zoomByWheel, { passive: false });
  document.addEventListener("click", zoomByLink);
  document.addEventListener("keydown", zoomByKey);
}

// --- the stream

let version = null;

function showTrouble(text) {
  const box = document.getElementById("trouble");
  putText(box, text ? `Shown as it was last known: ${text}` : "");
  box.hidden = !text;
  const link = document.getElementById("link");
  link.hidden = false;
  link.className = text ? "down" : "live";
  setText(link, text ? "no answer" : "live");
}

function takeTick(tick, at) {
  for (const [name, text] of Object.entries(tick.facts || {}))
    for (const node of document.querySelectorAll(`[data-fact="${name}"]`)) setText(node, text);
  if (tick.spark)
    for (const line of document.querySelectorAll(".facts .spark polyline"))
      line.setAttribute("points", tick.spark);
  const news = tick.version !== version; // also at first: the page itself may have been kept for a while
  version = tick.version;
  if (news) newsAt = at;
  if (news || performance.now() - lastFetch > IDLE_REFRESH_MS) refresh();
}

// feed.js holds the streams of all tabs, since a browser opens only six connections to one host.
const tab = document.body.dataset.stream && (window.SharedWorker ? new SharedWorker("/feed.js").port : new Worker("/feed.js"));

function hear({ type, data, id }) {
  if (type === "trouble") showTrouble(data);
  if (type === "heat" && heat) heat.take(JSON.parse(data));
  if (type !== "tick") return;
  if (!document.getElementById("trouble").hidden) version = "";
  showTrouble("");
  takeTick(JSON.parse(data), Number(id));
}

// A hidden page asks for no stream.
function watch() {
  version = version === null ? null : "";
  tab.postMessage(document.hidden ? null : document.body.dataset.stream);
}

// --- orders

// The address that `muster web --orders` prints ends with a secret. The tab keeps it until it is closed, and sends it
// only with orders. Another site's page does not know it.
function secretOfTab() {
  try {
    const given = new URLSearchParams(location.hash.slice(1)).get("orders");
    if (given) {
      sessionStorage.setItem("orders", given);
      history.replaceState(null, "", location.pathname + location.search);
    }
    return sessionStorage.getItem("orders");
  } catch {
    return null; // this browser stores nothing
  }
}

// The checkpoints in the page's table, by number. `muster pin` takes older ones, too.
function checkpointsShown() {
  const rows = [...document.querySelectorAll("#checkpoints tbody tr")].filter((row) => row.querySelector(".state.good"));
  const named = rows.map((row) => row.querySelector("th a")).map((link) => [link.href.split("/").pop(), `of step ${link.textContent}`]);
  return [["", "the newest"], ...named];
}

const SAID_MS = 30000;
let forgets = null;

const ORDERS = [
  {
    path: "save",
    name: "Save now",
    title: "Save now",
    asks: "All ranks stop at one step, save, and train on.",
    fields: [],
    done: (answer) => `Round ${answer.round} makes the checkpoint.`,
  },
  {
    path: "notify",
    name: "Notify",
    title: "Notify a rank",
    asks: "The rank is told that its machine goes away. All ranks save at one step and leave; the launcher starts them again.",
    fields: [
      { name: "rank", label: "Rank", type: "number", min: 0, step: 1, required: true },
      { name: "grace", label: "Seconds left (empty: save at once)", type: "number", min: 0, step: "any" },
      { name: "text", label: "Why, for the story", type: "text", maxLength: 200 },
    ],
    done: (answer) => `Rank ${answer.rank} is told that it will be ended (notice ${answer.notice}).`,
  },
  {
    path: "pin",
    name: "Pin",
    title: "Pin a checkpoint",
    asks: "The checkpoint is not deleted until `muster unpin` lets it go.",
    fields: [{ name: "checkpoint", label: "Checkpoint", choices: checkpointsShown }],
    done: (answer) => `Checkpoint ${answer.pinned} is not deleted until it is unpinned.`,
  },
];

async function give(order, form) {
  const given = [...new FormData(form)].filter(([, value]) => value !== "");
  const url = document.body.dataset.heat.replace(/heat$/, `${order.path}?${new URLSearchParams(given)}`);
  try {
    const answer = await fetch(url, { method: "POST", headers: { "X-Muster-Orders": secretOfTab() } });
    const said = await answer.json();
    return { ok: answer.ok, text: answer.ok ? order.done(said) : said.error };
  } catch {
    return { ok: false, text: "muster web does not answer: it is not known whether the order arrived." };
  }
}

function makeField({ label, choices, ...field }) {
  const input = choices ? make("select", field, ...choices().map(([value, text]) => new Option(text, value))) :
    make("input", { autocomplete: "off", ...field });
  return make("label", {}, label, input);
}

// Gives the order once it is confirmed. A refusal is shown in the dialog.
function ask(order) {
  const asks = make("p", {});
  putText(asks, order.asks);
  const wrong = make("p", { className: "wrong", role: "alert" });
  const go = make("button", { className: "go" }, order.title);
  const back = make("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const title = make("h2", { id: "dialog-title" }, order.title);
  const form = make("form", {}, title, asks, ...order.fields.map(makeField), wrong, make("div", { className: "buttons" }, back, go));
  const dialog = make("dialog", { onclose: () => dialog.remove() }, form);
  dialog.setAttribute("aria-labelledby", "dialog-title");
  form.onsubmit = async (event) => {
    event.preventDefault();
    go.disabled = true;
    const { ok, text } = await give(order, form);
    go.disabled = false;
    putText(wrong, ok ? "" : text);
    if (!ok) return;
    dialog.close();
    const said = document.getElementById("said");
    said.hidden = false;
    putText(said, text);
    clearTimeout(forgets);
    forgets = setTimeout(() => (said.hidden = true), SAID_MS); // the journal has it
  };
  document.body.append(dialog);
  dialog.showModal();
}

function placeOrders() {
  const place = document.getElementById("orders");
  if (!secretOfTab() || !place) return;
  for (const order of ORDERS) place.append(make("button", { type: "button", onclick: () => ask(order) }, order.name));
}

const box = document.getElementById("heat");
if (box) heat = new Heat(box, document.body.dataset.heat);
lastFetch = performance.now();
showTimes();
loadParts().catch(() => {});
setInterval(showTimes, 1000);
placeOrders();
watchLine();
if (tab) {
  tab.onmessage = (event) => hear(event.data);
  document.addEventListener("visibilitychange", watch);
  addEventListener("pageshow", watch);
  addEventListener("pagehide", () => tab.postMessage(null));
}
