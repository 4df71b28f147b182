"use strict";
// Sorting, copying, searching and unfolding. Texts of the page are only read and written as texts, never as HTML.
document.documentElement.classList.add("scripted");

const number = (cell) => parseFloat(cell.dataset.v);

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

function asTabs(table) {
  if (!table.tHead) return table.textContent;
  const headings = Array.from(table.tHead.rows[0].cells);
  const clean = (text) => text.replace(/\s+/g, " ").trim();
  const lines = [headings.flatMap((heading) => {
    const name = heading.dataset.name;
    return "ends" in heading.dataset ? [name, name + "_low", name + "_high"] : [name];
  })];
  for (const row of table.tBodies[0].rows) {
    lines.push(Array.from(row.cells).flatMap((cell, place) => {
      const { kind, ends } = headings[place].dataset;
      if (kind === "text") return [clean(cell.textContent)];
      const { v = "", l = "", h = "" } = cell.dataset;
      return ends === undefined ? [v] : [v, l, h];
    }));
  }
  return lines.map((line) => line.join("\t") + "\n").join("");
}

async function copy(button) {
  const table = document.getElementById(button.dataset.table);
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(asTabs(table));
    button.textContent = "Copied";
  } catch {
    // The browser does not allow it: select the table, so that its own copying does.
    const fold = table.closest("details");
    if (fold) fold.open = true;
    getSelection().selectAllChildren(table);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { button.textContent = said; }, 3000);
}

function search(box) {
  const words = box.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const choices = Array.from(box.querySelectorAll("select"), (select) => select.value);
  const rows = Array.from(box.querySelectorAll("tbody tr"));
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = words.every((word) => text.includes(word))
      && choices.every((choice, place) => choice === "" || row.dataset["f" + place] === choice);
    row.hidden = !fits;
    shown += fits;
  }
  box.querySelector("output").textContent = shown + " of " + rows.length;
}

for (const button of document.querySelectorAll("th > button")) {
  button.addEventListener("click", () => sortRows(button.parentNode));
}
for (const button of document.querySelectorAll("button[data-table]")) {
  button.addEventListener("click", () => copy(button));
}
for (const box of document.querySelectorAll(".examples")) {
  box.addEventListener("input", () => search(box));
  search(box);
}

// A link to what is folded opens it, also where the browser does not do so by itself.
function reveal(hash) {
  const target = hash ? document.getElementById(hash.slice(1)) : null;
  const fold = target ? target.closest("details") : null;
  if (!fold || fold.open) return false;
  fold.open = true;
  return true;
}

for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener("click", () => reveal(link.hash));
}
if (reveal(location.hash)) document.getElementById(location.hash.slice(1)).scrollIntoView();

// On paper nothing is folded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("details:not([open])"));
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of folded) fold.open = false;
});
