"use strict";
(function () {
  var root = document.documentElement;

  // Light and dark: the system decides until the button is used; the choice is kept where the browser allows it.
  var button = document.getElementById("theme");
  var system = matchMedia("(prefers-color-scheme: dark)");
  function stored(value) {
    try {
      if (value === undefined) return localStorage.getItem("anvil-theme");
      localStorage.setItem("anvil-theme", value);
    } catch (error) {
      return null;
    }
    return value;
  }
  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  }
  function label() {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
  }
  var choice = stored();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    stored(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();

  // Tooltips of the charts. All that they say stands in a table as well.
  var tip = document.getElementById("tip");
  function place(event) {
    var margin = 12, width = tip.offsetWidth, height = tip.offsetHeight;
    var x = Math.min(event.clientX + margin, root.clientWidth - width - 4);
    var y = event.clientY + margin + height > innerHeight ? event.clientY - margin - height : event.clientY + margin;
    tip.style.left = Math.max(4, x) + scrollX + "px";
    tip.style.top = Math.max(0, y) + scrollY + "px";
  }
  document.addEventListener("pointerover", function (event) {
    var words = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words.getAttribute("data-tip");
    place(event);
  });
  document.addEventListener("pointermove", function (event) {
    if (!tip.hidden) place(event);
  });

  // Sorting by a click on a column's head: first ascending, then descending, then as it was.
  function key(row, column) {
    var cell = row.cells[column];
    if (cell.dataset.v !== undefined) return parseFloat(cell.dataset.v);
    var words = cell.textContent.trim();
    var number = parseFloat(words.replace(/,/g, ""));
    return words !== "" && /^-?[\d.,]+$/.test(words) ? number : words;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var body = table.tBodies[0], original = Array.from(body.rows);
    if (original.length < 2) return;
    table.querySelectorAll("thead th").forEach(function (head, column, heads) {
      var control = document.createElement("button");
      control.type = "button";
      control.textContent = head.textContent;
      head.replaceChildren(control);
      control.addEventListener("click", function () {
        var next = { null: "ascending", ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        var rows = original.slice();
        if (next) {
          head.setAttribute("aria-sort", next);
          rows.sort(function (a, b) { return compare(key(a, column), key(b, column)) * (next === "ascending" ? 1 : -1); });
        }
        body.append.apply(body, rows);
      });
    });
  });

  // The contents list marks the section that is being read.
  var links = Array.from(document.querySelectorAll("nav a"));
  var sections = links.map(function (link) { return document.getElementById(link.hash.slice(1)); });
  var waiting = false;
  function mark() {
    waiting = false;
    var current = -1;
    sections.forEach(function (section, i) {
      if (section.getBoundingClientRect().top < innerHeight * 0.3) current = i;
    });
    links.forEach(function (link, i) {
      if (i === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }
  addEventListener("scroll", function () {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(mark);
  }, { passive: true });
  mark();

  // On paper everything is open.
  var opened = [];
  addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach(function (each) { each.open = true; });
  });
  addEventListener("afterprint", function () {
    opened.forEach(function (each) { each.open = false; });
  });
})();
