// The page: what is shown, and what clicks and keys do.

class App {
  constructor(D, old) {
    this.D = D;
    this.selected = -1;
    this.from = this.to = -1;
    this.group = -1;
    this.stage = document.getElementById("fabric");
    this.head();
    this.view = new View(D, this.stage);
    if (D.interactive) this.trial = new Trial(this);
    if (old) this.states = new States(this, old);
    else this.view.marks = faults(D);
    this.makeTabs();
    modes(this);
    hear(this);
    this.legend();
    this.listen();
    if (this.states) {
      this.open("changes");
      this.states.choose("both");
    } else if (D.result.findings.some(f => f.severity === "error" && !f.waiver) || D.result.undecided.length) this.open("findings");
  }

  head() {
    const D = this.D, r = D.result;
    document.getElementById("title").textContent = D.title;
    this.headline();
    this.stage.setAttribute("aria-label", `Drawing of ${plural(r.fabric.switches, "switch", "switches")} and ${plural(D.nodes - D.switches, "host")}`);
    document.getElementById("theme").addEventListener("click", () => {
      const dark = getComputedStyle(document.documentElement).getPropertyValue("--theme").trim() === "dark";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
      this.recolour();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  // headline says what the fabric has, and the verdict, and has the search.
  headline() {
    const D = this.D, r = D.result;
    const search = picker(D, "find", "Find by name, GUID or LID", () => true, n => this.select(n, true));
    document.getElementById("search").replaceChildren(search.element);
    document.getElementById("subtitle").textContent = [D.shape && D.shape.split("\n")[0], `${plural(r.fabric.switches, "switch", "switches")}, ${plural(r.fabric.ca_ports, "CA port")}, ${plural(r.fabric.links, "link")}`, `ibweave ${D.version}`].filter(s => s).join(" · ");
    const verdict = document.getElementById("verdict");
    verdict.textContent = r.verdict;
    verdict.className = "badge " + {clean: "good", warnings: "warning", undecided: "warning", errors: "error"}[r.verdict];
  }

  // adopt shows another document.
  adopt(D) {
    const {view} = this, name = view.measure && view.measure.name, was = this.D;
    this.reset();
    for (const end of ["selected", "from", "to"]) if (this[end] >= 0) this[end] = D.nodeOf(was.guids[this[end]], was.isSwitch(this[end]));
    this.D = view.D = D;
    view.measure = D.measures.find(m => m.name === name) || D.measures[0];
    view.prepare();
    if (view.heat) view.heat = D.heatLeaf ? new Heat(view, view.heat.kind) : null;
    modes(this);
    view.draw();
    this.headline();
    this.legend();
    for (const t of this.tabs) this.fill(t.id);
    this.path?.from.set(this.from);
    this.path?.to.set(this.to);
  }

  // recolour follows the theme.
  recolour() {
    this.view.recolour();
    this.legend();
    this.fill("overview");
    this.fill("node");
    if (this.again) this.again();
  }

  // makeTabs makes the tabs of the panel; arrow keys, Home and End go between them.
  makeTabs() {
    const has = what => [this.D, this.states && this.states.old].some(D => D && what(D));
    const D = this.D;
    this.tabs = [
      this.states && {id: "changes", name: "Differences", content: () => this.states.panel()},
      {id: "overview", name: "Overview", content: () => overview(this)},
      {id: "node", name: "Node", content: () => details(this)},
      has(D => D.tables === "here") && {id: "path", name: "Path", content: () => pathPanel(this)},
      has(D => D.groups.length > 0) && {id: "groups", name: "Multicast", content: () => groupsPanel(this)},
      has(D => D.result.credit_loops.cycles.length > 0) && {id: "loops", name: "Credit loops", content: () => loopsPanel(this)},
      {id: "findings", name: () => {
        const r = this.D.result, n = r.findings.length + r.undecided.length;
        return n ? `Findings ${grouped(n)}` : "Findings";
      }, content: () => findingsPanel(this)},
      D.interactive && {id: "try", name: "Try", content: () => this.trial.panel()},
    ].filter(t => t);
    const bar = document.getElementById("tabs"), panels = document.getElementById("tabpanels");
    for (const t of this.tabs) {
      t.tab = el("button", {type: "button", role: "tab", id: "tab-" + t.id, "aria-controls": "panel-" + t.id, onclick: () => this.open(t.id)});
      t.panel = el("div", {role: "tabpanel", id: "panel-" + t.id, "aria-labelledby": "tab-" + t.id, tabindex: "0"});
      bar.append(t.tab);
      panels.append(t.panel);
      this.fill(t.id);
    }
    bar.addEventListener("keydown", ev => {
      const at = this.tabs.findIndex(t => t.tab === document.activeElement), n = this.tabs.length;
      const to = {ArrowRight: at + 1, ArrowLeft: at + n - 1, Home: 0, End: n - 1}[ev.key];
      if (at < 0 || to === undefined) return;
      this.open(this.tabs[to % n].id);
      this.tabs[to % n].tab.focus();
      ev.preventDefault();
    });
    this.open("overview");
  }

  fill(id) {
    const t = this.tabs && this.tabs.find(t => t.id === id);
    if (!t) return;
    t.tab.textContent = typeof t.name === "function" ? t.name() : t.name;
    t.panel.replaceChildren(t.content());
  }

  open(id) {
    for (const t of this.tabs) {
      const is = t.id === id;
      t.tab.setAttribute("aria-selected", is);
      t.tab.tabIndex = is ? 0 : -1;
      t.panel.hidden = !is;
      if (is) t.tab.scrollIntoView({block: "nearest", inline: "nearest"});
    }
  }

  // legend says what colours mean, has the bound below which links are faint, and what else links
  // may be coloured by.
  legend() {
    const D = this.D, m = this.view.measure, box = document.getElementById("legend");
    if (this.view.heat) {
      box.replaceChildren(...this.view.heat.legend());
      return;
    }
    if (this.states && this.states.mode === "both") {
      box.replaceChildren(...this.states.legend());
      return;
    }
    box.replaceChildren();
    if (!m || D.measures.length === 1 && m.max === 0) return;
    const faulty = colour => this.view.marks.some(m => m.fault && m.colour === colour);
    const most = m.name === "routes" ? Math.max(m.max, Math.ceil(2 * m.mean)) : Math.max(m.max, 2 * m.mean);
    const bound = el("input", {type: "range", id: "bound", min: 0, max: classes, value: this.view.least, "aria-label": `Show links with at least this many ${m.unit}`,
      oninput: () => {
        this.view.least = +bound.value;
        say();
        this.view.draw();
      }});
    const text = el("output", {for: "bound"});
    const loadOf = k => k <= 1 ? 0 : (k - 1) / classes <= 0.5 ? 2 * m.mean * (k - 1) / classes : m.mean + (2 * (k - 1) / classes - 1) * (Math.max(m.max, 2 * m.mean) - m.mean);
    const say = () => {
      const k = this.view.least;
      text.textContent = k === 0 ? "all links" : `links with ${m.name === "routes" ? grouped(Math.max(1, Math.ceil(loadOf(k)))) : quantity(m, loadOf(k))} ${m.unit} or more`;
      bound.setAttribute("aria-valuetext", text.textContent);
    };
    say();
    const scale = el("div", {class: "scale"});
    scale.style.background = `linear-gradient(to right, ${this.view.ramp.join(", ")})`;
    const mean = m.name === "routes" ? decimal(m.mean) : quantity(m, m.mean);
    const title = o => o.name === "routes" ? "routes on a link" : `${o.name}, ${o.unit}`;
    const choice = el("select", {id: "colour", "aria-label": "Cables show", onchange: () => this.colourBy(D.measures[+choice.value])},
      D.measures.map((o, i) => el("option", {value: i, selected: o === m}, title(o))));
    box.replaceChildren(D.measures.length > 1 ? el("label", {}, "Cables show ", choice) : el("span", {class: "legend-title"}, title(m)),
      ...(m.max > 0 ? [el("div", {class: "key"}, scale, el("div", {class: "ticks"}, el("span", {}, "0"), el("span", {}, `mean ${mean}`), el("span", {}, quantity(m, most)))),
        el("div", {class: "key"}, bound, text)] : [el("span", {}, m.known ? "0 on all links" : "not known of any link")]),
      ...[["loop", "missing", "gone"], ["warning", "slow", "line"]].filter(([colour]) => faulty(colour)).map(([colour, text, kind]) => el("span", {class: `key-${kind} ${colour}`}, text)));
  }

  // colourBy colours links by another measure.
  colourBy(m) {
    this.view.choose(m);
    this.view.least = 0;
    this.recolour();
    document.getElementById("colour").focus();
  }

  listen() {
    const view = this.view, stage = this.stage;
    document.getElementById("zoom-in").addEventListener("click", () => view.zoom(1.4));
    document.getElementById("zoom-out").addEventListener("click", () => view.zoom(1 / 1.4));
    document.getElementById("zoom-fit").addEventListener("click", () => view.fit());
    document.getElementById("clear").addEventListener("click", () => {
      this.clear();
      stage.focus();
    });
    stage.addEventListener("pick", ev => {
      const {node, edge, mark = -1, further} = ev.detail, D = this.D;
      if (node >= 0 && further && this.selected >= D.switches && D.tables === "here") {
        this.from = this.selected;
        this.setEnd("to", node);
      } else if (node >= 0) this.select(node, false);
      else if (edge >= 0) this.showLink(D.cables[D.edgeCables[edge]]);
      else if (mark >= 0) this.showMark(mark);
      else this.clear();
    });
    stage.addEventListener("end", ev => {
      if (this.D.tables === "here") this.setEnd(ev.detail.which === "f" ? "from" : "to", ev.detail.node);
    });
    stage.addEventListener("escape", () => this.clear());
    stage.addEventListener("current", ev => this.announce(ev.detail));
    const tip = document.getElementById("tip");
    stage.addEventListener("hover", ev => {
      const h = ev.detail;
      tip.hidden = !h || view.shown && !view.shown.all && !h.lines && h.node < 0;
      if (tip.hidden) return;
      tip.replaceChildren(...(h.lines || (h.node >= 0 ? this.aboutNode(h.node) : this.aboutEdge(h.edge))).map((line, i) => el(i ? "div" : "b", {}, line)));
      const right = h.x > view.width / 2, low = h.y > view.height / 2;
      tip.style.left = `${h.x + (right ? -14 : 14)}px`;
      tip.style.top = `${h.y + (low ? -14 : 14)}px`;
      tip.style.transform = `translate(${right ? "-100%" : "0"}, ${low ? "-100%" : "0"})`;
    });
    document.addEventListener("keydown", ev => {
      if (ev.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
        document.getElementById("find").focus();
        ev.preventDefault();
      } else if (ev.key === "Escape" && !stage.contains(document.activeElement)) this.clear();
    });
  }

  aboutNode(n) {
    const D = this.D, lid = D.lidOf(n);
    return [D.names[n], `${kinds[D.type[n]] || "node"}${lid ? `, LID ${lid}` : ""}`, D.guids[n]];
  }

  aboutEdge(e) {
    const D = this.D, lines = [`${D.names[D.edgeA[e]]} — ${D.names[D.edgeB[e]]}`];
    for (let i = D.edgeCables[e]; i < Math.min(D.edgeCables[e + 1], D.edgeCables[e] + 8); i++) {
      const p = D.cables[i], q = D.peer[p];
      lines.push(`port ${D.portText(p)} — ${D.portText(q)}, ${D.links[D.link[p]]}${this.view.measure ? thereAndBack(D, this.view.measure, p) : ""}`);
    }
    const more = D.edgeCables[e + 1] - D.edgeCables[e] - 8;
    if (more > 0) lines.push(`and ${plural(more, "cable")} more`);
    return lines;
  }

  announce(n) {
    const {nodes} = this.D;
    document.getElementById("live").textContent = n < 0 ? "" : n < nodes ? this.aboutNode(n).slice(0, 2).join(", ") : this.view.boxes.about(n - nodes).join(", ");
  }

  // showMark shows what a mark in the drawing is about.
  showMark(mark) {
    if (this.states) this.states.show(mark);
    else if (this.view.marks.some(m => m.fault)) {
      this.open("findings");
      this.showFinding(this.D.result.findings[mark]);
    } else this.trial.show(mark);
  }

  // display draws make() now, and again when the theme changes.
  display(make) {
    this.again = () => {
      const what = make();
      this.view.show(what);
      const line = document.getElementById("shown");
      line.hidden = false;
      line.querySelector("span").textContent = what.title;
      line.querySelector("button").hidden = Boolean(what.all);
    };
    this.again();
  }

  // clear shows nothing, or with two states what differs.
  clear() {
    this.reset();
    if (this.states) this.states.light();
  }

  reset() {
    this.again = null;
    this.view.show(null);
    this.view.current = -1;
    this.view.draw();
    document.getElementById("shown").hidden = true;
    this.press("[data-group], [data-loop], [data-change]", null);
    this.group = -1;
  }

  press(selector, value) {
    for (const b of document.querySelectorAll(selector)) b.setAttribute("aria-pressed", String(value !== null && b.matches(value)));
  }

  // about opens the tab about a node or a cable.
  about(n, p) {
    this.fill("node");
    this.trial?.choose(n, p);
    if (!this.trial || document.getElementById("panel-try").hidden) this.open("node");
  }

  // select shows a node and what it is cabled to; reveal moves the drawing there.
  select(n, reveal) {
    const D = this.D, view = this.view;
    if (n === undefined || n < 0) return;
    this.selected = n;
    view.current = n;
    this.about(n, D.isSwitch(n) ? -1 : D.portOf(n));
    this.display(() => {
      const channels = [], nodes = [{node: n, colour: view.colours.accent}], labels = [n];
      for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) {
        const q = D.peer[p];
        if (q === noPort) continue;
        const by = view.measure, load = by && D.edgeOf[p] >= 0 ? Math.max(by.values[p], by.values[q]) : 0;
        channels.push({out: p, colour: D.edgeOf[p] >= 0 ? view.loadColour(load) : view.colours.muted, thin: true});
        const m = D.owner[q];
        nodes.push({node: m, colour: D.isSwitch(m) ? view.colours.switch : view.colours.host});
        if (D.isSwitch(m) && D.base[n + 1] - D.base[n] < 24) labels.push(m);
      }
      return {title: `Links of ${shortened(D.names[n], 60)}`, channels, nodes, labels};
    });
    if (reveal) view.reveal(n);
    this.announce(n);
  }

  // showLink shows both directions of a cable.
  showLink(p) {
    const D = this.D, view = this.view, a = D.owner[p], b = D.owner[D.peer[p]];
    this.selected = a;
    this.about(-1, p);
    this.display(() => ({
      title: `${shortened(D.portName(p), 36)} — ${shortened(D.portName(D.peer[p]), 36)}${view.measure ? thereAndBack(D, view.measure, p) : ""}`,
      channels: [{out: p, colour: view.colours.accent}],
      nodes: [{node: a, colour: view.colours.switch}, {node: b, colour: view.colours.switch}], labels: [a, b],
    }));
  }

  setEnd(which, n) {
    const D = this.D;
    if (which === "from" && n >= 0 && D.isSwitch(n)) {
      document.getElementById("live").textContent = "A path starts at a host";
      return;
    }
    this[which] = n;
    this.showEnds();
  }

  // showEnds shows the path between the ends: from a port of the source, to a LID of the destination.
  showEnds(num, lid) {
    this.path.from.set(this.from);
    this.path.to.set(this.to);
    this.open("path");
    this.showPath(lid, num);
  }

  swapEnds() {
    if (this.to < 0 || this.D.isSwitch(this.to)) return;
    [this.from, this.to] = [this.to, this.from];
    this.showEnds();
  }

  // showPath follows the packet between the chosen ends, to a LID of the destination and from a port of
  // the source: by default from the first ones.
  showPath(lid, num) {
    const D = this.D, view = this.view, {result, lid: chooser, port} = this.path;
    chooser.hidden = port.hidden = true;
    this.path.all.hidden = this.from < 0 || this.to < 0;
    if (this.to < 0) {
      result.replaceChildren(el("p", {class: "note"}, "Choose both ends, or only the destination, for all ways to it."));
      if (this.from >= 0) this.path.to.input.focus();
      return;
    }
    const lids = [];
    for (let p = D.base[this.to]; p < D.base[this.to + 1]; p++) {
      if (D.lid[p]) for (let k = 0; k < 1 << D.lmc[p]; k++) lids.push(D.lid[p] + k);
    }
    if (!lids.length) {
      result.replaceChildren(el("p", {class: "outcome bad"}, `${D.names[this.to]} has no LID.`));
      return;
    }
    if (lid === undefined) lid = lids[0];
    if (lids.length > 1) {
      chooser.hidden = false;
      chooser.replaceChildren(...lids.map(l => el("option", {value: l, selected: l === lid}, `LID ${l}${this.to >= D.switches && D.peer[D.byLID[l]] !== noPort ? `, on ${D.names[D.owner[D.peer[D.byLID[l]]]]}` : ""}`)));
    }
    if (this.from < 0) return this.showFan(lid);
    const sources = D.sources(this.from), src = sources.find(p => D.num(p) === num) ?? D.portOf(this.from);
    if (sources.length > 1) {
      port.hidden = false;
      port.replaceChildren(...sources.map(p => el("option", {value: D.num(p), selected: p === src}, `from port ${D.portText(p)}, on ${D.names[D.owner[D.peer[p]]]}`)));
    }
    const path = route(D, src, lid);
    result.replaceChildren(...pathResult(this, path));
    const ends = [this.from, this.to];
    const passed = [...new Set([ends[0], ...path.hops.map(h => D.owner[D.peer[h.out]])])];
    const few = passed.length <= 20, shares = new Map(); // by port that packets leave
    for (const h of path.hops) shares.set(h.out, (shares.get(h.out) || 0) + h.share);
    const split = out => path.hops.some(h => h.out === out && path.hops.some(o => o.from === h.from && o.hop === h.hop && o.out !== out));
    view.current = -1;
    this.display(() => ({
      title: `Path from ${shortened(D.names[ends[0]], 36)} to ${shortened(D.names[ends[1]], 36)}`,
      channels: [...shares].map(([out, share]) => ({out, share: Math.min(share, 1), say: few && split(out), colour: path.lost ? view.colours.loop : view.colours.path})),
      nodes: passed.map(n => ({node: n, colour: n !== ends[0] && D.isSwitch(n) ? view.colours.switch : view.colours.path})),
      labels: few ? passed : ends,
    }));
  }

  // showFan shows the ports by which switches may send to a LID.
  showFan(lid) {
    const D = this.D, view = this.view, fan = fanTo(D, lid), by = new Map(); // by node: its ports
    for (const out of fan.outs) by.set(D.owner[out], [...by.get(D.owner[out]) || [], out]);
    this.path.result.replaceChildren(...fanResult(this, fan, by));
    view.current = -1;
    const {to} = this, few = by.size <= 20;
    this.display(() => ({
      title: `All ways to ${shortened(D.names[to], 60)}`,
      channels: fan.outs.map(out => ({out, share: 1 / by.get(D.owner[out]).length, thin: fan.outs.length > 400, colour: view.colours.path})),
      nodes: [...[...by.keys()].filter(D.isSwitch).map(node => ({node, colour: view.colours.switch})), {node: to, colour: view.colours.path}],
      labels: few ? [to, ...by.keys()] : [to],
    }));
  }

  // showGroup draws the masks of a group as a tree.
  showGroup(i) {
    const D = this.D, view = this.view, g = D.groups[i];
    this.group = i;
    this.press("[data-group]", `[data-group="${i}"]`);
    this.groupAbout.replaceChildren(...groupAbout(this, i));
    this.open("groups");
    this.display(() => {
      const nodes = new Map();
      for (const p of g.ports) nodes.set(D.owner[p], view.colours.switch);
      for (const p of g.receivers) nodes.set(D.owner[p], view.colours.tree);
      for (const p of g.senders) if (!nodes.has(D.owner[p]) || g.senders.length < g.receivers.length) nodes.set(D.owner[p], view.colours.path);
      const few = g.senders.length < g.receivers.length;
      const senders = few ? [...g.senders].filter(p => D.peer[p] !== noPort) : [];
      return {
        title: `${g.name}: MLID ${hex(g.mlid, 4)}, ${plural(g.receivers.length, "receiver")}`,
        channels: [...senders.map(p => ({out: p, colour: view.colours.path})),
          ...[...g.ports].filter(p => D.num(p) > 0).map(p => ({out: p, colour: view.colours.tree, thin: g.ports.length > 400}))],
        nodes: [...nodes].map(([node, colour]) => ({node, colour})), labels: nodes.size <= 60 ? [...nodes.keys()] : [],
      };
    });
  }

  // showLoop draws a cycle of channels.
  showLoop(cycle, i) {
    this.press("[data-loop]", `[data-loop="${i}"]`);
    this.loopAbout.replaceChildren(...loopAbout(this, cycle));
    this.open("loops");
    this.showHops(`Credit loop of ${plural(cycle.length, "channel")}`, cycle);
  }

  showHops(title, hops) {
    const D = this.D, view = this.view;
    const outs = hops.map(h => D.base[D.byGUID.get(h.switch)] + h.port);
    this.display(() => ({
      title,
      channels: outs.map(out => ({out, colour: view.colours.loop})),
      nodes: outs.map(out => ({node: D.owner[out], colour: view.colours.loop})),
      labels: outs.length <= 40 ? [...new Set(outs.map(out => D.owner[out]))] : [],
    }));
  }

  showFinding(f) {
    const D = this.D, view = this.view;
    const cycle = D.result.credit_loops.cycles.findIndex(c => f.rule.includes("credit") && JSON.stringify(c) === JSON.stringify(f.witness));
    if (cycle >= 0 && this.tabs.some(t => t.id === "loops")) {
      this.showLoop(D.result.credit_loops.cycles[cycle], cycle);
      return;
    }
    if (f.witness.length) {
      this.showHops(f.rule, f.witness);
      return;
    }
    const ends = [], channels = [];
    for (const e of f.ports || []) {
      const n = D.byGUID.get(e.node);
      if (n === undefined) continue;
      ends.push(n);
      if (e.port > 0 && e.port < D.base[n + 1] - D.base[n] && D.peer[D.base[n] + e.port] !== noPort) channels.push(D.base[n] + e.port);
    }
    const at = D.byGUID.get(f.switch);
    if (!ends.length && at !== undefined) ends.push(at);
    if (!ends.length) {
      this.clear();
      return;
    }
    this.display(() => ({
      title: f.rule,
      channels: channels.map(out => ({out, colour: view.colours.loop, thin: true})),
      nodes: ends.map(node => ({node, colour: view.colours.loop})), labels: ends.slice(0, 40),
    }));
    view.reveal(ends[0]);
  }
}

// faults marks the cables that findings say are missing or slow, with the number of the finding as port.
function faults(D) {
  const list = [];
  D.result.findings.forEach((f, i) => {
    const gone = f.rule === "missing-cable", ends = (f.ports || []).map(e => [D.byGUID.get(e.node), e.port]);
    if (!gone && f.rule !== "link-degraded" || f.waiver || !ends.length || ends.some(([n]) => n === undefined)) return;
    const [a, num] = ends[0], [b] = ends[ends.length - 1], p = D.base[a] + num, peer = D.peer[p] ?? noPort;
    const to = peer === noPort || gone ? b : D.owner[peer]; // missing ones have the ports of one node, and then those of the other
    if (to === a) return;
    const e = D.edgesOf[a]?.find(e => D.edgeA[e] === to || D.edgeB[e] === to) ?? -1;
    list.push({a: e < 0 ? a : D.edgeA[e], b: e < 0 ? to : D.edgeB[e], bend: e < 0 ? 0 : D.edgeBend[e], shift: 0, port: i, colour: gone ? "loop" : "warning", gone, fault: true});
  });
  return list;
}

async function start() {
  let D, old;
  try {
    [D, old] = await Promise.all([load(), document.getElementById("document-old") && load("-old")]);
  } catch (err) {
    document.getElementById("title").textContent = "This page cannot be shown";
    document.getElementById("subtitle").textContent = `It needs a browser with DecompressionStream: Chromium 80, Firefox 113, Safari 16.4 or later (${err}).`;
    return;
  }
  const app = new App(D, old);
  // For scripts and for the curious, in the console.
  window.ibweave = {
    get data() { return app.D; },
    screen: n => {
      const box = app.stage.getBoundingClientRect(), [x, y] = app.view.screen(n);
      return [box.left + x, box.top + y];
    },
    find: name => app.D.names.indexOf(name),
    path: (src, lid) => route(app.D, src, lid),
    fan: lid => fanTo(app.D, lid),
    view: app.view,
    measure: () => app.view.measure?.name,
    shown: () => app.view.shown && app.view.shown.channels.map(c => c.out),
    pan: (x, y) => app.view.pan(x, y),
    zoom: factor => app.view.zoom(factor),
    boxes: () => app.view.boxes.list.map(({left, right, top, bottom}, g) => ({name: app.view.boxes.names[g], closed: app.view.boxes.shut[g],
      x: (left + right) / 2 * app.view.scale + app.view.tx, y: (top + bottom) / 2 * app.view.scale + app.view.ty})),
    hides: n => app.view.boxes.hides(n),
    written: () => { // names on the canvas, once it is drawn: left, top, right, bottom, text
      const {view} = app, {front: f} = view;
      if (view.pending || !view.heat && (view.job || f.scale !== view.scale || view.stale)) return null;
      return [...view.written.list, ...(view.heat ? [] : f.written.list.map(([left, top, right, bottom, text]) => [left - f.tx + view.tx, top - f.ty + view.ty, right - f.tx + view.tx, bottom - f.ty + view.ty, text]))];
    },
    pictures: () => app.view.pictures, // drawn so far; the first one at performance.now() drawn
    drawn: () => app.view.drawn,
    ready: performance.now(),
    trial: app.trial,
    states: app.states,
  };
  document.documentElement.dataset.ready = "true";
}
