// A map leaf by leaf instead of lines: rows send, columns receive.

const maps = {
  load: {name: "load", array: "heatLoad", say: v => `${grouped(v)} routes on the busiest link`, ends: m => ["0", `mean ${decimal(m.mean)}`, grouped(Math.max(m.max, Math.ceil(2 * m.mean)))]},
  hops: {name: "hops", array: "heatHops", say: v => `${decimal(v / 10)} switches on a path`},
  paths: {name: "diversity", array: "heatPaths", say: v => plural(v, "different path"), less: true},
};

class Heat {
  constructor(view, kind) {
    const {D} = view;
    this.view = view;
    this.kind = kind;
    this.values = D[maps[kind].array];
    const n = D.heatLeaf.length, of = view.groupings.length ? view.groupings[0].of : null, group = s => of ? of[s] : 0;
    this.order = Int32Array.from(D.heatLeaf.keys()).sort((a, b) => {
      const [s, t] = [D.heatLeaf[a], D.heatLeaf[b]];
      return group(s) - group(t) || D.y[s] - D.y[t] || D.x[s] - D.x[t] || s - t;
    });
    this.runs = []; // of leaves of one group: from, to, name
    for (let i = 0; of && i < n; i++) {
      const g = group(this.leaf(i)), last = this.runs[this.runs.length - 1];
      if (last && last.g === g) last.to = i + 1;
      else this.runs.push({g, from: i, to: i + 1, name: g < 0 ? "" : view.groupings[0].groups[g]});
    }
    if (this.runs.length === n) this.runs = [];
    this.size = n;
    this.cell = Math.max(10, 600 / n); // in the units of the drawing
    this.box = {left: -0.13 * n * this.cell, top: -0.13 * n * this.cell, right: n * this.cell, bottom: n * this.cell}; // with names
    this.at = null; // the cell that the keyboard is at
    [this.from, this.to] = [Infinity, 0];
    for (let i = 0; i < n * n; i++) {
      if (i % (n + 1) === 0 || this.dark(i)) continue; // a leaf to itself
      this.from = Math.min(this.from, this.values[i]);
      this.to = Math.max(this.to, this.values[i]);
    }
    this.make();
  }

  leaf(i) { return this.view.D.heatLeaf[this.order[i]]; }

  value([i, j]) { return this.order[i] * this.size + this.order[j]; }

  // dark says whether packets are lost, to one LID at least.
  dark(k) { return !this.view.D.heatHops[k] || this.view.D.heatLost[k] > 0; }

  // make draws the map, a pixel for each pair, and smaller ones for less zoom.
  make() {
    const {view, size: n} = this, {D, ramp} = view;
    const rgb = c => [5, 3, 1].reduce((all, i) => all << 8 | parseInt(c.slice(i, i + 2), 16), 255), colours = Array.from({length: 256}, (_, i) => rgb(shade(ramp, i / 255)));
    const none = rgb(view.colours.ink), own = rgb(view.colours.unused), {less} = maps[this.kind], range = this.to - this.from || 1;
    const place = v => this.kind === "load" ? warmth(D.measures.find(m => m.name === "routes"), v) : (less ? this.to - v : v - this.from) / range;
    const image = new ImageData(n, n), pixels = new Int32Array(image.data.buffer), {order, values} = this;
    for (let i = 0, at = 0; i < n; i++) {
      const row = order[i] * n;
      for (let j = 0; j < n; j++, at++) {
        const k = row + order[j];
        pixels[at] = i === j ? own : this.dark(k) ? none : colours[Math.max(0, Math.min(255, Math.round(255 * place(values[k]))))];
      }
    }
    const canvas = size => Object.assign(document.createElement("canvas"), {width: size, height: size});
    this.sizes = [canvas(n)];
    this.sizes[0].getContext("2d").putImageData(image, 0, 0);
    for (let half = n >> 1; half > 300; half >>= 1) {
      const c = canvas(half);
      c.getContext("2d").drawImage(this.sizes[this.sizes.length - 1], 0, 0, half, half);
      this.sizes.push(c);
    }
  }

