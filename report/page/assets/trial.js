// Trying changes: the compiler runs in a worker, so that the page stays quick.

class Trial {
  constructor(app) {
    this.app = app;
    this.base = app.D;
    this.steps = []; // texts as package session has them
    this.answers = []; // by step
    this.node = this.port = -1; // that is chosen
    this.state = "starting"; // or "ready", "busy", or why there is no compiler
    this.warm = false;
    this.note = "";
    this.waiting = new Map();
    this.next = 0;
    this.bends = new Map();
    for (let e = 0; e < this.base.edges; e++) this.bends.set(`${this.base.edgeA[e]} ${this.base.edgeB[e]}`, this.base.edgeBend[e]);
    const {cableAt, cableShift} = app.view;
    this.shift = p => cableShift[cableAt[p]] || 0;
    this.start();
  }

  async start() {
    const D = this.base, code = URL.createObjectURL(new Blob([unpack.toString(), `\nconst inflate = ${inflate};\n`, embedded("worker")], {type: "text/javascript"}));
    this.worker = new Worker(code);
    this.worker.onmessage = ({data}) => {
      if (data.warm) this.warm = true;
      else if (data.failed) this.fail(data.failed);
      else {
        this.worked = data.worked; // ms in the compiler
        this.waiting.get(data.id)(data.parts);
        this.waiting.delete(data.id);
      }
    };
    this.worker.onerror = ev => this.fail(ev.message || "the browser lets no worker start");
    const warm = [], p = D.cables[0];
    if (p !== undefined) for (const n of [D.owner[p], D.owner[D.peer[p]]]) warm.push(`do fail ${this.end(-1, p)}`, `do fail ${this.end(n)}`, `do drain ${this.end(n)}`);
    const first = this.ask({compiler: embedded("compiler"), tables: embedded("tables"), warm});
    let link = [];
    try { link = decodeURIComponent(location.hash.slice(1)).replaceAll("+", " ").split("&").filter(s => s); } catch { /* no steps */ }
    addEventListener("hashchange", () => location.reload()); // another address was entered
    const {error} = head(await first);
    URL.revokeObjectURL(code);
    if (error) {
      this.fail(error);
      return;
    }
    this.state = "ready";
    this.refill();
    for (const step of link) if (!await this.do(step)) break;
  }

  fail(why) {
    this.state = why;
    this.refill();
  }

  ask(message) {
    const id = this.next++;
    return new Promise(resolve => {
      this.waiting.set(id, resolve);
      this.worker.postMessage({id, ...message});
    });
  }

  refill() { this.app.fill("try"); }

  // end names a node, or a port, as steps have it.
  end(n, p = -1) {
    const D = this.base;
    return p < 0 ? D.guids[n] : `${D.guids[D.owner[p]]}:${D.num(p)}`;
  }

  // choose takes a node, or a cable by one of its ports, for the next step.
  choose(n, p) {
    [this.node, this.port] = [n, p];
    this.refill();
  }

  // do takes a step and says whether it was possible.
  async do(step) {
    const reply = await this.request("do " + step);
    if (!reply || !reply.answer) return false;
    const a = reply.answer;
    if (a.refused) {
      this.note = `Not possible: ${a.refused}.`;
      this.refill();
      return false;
    }
    this.answers.push(a);
    this.adopt(reply);
    this.showLoads();
    return true;
  }

  async undo() {
    const reply = await this.request("undo");
    if (!reply) return;
    this.answers.pop();
    this.adopt(reply);
  }

  // export shows the steps as a plan for the command line.
  async export() {
    const reply = await this.request("export");
    this.exported = reply && reply.export;
    this.refill();
  }

  plan({command, file, text}) {
    const save = file && el("a", {download: file, href: URL.createObjectURL(new Blob([text], {type: "text/yaml"}))}, `Save ${file}`);
    return [el("pre", {id: "try-command"}, command), text && el("pre", {id: "try-file"}, text), save && el("p", {}, save)].filter(Boolean);
  }

  // request asks the compiler and gives the first part of its answer; undefined if there is an
  // error.
  async request(request) {
    if (this.state !== "ready") return undefined;
    this.state = "busy";
    this.note = "";
    this.refill();
    const start = performance.now();
    const parts = await this.ask({request}), [, text, data] = parts;
    const D = text && this.document(text, data);
    if (D && this.app.view.heat) await this.addMap(D);
    this.took = performance.now() - start;
    this.state = "ready";
    const reply = head(parts);
    if (reply.error) {
      this.note = `Not possible: ${reply.error}.`;
      this.refill();
      return undefined;
    }
    reply.D = D;
    return reply;
  }

