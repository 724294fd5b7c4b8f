/* Small helpers of the book; everything is readable without them.
   A filter for the scoreboard with its state in the address, "cite this result" beside every row, figures that enlarge. */
(function () {
  "use strict";

  function filterBoard() {
    const form = document.querySelector("form.board-filter");
    if (!form) return;
    const rows = [...document.querySelectorAll("li.card-row")];
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase() + " " + row.id]));
    const count = form.querySelector(".board-count");
    const fields = ["paper", "verdict", "kind", "rank", "figure", "words"];

    /* As everywhere in the book: both halves of a slip are one slip, checks of our own code are counted apart. */
    function counted(some) {
      const number = (kind) => some.filter((row) => row.dataset.kind === kind).length;
      const slips = new Set(some.filter((row) => row.dataset.slip).map((row) => row.dataset.slip)).size;
      const words = [[number("statement") + number("finding"), "claim"], [slips, "slip"], [number("check"), "check"]];
      return words.filter(([n]) => n).map(([n, word]) => `${n} ${word}${n === 1 ? "" : "s"}`).join(", ") || "nothing";
    }

    function apply(remember) {
      const wanted = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
      const words = wanted.words.toLowerCase().split(/\s+/).filter(Boolean);
      const shown = [];
      for (const row of rows) {
        const figures = row.dataset.figure.toLowerCase().split(/[\s,]+/);
        const keep =
          (!wanted.paper || row.closest("details.board").dataset.paper === wanted.paper) &&
          ["verdict", "kind", "rank"].every((name) => !wanted[name] || row.dataset[name] === wanted[name]) &&
          (!wanted.figure || figures.some((one) => one.startsWith(wanted.figure.toLowerCase()))) &&
          words.every((word) => texts.get(row).includes(word));
        row.hidden = !keep;
        if (keep) shown.push(row);
      }
      const chosen = fields.some((name) => wanted[name]);
      for (const part of document.querySelectorAll("details.board")) {
        part.hidden = !part.querySelector("li.card-row:not([hidden])");
        if (remember || chosen) part.open = chosen;
      }
      count.textContent = counted(shown);
      if (!remember) return;
      const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
      const address = query.toString() ? "?" + query : location.pathname.split("/").pop();
      try { history.replaceState(null, "", address + location.hash); } catch (error) { /* a file that may not have a state */ }
    }

    const given = new URLSearchParams(location.search);
    for (const name of fields) if (given.get(name)) form.elements[name].value = given.get(name);
    form.hidden = false;
    form.addEventListener("input", () => apply(true));
    form.addEventListener("reset", () => setTimeout(() => apply(true)));
    form.addEventListener("submit", (event) => event.preventDefault());
    apply(false);
  }

  function dialog(content, label) {
    const box = document.createElement("dialog");
    box.className = "racing-dialog";
    box.setAttribute("aria-label", label);
    const close = document.createElement("button");
    close.textContent = "close";
    close.className = "close";
    close.addEventListener("click", () => box.close());
    box.append(close, content);
    box.addEventListener("close", () => box.remove());
    box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    document.body.append(box);
    box.showModal();
    return box;
  }

  function citeRows() {
    for (const row of document.querySelectorAll("table.check[id]")) {
      const button = document.createElement("button");
      button.className = "cite";
      button.type = "button";
      button.textContent = "cite";
      button.title = "cite this result";
      button.addEventListener("click", () => {
        const address = location.href.split("#")[0] + "#" + row.id;
        const title = (document.querySelector("h1") || document).textContent.replace("#", "").trim();
        const text = document.createElement("pre");
        text.textContent =
          `@misc{racing-${row.id},\n  title = {${row.id}, in: ${title}},\n  author = {{The Racing to Simplicity authors}},\n` +
          `  howpublished = {Racing to Simplicity: five papers reproduced and executable},\n  note = {${address}},\n` +
          `  year = {${document.documentElement.dataset.year || new Date().getFullYear()}}\n}`;
        dialog(text, "cite this result");
        const range = document.createRange();
        range.selectNodeContents(text);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      });
      const anchor = row.querySelector("a.anchor");
      if (anchor) anchor.after(" ", button);
    }
  }

  function enlargeFigures() {
    for (const picture of document.querySelectorAll("article .cell_output img, article img.hero, article figure img")) {
      picture.classList.add("enlarges");
      picture.addEventListener("click", (event) => {
        const link = picture.closest("a");
        if (link && link.hash) return; // the hero leads to its figure
        event.preventDefault();
        const large = picture.cloneNode();
        large.removeAttribute("style");
        large.className = "large";
        dialog(large, picture.alt || "figure");
      });
    }
  }

  /* A row that the address names may lie in a closed box: open what holds it, and show it once mathematics is typeset. */
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let box = target.parentElement; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    target.scrollIntoView();
  }

  function start() {
    filterBoard();
    citeRows();
    enlargeFigures();
    reveal();
    addEventListener("hashchange", reveal);
    addEventListener("load", () => {
      const typeset = window.MathJax && MathJax.startup && MathJax.startup.promise;
      if (typeset) typeset.then(reveal); else reveal();
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
