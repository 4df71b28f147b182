"use strict";
// Sorting, copying, unfolding, and the list of examples. Texts of the page are only read and written as texts, never as HTML.
document.documentElement.classList.add("scripted");

const number = (cell) => parseFloat(cell.dataset.v);
const clean = (text) => text.replace(/\s+/g, " ").trim();

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);

function sortRows(heading) {
  const table = heading.closest("table");
  const place = heading.cellIndex;
  const numeric = heading.dataset.kind !== "text";
  // First the largest number, or the beginning of the alphabet.
  const before = heading.getAttribute("aria-sort");
  const upwards = before === null ? !numeric : before === "descending";
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((one, other) => {
    const [a, b] = [one.cells[place], other.cells[place]];
    if (!numeric) return a.textContent.localeCompare(b.textContent) * (upwards ? 1 : -1);
    // What is undefined stays last.
    if (!a.dataset.v || !b.dataset.v) return (a.dataset.v ? 0 : 1) - (b.dataset.v ? 0 : 1);
    return (number(a) - number(b)) * (upwards ? 1 : -1);
  });
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
  table.tBodies[0].append(...rows);
}

// A spreadsheet would run a text that begins like a formula.
const harmless = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);

function cellsOf(table) {
  const headings = Array.from(table.tHead.rows[0].cells);
  const lines = [headings.flatMap((heading) => {
    const name = harmless(heading.dataset.name);
    return "ends" in heading.dataset ? [name, name + "_low", name + "_high"] : [name];
  })];
  for (const row of table.tBodies[0].rows) {
    lines.push(Array.from(row.cells).flatMap((cell, place) => {
      const { kind, ends } = headings[place].dataset;
      if (kind === "text") return [harmless(clean(cell.textContent))];
      const { v = "", l = "", h = "" } = cell.dataset;
      return ends === undefined ? [v] : [v, l, h];
    }));
  }
  return lines;
}

function asTabs(table) {
  if (!table.tHead) return table.textContent;
  return cellsOf(table).map((line) => line.join("\t") + "\n").join("");
}

