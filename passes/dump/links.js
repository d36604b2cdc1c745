// What belongs together: an instruction in texts and pictures, who reads it, its kernel, that kernel's LLVM and assembly.
const dumpLinks = (() => {
  const GIVEN = "hlo-before-optimizations", FINAL = "hlo-backend";
  const CODE = ["llvm-before-optimizations", "llvm-after-optimizations", "asm"];
  const OWN_KERNELS = ["while", "conditional", "call", "async-start"];
  const about = document.getElementById("about");
  const programs = new WeakMap(), functions = new WeakMap();
  let current = null, following = false;

  const textOf = (section, stage) => section.querySelector(`pre[data-stage="${stage}"]`);
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const make = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text }, properties);

  // HLO text as computations of instructions; `callers` says which instruction runs a computation.
  function programOf(pre) {
    if (!pre) return { computations: new Map(), callers: new Map(), at: [], named: new Map(), placed: new Map() };
    if (programs.has(pre)) return programs.get(pre);
    const computations = new Map(), callers = new Map(), at = [];
    let inside = null;
    pre.textContent.split("\n").forEach((line, number) => {
      const head = line.match(/^(?:ENTRY )?%?([\w.-]+) .*\{$/);
      if (head) computations.set(head[1], (inside = { name: head[1], all: new Map() }));
      const found = inside && line.match(/^\s+(?:ROOT )?%?([\w.-]+) = (.*)$/);
      if (!found) return;
      const cut = found[2].indexOf(", metadata={"), text = cut < 0 ? found[2] : found[2].slice(0, cut);
      const word = (pattern) => (cut < 0 ? null : found[2].slice(cut).match(pattern))?.[1] ?? "";
      const file = word(/source_file="([^"]*)"/);
      const one = {
        name: found[1], computation: inside.name, number, text, reads: [], users: [], calls: [],
        opcode: text.match(/\s([a-z][\w-]*)\(/)?.[1] ?? "", from: word(/op_name="([^"]*)"/),
        source: file && `${file}:${word(/source_line=(\d+)/)}`,
      };
      inside.all.set(one.name, one);
      at[number] = one;
    });
    for (const { all } of computations.values())
      for (const one of all.values())
        for (const [, name] of new Set(one.text.matchAll(/%([\w.-]+)/g))) {
          const operand = all.get(name);
          if (operand && !one.reads.includes(operand)) {
            one.reads.push(operand);
            operand.users.push(one);
          } else if (!operand && computations.has(name)) {
            one.calls.push(name);
            if (!callers.has(name)) callers.set(name, one);
          }
        }
    const named = new Map(), placed = new Map();
    const add = (map, key, one) => map.get(key)?.push(one) ?? map.set(key, [one]);
    for (const one of at.filter(Boolean)) {
      add(named, `${one.opcode} ${one.name}`, one);
      if (one.from) add(placed, `${one.source} ${one.from}`, one);
    }
    const program = { computations, callers, at, named, placed };
    programs.set(pre, program);
    return program;
  }

  // The lines of each kernel's function in LLVM or assembly: name to [first, last].
  function functionsOf(pre) {
    if (!pre) return new Map();
    if (functions.has(pre)) return functions.get(pre);
    const found = new Map();
    let open = null;
    pre.textContent.split("\n").forEach((line, number) => {
      const start = line.match(/^define .*?@"?kernel\.([^"(]+)"?\(/) ?? line.match(/^"?kernel\.([^":]+)"?:/);
      if (start) found.set(start[1], (open = [number, number]));
      else if (open && (line === "}" || line.startsWith(".Lfunc_end"))) open = (open[1] = number) && null;
    });
    functions.set(pre, found);
    return found;
  }

  const decisionsOf = (section) => [...section.querySelectorAll("tr.decision")].map((row) => [...row.cells].map((cell) => cell.textContent));

  // The kernels of a section, by name, with their colours: each text shows what belongs to one in the same.
  function kernelsOf(section) {
    if (section.kernels) return section.kernels;
    const planned = decisionsOf(section).filter(([by]) => by === "kernel planner").map(([, name]) => name);
    const named = CODE.flatMap((stage) => [...functionsOf(textOf(section, stage)).keys()]);
    const names = [...new Set([...named, ...planned])];
    section.kernels = new Map(names.map((name, i) => [name, `hsl(${Math.round(i * 137.5) % 360} 65% 50%)`]));
    return section.kernels;
  }

  // The kernel that computes an instruction of the final program; what is fused belongs to whom it is fused into.
  function kernelOf(section, one) {
    const { callers } = programOf(textOf(section, FINAL)), kernels = kernelsOf(section);
    for (let caller = callers.get(one.computation); caller && !OWN_KERNELS.includes(caller.opcode); caller = callers.get(one.computation)) one = caller;
    return kernels.has(one.name) ? one.name : null;
  }

  function kernelAt(section, stage, one) {
    if (stage === FINAL) return kernelOf(section, one);
    const same = counterparts(section, FINAL, one)[0];
    return same ? kernelOf(section, same) : null;
  }

  // The instructions of another stage that an instruction became, or came from: of its name, or of its place in the program.
  function counterparts(section, stage, one) {
    const program = programOf(textOf(section, stage)), named = program.named.get(`${one.opcode} ${one.name}`);
    const near = (other) => other.from === one.from && other.source === one.source;
    if (named) return named.some(near) ? named.filter(near) : named;
    return (program.placed.get(`${one.source} ${one.from}`) ?? []).slice(0, 24);
  }

  // Makes the lines of a text elements, coloured by kernel; done when it is first looked at.
  function decorate(pre) {
    if (pre.dataset.lines || !pre.dataset.stage) return;
    pre.dataset.lines = "yes";
    const { stage } = pre.dataset, section = pre.closest("section"), lines = pre.textContent.split("\n");
    const kernels = kernelsOf(section), colour = (name) => (name && kernels.has(name) ? ` style="--k:${kernels.get(name)}"` : "");
    const attributes = [];
    if (stage === GIVEN || stage === FINAL)
      for (const one of programOf(pre).at.filter(Boolean))
        attributes[one.number] = ` data-at="${safe(`${one.computation}/${one.name}`)}"${colour(kernelAt(section, stage, one))}`;
    for (const [name, [first, last]] of functionsOf(CODE.includes(stage) ? pre : null))
      for (let i = first; i <= last; i++) attributes[i] = ` data-kernel="${safe(name)}"${colour(name)}`;
    if (stage === "schedule" || stage === "buffer-assignment")
      lines.forEach((line, i) => {
        const name = line.match(/%([\w.-]+)/)?.[1];
        if (name) attributes[i] = ` data-name="${safe(name)}"${colour(name)}`;
      });
    pre.innerHTML = lines.map((line, i) => {
      const cut = line.indexOf(", metadata={");
      const text = cut < 0 ? safe(line) : `${safe(line.slice(0, cut))}<span class="meta">${safe(line.slice(cut))}</span>`;
      return `<span class="l"${attributes[i] ?? ""}>${text}\n</span>`;
    }).join("");
    if (current) mark(current);
  }

  function mark({ section, stage, one, kernel }) {
    document.querySelectorAll(".l.hot, .l.kin, .l.lit").forEach((line) => line.classList.remove("hot", "kin", "lit"));
    for (const pre of section.querySelectorAll("pre[data-lines]")) {
      const here = pre.dataset.stage, kin = here === GIVEN || here === FINAL ? counterparts(section, here, one) : [];
      for (const line of pre.querySelectorAll(".l[data-at]")) {
        const is = (other) => line.dataset.at === `${other.computation}/${other.name}`;
        if (here === stage && is(one)) line.classList.add("hot");
        else if (here !== stage && kin.some(is)) line.classList.add("kin");
      }
      for (const line of pre.querySelectorAll(".l[data-kernel], .l[data-name]"))
        line.classList.toggle("lit", line.dataset.kernel ? line.dataset.kernel === kernel : line.dataset.name === one.name);
    }
    for (const picture of section.querySelectorAll(".picture[open]")) {
      if (stageOf(picture) !== stage) continue;
      const fits = (node) => node.dataset.computation === one.computation;
      const node = [...picture.querySelectorAll(`.n[data-name="${CSS.escape(one.name)}"]`)].find(fits);
      if (node && !node.classList.contains("hot")) hloGraph.show(node);
    }
  }

  const stageOf = (picture) => picture.closest("section").querySelector(`pre[data-file="${CSS.escape(picture.dataset.of)}"]`)?.dataset.stage;
  const hashOf = (section, stage, one) => `#${[section.id, stage, one.computation, one.name].map(encodeURIComponent).join("/")}`;

  // Opens a text and brings a line of it into view.
  function goTo(pre, number) {
    pre.closest("details").open = true;
    decorate(pre);
    const line = pre.children[number];
    line.scrollIntoView({ block: "center" });
    return line;
  }

  function describe({ section, stage, one, kernel }) {
    const link = (other, where = stage) => make("a", other.name, { href: hashOf(section, where, other) });
    const jump = (pre, number, text) => {
      const made = make("a", text, { href: "#" });
      made.addEventListener("click", (event) => (event.preventDefault(), goTo(pre, number)));
      return made;
    };
    const close = make("button", "×", { title: "close" });
    close.addEventListener("click", clear);
    const show = make("div", `in ${one.computation}, `, { className: "faint" });
    show.append(jump(textOf(section, stage), one.number, stage), " ", make("a", "link", { href: hashOf(section, stage, one), title: "permalink" }));
    about.replaceChildren(close, make("h2", one.name), show, make("pre", one.text));
    const group = (title, ...items) => items.length && about.append(make("h3", title), ...items.slice(0, 100).flatMap((item) => [item, " "]));
    group("reads", ...one.reads.map((other) => link(other)));
    group("read by", ...one.users.map((other) => link(other)));
    const program = programOf(textOf(section, stage)), caller = program.callers.get(one.computation);
    if (caller) group(caller.opcode === "fusion" ? "fused into" : "called by", link(caller));
    const held = one.calls.flatMap((name) => [...(program.computations.get(name)?.all.values() ?? [])]);
    group("holds", ...held.map((other) => link(other)));
    const other = stage === GIVEN ? FINAL : GIVEN, kin = counterparts(section, other, one);
    group(stage === GIVEN ? "became" : "came from", ...kin.map((same) => link(same, other)));
    if (kernel) {
      const planned = decisionsOf(section).find(([by, name]) => by === "kernel planner" && name === kernel);
      const chip = make("span", planned ? `${kernel}: ${planned[2]}` : kernel, { className: "chip" });
      chip.style.setProperty("--k", kernelsOf(section).get(kernel));
      const code = CODE.flatMap((where) => {
        const pre = textOf(section, where), lines = functionsOf(pre).get(kernel);
        return lines ? [jump(pre, lines[0], where)] : [];
      });
      group("kernel", chip, ...code);
      if (planned) about.append(make("p", `${planned[3]}; ${planned[4]}`, { className: "faint" }));
    }
    if (one.source || one.from) group("source", make("span", [one.source, one.from].filter(Boolean).join(", ")));
    const said = decisionsOf(section).filter(([by, names]) => by !== "kernel planner" && names.split(" → ").includes(one.name));
    group("decisions", ...said.map(([by, names, verdict, reason, numbers]) => make("p", `${by}: ${names} ${verdict}: ${reason} ${numbers}`)));
    about.hidden = false;
    document.body.classList.add("with-about");
  }

  function select(section, stage, computation, name) {
    const one = programOf(textOf(section, stage)).computations.get(computation)?.all.get(name);
    if (!one) return null;
    current = { section, stage, one, kernel: kernelAt(section, stage, one) };
    following = true;
    mark(current);
    following = false;
    describe(current);
    history.replaceState(null, "", hashOf(section, stage, one));
    return one;
  }

  function clear() {
    about.hidden = true;
    current = null;
    document.body.classList.remove("with-about");
    document.querySelectorAll(".l.hot, .l.kin, .l.lit").forEach((line) => line.classList.remove("hot", "kin", "lit"));
  }

  // Follows a permalink to an instruction; says whether it is one.
  function follow(hash) {
    const [id, stage, computation, name] = hash.slice(1).split("/").map(decodeURIComponent);
    const section = name && document.getElementById(id), pre = section && textOf(section, stage);
    const one = pre && select(section, stage, computation, name);
    if (one) goTo(pre, one.number);
    return Boolean(one);
  }

  document.addEventListener("hlo-select", (event) => {
    const picture = event.target.closest(".picture");
    if (picture && !following) select(picture.closest("section"), stageOf(picture), event.detail.computation, event.detail.name);
  });
  document.addEventListener("pointerover", ({ target }) => {
    if (target.matches(".memory rect")) target.closest("figure").querySelector("output").textContent = target.textContent;
  });
  document.addEventListener("click", (event) => {
    const line = event.target.closest(".l, .memory rect");
    if (!line || String(getSelection())) return;
    const section = line.closest("section"), { at, name = line.textContent.match(/^%([\w.-]+)/)?.[1], kernel } = line.dataset;
    const final = programOf(textOf(section, FINAL)).at.filter(Boolean);
    const found = final.filter((one) => one.name === (kernel ?? name)).at(-1);
    if (at) select(section, line.parentNode.dataset.stage, at.slice(0, at.lastIndexOf("/")), at.slice(at.lastIndexOf("/") + 1));
    else if (found) select(section, FINAL, found.computation, found.name);
  });
  // What is large is made when it is first looked at.
  async function unpack(script) {
    const bytes = Uint8Array.from(atob(script.textContent), (sign) => sign.charCodeAt(0));
    const place = script.parentNode;
    place.innerHTML = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
    if (!place.closest(".picture")) return;
    hloGraph.begin(place.firstChild);
    if (current) mark(current);
  }

  document.addEventListener("toggle", ({ target }) => {
    if (!target.open) return;
    target.querySelectorAll('script[type="image/svg+xml;deflate"]').forEach(unpack);
    target.querySelectorAll("pre[data-stage]").forEach(decorate);
    if (current && target.matches(".picture")) mark(current);
  }, true);
  return { follow, goTo, clear };
})();
