// Clicking a heading sorts its table by that column: numbers numerically, rows without a value last, ties in their old order.
"use strict";
const collator = new Intl.Collator("en", { numeric: true });

function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  return cell.textContent.trim() || null;
}

function compare(first, second) {
  if (typeof first === "number" && typeof second === "number") return first - second;
  return collator.compare(String(first), String(second));
}

function sortRows(heading) {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentElement.cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = heading.closest("table").tBodies[0];
  const rows = Array.from(body.rows, (row) => ({ row, key: sortKey(row, heading.cellIndex) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return descending ? compare(b.key, a.key) : compare(a.key, b.key);
  });
  body.append(...rows.map((one) => one.row));
}

for (const heading of document.querySelectorAll("table.sortable thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sortRows(heading));
  heading.append(button);
}
