"use strict";
const report = JSON.parse(document.getElementById("data").textContent);
const kinds = [
  { mark: "<", name: "requests", colour: "--request" },
  { mark: ">", name: "logs", colour: "--log" },
  { mark: "=", name: "writes and deletes", colour: "--write" },
  { mark: "~", name: "faults and steps", colour: "--fault" },
];
const LANE = 26, LABEL = 110, AXIS = 22, AROUND = 40, NAMED = 200;
const find = (id) => document.getElementById(id);
const canvas = find("lanes");
const state = { run: null, from: 0, to: 1, cursor: 0, shown: new Set(kinds.map((kind) => kind.mark)), words: [] };

const node = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
// A canvas does not understand `light-dark()`: the browser resolves the colour of an element.
const probe = document.body.appendChild(node("span"));
const colour = (name) => {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
};
const clock = (ms) => {
  const seconds = ms / 1000, minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - minutes * 60).toFixed(3).padStart(6, "0")}`;
};
const isDelete = (line) => line.kind === "=" && line.text.startsWith("delete ");
const isShown = (line) =>
  state.shown.has(line.kind) && state.words.every((word) => line.search.includes(word));

function readRun(run) {
  if (run.parsed) return run;
  run.parsed = run.lines.map(([ms, host, kind, text]) => ({
    ms, host, kind, text, search: `${run.hosts[host]} ${text}`.toLowerCase(),
  }));
  run.start = run.parsed.length ? run.parsed[0].ms : 0;
  run.end = Math.max(run.start + 1, run.parsed.length ? run.parsed[run.parsed.length - 1].ms : 1);
  return run;
}

function table(title, rows) {
  const made = node("table");
  made.append(node("caption", title));
  for (const [name, ...values] of rows) {
    const row = node("tr");
    row.append(node("td", name), ...values.map((value) => node("td", value, "number")));
    made.append(row);
  }
  return made;
}

function showOverview() {
  find("title").textContent = report.title;
  find("summary").textContent = report.summary;
  for (const { title, rows } of report.tables) if (rows.length) find("overview").append(table(title, rows));
  report.runs.forEach((run, index) => {
    const option = node("option", (run.violation ? "✗ " : "") + run.name);
    option.value = index;
    find("run").append(option);
  });
  find("runs").hidden = report.runs.length === 0;
}

function showRun(index) {
  const run = readRun(report.runs[index]);
  state.run = run;
  [state.from, state.to, state.cursor] = [run.start, run.end, run.end];
  const verdict = find("verdict");
  verdict.replaceChildren();
  verdict.className = run.violation ? "violated" : "";
  verdict.append(
    node("strong", run.violation ? `${run.violation.oracle}: ` : "Every property held."),
    run.violation ? run.violation.message : "",
    node("code", run.replay),
  );
  if (run.omitted) verdict.append(node("p", `The first ${run.omitted} lines of the trace are left out.`));
  find("story").hidden = !run.story;
  find("story").querySelector("pre").textContent = run.story || "";
  draw();
}

const toX = (ms, width) => LABEL + ((ms - state.from) / (state.to - state.from)) * (width - LABEL - 8);
const toTime = (x, width) => state.from + ((x - LABEL) / (width - LABEL - 8)) * (state.to - state.from);

function draw() {
  const { run } = state, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = run.hosts.length * LANE + AXIS;
  canvas.style.height = `${height}px`;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  run.hosts.forEach((host, index) => {
    const y = index * LANE;
    pen.fillStyle = colour("--text");
    pen.fillText(host, 8, y + LANE / 2, LABEL - 12);
    pen.fillStyle = colour("--line");
    pen.fillRect(LABEL, y + LANE / 2, width - LABEL - 8, 1);
  });
  for (const kind of kinds) drawKind(pen, kind, width);
  drawAxis(pen, width, height);
  if (run.violation) drawMark(pen, run.end, "--violation", width, height, 2);
  drawMark(pen, state.cursor, "--text", width, height, 1);
  showCursor();
}

function drawKind(pen, kind, width) {
  const shades = { [kind.mark]: colour(kind.colour), delete: colour("--delete") };
  const tall = kind.mark === "<" || kind.mark === ">" ? 4 : 9;
  for (const line of state.run.parsed) {
    if (line.kind !== kind.mark || line.ms < state.from || line.ms > state.to || !isShown(line)) continue;
    pen.fillStyle = isDelete(line) ? shades.delete : shades[kind.mark];
    pen.fillRect(toX(line.ms, width) - 1, line.host * LANE + LANE / 2 - tall, 2.5, 2 * tall);
  }
}

function drawAxis(pen, width, height) {
  pen.fillStyle = colour("--soft");
  for (let part = 0; part <= 6; part++) {
    const ms = state.from + ((state.to - state.from) * part) / 6, x = toX(ms, width);
    pen.textAlign = part === 0 ? "left" : part === 6 ? "right" : "center";
    pen.fillText(clock(ms), x, height - AXIS / 2);
  }
  pen.textAlign = "left";
}

function drawMark(pen, ms, name, width, height, thick) {
  if (ms < state.from || ms > state.to) return;
  pen.fillStyle = colour(name);
  pen.fillRect(toX(ms, width) - thick / 2, 0, thick, height - AXIS);
}

function showCursor() {
  const { run, cursor } = state;
  find("time").textContent = clock(cursor);
  const shown = run.parsed.filter(isShown);
  let at = shown.findLastIndex((line) => line.ms <= cursor);
  const around = shown.slice(Math.max(0, at - AROUND), at + AROUND / 2);
  const current = shown[at];
  find("lines").replaceChildren(...around.map((line) => {
    const item = node("li", `${clock(line.ms)} `, line === current ? "at" : "");
    const text = node("span", `${line.kind} ${line.text}`);
    const kind = kinds.find((kind) => kind.mark === line.kind);
    text.style.color = `var(${isDelete(line) ? "--delete" : kind.colour})`;
    item.append(node("b", `${run.hosts[line.host]} `), text);
    return item;
  }));
  // Only the list is scrolled, not the page.
  const list = find("lines"), line = list.querySelector(".at");
  if (line) list.scrollTop = line.offsetTop - list.offsetTop - list.clientHeight / 2;
  showClusters();
}

function showClusters() {
  const { run, cursor } = state, clusters = new Map();
  for (const line of run.parsed) {
    if (line.ms > cursor) break;
    const write = line.kind === "=" && line.text.match(/^(create|change|delete) (.*) by (\S+) at \d+$/);
    if (!write) continue;
    const host = run.hosts[line.host], objects = clusters.get(host) ?? new Map();
    clusters.set(host, objects);
    if (write[1] === "delete") objects.delete(write[2]);
    else objects.set(write[2], objects.get(write[2]) ?? write[3]);
  }
  find("clusters").replaceChildren(...[...clusters].map(([host, objects]) => {
    const box = node("div"), list = node("ul"), keys = [...objects].sort();
    box.append(node("strong", `${host}: ${keys.length} objects`), list);
    list.append(...keys.slice(0, NAMED).map(([key, maker]) => node("li", `${key} (${maker})`)));
    if (keys.length > NAMED) list.append(node("li", `and ${keys.length - NAMED} more`));
    return box;
  }));
}

function zoom(event) {
  event.preventDefault();
  const width = canvas.clientWidth, middle = toTime(event.offsetX, width), factor = event.deltaY > 0 ? 1.25 : 0.8;
  state.from = Math.max(state.run.start, middle - (middle - state.from) * factor);
  state.to = Math.min(state.run.end, Math.max(state.from + 1, middle + (state.to - middle) * factor));
  draw();
}

function drag(event) {
  const startX = event.offsetX, { from, to } = state, width = canvas.clientWidth;
  let hasMoved = false;
  const move = (moved) => {
    const ms = ((startX - moved.offsetX) / (width - LABEL - 8)) * (to - from);
    if (Math.abs(startX - moved.offsetX) < 3 && !hasMoved) return;
    hasMoved = true;
    const shift = Math.min(Math.max(ms, state.run.start - from), state.run.end - to);
    [state.from, state.to] = [from + shift, to + shift];
    draw();
  };
  const end = (ended) => {
    canvas.removeEventListener("pointermove", move);
    if (!hasMoved) state.cursor = Math.min(Math.max(toTime(ended.offsetX, width), state.run.start), state.run.end);
    draw();
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", end, { once: true });
}

function step(event) {
  const shown = state.run.parsed.filter(isShown);
  const next = {
    ArrowRight: () => shown.find((line) => line.ms > state.cursor),
    ArrowLeft: () => shown.findLast((line) => line.ms < state.cursor),
  }[event.key]?.();
  if (!next) return;
  event.preventDefault();
  state.cursor = next.ms;
  draw();
}

for (const kind of kinds) {
  const label = node("label"), box = node("input");
  [box.type, box.checked] = ["checkbox", true];
  box.addEventListener("change", () => {
    box.checked ? state.shown.add(kind.mark) : state.shown.delete(kind.mark);
    draw();
  });
  const name = node("span", ` ${kind.name} `);
  name.style.color = `var(${kind.colour})`;
  label.append(box, name);
  find("kinds").append(label);
}
find("filter").addEventListener("input", (event) => {
  state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  draw();
});
find("whole").addEventListener("click", () => {
  [state.from, state.to] = [state.run.start, state.run.end];
  draw();
});
find("run").addEventListener("change", (event) => showRun(Number(event.target.value)));
canvas.addEventListener("wheel", zoom, { passive: false });
canvas.addEventListener("pointerdown", drag);
canvas.addEventListener("keydown", step);
window.addEventListener("resize", () => state.run && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.run && draw());
showOverview();
if (report.runs.length) showRun(Math.max(0, report.runs.findIndex((run) => run.violation)));
