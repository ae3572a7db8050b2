"use strict";
// Everything here is an addition: without it the tables keep their order, evidence is opened by
// hand and help is what the browser shows of `title`.

// Sorting. A click on a heading goes from ascending to descending to the order of the report.
const NEXT_ORDER = { none: "ascending", ascending: "descending", descending: "none" };
const collator = new Intl.Collator(document.documentElement.lang, { numeric: true });

function sortKey(cell, numeric) {
  const { missing, number, text } = cell.dataset;
  if (missing !== undefined) return null;
  if (number !== undefined) return Number(number);
  if (text !== undefined) return text;
  return numeric ? Number(cell.textContent) : cell.textContent;
}

function compareKeys(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other || 0;
  if (typeof one === "string" && typeof other === "string") return collator.compare(one, other);
  return typeof one === "number" ? -1 : 1;
}

function sortRows(rows, column, numeric, order) {
  if (order === "none") return rows;
  const sign = order === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => [sortKey(row.cells[column], numeric), row]);
  const present = keyed.filter(([key]) => key !== null);
  const missing = keyed.filter(([key]) => key === null); // last, whichever the direction
  // Equal infinities: their difference is NaN, which `|| 0` above makes a tie.
  present.sort((one, other) => sign * compareKeys(one[0], other[0]));
  return [...present, ...missing].map(([, row]) => row);
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 2) return;
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", `Sort by ${heading.abbr}`);
    const content = document.createElement("div");
    content.className = "heading";
    content.append(...heading.childNodes, button);
    heading.append(content);
    heading.classList.add("sortable");
    heading.addEventListener("click", () => {
      const order = NEXT_ORDER[heading.getAttribute("aria-sort") ?? "none"];
      for (const other of headings) other.removeAttribute("aria-sort");
      if (order !== "none") heading.setAttribute("aria-sort", order);
      body.append(...sortRows(rows, column, "numeric" in heading.dataset, order));
    });
  });
}

// A table cut off between two columns looks complete: its caption says that there is more.
const overflowWatcher = new ResizeObserver((entries) => {
  for (const { target } of entries)
    target.parentElement.classList.toggle("overflows", target.scrollWidth > target.clientWidth);
});

// Evidence. The link is an ordinary one, so the browser's back leads to where it was followed.
function openTarget() {
  let id;
  try {
    id = decodeURIComponent(location.hash.slice(1));
  } catch {
    return; // not a name of ours
  }
  const target = id && document.getElementById(id);
  if (!target || target.tagName !== "DETAILS") return;
  target.open = true;
  target.scrollIntoView();
  target.querySelector("summary").focus({ preventScroll: true });
}

// Help. One box for all, for mouse, keyboard and touch; Escape closes it.
function makeTooltips() {
  const box = document.createElement("div");
  box.className = "tooltip";
  box.role = "tooltip";
  box.hidden = true;
  document.body.append(box);
  let leaving = 0;

  function show(element) {
    clearTimeout(leaving);
    box.textContent = element.dataset.help;
    box.hidden = false;
    const place = element.getBoundingClientRect();
    const below = place.bottom + 6;
    const above = place.top - box.offsetHeight - 6;
    const fits = below + box.offsetHeight <= window.innerHeight || above < 0;
    const right = window.innerWidth - box.offsetWidth - 8;
    box.style.top = `${fits ? below : above}px`;
    box.style.left = `${Math.max(8, Math.min(place.left, right))}px`;
  }

  function hide() {
    clearTimeout(leaving);
    box.hidden = true;
  }

  function leave() {
    leaving = setTimeout(hide, 200); // time to move onto the box
  }

  for (const element of document.querySelectorAll("[title]")) {
    element.dataset.help = element.title;
    element.setAttribute("aria-description", element.title);
    element.removeAttribute("title"); // or the browser would show it as well
    element.addEventListener("mouseenter", () => show(element));
    element.addEventListener("focus", () => show(element));
    element.addEventListener("mouseleave", leave);
    element.addEventListener("blur", hide);
  }
  box.addEventListener("mouseenter", () => clearTimeout(leaving));
  box.addEventListener("mouseleave", leave);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", hide, { capture: true, passive: true });
}

for (const table of document.querySelectorAll("table")) makeSortable(table);
for (const box of document.querySelectorAll("figure > .scroll")) overflowWatcher.observe(box);
makeTooltips();
window.addEventListener("hashchange", openTarget);
openTarget();
