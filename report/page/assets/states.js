// Two states: the old one, the new one, and what differs.

class States {
  constructor(app, old) {
    this.app = app;
    this.old = old;
    this.now = app.D;
    this.mode = "both";
    this.changes = this.now.changes || [];
    this.moved = this.loads();
    const choices = [["old", old.state], ["both", "Differences"], ["new", this.now.state]];
    this.bar = el("div", {class: "states", role: "radiogroup", "aria-label": "State"}, choices.map(([mode, name]) =>
      el("label", {title: name}, el("input", {type: "radio", name: "state", id: "state-" + mode, checked: mode === this.mode, onchange: () => this.choose(mode)}), el("span", {}, shortened(name, 24)))));
    document.getElementById("shown").before(this.bar);
  }

  // loads lists the channels of the new state whose routes are others than before, the least change first.
  loads() {
    const {old, now} = this, list = [];
    if (!old.routes || !now.routes) return list;
    for (let p = 0; p < now.peer.length; p++) {
      if (now.edgeOf[p] < 0) continue;
      const was = this.twin(p), before = was === noPort ? 0 : old.routes[was];
      if (now.routes[p] !== before) list.push({p, before, by: now.routes[p] - before});
    }
    return list.sort((a, b) => Math.abs(a.by) - Math.abs(b.by) || b.p - a.p);
  }

  // twin is the old port of a new one.
  twin(p) {
    const {old, now} = this, n = now.owner[p], guid = now.guids[n];
    return portOf(old, {guid: now.was?.[guid] ?? guid, switch: now.isSwitch(n), port: now.num(p)});
  }

  // choose shows a state, or both.
  choose(mode) {
    const {app} = this, path = !document.getElementById("panel-path")?.hidden && app.to >= 0;
    this.mode = mode;
    app.view.marks = mode === "both" ? this.marks() : [];
    app.adopt(mode === "old" ? this.old : this.now);
    if (path && app.to >= 0 && app.D.tables === "here") app.showPath();
    else this.light();
  }

  // marks are the cables that differ, with the number of their change as port.
  marks() {
    const list = [];
    this.changes.forEach((c, i) => {
      const kind = {"other rate": "warning"}[c.kind] || "tree";
      if (c.kind !== "other rate") this.cables(this.old, c.old || [], {port: i, colour: "loop", gone: true}, list);
      this.cables(this.now, c.new || [], {port: i, colour: kind}, list);
    });
    return list;
  }

  // cables adds the marks of a change in one of the states.
  cables(D, ends, look, list) {
    for (let i = 0; i + 1 < ends.length; i += 2) {
      const p = portOf(D, ends[i]), q = portOf(D, ends[i + 1]);
      if (!ends[i].port || p === noPort || q === noPort) continue;
      const e = D.edgeOf[p];
      if (e < 0) {
        list.push({...look, of: D, a: D.owner[p], b: D.owner[q], bend: 0, shift: 0});
        continue;
      }
      const n = D.edgeCables[e + 1] - D.edgeCables[e], at = D.cables.subarray(D.edgeCables[e], D.edgeCables[e + 1]);
      const k = Math.max(at.indexOf(p), at.indexOf(q));
      list.push({...look, of: D, a: D.edgeA[e], b: D.edgeB[e], bend: D.edgeBend[e], shift: (k - (n - 1) / 2) * Math.min(5, 14 / n)});
    }
  }

  // nodes are the nodes of changes, each in the state that has it.
  nodes(changes) {
    const {colours} = this.app.view, list = [];
    const add = (D, ends, colour) => {
      for (const end of ends || []) {
        const n = D.nodeOf(end.guid, end.switch);
        if (n >= 0 && !end.port) list.push({node: n, of: D, colour});
      }
    };
    for (const c of changes) {
      const other = !["node gone", "new node"].includes(c.kind);
      add(this.old, c.old, other ? colours.accent : colours.loop);
      add(this.now, c.new, other ? colours.accent : colours.tree);
    }
    return list;
  }

  // light shows all that differs.
  light() {
    if (this.mode !== "both") return;
    const {app} = this, {view} = app, most = this.moved.length ? Math.abs(this.moved[this.moved.length - 1].by) : 1;
    app.display(() => ({
      title: this.changes.length || this.moved.length ? `${plural(this.changes.length, "difference")}, ${plural(this.moved.length, "channel")} with another load` : "Nothing differs",
      channels: this.moved.map(({p, by}) => ({out: p, thin: true, colour: mix(view.colours.ground, by > 0 ? view.colours.loop : view.colours.path, 0.25 + 0.75 * Math.abs(by) / most)})),
      nodes: this.nodes(this.changes), labels: [], all: true,
    }));
  }

