// Makes pictures answer: boxes open and close, a click shows what an instruction reads and who reads it.
// `hloGraph.reveal(name, computation)` opens what hides an instruction, marks it and brings it into view.
const hloGraph = (() => {
  const GAP = 44, SPACE = 18, POINT_SPACE = 7, MARGIN = 16, LINE = 15, PADDING = 9;
  const own = (element, selector) => [...element.children].filter((child) => child.matches(selector));
  const number = (element, name) => Number(element.getAttribute(name));

  // The places nearest to those wanted that keep the order and the spaces between (pooling adjacent violators).
  function settle(wanted, spaces) {
    const blocks = [], offsets = [0];
    spaces.forEach((space) => offsets.push(offsets.at(-1) + space));
    wanted.forEach((place, i) => {
      blocks.push([place - offsets[i], 1]);
      while (blocks.length > 1 && blocks.at(-2)[0] / blocks.at(-2)[1] > blocks.at(-1)[0] / blocks.at(-1)[1]) {
        const last = blocks.pop();
        blocks.at(-1)[0] += last[0];
        blocks.at(-1)[1] += last[1];
      }
    });
    return blocks.flatMap(([sum, count]) => Array(count).fill(sum / count)).map((mean, i) => mean + offsets[i]);
  }

  // Gives a box its size, open or closed, and its contents their places.
  function sizeBox(box) {
    const isOpen = box.classList.contains("open");
    const [closedWidth, closedHeight] = box.dataset.size.split(",").map(Number);
    const inner = own(box, ".in")[0], parts = own(inner, ".i");
    const sizes = parts.map((part) => part.dataset.size.split(",").map(Number));
    const titled = parts.length > 1 ? LINE : 0;
    const openWidth = sizes.reduce((sum, [width]) => sum + width + MARGIN, MARGIN);
    const width = isOpen ? Math.max(closedWidth, openWidth) : closedWidth;
    const height = isOpen ? closedHeight + Math.max(...sizes.map((size) => size[1])) + titled + MARGIN : closedHeight;
    const rect = own(box, "rect")[0];
    rect.setAttribute("x", -width / 2);
    rect.setAttribute("width", width);
    rect.setAttribute("height", height);
    for (const text of own(box, "text")) {
      if (text.matches(".v")) text.setAttribute("y", height + 13);
      else text.setAttribute("x", -width / 2 + PADDING + (text.matches(".fold") ? 0 : 14));
      if (text.matches(".fold")) text.textContent = isOpen ? "▾" : "▸";
    }
    if (isOpen) inner.removeAttribute("display");
    else inner.setAttribute("display", "none");
    let x = -width / 2 + MARGIN;
    parts.forEach((part, i) => {
      part.setAttribute("transform", `translate(${x} ${closedHeight + titled})`);
      x += sizes[i][0] + MARGIN;
    });
  }

  // Moves what stands in a diagram apart, or together again, and gives the diagram's size.
  function arrange(diagram) {
    const nodes = own(diagram, ".n"), edges = own(diagram, ".e");
    const rects = nodes.map((node) => own(node, "rect")[0]);
    const widths = rects.map((rect) => number(rect, "width")), heights = rects.map((rect) => number(rect, "height"));
    const x = [], row = [], tops = [], bottoms = [];
    let y = 0, left = Infinity, right = 0;
    diagram.dataset.rows.split(";").forEach((text, r) => {
      const items = text.split(" ").map((word) => word.split(",").map(Number));
      const reach = ([item, , label]) => (item < nodes.length ? Math.max(widths[item] / 2, label) : 0);
      const half = ([item]) => (item < nodes.length ? widths[item] / 2 : 0);
      const space = (a, b) => (a[0] < nodes.length && b[0] < nodes.length ? SPACE : POINT_SPACE);
      const spaces = items.slice(1).map((b, i) => reach(items[i]) + half(b) + space(items[i], b));
      settle(items.map((item) => item[1]), spaces).forEach((place, i) => {
        x[items[i][0]] = place;
        row[items[i][0]] = r;
        left = Math.min(left, place - half(items[i]));
        right = Math.max(right, place + reach(items[i]));
      });
      tops.push(y);
      y += Math.max(0, ...items.filter(([item]) => item < nodes.length).map(([item]) => heights[item]));
      bottoms.push(y);
      y += GAP;
    });
    const middle = (item) => (tops[row[item]] + bottoms[row[item]]) / 2;
    x.forEach((_, i) => (x[i] -= left));
    nodes.forEach((node, i) => node.setAttribute("transform", `translate(${x[i]} ${middle(i) - heights[i] / 2})`));
    const routes = diagram.dataset.routes ? diagram.dataset.routes.split(";") : [];
    routes.forEach((text, e) => {
      const [source, ...rest] = text.split(",").map(Number);
      let from = x[source], bottom = bottoms[row[source]];
      let path = `M${from} ${middle(source) + heights[source] / 2}V${bottom}`;
      rest.forEach((item, i) => {
        const isLast = i === rest.length - 1, to = x[item] + (isLast ? Number(edges[e].dataset.s || 0) : 0);
        const top = tops[row[item]], half = (bottom + top) / 2;
        path += `C${from} ${half} ${to} ${half} ${to} ${top}`;
        path += `V${isLast ? middle(item) - heights[item] / 2 : bottoms[row[item]]}`;
        from = to;
        bottom = bottoms[row[item]];
      });
      edges[e].setAttribute("d", path);
    });
    return [right - left, y - GAP];
  }

  // Opens or closes a box; everything around it makes room.
  function toggle(box, isOpen) {
    box.classList.toggle("open", isOpen);
    let part = box;
    while (part) {
      sizeBox(part);
      const diagram = part.closest(".d"), [width, height] = arrange(diagram);
      const around = diagram.closest(".i"), svg = diagram.ownerSVGElement;
      if (around) {
        around.dataset.size = `${width},${height}`;
      } else {
        svg.setAttribute("viewBox", `0 0 ${width + 2 * MARGIN} ${height + 2 * MARGIN}`);
        scale(svg, Number(svg.dataset.scale || 1));
      }
      part = around && around.closest(".box");
    }
  }

  // Shows a picture larger or smaller.
  function scale(svg, factor) {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    svg.dataset.scale = factor;
    svg.setAttribute("width", width * factor);
    svg.setAttribute("height", height * factor);
  }

  // Marks an instruction with the edges that lead to it and from it.
  function mark(node) {
    const svg = node.ownerSVGElement, index = node.dataset.n;
    svg.querySelectorAll(".hot").forEach((one) => one.classList.remove("hot"));
    node.classList.add("hot");
    const around = own(node.parentNode, `.e[data-from="${index}"], .e[data-to="${index}"]`);
    for (const edge of around) edge.classList.add("hot");
    svg.dispatchEvent(new CustomEvent("hlo-select", { bubbles: true, detail: { ...node.dataset } }));
  }

  // Scrolls a picture, but not the page, so that a node stands in the middle.
  function scrollTo(node) {
    const frame = node.ownerSVGElement.parentNode, here = frame.getBoundingClientRect(), there = node.getBoundingClientRect();
    frame.scrollBy(there.left + there.width / 2 - here.left - here.width / 2, there.top + there.height / 2 - here.top - here.height / 2);
  }

  // Scrolls a picture to what stands at its top, which in a broad one is anywhere.
  function begin(svg) {
    const top = (node) => node.getBoundingClientRect().top;
    const outer = [...svg.querySelectorAll(":scope > g > .d > .n")];
    if (outer.length) scrollTo(outer.reduce((a, b) => (top(b) < top(a) ? b : a)));
  }

  // Opens what is around an instruction, marks it and scrolls the picture to it.
  function show(node) {
    for (let box = node.parentNode.closest(".box"); box; box = box.parentNode.closest(".box"))
      if (!box.classList.contains("open")) toggle(box, true);
    mark(node);
    scrollTo(node);
  }

  function reveal(name, computation, within = document) {
    const fits = (node) => !computation || node.dataset.computation === computation;
    const node = [...within.querySelectorAll(`.hlo-graph .n[data-name="${CSS.escape(name)}"]`)].find(fits);
    if (!node) return false;
    show(node);
    node.scrollIntoView({ block: "center", inline: "center" });
    return true;
  }

  document.addEventListener("click", (event) => {
    const node = event.target.closest && event.target.closest(".hlo-graph .n");
    if (!node) return;
    if (node.dataset.ref) return void reveal(node.dataset.ref, node.dataset.computation, node.ownerSVGElement.parentNode);
    if (node.dataset.size) toggle(node);
    mark(node);
  });
  return { begin, reveal, show, toggle, mark, scale };
})();
