"use strict";
(() => {
  const tools = document.querySelector(".tools");
  const search = tools.querySelector("input[type=search]");
  const onlyChanged = tools.querySelector("input[type=checkbox]");
  const count = tools.querySelector(".count");
  const rows = [...document.querySelectorAll("[data-words]")];

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.words.toLowerCase();
      const hit = words.every((word) => text.includes(word)) && !(onlyChanged.checked && row.dataset.changed === "no");
      row.classList.toggle("nomatch", !hit);
      const diff = row.nextElementSibling;
      if (diff && diff.classList.contains("diff")) diff.classList.toggle("nomatch", !hit);
      shown += hit;
    }
    count.textContent = words.length || onlyChanged.checked ? `${shown} of ${rows.length} rows` : "";
  }

  function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  }

  function describe(event) {
    const picture = event.target.closest(".picture");
    if (!picture) return;
    const text = picture.parentElement.querySelector(`pre[data-file="${CSS.escape(picture.dataset.of)}"]`);
    const name = `%${event.detail.name}`;
    const has = (line) => line.split(/[\s,(){}]+/).includes(name);
    const found = (text ? text.textContent : "").split("\n").filter(has).map((line) => line.trim());
    picture.querySelector(".chosen").textContent = found.join("\n") || event.detail.name;
  }

  document.addEventListener("hlo-select", describe);
  search.addEventListener("input", show);
  onlyChanged.addEventListener("change", show);
  document.getElementById("unfold").addEventListener("click", () => {
    const diffs = [...document.querySelectorAll("tr.diff details")];
    const open = diffs.some((diff) => !diff.open);
    for (const diff of diffs) diff.open = open;
  });
  addEventListener("hashchange", openTarget);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && document.activeElement === search) { search.value = ""; show(); search.blur(); }
  });
  tools.hidden = false;
  openTarget();
  show();
})();
