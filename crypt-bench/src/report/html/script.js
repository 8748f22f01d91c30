"use strict";
(() => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);

  // Theme: follows the system until the reader chooses.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const theme = $("theme");
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  try {
    const saved = localStorage.getItem("crypt-bench-theme");
    if (saved === "dark" || saved === "light") root.dataset.theme = saved;
  } catch { /* storage may be off; the choice is then not remembered */ }
  theme.hidden = false;
  nameTheme();
  dark.addEventListener("change", nameTheme);
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("crypt-bench-theme", root.dataset.theme); } catch { /* as above */ }
    nameTheme();
  });

  // Maps: show what the controls pick; without this script every map is shown.
  const controls = $("controls");
  if (controls) {
    const facets = [...document.querySelectorAll(".facet")];
    const value = (name) => {
      const field = controls.elements[name];
      return field ? field.value : "";
    };
    const fits = (facet, name) => value(name) === "" || facet.dataset[name] === value(name);
    // A combination that was not measured gives way to one that was.
    const narrow = (changed) => {
      for (const name of ["rw", "extra"]) {
        const field = controls.elements[name];
        if (!field || field.type !== "select-one" || name === changed) continue;
        const others = ["device", "rw"].slice(0, name === "rw" ? 1 : 2);
        const possible = new Set(
          facets.filter((f) => others.every((n) => fits(f, n))).map((f) => f.dataset[name]));
        for (const option of field.options) {
          option.hidden = option.disabled = option.value !== "" && !possible.has(option.value);
        }
        if (field.selectedOptions.length === 0 || field.selectedOptions[0].disabled) {
          const open = [...field.options].find((o) => !o.disabled && o.value !== "");
          field.value = open ? open.value : "";
        }
      }
    };
    const show = (event) => {
      narrow(event ? event.target.name : "");
      for (const facet of facets) {
        const metric = value("metric");
        facet.hidden = !["device", "rw", "extra"].every((name) => fits(facet, name));
        for (const part of facet.querySelectorAll("[data-metric]")) {
          part.hidden = metric !== "" && part.dataset.metric !== metric;
        }
      }
    };
    controls.hidden = false;
    controls.addEventListener("change", show);
    controls.addEventListener("submit", (event) => event.preventDefault());
    show();
  }

  // Table: sorts by the column whose heading is pressed; cells without a number stay last.
  const table = $("cells");
  if (table) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];
    const key = (row, column) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? (cell.dataset.v === "" ? null : Number(cell.dataset.v)) : cell.textContent;
    };
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), undefined, { numeric: true });
    headings.forEach((heading, column) => {
      const button = heading.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return down ? compare(b, a) : compare(a, b);
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
    const filter = $("filter");
    const found = $("found");
    const apply = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) count += 1;
      }
      found.textContent = `${count} of ${body.rows.length} cells`;
    };
    filter.closest(".filter").hidden = false;
    filter.addEventListener("input", apply);
    apply();
  }
})();
