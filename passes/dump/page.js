(() => {
  const HITS = 60;
  const tools = document.querySelector(".tools"), hits = document.getElementById("hits");
  const search = tools.querySelector("input[type=search]");
  const [onlyChanged, sides, metadata] = tools.querySelectorAll("input[type=checkbox]");
  const count = tools.querySelector(".count");
  const rows = [...document.querySelectorAll("[data-words]")];
  const wanted = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);

  function show() {
    const words = wanted();
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

  // The lines of all texts that hold all words, the first of them as links.
  function find() {
    const words = wanted().filter((word) => word.length > 1);
    hits.replaceChildren();
    hits.hidden = !words.length;
    if (!words.length) return;
    let found = 0;
    for (const pre of document.querySelectorAll("pre[data-stage]")) {
      if (!words.every((word) => pre.textContent.toLowerCase().includes(word))) continue;
      pre.textContent.split("\n").forEach((line, number) => {
        const text = line.toLowerCase();
        if (!words.every((word) => text.includes(word)) || ++found > HITS) return;
        const item = document.createElement("li"), link = document.createElement("a");
        link.href = "#";
        link.textContent = `${pre.dataset.stage}, line ${number + 1}`;
        link.addEventListener("click", (event) => {
          event.preventDefault();
          dumpLinks.goTo(pre, number).click();
        });
        item.append(link, ` ${line.trim().slice(0, 160)}`);
        hits.append(item);
      });
    }
    const item = document.createElement("li");
    item.textContent = found > HITS ? `${found - HITS} more lines` : found ? "" : "in no text";
    if (item.textContent) hits.append(item);
  }

  // A difference as two columns.
  function split(pre) {
    if (pre.nextElementSibling || !pre.firstChild) return;
    const table = document.createElement("table");
    table.className = "sides";
    let gone = [], come = [];
    const cell = (row, node) => {
      const made = row.insertCell();
      if (!node) return;
      made.append(node.cloneNode(true));
      if (node.className) made.className = node.className;
    };
    const flush = () => {
      for (let i = 0; i < Math.max(gone.length, come.length); i++) {
        const row = table.insertRow();
        cell(row, gone[i]);
        cell(row, come[i]);
      }
      gone = [];
      come = [];
    };
    for (const node of pre.childNodes) {
      const kind = node.className, sign = node.textContent[0];
      if (kind === "del" || (kind === "moved" && sign === "-")) gone.push(node);
      else if (kind === "add" || kind === "moved") come.push(node);
      else if (node.textContent.trim()) {
        flush();
        for (const line of kind ? [node] : node.textContent.split("\n").filter(Boolean).map((text) => document.createTextNode(text))) {
          const row = table.insertRow();
          cell(row, line);
          cell(row, line);
        }
      }
    }
    flush();
    pre.after(table);
  }

  function splitOpen() {
    document.body.classList.toggle("side-by-side", sides.checked);
    if (sides.checked) document.querySelectorAll("tr.diff details[open] > pre").forEach(split);
  }

  function openTarget() {
    if (dumpLinks.follow(location.hash)) return;
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    if (target.classList.contains("nomatch")) {
      onlyChanged.checked = false;
      search.value = "";
      show();
    }
    const diff = target.nextElementSibling;
    if (diff && diff.matches("tr.diff")) diff.querySelector("details").open = true;
    target.scrollIntoView();
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    show();
    clearTimeout(waiting);
    waiting = setTimeout(find, 150);
  });
  onlyChanged.addEventListener("change", show);
  sides.addEventListener("change", splitOpen);
  metadata.addEventListener("change", () => document.body.classList.toggle("metadata", metadata.checked));
  document.addEventListener("toggle", splitOpen, true);
  document.getElementById("unfold").addEventListener("click", (event) => {
    event.preventDefault();
    const diffs = [...document.querySelectorAll("tr.diff details")];
    const open = diffs.some((diff) => !diff.open);
    for (const diff of diffs) diff.open = open;
  });
  addEventListener("hashchange", openTarget);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key !== "Escape") return;
    if (document.activeElement !== search) return void dumpLinks.clear();
    search.value = "";
    show();
    find();
    search.blur();
  });
  tools.hidden = false;
  show();
  openTarget();
})();
