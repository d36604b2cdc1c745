// The page around a picture: details, search, size, dragging, links.
(() => {
  const view = document.getElementById("view"), svg = view.querySelector("svg");
  const details = document.getElementById("details"), search = document.getElementById("search");
  const element = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text }, properties);
  const users = {};
  for (const [computation, instructions] of Object.entries(DETAILS)) {
    users[computation] = {};
    for (const [name, [, operands]] of Object.entries(instructions))
      for (const operand of new Set(operands)) (users[computation][operand] ??= []).push(name);
  }

  function link(computation, name) {
    return element("a", name, { href: `#${encodeURIComponent(computation)}/${encodeURIComponent(name)}` });
  }

  function describe(computation, name) {
    const known = DETAILS[computation]?.[name];
    details.replaceChildren(element("h2", name), element("span", `in ${computation}`, { className: "faint" }));
    if (!known) return;
    details.append(element("pre", known[0]));
    const lists = { reads: [...new Set(known[1])], "read by": users[computation][name] ?? [] };
    for (const [title, names] of Object.entries(lists))
      if (names.length) details.append(element("h3", `${title} (${names.length})`), ...names.slice(0, 200).map((one) => link(computation, one)));
  }

  function follow() {
    const [computation, name] = location.hash.slice(1).split("/").map(decodeURIComponent);
    if (!name) return;
    // A scalar constant is no node: show its words, and mark who reads it.
    if (!hloGraph.reveal(name, computation, view) && users[computation]?.[name]) hloGraph.reveal(users[computation][name][0], computation, view);
    describe(computation, name);
  }

  svg.addEventListener("hlo-select", ({ detail }) => {
    describe(detail.computation, detail.name);
    history.replaceState(null, "", `#${encodeURIComponent(detail.computation)}/${encodeURIComponent(detail.name)}`);
  });
  addEventListener("hashchange", follow);

  let found = [], at = -1;
  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    svg.querySelectorAll(".found").forEach((one) => one.classList.remove("found"));
    found = [];
    at = -1;
    if (words.length)
      for (const node of svg.querySelectorAll(".n[data-name]")) {
        const text = (DETAILS[node.dataset.computation]?.[node.dataset.name]?.[0] ?? "").toLowerCase();
        if (text && words.every((word) => text.includes(word))) found.push(node);
      }
    for (const node of found) node.classList.add("found");
    svg.classList.toggle("faded", found.length > 0);
    document.getElementById("count").textContent = words.length ? `${found.length} found, Enter goes through them` : "";
  }
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !found.length) return;
    at = (at + (event.shiftKey ? found.length - 1 : 1)) % found.length;
    const { name, computation } = found[at].dataset;
    hloGraph.reveal(name, computation, view);
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === search) return;
    event.preventDefault();
    search.focus();
  });

  // Inner boxes first, so that each arrangement is made once for every box around it.
  function all(isOpen) {
    for (const box of [...svg.querySelectorAll(".box[data-size]")].reverse())
      if (box.classList.contains("open") !== isOpen) hloGraph.toggle(box, isOpen);
  }
  const size = (factor) => hloGraph.scale(svg, Math.min(4, Math.max(0.05, factor)));
  const now = () => Number(svg.dataset.scale || 1);
  const fit = () => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    size(Math.min(1, (view.clientWidth - 4) / width, (view.clientHeight - 4) / height));
  };
  const buttons = { open: () => all(true), close: () => all(false), in: () => size(now() * 1.25), out: () => size(now() / 1.25), whole: fit };
  for (const [id, action] of Object.entries(buttons)) document.getElementById(id).addEventListener("click", action);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    size(now() * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });

  let hold = null;
  view.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".n")) hold = [event.clientX + view.scrollLeft, event.clientY + view.scrollTop];
  });
  addEventListener("pointermove", (event) => {
    if (!hold) return;
    view.classList.add("dragged");
    view.scrollTo(hold[0] - event.clientX, hold[1] - event.clientY);
  });
  addEventListener("pointerup", () => {
    hold = null;
    view.classList.remove("dragged");
  });

  if (location.hash.includes("/")) follow();
  else if (START.name) hloGraph.reveal(START.name, START.computation, view);
  else hloGraph.begin(svg);
})();