const quoted = (cell) => (/[",\r\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell);
const asCsv = (lines) => lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");

function save(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function copy(pressed, text, element) {
  const before = pressed.textContent;
  try {
    await navigator.clipboard.writeText(text);
    pressed.textContent = "Copied";
  } catch {
    // The browser does not allow it: select the text, for the browser's own copying.
    const fold = element.closest("details");
    if (fold) fold.open = true;
    getSelection().selectAllChildren(element);
    pressed.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { pressed.textContent = before; }, 3000);
}

// Addresses: "#", the id of a part of the page, and filters: #c1-examples&category=Age&example=Age/12

const address = (to, filters) => {
  const query = new URLSearchParams(filters).toString();
  return "#" + to + (query && "&" + query.replaceAll("%2F", "/"));
};

function parse(hash) {
  const [id, ...filters] = hash.slice(1).split("&");
  return [id, new Map(new URLSearchParams(filters.join("&")))];
}

// From a row of a table, or a point of a figure, to its examples.
function link(element) {
  const { to, rows, scores, figure } = JSON.parse(element.dataset.links);
  const keys = new Map(rows);
  const href = (texts, score) => {
    const named = texts.filter(([place, text]) => keys.has(place) && text !== "All");
    const filters = named.map(([place, text]) => [keys.get(place), text]);
    if (scores[score]) filters.push(scores[score]);
    return address(to, filters);
  };
  if (element.tHead) {
    if (rows.length === 0) return;
    for (const row of element.tBodies[0].rows) {
      const texts = rows.map(([place]) => [place, row.cells[place].textContent]);
      const anchor = make("a", { href: href(texts), title: "Show these examples" }, ...row.cells[0].childNodes);
      row.cells[0].append(anchor);
    }
    return;
  }
  if (!figure.some((place) => keys.has(place))) return;
  for (const mark of element.querySelectorAll("[data-row]")) {
    const { row, across, part = "", score = part.replace(/^\w+?-/, "") } = mark.dataset;
    const anchor = document.createElementNS("http://www.w3.org/2000/svg", "a");
    anchor.setAttribute("href", href([[figure[0], row], ...(across === undefined ? [] : [[figure[1], across]])], score));
    mark.replaceWith(anchor);
    anchor.append(mark);
    anchor.closest("svg").setAttribute("role", "group");
  }
}

// Examples: columns of distinct values and numbers, decoded at the first look.
async function unpack(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = characters.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(stream).text());
  for (const column of data.columns) {
    column.parts = column.parts.map(([values, steps]) => {
      const codes = new Int32Array(data.n);
      for (let row = 0, code = 0; row < data.n; row += 1) codes[row] = code += steps.length ? steps[row] : Number(row > 0);
      return { values, codes };
    });
  }
  return data;
}

const ORDERS = { _12: ", subject 1 first", _21: ", subject 2 first", _neg: ", negated" };
// Names and values of the data sets that filters and facts write out; addresses, files and what models wrote keep them.
const WORDS = new Map(Object.entries({
  paper_category: "Category, names apart", ambig: "ambiguous", disambig: "disambiguated", neg: "negative", nonneg: "non-negative" }));
const title = (name) =>
  WORDS.get(name) ?? (name[0] || "").toUpperCase() + name.slice(1).replace(/_(12|21|neg)/g, (part) => ORDERS[part]).replaceAll("_", " ");
const percent = (value) => (100 * value).toFixed(1) + "\u00a0%";
const isTyping = (event) => /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
const BANDS = ["0-50", "50-80", "80-95", "95-100"];
const MARKS = ["odd", "mislabeled", "note"];
const ROW = 58; // pixels
// Words with a sign and a color: of outcomes, of changes ("became right"), and of the options' roles.
const SIGNS = { right: "✓", wrong: "✗", stereotyped: "▲", "anti-stereotyped": "▽", chosen: "●", preferred: "●", prefers: "●" };
function sign(word) {
  const kind = word.split(" ").find((part) => part in SIGNS);
  return make("span", { class: "sign " + (kind || "") }, (kind ? SIGNS[kind] + " " : "") + word);
}
const explorers = new Map();

function explore(box, data) {
  const { name: id, signature } = box.dataset;
  const columns = new Map(data.columns.map((column) => [column.name, column]));
  const flat = data.columns.flatMap((column) => column.parts);
  const list = make("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Examples" });
  const detail = make("article", { class: "example", "aria-live": "polite" });
  const count = make("output");
  const words = make("input", { type: "search", autocomplete: "off", placeholder: "/" });
  const selects = new Map();
  const store = "qabias " + signature + " " + id;
  let [marks, stored] = [{}, true];
  try { marks = JSON.parse(localStorage.getItem(store)) || {}; } catch { stored = false; }
  let [shown, state] = [new Int32Array(0), new Map()];

  const one = (part, row, kind) => {
    const value = part.values[part.codes[row]];
    if (kind !== "prompt" || value === null) return value;
    // Texts of other columns are marked by a character.
    const whole = (text) => text.replace(/[\ue000-\ue0c8]/g, (mark) => one(flat[mark.charCodeAt(0) - 0xe000], row));
    return Array.isArray(value) ? value.map(whole) : whole(value);
  };
  const value = (column, row) => {
    const parts = column.parts.map((part) => one(part, row, column.kind));
    return !column.list ? parts[0] : parts.every((part) => part === null) ? null : parts;
  };
  const filledOf = (row) => data.columns.map((column) => [column.name, value(column, row)]).filter((pair) => pair[1] !== null);
  const current = () => state.get("example") ?? (shown.length ? nameOf(shown[0]) : undefined);
  const nameOf = (row) => data.key.map((key) => (columns.has(key) ? value(columns.get(key), row) : "")).join("/");
  let cached = null;
  const names = () => (cached ??= Array.from({ length: data.n }, (_, row) => nameOf(row)));
  function text(content, kind) {
    if (content === null || content === undefined) return "—";
    if (Array.isArray(content)) return content.map((part) => text(part, kind)).join(" · ");
    if (typeof content === "object") return Object.entries(content).map(([key, inner]) => key + ": " + text(inner, kind)).join(", ");
    if (typeof content !== "number" || Number.isInteger(content)) return String(content);
    return kind === "share" ? percent(content) : String(Number(content.toPrecision(3)));
  }
  const isVerbatim = (column) => column.kind === "prompt" || ["prompt", "generated", "written"].includes(column.name);
  const isAnswer = (column) => column.name === "preferred" || (column.side || column.name).endsWith("answer");
  const inWords = (name, one) => (data.filters.includes(name) && !isAnswer(columns.get(name)) ? WORDS.get(one) ?? one : one);
  const hasLong = (column) => column.parts[0].values.some((content) => typeof content === "string" && content.length > 40);
  const long = new Set(data.columns.filter((column) => column.kind === "" && !column.list && !column.run && hasLong(column)));

  // The probability of the answer: an example without one is in no band.
  const likely = columns.get("probabilities");
  const offered = ["options", "labels"].map((name) => columns.get(name)).find(Boolean);
  function confidence(row) {
    const place = value(offered, row)?.indexOf(value(columns.get("answer"), row)) ?? -1;
    return place < 0 ? null : likely.parts[place].values[likely.parts[place].codes[row]];
  }

  function tests() {
    const fits = [];
    for (const [name, wanted] of state) {
      const column = columns.get(name);
      if (name === "words") {
        for (const word of wanted.toLowerCase().split(/\s+/).filter(Boolean)) {
          const has = (content) => typeof content !== "number" && content !== null && String(content).toLowerCase().includes(word);
          const hits = flat.map((part) => [part.codes, Uint8Array.from(part.values, has)]);
          fits.push((row) => hits.some(([codes, hit]) => hit[codes[row]]));
        }
      } else if (name === "confidence" && likely?.list && offered?.list && columns.has("answer")) {
        const [low, high] = wanted.split("-").map((end) => Number(end) / 100);
        fits.push((row) => {
          const share = confidence(row);
          return share !== null && share >= low && (share < high || high >= 1);
        });
      } else if (name === "mark") {
        const all = names();
        fits.push((row) => all[row] in marks && (wanted === "any" || marks[all[row]].mark === wanted));
      } else if (column && !column.list) {
        const [part] = column.parts;
        const is = (content) => (Array.isArray(content) ? content.includes(wanted) : String(content) === wanted);
        const hit = Uint8Array.from(part.values, is);
        fits.push((row) => hit[part.codes[row]]);
      } else if (name !== "example") {
        fits.push(() => false);
      }
    }
    return fits;
  }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
    const rows = shown.slice(first, first + Math.ceil(list.clientHeight / ROW) + 10);
    const space = make("div", { class: "space" });
    space.style.height = shown.length * ROW + "px";
    rows.forEach((row, place) => {
      const name = nameOf(row);
      const tags = data.columns.filter((column) => column.kind === "tags" && !column.run).flatMap((column) => value(column, row) ?? []);
      const texts = [...long].filter((column) => !isVerbatim(column) && !isAnswer(column)).map((column) => value(column, row) || "");
      const preferred = columns.has("preferred") && value(columns.get("preferred"), row);
      const selected = String(name === current());
      const item = button("", () => open(name), { class: "item", role: "option", tabindex: "-1", "aria-selected": selected });
      item.append(
        make("span", {}, make("strong", {}, name), " ", ...tags.map(sign), ...(preferred ? [sign("prefers " + preferred)] : []), name in marks ? " ★" : ""),
        make("small", {}, texts.reverse().join(" · ").slice(0, 200)),
      );
      item.style.top = (first + place) * ROW + "px";
      space.append(item);
    });
    list.replaceChildren(space);
  }

  const fact = ([name, content]) => [make("dt", {}, name), make("dd", {}, ...[content].flat())];
  const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.flatMap(fact));

  function grid(headings, lines, isChosen = () => false) {
    const row = (cells, tag, more = {}) => make("tr", more, ...cells.map((cell) => make(tag, { class: "text" }, ...[cell].flat())));
    const body = make("tbody", {}, ...lines.map((line, place) => row(line, "td", { class: isChosen(place) && "chosen" })));
    return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, row(headings, "th")), body));
  }

  function show() {
    const wanted = current();
    const row = state.has("example") ? names().indexOf(wanted) : shown[0] ?? -1;
    if (row < 0) {
      const hint = wanted === undefined ? "No example fits." : "This page has no example " + wanted + ".";
      detail.replaceChildren(make("p", { class: "muted" }, hint));
      return;
    }
    const content = (column) => value(column, row);
    const filled = data.columns.filter((column) => content(column) !== null);
    const lists = filled.filter((column) => column.list && !isVerbatim(column));
    const sizes = [...new Set(lists.map((column) => column.parts.length))];
    // Answers are shown at their options; what differs between runs is shown side by side.
    const isOption = (column) => lists.some((other) => content(other).includes(content(column))) && isAnswer(column);
    const single = filled.filter((column) => !column.list && !column.run && !isVerbatim(column) && !isOption(column));
    const runs = [...new Set(data.columns.map((column) => column.run).filter(Boolean))];
    const sides = [...new Set(filled.filter((column) => column.run && !column.list).map((column) => column.side))];
    function cell(name) {
      const column = columns.get(name);
      const found = column ? content(column) : null;
      return column?.kind === "tags" && found ? found.map(sign) : text(inWords(name, found), column?.kind);
    }
    const options = (size) => {
      const group = lists.filter((column) => column.parts.length === size);
      const answers = filled.filter(isOption);
      const role = ({ name, side, run }) => (run ? "chosen by " + run : name === "answer" ? "chosen" : title(name).replace(" answer", "").toLowerCase());
      const given = (place) => answers.filter((column) => content(column) === one(group[0].parts[place], row));
      return grid([...group.map((column) => title(column.name)), ""], group[0].parts.map((part, place) => [
        ...group.map((column) => text(one(column.parts[place], row), column.kind)), given(place).map(role).map(sign)]),
        (place) => given(place).some((column) => ["answer", "preferred"].includes(column.side || column.name)));
    };
    const link = address(id, [["example", wanted]]);
    const mark = marks[wanted] || { mark: "", note: "" };
    const kinds = ["", ...MARKS].map((name) => make("option", { value: name }, name || "no mark"));
    const kind = make("select", { "aria-label": "Mark", onchange: keep }, ...kinds);
    kind.value = mark.mark;
    const note = make("input", { "aria-label": "Note", placeholder: "Note", onchange: keep });
    note.value = mark.note;
    function keep() {
      if (kind.value || note.value) marks[wanted] = { mark: kind.value || "note", note: note.value };
      else delete marks[wanted];
      try { localStorage.setItem(store, JSON.stringify(marks)); } catch { stored = false; }
      show(); draw(); tell();
    }
    const heading = make("a", { href: link }, wanted);
    const copied = (event) => copy(event.target, location.href.split("#")[0] + link, heading);
    detail.replaceChildren(
      make("h4", {}, heading),
      make("div", { class: "tools" }, button("Previous", () => step(-1)), button("Next", () => step(1)),
        button("Copy link", copied), kind, note),
      ...single.filter((column) => long.has(column)).map((column) => make("p", {}, make("small", {}, title(column.name)), make("br"), content(column))),
      ...(sides.length ? [grid(["", ...runs], sides.map((side) => [title(side), ...runs.map((run) => cell(side + ": " + run))]))] : []),
      ...sizes.map(options),
      facts(single.filter((column) => !long.has(column)).map((column) => [title(column.name), cell(column.name)])),
      ...filled.filter(isVerbatim).flatMap((column) => [content(column)].flat().map((part) => make("div", {},
        make("small", {}, column.name === "prompt" ? "Prompt" : "Answer as written"), make("pre", {}, text(part))))),
    );
  }

  function tell() {
    const marked = Object.keys(marks).length;
    const sizes = shown.length.toLocaleString("en") + " of " + data.n.toLocaleString("en");
    const lost = stored ? "" : ". This browser does not keep marks: export them.";
    count.textContent = sizes + (marked ? ", " + marked + " marked" : "") + lost;
  }

  function apply(next) {
    const [before, after] = [state, next].map((one) => JSON.stringify([...one].filter(([name]) => name !== "example")));
    state = next;
    for (const [name, select] of selects) {
      const wanted = state.get(name) || "";
      const isKnown = Array.from(select.options).some((option) => option.value === wanted);
      if (!isKnown) select.append(make("option", { value: wanted }, wanted));
      select.value = wanted;
    }
    if (document.activeElement !== words) words.value = state.get("words") || "";
    if (before !== after || shown.length === 0) {
      const fits = tests();
      shown = Int32Array.from({ length: data.n }, (_, row) => row).filter((row) => fits.every((fit) => fit(row)));
      list.scrollTop = 0;
    }
    tell(); show(); draw();
    const place = state.has("example") ? shown.findIndex((row) => nameOf(row) === state.get("example")) : -1;
    const top = place * ROW;
    const isSeen = top >= list.scrollTop && top + ROW <= list.scrollTop + list.clientHeight;
    if (place >= 0 && !isSeen) { list.scrollTop = top - ROW; draw(); }
  }

  function go(changes) {
    const next = new Map(state);
    for (const [name, wanted] of Object.entries(changes)) wanted ? next.set(name, wanted) : next.delete(name);
    history.replaceState(null, "", address(id, [...next]));
    apply(next);
  }

  function open(name) {
    go({ example: name });
    list.focus({ preventScroll: true });
    if (name !== undefined && detail.getBoundingClientRect().top > innerHeight * 0.8) detail.scrollIntoView({ block: "start" });
  }

  function step(by) {
    const place = shown.findIndex((row) => nameOf(row) === current());
    const row = shown[Math.max(0, Math.min(shown.length - 1, place < 0 ? 0 : place + by))];
    if (row !== undefined) go({ example: nameOf(row) });
    list.focus({ preventScroll: true });
  }

  const whole = (row) => ({ example: nameOf(row), ...marks[nameOf(row)], ...Object.fromEntries(filledOf(row)), signature });

  function files(what, rows) {
    function asText(content = "") {
      if (typeof content === "number") return String(content);
      return harmless(typeof content === "string" ? content : JSON.stringify(content));
    }
    const lines = () => rows().map(whole);
    return [
      button(what + " as CSV", () => {
        const all = lines();
        const keys = [...new Set(all.flatMap(Object.keys))];
        save(id + ".csv", asCsv([keys.map(harmless), ...all.map((line) => keys.map((key) => asText(line[key])))]));
      }),
      button(what + " as JSON lines", () => save(id + ".jsonl", lines().map((line) => JSON.stringify(line) + "\n").join(""))),
    ];
  }

  const choose = (name, values, heading) => {
    const options = [make("option", { value: "" }, "all"), ...values.map((one) => make("option", { value: one }, inWords(name, one)))];
    const onchange = () => go({ [name]: select.value, example: undefined });
    const select = make("select", { autocomplete: "off", onchange }, ...options);
    selects.set(name, select);
    return make("label", {}, heading, " ", select);
  };
  const valuesOf = (name) => [...new Set(columns.get(name).parts[0].values.flat())].filter((one) => one !== null).sort();
  const choices = data.filters.map((name) => [name, valuesOf(name)]);
  words.addEventListener("input", () => go({ words: words.value, example: undefined }));
  box.replaceChildren(
    make("div", { class: "tools" },
      make("label", {}, "Words ", words), count),
    make("details", { class: "filters", open: innerWidth > 640 && "" }, make("summary", {}, "Filters"), make("div", { class: "tools" },
      ...choices.filter(([, values]) => values.length > 1).map(([name, values]) => choose(name, values, title(name))),
      ...(likely?.list && offered?.list ? [choose("confidence", BANDS, "Confidence, %")] : []),
      choose("mark", ["any", ...MARKS], "Mark"),
      button("Clear filters", () => { words.value = ""; history.replaceState(null, "", "#" + id); apply(new Map()); }))),
    make("div", { class: "panes" }, list, detail),
    make("div", { class: "tools" }, ...files("Shown examples", () => Array.from(shown)),
      ...files("Marks", () => names().flatMap((name, row) => (name in marks ? [row] : [])))),
  );
  list.addEventListener("scroll", draw);
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") open(undefined);
    if (!by || isTyping(event)) return;
    event.preventDefault();
    step(by);
  });
  return { apply, words, detail };
}