  // addMap completes the document of the last answer by the map leaf by leaf.
  async addMap(D) {
    const [, text, data] = await this.ask({request: "map"});
    D.mapLater = false;
    if (text) unpackArrays(D, JSON.parse(new TextDecoder().decode(text)).arrays, data);
  }

  // document is what the page shows: places and what does not change are those of the base.
  document(text, data) {
    const {base} = this, D = parse(text, data);
    for (const name of ["title", "version", "shape", "layout", "interactive", "x", "y", "radius"]) D[name] = base[name];
    const kept = [...(base.counters || []).keys()].filter(i => !base.counters[i].tables); // the others are of other tables
    D.counters = kept.map(i => base.counters[i]);
    kept.forEach((i, k) => { D[`counter${k}`] = base[`counter${i}`]; });
    D.mapLater = !!base.heatLeaf;
    for (let e = 0; e < D.edgeA.length; e++) D.edgeBend[e] = this.bends.get(`${D.edgeA[e]} ${D.edgeB[e]}`) || 0;
    return prepare(D);
  }

  adopt(reply) {
    this.exported = undefined;
    this.before = this.app.D;
    this.steps = reply.steps;
    this.app.view.marks = this.marks(reply.D, reply.drained || []);
    this.app.adopt(reply.D);
    history.replaceState(null, "", "#" + this.steps.map(s => s.replaceAll(" ", "+")).join("&"));
  }

  // marks lists cables that are no more, that are new or slower, and that are drained.
  marks(D, drained) {
    const {base} = this, list = [], ends = new Set(drained);
    const mark = (p, q, colour, gone) => {
      const [a, b, port] = base.owner[p] < base.owner[q] ? [base.owner[p], base.owner[q], p] : [base.owner[q], base.owner[p], q];
      if (base.isSwitch(a) && base.isSwitch(b)) list.push({a, b, port, bend: this.bends.get(`${a} ${b}`) || 0, shift: this.shift(port), colour, gone});
    };
    for (let p = 0; p < base.peer.length; p++) {
      const was = base.peer[p], is = D.peer[p];
      if (was > p && is !== was) mark(p, was, "loop", true);
      if (is < p) continue;
      const of = drained.length > 0 && [p, is].some(at => ends.has(this.end(-1, at)) || ends.has(this.end(base.owner[at])));
      if (of) mark(p, is, "warning", false);
      else if (is !== was || D.links[D.link[p]] !== base.links[base.link[p]]) mark(p, is, "accent", false);
    }
    return list;
  }