  // show lights one change.
  show(i) {
    const c = this.changes[i], {app} = this, {view} = app, list = [];
    if (this.mode !== "both") {
      document.getElementById("state-both").checked = true;
      this.choose("both");
    }
    this.cables(this.old, c.old || [], {}, list);
    this.cables(this.now, c.new || [], {}, list);
    app.open("changes");
    app.press("[data-change]", `[data-change="${i}"]`);
    app.display(() => {
      const nodes = this.nodes([c]);
      for (const m of list) for (const n of [m.a, m.b]) nodes.push({node: n, of: m.of, colour: m.of.isSwitch(n) ? view.colours.switch : view.colours.host});
      return {title: c.text, channels: [], nodes, labels: nodes.filter(n => n.of === this.now).map(n => n.node)};
    });
  }

  // legend says what the colours of differences mean.
  legend() {
    const key = (colour, text, kind = "line") => el("span", {class: `key-${kind} ${colour}`}, text);
    const has = kinds => this.changes.some(c => kinds.includes(c.kind));
    return [
      has(["cable gone", "moved cable", "node gone"]) && key("loop", "gone", "gone"), has(["new cable", "moved cable", "new node"]) && key("tree", "new"),
      has(["other rate"]) && key("warning", "other rate"), has(["forwarding entries", "other node", "other"]) && key("accent", "other entries", "node"),
      this.moved.length > 0 && key("loop", "more routes"), this.moved.length > 0 && key("path", "fewer"),
    ].filter(Boolean);
  }

  panel() {
    const {old, now} = this, box = el("div", {}), a = old.result, b = now.result;
    const both = (name, x, y, bad) => [name, x === y ? y : `${x} → ${y}`, bad];
    box.append(el("p", {class: "note"}, `${old.state} → ${now.state}`), facts([
      both("switches", grouped(a.fabric.switches), grouped(b.fabric.switches)), both("links", grouped(a.fabric.links), grouped(b.fabric.links)),
      ...(old.tables === "none" || now.tables === "none" ? [] : [
        both("not delivered", grouped(a.unicast.unreachable + a.unicast.loops), grouped(b.unicast.unreachable + b.unicast.loops)),
        both("credit loops", grouped(a.credit_loops.count), grouped(b.credit_loops.count)), both("busiest link", grouped(old.max), grouped(now.max)),
      ]), both("verdict", a.verdict, b.verdict)]));
    const notes = now.summary || [];
    if (notes.length) box.append(el("ul", {class: "findings", id: "summary"}, notes.map(n => el("li", {}, el("p", {class: "finding"}, el("span", {class: "badge " + n.severity}, n.severity), el("span", {class: "message"}, n.text))))));
    if (!this.changes.length && !this.moved.length) box.append(el("p", {class: "note"}, "Nothing differs."));
    const most = 100;
    for (const kind of new Set(this.changes.map(c => c.kind))) {
      const list = this.changes.map((c, i) => [c, i]).filter(([c]) => c.kind === kind);
      box.append(el("h2", {}, `${kind} (${grouped(list.length)})`), el("ul", {class: "choices changes"}, list.slice(0, most).map(([c, i]) =>
        el("li", {}, el("button", {type: "button", "data-change": i, "aria-pressed": "false", onclick: () => this.show(i)}, c.text)))));
      if (list.length > most) box.append(el("p", {class: "note"}, `and ${grouped(list.length - most)} more, which ibweave diff lists`));
    }
    if (this.moved.length) {
      box.append(el("h2", {}, "Routes that moved"), el("p", {class: "note"}, `${plural(this.moved.length, "channel")} between switches; the greatest changes:`),
        el("ol", {class: "links", id: "moved"}, this.moved.slice(-10).reverse().map(({p, before}) => el("li", {}, el("button", {type: "button", onclick: () => this.channel(p)},
          el("span", {}, `${now.portName(p)} → ${now.portName(now.peer[p])}`), el("b", {}, `${grouped(before)} → ${grouped(now.routes[p])}`))))));
    }
    return box;
  }

  // channel shows a cable in the new state.
  channel(p) {
    if (this.app.D !== this.now) {
      document.getElementById("state-both").checked = true;
      this.choose("both");
    }
    this.app.showLink(p);
  }
}

// portOf is the port of an end; noPort if the document does not have it.
function portOf(D, {guid, switch: isSwitch, port = 0}) {
  const n = D.nodeOf(guid, isSwitch);
  return n < 0 || port >= D.base[n + 1] - D.base[n] ? noPort : D.base[n] + port;
}
