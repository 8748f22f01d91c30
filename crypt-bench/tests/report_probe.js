// Asks the report what it shows and uses its controls; the answers land in the DOM as JSON.
"use strict";
{
  const all = (selector) => [...document.querySelectorAll(selector)];
  const table = document.getElementById("cells");
  const headings = [...table.tHead.rows[0].cells];
  const names = headings.map((heading) => heading.textContent);
  const rows = () => [...table.tBodies[0].rows];
  const value = (cell) => {
    if (!("v" in cell.dataset)) return cell.textContent;
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };
  const column = (name) => rows().map((row) => value(row.cells[names.indexOf(name)]));
  const seen = { headline: document.querySelector("h1").textContent };
  seen.rows = rows().map((row) =>
    Object.fromEntries(names.map((name, index) => [name, value(row.cells[index])])));

  // Every number in a map is in the text table beside it.
  seen.numbers_in_maps_but_not_in_tables = all("[data-metric]").flatMap((part) => {
    const cells = new Set([...part.querySelectorAll("td")].map((cell) => cell.textContent));
    const texts = [...part.querySelectorAll("svg text[text-anchor=middle]")]
      .map((text) => text.textContent.trim()).filter((text) => /\d.*(B\/s|s|×)$/.test(text));
    return texts.filter((text) => !cells.has(text));
  });

  const isSorted = (numbers, sign) => {
    const known = numbers.filter((number) => number !== null);
    const last = numbers.slice(known.length).every((number) => number === null);
    return last && known.every((number, i) => i === 0 || sign * (number - known[i - 1]) >= 0);
  };
  const throughput = headings[names.indexOf("Throughput")].querySelector("button");
  throughput.click();
  seen.sorted_up = isSorted(column("Throughput"), 1);
  throughput.click();
  seen.sorted_down = isSorted(column("Throughput"), -1);

  const filter = document.getElementById("filter");
  filter.value = "null inline";
  filter.dispatchEvent(new Event("input"));
  seen.filter_shows = rows().filter((row) => !row.hidden).length;
  seen.filter_expects = seen.rows.filter((r) => r.Device === "null" && r.Policy === "inline").length;

  const controls = document.getElementById("controls");
  controls.elements.metric.value = "lat_ns_p99";
  controls.elements.device.value = "null";
  controls.elements.device.dispatchEvent(new Event("change", { bubbles: true }));
  const visible = (element) => element.getClientRects().length > 0;
  const distinct = (values) => [...new Set(values)];
  seen.visible_metrics = distinct(all("[data-metric]").filter(visible).map((e) => e.dataset.metric));
  seen.visible_devices = distinct(all(".facet").filter(visible).map((e) => e.dataset.device));

  // Contrast of all visible text outside pictures against the background behind it.
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = (color) => color.slice(0, 3)
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = channels(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (element) => {
    const pair = [channels(getComputedStyle(element).color), ground(element)].map(luminance);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const theme = document.getElementById("theme");
  seen.themes = [];
  seen.least_contrast = Infinity;
  for (const wanted of ["dark", "light"]) {
    if (getComputedStyle(document.documentElement).colorScheme !== wanted) theme.click();
    seen.themes.push(getComputedStyle(document.documentElement).colorScheme);
    for (const element of all("h1,h2,h3,p,a,td,th,button,label,legend,dt,dd,summary,span,code")) {
      if (visible(element)) seen.least_contrast = Math.min(seen.least_contrast, contrast(element));
    }
  }
  // What sticks out to the right, but for what scrolls within the page.
  const scrolls = ".scroll, .all, pre, details:not([open]) *";
  seen.width_px = innerWidth;
  seen.wider_than_the_page = all("body *")
    .filter((e) => visible(e) && !e.closest(scrolls))
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
    seen.wider_than_the_page.push("the page scrolls sideways");
  }

  const answer = document.createElement("script");
  answer.type = "application/json";
  answer.id = "probe";
  answer.textContent = JSON.stringify(seen).replace(/</g, "\\u003c");
  document.body.append(answer);
}
