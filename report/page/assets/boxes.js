// Groups of nodes, such as pods and racks: each is drawn as one box where it is closed.

// small is the radius of switches, in pixels, below which a large fabric has its groups closed.
const small = 4, large = 1000; // switches

class Boxes {
  constructor(view) {
    this.view = view;
    this.nodes = -1;
  }

  // adopt takes the groupings of another document; one of the same nodes may leave them out.
  adopt() {
    const {view} = this, {D} = view;
    if (!D.groupings && D.nodes === this.nodes) return;
    const was = this.nodes < 0 ? undefined : this.grouping, {by} = this;
    this.nodes = D.nodes;
    this.auto = D.switches > large;
    view.groupings = (D.groupings || []).map((g, i) => ({...g, of: D[`grouping${i}`]}));
    this.choose(Math.min(was ?? (this.auto ? 0 : -1), view.groupings.length - 1));
    if (by?.length === this.by.length) this.by = by; // another state: what is open stays so
  }

  // choose takes a grouping, -1 for none; in a large fabric the zoom closes its groups, elsewhere
  // all are closed until they are opened.
  choose(i) {
    const {view} = this, {D} = view;
    this.grouping = i;
    this.of = i < 0 ? null : view.groupings[i].of;
    this.names = i < 0 ? [] : view.groupings[i].groups;
    this.brief = briefly(this.names);
    this.by = this.names.map(() => !this.auto || undefined); // by group: closed, open, or as the zoom has it
    this.list = this.names.map(() => ({left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity, switches: 0, hosts: 0, least: Infinity, first: -1}));
    for (let n = 0; this.of && n < D.nodes; n++) {
      const b = this.list[this.of[n]], r = D.radius[n];
      if (!b) continue;
      b.left = Math.min(b.left, D.x[n] - r);
      b.right = Math.max(b.right, D.x[n] + r);
      b.top = Math.min(b.top, D.y[n] - r);
      b.bottom = Math.max(b.bottom, D.y[n] + r);
      if (n < D.switches) b.switches++;
      else b.hosts++;
      if (b.first < 0) b.first = n;
      if (n < D.switches || !b.switches) b.least = Math.min(b.least, r);
    }
    this.key = null;
  }

  // isClosed says how a group is drawn now; one without nodes is not.
  isClosed(g) { return this.list[g].first >= 0 && (this.by[g] ?? this.list[g].least * this.view.scale < small); }

  // hides says whether a node is in a closed box.
  hides(n) { return this.of !== null && this.of[n] >= 0 && this.shut[this.of[n]]; }

  // settle finds what is drawn: lists of edges and cables on their own, and lines between boxes
  // for all others. It is called before each drawing, and does nothing while no group opens or
  // closes.
  settle() {
    const {view} = this, {D} = view;
    const shut = this.list.map((_, g) => this.isClosed(g)), key = shut.map(Number).join("") + view.version;
    if (key === this.key) return;
    this.key = key;
    this.shut = shut;
    this.joined = [];
    if (!shut.includes(true)) {
      [this.edgeOrder, this.cableOrder] = [view.edgeOrder, view.cableOrder];
      return;
    }
    const {of} = this, end = n => of[n] >= 0 && shut[of[n]] ? D.nodes + of[n] : n, known = new Map();
    const own = Uint8Array.from(D.edgeA, (a, e) => Number(end(a) === a && end(D.edgeB[e]) === D.edgeB[e]));
    for (let e = 0; e < D.edges; e++) {
      const a = end(D.edgeA[e]), b = end(D.edgeB[e]);
      if (own[e] || a === b) continue;
      const id = Math.min(a, b) * (D.nodes + this.list.length) + Math.max(a, b);
      let line = known.get(id);
      if (!line) {
        line = {a, b, cables: 0, kind: 0, e};
        known.set(id, line);
        this.joined.push(line);
      }
      line.cables += D.edgeCables[e + 1] - D.edgeCables[e];
      if (view.edgeClass[e] > line.kind) [line.kind, line.e] = [view.edgeClass[e], e]; // the hottest
    }
    for (const line of this.joined) {
      const a = view.spot(line.a), b = view.spot(line.b);
      line.curve = [a.x, a.y, a.x, a.y, b.x, b.y, b.x, b.y];
    }
    this.joined.sort((x, y) => x.kind - y.kind);
    this.edgeOrder = view.edgeOrder.filter(e => own[e]);
    this.cableOrder = view.cableOrder.filter(i => own[view.cableEdge[i]]);
  }

  // paint draws what is closed as boxes, and frames around what is open.
  paint(c, alpha) {
    const {view} = this, {scale: s, colours} = view, hottest = new Uint8Array(this.list.length);
    if (!this.of) return;
    for (let e = 0; e < view.D.edges; e++) {
      const g = this.of[view.D.edgeA[e]];
      if (g >= 0 && g === this.of[view.D.edgeB[e]]) hottest[g] = Math.max(hottest[g], view.edgeClass[e]);
    }
    c.lineJoin = "round";
    this.list.forEach((b, g) => {
      if (b.first < 0 || !view.inside(b.left, b.top, b.right, b.bottom)) return;
      const pad = Math.min(30, 6 / s), x = b.left - pad, y = b.top - pad, w = b.right - b.left + 2 * pad, h = b.bottom - b.top + 2 * pad;
      c.globalAlpha = alpha;
      c.beginPath();
      c.roundRect(x, y, w, h, Math.min(6 / s, w / 4, h / 4));
      if (this.shut[g]) {
        c.fillStyle = colours.ground;
        c.fill();
        c.globalAlpha = 0.3 * alpha;
        c.fillStyle = hottest[g] ? view.palette[hottest[g]] : colours.host;
        c.fill();
        c.globalAlpha = alpha;
      }
      c.strokeStyle = this.shut[g] ? colours.switch : colours.unused;
      c.lineWidth = 1.2 / s;
      c.stroke();
    });
    c.globalAlpha = 1;
  }