  paint(c) {
    const {view, size: n, cell} = this, {scale: s, tx, ty, width, height, colours} = view, wide = n * cell * s;
    c.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const image = this.sizes.findLast(i => i.width >= wide * view.ratio) || this.sizes[0];
    c.imageSmoothingEnabled = image.width > wide * view.ratio;
    // The part that is to be seen.
    const k = image.width / wide, x0 = Math.max(0, tx), y0 = Math.max(0, ty), x1 = Math.min(width, tx + wide), y1 = Math.min(height, ty + wide);
    if (x1 > x0 && y1 > y0) c.drawImage(image, (x0 - tx) * k, (y0 - ty) * k, (x1 - x0) * k, (y1 - y0) * k, x0, y0, x1 - x0, y1 - y0);
    c.imageSmoothingEnabled = true;
    c.font = "11px system-ui, sans-serif";
    c.lineJoin = "round";
    c.textBaseline = "middle";
    const each = cell * s, named = each >= 13, rows = named || !this.runs.length ? Array.from({length: n}, (_, i) => ({from: i, to: i + 1, name: view.D.names[this.leaf(i)], brief: view.tight[this.leaf(i)]})) : this.runs;
    c.strokeStyle = colours.ground;
    c.lineWidth = 1;
    c.beginPath();
    for (const r of this.runs) {
      if ((r.to - r.from) * each < 5) continue;
      c.moveTo(tx, ty + r.from * each);
      c.lineTo(tx + wide, ty + r.from * each);
      c.moveTo(tx + r.from * each, ty);
      c.lineTo(tx + r.from * each, ty + wide);
    }
    c.stroke();
    // Names keep to the edges of the canvas.
    view.written = new Names();
    const room = Math.min(110, Math.max(48, 0.13 * wide)), left = Math.min(Math.max(tx, room), width - 40), top = Math.min(Math.max(ty, room), height - 40);
    const write = (name, brief, most, x, y, turned) => {
      c.save();
      c.translate(x, y);
      if (turned) c.rotate(-Math.PI / 2);
      c.textAlign = turned ? "left" : "right";
      const text = fitted(c, brief && c.measureText(name).width > most ? brief : name, most), long = c.measureText(text).width;
      view.written.list.push(turned ? [x - 5, y - long, x + 5, y, text] : [x - long, y - 5, x, y + 5, text]);
      c.lineWidth = 4;
      c.strokeStyle = colours.ground;
      c.strokeText(text, 0, 0);
      c.fillStyle = colours.muted;
      c.fillText(text, 0, 0);
      c.restore();
    };
    let [nextX, nextY] = [-Infinity, -Infinity];
    for (const {from, to, name, brief} of rows) {
      const middle = (from + to) / 2 * each;
      if (ty + middle > Math.max(nextY, top) && ty + middle < height) {
        write(name, brief, room - 14, left - 5, ty + middle, false);
        nextY = ty + middle + 12;
      }
      if (tx + middle > Math.max(nextX, left) && tx + middle < width) {
        write(name, brief, room - 14, tx + middle, top - 5, true);
        nextX = tx + middle + 12;
      }
    }
    const o = view.overlay.getContext("2d");
    o.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    o.clearRect(0, 0, width, height);
    o.strokeStyle = colours.accent;
    o.lineWidth = 2;
    for (const at of [this.at, view.hover && view.hover.cell]) if (at) o.strokeRect(tx + at[1] * each - 1, ty + at[0] * each - 1, Math.max(each, 3) + 2, Math.max(each, 3) + 2);
  }

  // under is what is at a place of the canvas.
  under(x, y) {
    const {view} = this, i = Math.floor((y - view.ty) / view.scale / this.cell), j = Math.floor((x - view.tx) / view.scale / this.cell);
    return {node: -1, edge: -1, cell: i >= 0 && j >= 0 && i < this.size && j < this.size ? [i, j] : null, x, y};
  }