// The list of a part of the page, made when it is first opened.
function explorer(id) {
  const box = document.querySelector('.examples[data-name="' + CSS.escape(id) + '"]');
  if (!box) return null;
  if (!explorers.has(id)) {
    const packed = box.querySelector("template").content.textContent.trim();
    explorers.set(id, unpack(packed).then((data) => explore(box, data)));
  }
  return explorers.get(id);
}

// A link to what is folded opens it, also where the browser does not do so on its own.
function reveal(id) {
  let opened = false;
  for (let fold = document.getElementById(id); fold; fold = fold.parentElement) {
    if (fold.tagName === "DETAILS" && !fold.open) opened = fold.open = true;
  }
  return opened;
}

async function route() {
  const [id, filters] = parse(location.hash);
  const opened = reveal(id);
  const list = await explorer(id);
  if (list) list.apply(filters);
  const target = list && filters.has("example") ? list.detail : document.getElementById(id);
  if (opened || filters.size) target?.scrollIntoView();
}

for (const heading of document.querySelectorAll("th > button")) {
  heading.addEventListener("click", () => sortRows(heading.parentNode));
}
for (const pressed of document.querySelectorAll("button[data-table]")) {
  const table = document.getElementById(pressed.dataset.table);
  pressed.addEventListener("click", () => copy(pressed, asTabs(table), table));
}
for (const pressed of document.querySelectorAll("button[data-csv]")) {
  const table = document.getElementById(pressed.dataset.csv);
  pressed.addEventListener("click", () => save(table.dataset.title + ".csv", asCsv(cellsOf(table))));
}
for (const element of document.querySelectorAll("[data-links]")) link(element);
for (const word of document.querySelectorAll(".one .sign")) word.replaceWith(sign(word.textContent));
for (const anchor of document.querySelectorAll('a[href^="#"]')) {
  anchor.addEventListener("click", () => reveal(parse(anchor.hash || anchor.getAttribute("href"))[0]));
}
// A table too wide for the place next to its figure goes below it.
function stack(part = document) {
  const pairs = Array.from(part.querySelectorAll(".pair"), (pair) => [pair, pair.querySelector(".scroll")]);
  for (const [pair] of pairs) pair.classList.remove("stacked");
  const wide = pairs.filter(([, box]) => box.scrollWidth > box.clientWidth + 1);
  for (const [pair] of wide) pair.classList.add("stacked");
}
document.addEventListener("toggle", (event) => stack(event.target), true);
addEventListener("resize", () => stack());
stack();
// A list is made when it comes into view.
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    if (parse(location.hash)[0] !== target.dataset.name) explorer(target.dataset.name).then((list) => list.apply(new Map()));
  }
}, { rootMargin: "200px" });
for (const box of document.querySelectorAll(".examples")) seen.observe(box);
addEventListener("hashchange", route);
addEventListener("keydown", async (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || isTyping(event)) return;
  const box = document.querySelector("details[open] > .examples") || document.querySelector(".examples");
  if (!box) return;
  event.preventDefault();
  reveal(box.dataset.name);
  (await explorer(box.dataset.name)).words.focus();
});
if (location.hash) route();

// On paper nothing is folded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("details:not([open]):not(:has(> .examples))"));
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of folded) fold.open = false;
});