  // write names the boxes, in pixels.
  write(c, alpha) {
    const {view} = this, {scale: s, colours} = view;
    const write = (text, x, y, left) => {
      const w = c.measureText(text).width;
      if (view.job.written.add([left ? x : x - w / 2, y - 9, left ? x + w : x + w / 2, y + 2, text])) c.fillText(text, x, y);
    };
    c.globalAlpha = alpha;
    c.textBaseline = "alphabetic";
    this.list.forEach((b, g) => {
      if (b.first < 0 || !view.inside(b.left, b.top, b.right, b.bottom)) return;
      const [x0, y0] = [b.left * s + view.tx, b.top * s + view.ty], w = (b.right - b.left) * s, h = (b.bottom - b.top) * s;
      if (!this.shut[g]) {
        if (w < 40) return;
        c.font = "600 11px system-ui, sans-serif";
        c.textAlign = "left";
        c.fillStyle = colours.muted;
        write(fitted(c, `− ${this.names[g]}`, Math.max(w, 60)), x0 - 4, y0 - 20, true);
        return;
      }
      if (w < 14 || h < 12) return;
      c.textAlign = "center";
      c.fillStyle = colours.ink;
      c.font = "600 11px system-ui, sans-serif";
      const lines = h > 30 ? this.about(g).slice(1) : [];
      let y = y0 + h / 2 + 4 - 6.5 * lines.length;
      const brief = [this.names[g], this.brief[g]].find(name => c.measureText(name).width <= w - 4);
      if (!brief && h > 2 * w) { // upwards
        c.save();
        c.translate(x0 + w / 2 + 4, y0 + h / 2);
        c.rotate(-Math.PI / 2);
        const text = fitted(c, c.measureText(this.names[g]).width <= h - 8 ? this.names[g] : this.brief[g], h - 8), half = c.measureText(text).width / 2;
        if (view.job.written.add([x0 + w / 2 - 5, y0 + h / 2 - half, x0 + w / 2 + 5, y0 + h / 2 + half, text])) c.fillText(text, 0, 0);
        c.restore();
        return;
      }
      write(brief || fitted(c, this.brief[g], w), x0 + w / 2, y);
      c.font = "10px system-ui, sans-serif";
      c.fillStyle = colours.muted;
      for (const line of lines) if (c.measureText(line).width <= w) write(line, x0 + w / 2, y += 13);
    });
    c.globalAlpha = 1;
  }

  // about says what a group is.
  about(g) {
    const {switches, hosts} = this.list[g];
    return [this.names[g], switches && plural(switches, "switch", "switches"), hosts && plural(hosts, "host")].filter(Boolean);
  }

  // at is the closed box, or with names the open one by its name, at a place of the canvas; -1 for
  // none.
  at(sx, sy, names) {
    const {view} = this, {scale: s, tx, ty} = view;
    return this.list.findIndex((b, g) => {
      if (b.first < 0 || this.shut[g] === names) return false;
      const [x0, y0] = [b.left * s + tx, b.top * s + ty], w = (b.right - b.left) * s;
      return names ? w >= 40 && sx > x0 - 8 && sx < x0 + Math.min(Math.max(w, 60), 7 * this.names[g].length + 24) && sy > y0 - 34 && sy < y0 - 12
        : sx > x0 - 6 && sx < x0 + w + 6 && sy > y0 - 6 && sy < b.bottom * s + ty + 6;
    });
  }

  // open opens a group, and zooms to it where its switches would be too small.
  open(g) {
    const {view} = this, b = this.list[g];
    this.by[g] = false;
    if (b.least * view.scale < small) view.frame(b);
    view.draw();
  }

  close(g) {
    this.by[g] = true;
    this.view.draw();
  }

  // choice is the list of groupings, and null where there are none.
  choice() {
    const {view} = this;
    if (!view.groupings.length) return null;
    const list = el("select", {id: "boxes", "aria-label": "Draw as boxes", onchange: () => {
      this.choose(+list.value);
      view.draw();
    }}, el("option", {value: -1}, "nodes"), view.groupings.map((g, i) => el("option", {value: i, selected: i === this.grouping}, `${g.name} as boxes`)));
    return list;
  }
}

// briefly gives boxes what tells their names apart: those with as many words as each other.
function briefly(names) {
  const words = name => name.split(/[\s:;,\/_.-]+/).length, brief = names.slice();
  for (const n of new Set(names.map(words))) {
    const alike = names.map((_, i) => i).filter(i => words(names[i]) === n);
    if (alike.length > 1) distinct(alike.map(i => names[i])).forEach((name, k) => { brief[alike[k]] = name.replace(/^…|…$/g, ""); });
  }
  return brief;
}

// fitted is a text, with dots in its middle where it is wider than it may be.
function fitted(c, text, most) {
  const long = c.measureText(text).width;
  for (let keep = long > most ? Math.min(text.length, Math.ceil(text.length * most / long) + 3) : 1, full = text; c.measureText(text).width > most && keep > 1;) {
    keep--;
    text = full.slice(0, Math.ceil(keep / 2)) + "…" + full.slice(full.length - Math.floor(keep / 2));
  }
  return text;
}