  about({cell}) {
    if (!cell) return null;
    const {D} = this.view, k = this.value(cell), [from, to] = cell.map(i => D.names[this.leaf(i)]);
    const lost = D.heatLost[k] && `${D.heatLost[k]} of ${plural(D.heatLIDs[k % this.size], "LID")} lost`;
    return [`${from} → ${to}`, ...(lost ? [lost] : []), ...(D.heatHops[k] ? Object.values(maps).map(m => m.say(D[m.array][k])) : ["no packet arrives"])];
  }

  // pick shows the leaf that sends, or with tables a path between hosts.
  pick({cell}) {
    if (!cell) return;
    this.at = cell;
    this.view.move();
    this.view.emit("cell", {ends: cell.map(i => this.leaf(i)), lines: this.about({cell})});
  }

  // towards moves the cell of the keyboard. No node is the current one.
  towards(dx, dy) {
    const {view} = this, clamp = v => Math.min(Math.max(v, 0), this.size - 1);
    this.at = this.at ? [clamp(this.at[0] + dy), clamp(this.at[1] + dx)] : [0, 0];
    const each = this.cell * view.scale, [y, x] = [view.ty + (this.at[0] + 0.5) * each, view.tx + (this.at[1] + 0.5) * each];
    view.pan(x < 130 ? 130 - x : x > view.width - 60 ? view.width - 60 - x : 0, y < 130 ? 130 - y : y > view.height - 90 ? view.height - 90 - y : 0);
    view.emit("say", this.about({cell: this.at}).join(", "));
    return -1;
  }

  // legend says what colours mean.
  legend() {
    const {kind} = this, m = maps[kind], scale = el("div", {class: "scale"}), number = v => kind === "hops" ? decimal(v / 10) : grouped(v);
    scale.style.background = `linear-gradient(to right, ${this.view.ramp.join(", ")})`;
    const ends = m.ends ? m.ends(this.view.D.measures.find(m => m.name === "routes")) : (this.from > this.to ? [] : this.from === this.to ? [this.from] : m.less ? [this.to, this.from] : [this.from, this.to]).map(number);
    const title = {load: "routes on the busiest link", hops: "switches on a path", paths: "different paths"}[kind];
    return [el("span", {class: "legend-title"}, title), el("div", {class: "key"}, scale, el("div", {class: "ticks"}, ends.map(t => el("span", {}, t)))), el("span", {}, "from row to column")];
  }
}

// modes are the choices of how the fabric is drawn, as the document has them.
function modes(app) {
  const {view, D} = app, boxes = view.boxes.choice(), box = document.getElementById("modes");
  if (boxes) boxes.hidden = !!view.heat;
  const mode = (D.heatLeaf || D.mapLater) && el("select", {id: "mode", "aria-label": "Show the fabric or a map", onchange: async () => {
    if (mode.value && D.mapLater) await app.trial.addMap(D);
    if (app.D !== D) return; // there are other choices now
    view.heat = mode.value && D.heatLeaf ? new Heat(view, mode.value) : null;
    if (boxes) boxes.hidden = !!view.heat;
    view.hover = null;
    view.fit();
    app.legend();
  }}, el("option", {value: ""}, "fabric"), Object.entries(maps).map(([kind, m]) => el("option", {value: kind, selected: view.heat?.kind === kind}, `heat map: ${m.name}`)));
  box.replaceChildren(...[mode, boxes].filter(Boolean));
}

// hear does what the map asks for.
function hear(app) {
  app.stage.addEventListener("say", ev => { document.getElementById("live").textContent = ev.detail; });
  app.stage.addEventListener("cell", ev => {
    const {D} = app, [a, b] = ev.detail.ends;
    document.getElementById("live").textContent = ev.detail.lines.join(", ");
    if (D.tables !== "here" || a === b) return app.select(a, false);
    // By the ports on these two leaves, also where hosts have ports on several.
    const [p, q] = [a, b].map(s => D.portsOn(s)[0]);
    [app.from, app.to] = [D.owner[p], D.owner[q]];
    app.showEnds(D.num(p), D.lid[q]);
  });
}