  // changed lists the channels between switches whose load is another than before, the most first.
  changed() {
    const {D} = this.app, was = this.before, list = [];
    for (let p = 0; p < D.peer.length; p++) {
      if (D.edgeOf[p] < 0 && was.edgeOf[p] < 0) continue;
      const by = D.routes[p] - was.routes[p];
      if (by) list.push({p, by});
    }
    return list.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || a.p - b.p);
  }

  // showLoads lights the channels whose load has changed.
  showLoads() {
    const {app} = this, list = this.changed();
    const more = list.filter(c => c.by > 0).length;
    app.display(() => ({
      title: `${plural(more, "channel")} with more routes, ${grouped(list.length - more)} with fewer`,
      channels: list.slice(0, 300).map(({p, by}) => ({out: p, colour: by > 0 ? app.view.colours.loop : app.view.colours.path, thin: list.length > 40})),
      nodes: [], labels: [],
    }));
  }

  // name is an end in words.
  name(text) {
    const {base} = this, [guid, num] = text.split(":");
    const n = base.byGUID.get(guid);
    if (n === undefined) return text;
    if (!num) return base.names[n];
    const p = base.base[n] + Number(num), q = this.app.D.peer[p] !== noPort ? this.app.D.peer[p] : base.peer[p];
    return q === noPort || q === undefined ? base.portName(p) : `${base.portName(p)} — ${base.portName(q)}`;
  }

  say(step) {
    const [kind, at, to] = step.split(" ");
    const verb = {fail: "Fail", drain: "Drain", restore: "Restore", slow: "Slow down", recable: "Recable"}[kind] || kind;
    return `${verb} ${this.name(at)}${to ? kind === "recable" ? ` to ${this.name(to)}` : ` to ${to}` : ""}`;
  }

  panel() {
    const box = el("div", {id: "trial"});
    const status = {starting: "The compiler starts.", ready: "", busy: "The compiler works."}[this.state] ?? `There is no compiler: ${this.state}`;
    box.append(el("p", {class: "note", role: "status", id: "try-status"}, status || this.note || (this.answers.length ? `Answered in ${Math.round(this.took)} ms.` : "Choose a switch or a cable, and what happens to it. Tables stay as far as they can, as with compile --previous; all are verified.")));
    box.append(this.actions());
    if (this.steps.length) {
      box.append(el("h2", {}, "Steps"), el("ol", {class: "tried", id: "try-steps"}, this.steps.map(s => el("li", {}, el("button", {type: "button", class: "node", onclick: () => this.again(s)}, this.say(s))))),
        el("p", {class: "buttons"}, el("button", {type: "button", id: "try-undo", disabled: this.state !== "ready", onclick: () => this.undo()}, "Undo the last step"),
        el("button", {type: "button", id: "try-export", disabled: this.state !== "ready", onclick: () => this.export()}, "For the command line")));
      if (this.exported) box.append(...this.plan(this.exported));
    }
    const a = this.answers[this.answers.length - 1];
    if (a) box.append(...this.about(a));
    return box;
  }

  // actions are buttons for what is chosen.
  actions() {
    const {D} = this.app, {base} = this;
    if (this.node < 0 && this.port < 0) return el("p", {}, "Nothing is chosen.");
    const box = el("div", {}), ready = this.state === "ready";
    const cables = this.port >= 0 ? this.parallel(this.port) : [];
    const chooser = cables.length > 1 && el("select", {id: "try-cable", "aria-label": "Which cable", onchange: () => this.choose(-1, +chooser.value)},
      cables.map(p => el("option", {value: p, selected: p === this.port}, this.name(this.end(-1, p)))));
    const at = this.port >= 0 ? this.end(-1, this.port) : this.end(this.node);
    const cabled = this.port >= 0 ? D.peer[this.port] !== noPort : true;
    const button = (id, text, step, can = true) => el("button", {type: "button", id, disabled: !ready || !can, onclick: () => step() && this.do(step())}, text);
    box.append(el("h2", {class: "name"}, this.port >= 0 ? this.name(at) : base.names[this.node]));
    if (chooser) box.append(chooser);
    box.append(el("p", {class: "buttons"}, button("try-fail", "Fail", () => `fail ${at}`, cabled), button("try-drain", "Drain", () => `drain ${at}`, cabled), button("try-restore", "Restore", () => `restore ${at}`)));
    if (this.port < 0 || !cabled) return box;
    const rates = slower(D.links[D.link[this.port]]);
    const rate = el("select", {id: "try-rate", "aria-label": "Rate"}, rates.map(r => el("option", {value: r}, r)));
    if (rates.length) box.append(el("p", {class: "buttons"}, button("try-slow", "Slow down to", () => `slow ${at} ${rate.value}`), rate));
    let goal = -1;
    const to = picker(base, "try-to", "Another switch or host", () => true, n => { goal = n; });
    const num = el("input", {type: "number", id: "try-port", min: 1, max: 254, "aria-label": "Port", placeholder: "port"});
    box.append(to.element, el("p", {class: "buttons"}, num, button("try-recable", "Plug the far end there", () => goal >= 0 && num.value && `recable ${at} ${this.end(goal)}:${num.value}`)));
    return box;
  }

  // parallel lists the cables beside one, by a port of the same switch, those that have failed too.
  parallel(p) {
    const {base} = this, n = base.owner[p], q = base.peer[p] !== noPort ? base.peer[p] : this.app.D.peer[p];
    if (q === noPort) return [p];
    const list = [];
    for (let at = base.base[n] + 1; at < base.base[n + 1]; at++)
      if ([base.peer[at], this.app.D.peer[at]].some(to => to !== noPort && base.owner[to] === base.owner[q])) list.push(at);
    return list;
  }

  // about says what a step has done.
  about(a) {
    const {D} = this.app, u = a.verify.unicast, first = a.whatif, plan = a.drain;
    const load = (l, before) => before ? `${grouped(before.max_routes_per_link)} → ${grouped(l.max_routes_per_link)}` : grouped(l.max_routes_per_link);
    const change = c => `${plural(c.blocks, "block")} on ${plural(c.switches, "switch", "switches")}`;
    const list = [el("h2", {}, "The last step"), facts([
      ["paths moved", grouped(a.moved_pairs)], ["not delivered", grouped(u.unreachable + u.loops), u.unreachable + u.loops ? "bad" : "good"],
      ["to write", change(a.changes)], ["entries", grouped(a.changes.entries)],
      ["busiest link", load(a.after, a.before)], ["verified", a.verify.verdict, {errors: "bad", clean: "good"}[a.verify.verdict]],
      ["tables", a.kept ? "kept" : "from scratch"],
    ])];
    if (first && first.refused) list.push(el("p", {class: "note"}, first.refused));
    else if (first) {
      list.push(el("p", {class: "note"}, `As a failure: ${plural(first.gone_pairs, "pair")} gone with their only cable, ${grouped(first.lost_pairs)} cut off. A first step writes ${change(first)}, with ${grouped(first.max_routes_per_link)} routes on the busiest link.`));
    }
    if (plan) {
      const steps = plan.windows[0].steps;
      list.push(el("h2", {}, "Drained together"), el("div", {class: "scroll"}, el("table", {id: "try-plan"},
        el("thead", {}, el("tr", {}, ["drain", "busiest", "write", "back", "order", "unplugged"].map(t => el("th", {scope: "col"}, t)))),
        el("tbody", {}, steps.map(s => el("tr", {}, [s.part, grouped(s.max_routes_per_link), grouped(s.drain.blocks), grouped(s.back.blocks), s.drain.order.kind, s.verdict_unplugged].map(t => el("td", {}, t))))))));
      if (plan.windows[0].gone_hosts) list.push(el("p", {class: "note"}, `Without a cable when unplugged: ${plan.gone_hosts[0].length > 200 ? plan.gone_hosts[0].slice(0, 200) + "…" : plan.gone_hosts[0]}`));
    }
    const loads = this.changed();
    if (loads.length) {
      list.push(el("h2", {}, "Routes that moved"), el("p", {class: "note"}, `${plural(loads.length, "channel")} between switches; the greatest changes:`),
        el("div", {class: "scroll"}, el("table", {id: "try-loads"}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "channel"), el("th", {scope: "col", class: "number"}, "before"), el("th", {scope: "col", class: "number"}, "after"))),
          el("tbody", {}, loads.slice(0, 20).map(({p}) => el("tr", {}, el("td", {}, el("button", {type: "button", class: "node", onclick: () => this.showChannel(p)}, this.name(this.end(-1, p)))),
            el("td", {class: "number"}, grouped(this.before.routes[p])), el("td", {class: "number"}, grouped(D.routes[p]))))))));
    }
    if (a.writes.length) {
      list.push(el("details", {}, el("summary", {}, `Blocks to write by switch`), el("table", {id: "try-writes"}, el("tbody", {}, a.writes.map(w => el("tr", {},
        el("td", {}, this.name(w.switch)), el("td", {class: "number"}, plural(w.blocks, "block")), el("td", {class: "number"}, plural(w.entries, "entry", "entries"))))))));
    }
    return list;
  }

  showChannel(p) {
    if (this.app.D.peer[p] !== noPort) this.app.showLink(p);
    else this.show(p);
  }

  // show is about a cable that is no more.
  show(p) {
    this.choose(-1, p);
    this.app.open("try");
  }

  // again chooses what a step was about.
  again(step) {
    const [guid, num] = step.split(" ")[1].split(":"), n = this.base.byGUID.get(guid);
    if (num) this.choose(-1, this.base.base[n] + Number(num));
    else this.choose(n, -1);
  }
}

// head is the first part of an answer.
const head = parts => JSON.parse(new TextDecoder().decode(parts[0]));

// slower lists rates below one, "4xNDR".
function slower(rate) {
  const [width, speed] = (rate || "").split("x"), speeds = ["SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR"], k = speeds.indexOf(speed);
  return [...[2, 1].filter(w => w < +width).map(w => `${w}x${speed}`), ...speeds.slice(0, Math.max(k, 0)).reverse().map(s => `${width}x${s}`)];
}
