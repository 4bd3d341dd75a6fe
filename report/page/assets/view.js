// The drawing: a canvas with the fabric, and one above it with what is shown on it.

// ramp is the colours of loads, from none over the mean to the greatest.
const ramps = {
  light: ["#c8d0da", "#9db9d3", "#5f9ac4", "#2f7fae", "#e0a32e", "#e2701f", "#c62a1e"],
  dark: ["#343d4a", "#3c5a78", "#3f7ea8", "#52a5c9", "#e3b341", "#f08a3c", "#ff5c4d"],
};
const classes = 24;
const part = 150, slice = 8; // lines that are drawn before others may have their turn, and milliseconds in a frame

function mix(a, b, t) {
  const part = i => {
    const x = parseInt(a.slice(i, i + 2), 16), y = parseInt(b.slice(i, i + 2), 16);
    return Math.round(x + (y - x) * t).toString(16).padStart(2, "0");
  };
  return "#" + part(1) + part(3) + part(5);
}

// shade is the colour of a place on the ramp, 0 to 1.
function shade(ramp, t) {
  const at = Math.min(Math.max(t, 0), 1) * (ramp.length - 1), i = Math.min(Math.floor(at), ramp.length - 2);
  return mix(ramp[i], ramp[i + 1], at - i);
}

// warmth is the place of a load on the ramp: the mean is in the middle, and the far end
// is the greatest load, or twice the mean where that is more.
function warmth(m, load) {
  if (!m.mean) return 0;
  if (load <= m.mean) return 0.5 * load / m.mean;
  return 0.5 + 0.5 * (load - m.mean) / (Math.max(m.max, 2 * m.mean) - m.mean);
}

// along is the place and the direction at t on a cubic curve, 0 to 1.
function along(c, t) {
  const u = 1 - t, place = [], way = [];
  for (let i = 0; i < 2; i++) {
    place.push(u * u * u * c[i] + 3 * u * u * t * c[i + 2] + 3 * u * t * t * c[i + 4] + t * t * t * c[i + 6]);
    way.push(u * u * (c[i + 2] - c[i]) + 2 * u * t * (c[i + 4] - c[i + 2]) + t * t * (c[i + 6] - c[i + 4]));
  }
  return [...place, ...way];
}

// Names are boxes of text that do not cover each other: left, top, right, bottom, text.
class Names {
  constructor() {
    this.list = [];
    this.bands = new Map(); // by 32 pixels of height
  }

  // add adds a box if it is free, or says that it is not; held ones are free for nothing else, and not
  // in the list.
  add(box, held) {
    const bands = [];
    for (let k = box[1] >> 5; k <= box[3] >> 5; k++) {
      if (!this.bands.has(k)) this.bands.set(k, []);
      bands.push(this.bands.get(k));
    }
    if (!held && bands.some(b => b.some(o => o[0] < box[2] && box[0] < o[2] && o[1] < box[3] && box[1] < o[3]))) return false;
    for (const b of bands) b.push(box);
    if (!held) this.list.push(box);
    return true;
  }
}

class View {
  constructor(D, stage) {
    this.D = D;
    this.measure = D.measures.find(m => m.name === D.show) || D.measures[0]; // that links are coloured by; undefined for none
    this.stage = stage;
    this.base = stage.querySelector("#base");
    this.overlay = stage.querySelector("#overlay");
    this.scale = 1;
    this.tx = this.ty = 0;
    this.current = -1; // the node that the keyboard is at
    this.hover = null;
    this.shown = null; // see show
    this.least = 0; // edges with less load are faint
    this.pending = false;
    this.front = this.job = null; // the picture of the fabric and where it is, and one that is being drawn
    this.stale = true; // the picture is not of what is to be seen
    this.heat = null; // a map that is shown instead of the fabric
    this.pictures = 0; // that were drawn
    this.seen = []; // the edges on the picture
    this.written = new Names(); // on the canvas; those of a picture are in it
    this.marks = []; // lines that are always drawn: what has failed, is drained or new
    this.version = 0; // of the edges and their order
    this.groupings = [];
    this.boxes = new Boxes(this);
    this.prepare();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(stage);
    // Controls that grow make room for themselves; what they leave is kept, and the drawing does not jump back.
    const controls = new ResizeObserver(() => this.fitted && this.space().some((most, i) => most > this.spaced[i]) && this.fit());
    this.controls = [".top", ".legend"].map(c => stage.parentElement.querySelector(c));
    for (const e of this.controls) controls.observe(e);
    this.recolour();
    this.resize();
    this.fit();
  }

  // prepare makes what drawing needs and does not change.
  prepare() {
    const D = this.D;
    this.boxes.adopt();
    this.choose(this.measure);
    this.cableEdge = new Int32Array(D.cables.length);
    this.cableShift = new Float32Array(D.cables.length);
    this.cableAt = new Int32Array(D.peer.length).fill(-1);
    for (let e = 0; e < D.edges; e++) {
      const from = D.edgeCables[e], n = D.edgeCables[e + 1] - from;
      const apart = Math.min(5, 14 / n);
      for (let i = 0; i < n; i++) {
        this.cableEdge[from + i] = e;
        this.cableShift[from + i] = (i - (n - 1) / 2) * apart;
        const p = D.cables[from + i];
        this.cableAt[p] = this.cableAt[D.peer[p]] = from + i;
      }
    }
    this.length = 0; // of all edges
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let n = 0; n < D.nodes; n++) {
      left = Math.min(left, D.x[n] - D.radius[n]);
      right = Math.max(right, D.x[n] + D.radius[n]);
      top = Math.min(top, D.y[n] - D.radius[n]);
      bottom = Math.max(bottom, D.y[n] + D.radius[n]);
    }
    for (let e = 0; e < D.edges; e++) {
      const [x, y] = along(this.curve(e, 0), 0.5);
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
      this.length += Math.hypot(D.x[D.edgeA[e]] - D.x[D.edgeB[e]], D.y[D.edgeA[e]] - D.y[D.edgeB[e]]);
    }
    if (D.box) [left, top, right, bottom] = D.box; // of both states
    this.box = D.nodes || D.box ? {left, top, right, bottom} : {left: 0, top: 0, right: 1, bottom: 1};
    this.index();
    this.names();
  }

  // choose colours links by a measure: edges and cables in the order they are drawn, the hot ones
  // last.
  choose(m) {
    const D = this.D;
    this.version++;
    this.measure = m;
    const classOf = load => m ? (load <= 0 ? 0 : 1 + Math.min(classes - 1, Math.floor(warmth(m, load) * classes))) : 1;
    this.edgeClass = m ? Uint8Array.from(m.edge, classOf) : new Uint8Array(D.edges).fill(1);
    this.cableClass = Uint8Array.from(D.cables, p => classOf(m ? Math.max(m.values[p], m.values[D.peer[p]]) : 0));
    const sorted = list => Int32Array.from(list.keys()).sort((a, b) => list[a] - list[b] || a - b);
    this.edgeOrder = sorted(this.edgeClass);
    this.cableOrder = sorted(this.cableClass);
  }

  // index puts nodes into cells, for what is under the pointer.
  index() {
    const D = this.D, {left, top, right, bottom} = this.box;
    const cell = Math.max(1, Math.sqrt((right - left) * (bottom - top) / Math.max(1, D.nodes)));
    const columns = Math.ceil((right - left) / cell) + 1, lines = Math.ceil((bottom - top) / cell) + 1;
    const at = n => Math.floor((D.y[n] - top) / cell) * columns + Math.floor((D.x[n] - left) / cell);
    const start = new Int32Array(columns * lines + 1);
    for (let n = 0; n < D.nodes; n++) start[at(n) + 1]++;
    for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
    const next = start.slice(), list = new Int32Array(D.nodes);
    for (let n = 0; n < D.nodes; n++) list[next[at(n)]++] = n;
    this.cells = {cell, columns, lines, start, list};
  }

  // names finds how much room the names of nodes have, and short forms of them: without
  // what all in a row begin and end with.
  names() {
    const D = this.D;
    this.room = new Float32Array(D.nodes).fill(Infinity);
    this.brief = D.names.slice();
    this.tight = D.names.slice(); // shorter still: without the words in the middle that all share
    this.longest = D.names.slice(); // by node: the longest name in its row
    this.longestBrief = this.brief.slice();
    this.longestTight = this.tight.slice();
    const rows = new Map();
    for (let n = 0; n < D.nodes; n++) {
      const key = (D.isSwitch(n) ? "s" : "h") + D.y[n];
      if (!rows.has(key)) rows.set(key, []);
      rows.get(key).push(n);
    }
    for (const row of rows.values()) {
      row.sort((a, b) => D.x[a] - D.x[b]);
      for (let i = 1; i < row.length; i++) {
        const apart = D.x[row[i]] - D.x[row[i - 1]];
        this.room[row[i]] = Math.min(this.room[row[i]], apart);
        this.room[row[i - 1]] = Math.min(this.room[row[i - 1]], apart);
      }
    }
    const shorten = list => {
      if (list.length < 2) return;
      const common = (a, b) => {
        let i = 0;
        while (i < a.length && a[i] === b[i]) i++;
        return a.slice(0, i);
      };
      const back = text => [...text].reverse().join("");
      let prefix = D.names[list[0]], suffix = back(prefix);
      for (const n of list) {
        prefix = common(prefix, D.names[n]);
        suffix = common(suffix, back(D.names[n]));
      }
      // Whole words: up to a separator, and from one on.
      prefix = prefix.replace(/[^\s:;\/_-]*$/, "");
      suffix = back(suffix).replace(/^[^\s:;\/_-]*/, "");
      for (const n of list) {
        const name = D.names[n];
        if (name.length > prefix.length + suffix.length) this.brief[n] = name.slice(prefix.length, name.length - suffix.length);
      }
      distinct(list.map(n => this.brief[n])).forEach((text, i) => { this.tight[list[i]] = text; });
    };
    for (const [key, row] of rows) {
      if (key[0] !== "s") continue;
      shorten(row);
      const longest = list => row.reduce((most, n) => list[n].length > most.length ? list[n] : most, "");
      const name = longest(D.names), brief = longest(this.brief), tight = longest(this.tight);
      for (const n of row) [this.longest[n], this.longestBrief[n], this.longestTight[n]] = [name, brief, tight];
    }
    shorten(Array.from({length: D.nodes - D.switches}, (_, i) => D.switches + i));
    for (let n = D.switches; n < D.nodes; n++) {
      if (this.room[n] === Infinity) this.room[n] = D.radius[n] / 0.32;
    }
  }

  // curve is the line of an edge: the points of a cubic curve, all shifted aside.
  curve(e, shift) {
    return this.line(this.D.edgeA[e], this.D.edgeB[e], this.D.edgeBend[e], shift);
  }

  // line is a curve between two nodes.
  line(a, b, bend, shift, D = this.D) {
    const dx = D.x[b] - D.x[a], dy = D.y[b] - D.y[a], length = Math.hypot(dx, dy) || 1;
    const px = dy / length, py = -dx / length, out = shift + 4 / 3 * bend;
    return [D.x[a] + px * shift, D.y[a] + py * shift, D.x[a] + px * out, D.y[a] + py * out,
      D.x[b] + px * out, D.y[b] + py * out, D.x[b] + px * shift, D.y[b] + py * shift];
  }

  // The colours of the theme.
  recolour() {
    const style = getComputedStyle(document.documentElement);
    const get = name => style.getPropertyValue(name).trim();
    this.colours = {
      switch: get("--switch"), host: get("--host"), ink: get("--ink"), muted: get("--muted"), ground: get("--ground"),
      path: get("--path"), warning: get("--warning"), loop: get("--loop"), tree: get("--tree"), accent: get("--accent"), unused: get("--unused"),
    };
    const ramp = ramps[get("--theme")] || ramps.light;
    this.ramp = ramp;
    this.palette = [this.colours.unused];
    for (let i = 0; i < classes; i++) this.palette.push(shade(ramp, (i + 0.5) / classes));
    if (!this.measure) this.palette.fill(ramp[2]);
    if (this.heat) this.heat.make();
    this.draw();
  }

  // loadColour is the colour of a load, by default of that which links are coloured by.
  loadColour(load, m = this.measure) { return m ? (load <= 0 ? this.colours.unused : shade(this.ramp, warmth(m, load))) : this.ramp[2]; }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const w = this.stage.clientWidth, h = this.stage.clientHeight;
    const untouched = this.fitted;
    for (const c of [this.base, this.overlay]) {
      c.width = Math.round(w * ratio);
      c.height = Math.round(h * ratio);
    }
    this.width = w;
    this.height = h;
    this.ratio = ratio;
    if (untouched) this.fit();
    this.draw();
    this.refresh(); // now: what had another size is empty
  }

  // space is what the controls take above and below the drawing; in a narrow window they are beside it.
  space() {
    if (matchMedia("(max-width: 820px)").matches) return [0, 0];
    return this.controls.map((e, i) => Math.max([28, 40][i], e.offsetHeight - 6));
  }

  fit() {
    const {left, top, right, bottom} = (this.heat || this).box, margin = 36, [above, below] = this.spaced = this.space();
    const w = Math.max(1, right - left), h = Math.max(1, bottom - top);
    const tools = 22; // at the right
    this.scale = Math.max(1e-3, Math.min((this.width - 2 * margin - tools) / w, (this.height - 2 * margin - above - below) / h, 1.6));
    this.tx = (this.width - tools) / 2 - this.scale * (left + right) / 2;
    this.ty = (this.height + above - below) / 2 - this.scale * (top + bottom) / 2;
    this.fitScale = this.scale;
    this.fitted = true;
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, this.fitScale / 2), 12);
    this.tx = x - (x - this.tx) * scale / this.scale;
    this.ty = y - (y - this.ty) * scale / this.scale;
    this.scale = scale;
    this.fitted = false;
    this.move();
  }

  pan(dx, dy) {
    this.tx += dx;
    this.ty += dy;
    this.fitted = false;
    this.move();
  }

  // frame zooms to a rectangle.
  frame({left, top, right, bottom}) {
    const room = Math.min((this.width - 60) / (right - left), (this.height - 140) / (bottom - top));
    this.zoom(Math.min(room, 4) / this.scale);
    this.pan(this.width / 2 - this.tx - this.scale * (left + right) / 2, this.height / 2 - this.ty - this.scale * (top + bottom) / 2);
  }

  // reveal moves the drawing so that a node is well inside.
  reveal(n) {
    const g = n < this.D.nodes && this.boxes.of ? this.boxes.of[n] : -1, at = this.spot(n);
    if (g >= 0 && this.boxes.isClosed(g)) this.boxes.open(g);
    const x = at.x * this.scale + this.tx, y = at.y * this.scale + this.ty;
    const margin = 60;
    const dx = x < margin ? margin - x : x > this.width - margin ? this.width - margin - x : 0;
    const dy = y < margin ? margin - y : y > this.height - margin ? this.height - margin - y : 0;
    if (dx || dy) this.pan(dx, dy);
  }

  // screen is where a node is on the canvas, in CSS pixels.
  screen(n) { return [this.D.x[n] * this.scale + this.tx, this.D.y[n] * this.scale + this.ty]; }

  // draw draws the fabric again; move only what has moved.
  draw() {
    this.stale = true;
    this.move();
  }

  move() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.refresh();
    });
  }

  // refresh makes a frame: the picture of the fabric, which is larger than the canvas, moves with the
  // view, and another one is drawn behind it, part by part, when it no longer suits.
  refresh() {
    const c = this.base.getContext("2d");
    if (this.heat) return this.heat.paint(c);
    if (this.stale || !this.job && !this.suits()) {
      const [mx, my] = [Math.round(this.width / 4), Math.round(this.height / 4)];
      this.job = {scale: this.scale, tx: this.tx + mx, ty: this.ty + my, written: new Names(), aside: [mx, this.width, my], width: this.width + 2 * mx, height: this.height + 2 * my, canvas: this.spare || document.createElement("canvas")};
      this.spare = null;
      const wide = Math.ceil(this.job.width * this.ratio), high = Math.ceil(this.job.height * this.ratio), {canvas} = this.job;
      if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, {width: wide, height: high});
      this.job.rest = this.paint(canvas.getContext("2d", {willReadFrequently: true}));
      this.stale = false;
    }
    if (this.job && this.advance()) {
      this.spare = this.front && this.front.canvas;
      this.front = this.job;
      this.job = null;
      this.drawn ??= performance.now();
      this.pictures++;
    }
    const of = this.front || this.job, k = this.scale / of.scale;
    let [x, y] = [this.tx - of.tx * k, this.ty - of.ty * k].map(v => v * this.ratio);
    if (k === 1) [x, y] = [Math.round(x), Math.round(y)];
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.base.width, this.base.height);
    c.drawImage(of.canvas, x, y, of.canvas.width * k, of.canvas.height * k);
    this.paintOverlay();
    if (this.job || !this.suits()) this.move();
  }

  // suits says whether the picture is of this zoom and reaches well beyond the canvas.
  suits() {
    const {front: f} = this;
    if (!f || f.scale !== this.scale) return false;
    const left = f.tx - this.tx, top = f.ty - this.ty, least = 1 / 12; // of the margins of a quarter
    return left >= least * this.width && top >= least * this.height &&
      left + this.width <= f.width - least * this.width && top + this.height <= f.height - least * this.height;
  }

  // advance draws a part of the picture, as if the view were there, and says whether it is done.
  advance() {
    const {job} = this, now = {scale: this.scale, tx: this.tx, ty: this.ty, width: this.width, height: this.height};
    const end = performance.now() + (this.front ? slice : 50); // the first one is waited for
    Object.assign(this, {scale: job.scale, tx: job.tx, ty: job.ty, width: job.width, height: job.height});
    let done = false;
    do {
      done = job.rest.next().done;
      job.canvas.getContext("2d").getImageData(0, 0, 1, 1); // what is drawn up to here is drawn now
    } while (!done && performance.now() < end);
    Object.assign(this, now);
    return done;
  }

  // inside says whether a rectangle is on the canvas, in part.
  inside(left, top, right, bottom) {
    const {scale: s, tx, ty} = this;
    return right * s + tx > 0 && left * s + tx < this.width && bottom * s + ty > 0 && top * s + ty < this.height;
  }

  // spot is where a node is, or the box that its number means when there are no more nodes.
  spot(n) {
    const {D} = this, b = n >= D.nodes && this.boxes.list[n - D.nodes];
    if (!b) return {x: D.x[n], y: D.y[n], w: D.radius[n], h: D.radius[n]};
    return {x: (b.left + b.right) / 2, y: (b.top + b.bottom) / 2, w: (b.right - b.left) / 2, h: (b.bottom - b.top) / 2};
  }

  *paint(c) {
    const D = this.D, s = this.scale, {boxes} = this;
    const dim = this.shown !== null;
    boxes.settle();
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    c.setTransform(this.ratio * s, 0, 0, this.ratio * s, this.ratio * this.tx, this.ratio * this.ty);
    const x0 = -this.tx / s, y0 = -this.ty / s, x1 = x0 + this.width / s, y1 = y0 + this.height / s;
    const out = e => {
      const a = D.edgeA[e], b = D.edgeB[e], bend = 1.4 * Math.abs(D.edgeBend[e]) + 14;
      return Math.max(D.x[a], D.x[b]) + bend < x0 || Math.min(D.x[a], D.x[b]) - bend > x1 || Math.max(D.y[a], D.y[b]) + bend < y0 || Math.min(D.y[a], D.y[b]) - bend > y1;
    };

    const apart = 5 * s > 3.2; // cables side by side
    const order = apart ? boxes.cableOrder : boxes.edgeOrder, classOf = apart ? this.cableClass : this.edgeClass;
    const width = Math.min(2.2, Math.max(0.7, 100 * s * 0.03));
    // The more of the ground lines would hide, the fainter are those without much load.
    const cover = this.length * width / s / ((this.box.right - this.box.left) * (this.box.bottom - this.box.top) || 1);
    const dense = Math.min(1, Math.max(0.16, 0.42 / Math.sqrt(cover)));
    const pen = (k, more) => {
      const t = k / classes;
      c.globalAlpha = dim || (this.measure && k < this.least) ? Math.min(0.1, dense) : this.measure ? dense + (1 - dense) * t ** 3 : dense;
      c.strokeStyle = this.palette[k];
      c.lineWidth = (width + (this.measure ? 0.9 * t * t : 0) + more) / s;
      c.setLineDash(k === 0 && this.measure ? [4 / s, 3 / s] : []);
    };
    const seen = [];
    for (let i = 0; i < order.length;) {
      const k = classOf[order[i]];
      let lines = 0;
      c.beginPath();
      for (; i < order.length && classOf[order[i]] === k && lines < part; i++) {
        const e = apart ? this.cableEdge[order[i]] : order[i];
        if (out(e)) continue;
        lines++;
        if (!apart || order[i] === D.edgeCables[e]) seen.push(e);
        const [ax, ay, px, py, qx, qy, bx, by] = this.curve(e, apart ? this.cableShift[order[i]] : 0);
        c.moveTo(ax, ay);
        if (D.edgeBend[e]) c.bezierCurveTo(px, py, qx, qy, bx, by);
        else c.lineTo(bx, by);
      }
      if (!lines) continue;
      pen(k, 0);
      c.stroke();
      if (lines === part) yield;
    }
    for (let i = 0; i < boxes.joined.length;) {
      const {kind} = boxes.joined[i], end = i + part;
      c.beginPath();
      for (; i < end && boxes.joined[i]?.kind === kind; i++) {
        const [ax, ay, , , , , bx, by] = boxes.joined[i].curve;
        c.moveTo(ax, ay);
        c.lineTo(bx, by);
      }
      pen(kind, 0.5);
      c.stroke();
      if (i === end) yield;
    }
    this.seen = seen;
    c.setLineDash([]);
    boxes.paint(c, dim ? 0.5 : 1);

    // Hosts, with a line to their switch where there are few.
    const shown = n => {
      const r = D.radius[n];
      return D.x[n] + r > x0 && D.x[n] - r < x1 && D.y[n] + r > y0 && D.y[n] - r < y1 && !boxes.hides(n);
    };
    const hosts = [], switches = [];
    for (let n = D.switches; n < D.nodes; n++) if (shown(n)) hosts.push(n);
    for (let n = 0; n < D.switches; n++) if (shown(n)) switches.push(n);
    c.globalAlpha = dim ? 0.1 : 0.55;
    c.strokeStyle = this.colours.host;
    c.lineWidth = Math.min(1, 100 * s * 0.012) / s;
    c.beginPath();
    for (const n of hosts) {
      const to = D.attached[n];
      if (to < 0 || D.hosts[to].length > 4 || D.radius[n] * s < 1.2) continue;
      c.moveTo(D.x[n], D.y[n]);
      c.lineTo(D.x[to], D.y[to]);
    }
    c.stroke();
    c.globalAlpha = dim ? 0.3 : 1;
    c.fillStyle = this.colours.host;
    for (let i = 0; i < hosts.length; i += part) {
      c.beginPath();
      for (const n of hosts.slice(i, i + part)) this.addNode(c, n);
      c.fill();
      if (hosts.length > part) yield;
    }
    c.fillStyle = this.colours.switch;
    c.strokeStyle = this.colours.ground;
    c.lineWidth = 1.2 / s;
    c.globalAlpha = dim ? 0.4 : 1;
    c.beginPath();
    for (const n of switches) this.addNode(c, n);
    c.fill();
    if (2 * 30 * s > 5) c.stroke();
    if (hosts.length + switches.length > part) yield;
    if (dim) this.label(c, 0, this.shown.labels || []);
    this.label(c, dim ? 0.45 : 1, null);
    boxes.write(c, dim ? 0.6 : 1);
  }

  // paintMarks draws lines between nodes, with a cross on those that are no more.
  paintMarks(c) {
    const s = this.scale;
    for (const {a, b, bend, shift, colour, gone, of} of this.marks) {
      const [ax, ay, ...rest] = this.line(a, b, bend, 5 * s > 3.2 ? shift : 0, of);
      c.globalAlpha = 0.9;
      c.strokeStyle = this.colours[colour];
      c.lineWidth = 2.2 / s;
      c.setLineDash(gone ? [5 / s, 4 / s] : []);
      c.beginPath();
      c.moveTo(ax, ay);
      c.bezierCurveTo(...rest);
      c.stroke();
      if (!gone) continue;
      const [x, y] = along([ax, ay, ...rest], 0.5), r = Math.min(5 / s, 12);
      c.setLineDash([]);
      c.beginPath();
      c.moveTo(x - r, y - r);
      c.lineTo(x + r, y + r);
      c.moveTo(x - r, y + r);
      c.lineTo(x + r, y - r);
      c.stroke();
    }
    c.setLineDash([]);
    c.globalAlpha = 1;
    // The lines end below the nodes, which are on the canvas beneath.
    c.globalCompositeOperation = "destination-out";
    c.beginPath();
    for (const {a, b} of this.marks) for (const n of [a, b]) if (n < this.D.nodes && !this.boxes.hides(n)) this.addNode(c, n);
    c.fill();
    c.globalCompositeOperation = "source-over";
  }

  // addNode adds a node's outline to the path.
  addNode(c, n) {
    const D = this.D, x = D.x[n], y = D.y[n];
    let r = D.radius[n];
    const least = (n < D.switches ? 1.1 : 0.5) / this.scale;
    if (r < least) r = least;
    if (r * this.scale < 2) c.rect(x - r, y - r, 2 * r, 2 * r);
    else if (n < D.switches) c.roundRect(x - r, y - r, 2 * r, 2 * r, 0.28 * r);
    else {
      c.moveTo(x + r, y);
      c.arc(x, y, r, 0, 2 * Math.PI);
    }
  }

  // label writes names where there is room; of all nodes, or of some, for which others leave room: with
  // alpha 0 they do.
  label(c, alpha, some) {
    const D = this.D, s = this.scale, names = some && alpha ? this.written : this.job.written;
    const [left, wide, top] = names === this.written ? [0, this.width, 0] : this.job.aside, right = left + wide; // of the canvas
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.textAlign = "center";
    c.lineJoin = "round";
    const write = n => {
      const [x, y] = this.screen(n), r = D.radius[n] * s, isSwitch = n < D.switches;
      if (x < -80 || x > this.width + 80 || y < -40 || y > this.height + 40) return;
      const size = isSwitch ? 11 : 10, room = this.room[n] * s - 6;
      if (!some && (room < 12 || r < (isSwitch ? 4 : 7))) return;
      c.font = `${some ? 600 : 500} ${size}px system-ui, sans-serif`;
      let text = D.names[n], inside = false;
      if (some && c.measureText(text).width > 0.4 * wide) text = fitted(c, this.brief[n] || text, 0.4 * wide);
      if (!some) {
        // All in a row alike: whole names above, else what differs inside, else above.
        const fits = (t, most) => most === Infinity || c.measureText(t).width <= most;
        if (!fits(isSwitch ? this.longest[n] : text, room)) {
          text = this.brief[n];
          inside = isSwitch && fits(this.longestBrief[n], 2 * r - 4);
          if (!text || !inside && !fits(isSwitch ? this.longestBrief[n] : text, room)) {
            text = this.tight[n];
            if (!text || !fits(isSwitch ? this.longestTight[n] : text, room)) {
              if (room < 48) return;
              text = fitted(c, text || D.names[n], room);
            }
          }
        }
      }
      const host = isSwitch && D.hosts[n].length > 2 ? D.hosts[n][0] : n; // where a row of hosts is close above, the name is below
      const above = isSwitch !== (D.layout === "grid") && (D.y[host] >= D.y[n] || y - this.screen(host)[1] > r + D.radius[host] * s + 16);
      const half = c.measureText(text).width / 2;
      if (half < 1) return;
      const near = x >= left && x <= right && (some || isSwitch && !inside); // else it is cut where the node is
      const ty = inside ? y + 0.36 * size : above ? y - r - 4 : y + r + size + 1;
      const tx = near ? Math.min(Math.max(x, left + half + 4), right - half - (ty - size - top < 130 ? 54 : 4)) : x; // beside the tools
      if (!names.add([tx - half - 2, ty - size, tx + half + 2, ty + 3, text], !alpha) || !alpha) return;
      c.globalAlpha = alpha;
      if (!inside) {
        c.lineWidth = 3.5;
        c.strokeStyle = this.colours.ground;
        c.strokeText(text, tx, ty);
      }
      c.fillStyle = inside ? this.colours.ground : isSwitch ? this.colours.ink : this.colours.muted;
      c.fillText(text, tx, ty);
    };
    if (some) some.forEach(write);
    else for (let n = 0; n < D.nodes; n++) if (!this.boxes.hides(n) && this.inside(D.x[n] - 90 / s, D.y[n] - 90 / s, D.x[n] + 90 / s, D.y[n] + 90 / s)) write(n);
    c.globalAlpha = 1;
  }

  // show puts something on the drawing, null for nothing: title, channels with the port
  // they leave and a colour, nodes with a colour, and what to label.
  show(what) {
    this.shown = what;
    this.draw();
  }

  paintOverlay() {
    if (this.heat) return;
    this.written = new Names();
    const D = this.D, c = this.overlay.getContext("2d"), s = this.scale;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    const world = () => c.setTransform(this.ratio * s, 0, 0, this.ratio * s, this.ratio * this.tx, this.ratio * this.ty);
    world();
    // Lines first: the other direction would hide arrows.
    if (this.shown) for (const ch of this.shown.channels) this.paintChannel(c, ch, false);
    this.paintMarks(c);
    if (this.shown) {
      for (const ch of this.shown.channels) if (!ch.thin) this.paintChannel(c, ch, true);
      for (const {node, colour, of} of this.shown.nodes) this.paintNode(c, node, colour, of);
      this.label(c, 1, this.shown.labels || []);
      world();
    }
    if (this.hover && this.hover.node >= 0) this.paintRing(c, this.hover.node, this.colours.accent, 1.5);
    if (this.hover && this.hover.box >= 0) this.paintRing(c, D.nodes + this.hover.box, this.colours.accent, 1.5);
    if (this.hover && (this.hover.edge >= 0 || this.hover.line)) {
      const [ax, ay, ...rest] = this.hover.line ? this.hover.line.curve : this.curve(this.hover.edge, 0);
      c.beginPath();
      c.moveTo(ax, ay);
      c.bezierCurveTo(...rest);
      c.strokeStyle = this.colours.accent;
      c.lineWidth = 4 / s;
      c.globalAlpha = 0.6;
      c.stroke();
      c.globalAlpha = 1;
    }
    if (this.current >= 0) this.paintRing(c, this.current, this.colours.accent, 2.5);
  }

  paintRing(c, n, colour, width) {
    const {x, y, w, h} = this.spot(n), more = 3.5 / this.scale, rx = Math.max(w, 3 / this.scale) + more, ry = Math.max(h, 3 / this.scale) + more;
    c.beginPath();
    c.roundRect(x - rx, y - ry, 2 * rx, 2 * ry, n < this.D.switches ? 0.35 * rx : Math.min(rx, ry, n < this.D.nodes ? rx : 2 * more));
    c.strokeStyle = colour;
    c.lineWidth = width / this.scale;
    c.stroke();
  }

  paintNode(c, n, colour, D = this.D) {
    const r = Math.max(D.radius[n], (n < D.switches ? 4 : 3) / this.scale);
    c.beginPath();
    if (n < D.switches) c.roundRect(D.x[n] - r, D.y[n] - r, 2 * r, 2 * r, 0.28 * r);
    else c.arc(D.x[n], D.y[n], r, 0, 2 * Math.PI);
    c.fillStyle = colour;
    c.fill();
    c.strokeStyle = this.colours.ground;
    c.lineWidth = 1.2 / this.scale;
    c.stroke();
  }

  // paintChannel draws one direction of a cable: the line, the wider the greater the share of
  // packets on it, or its arrow and, say, the share.
  paintChannel(c, {out, colour, thin, share, say}, arrow) {
    const D = this.D, s = this.scale, peer = D.peer[out];
    if (peer === noPort) return;
    const e = D.edgeOf[out], a = D.owner[out], b = D.owner[peer];
    let curve = [D.x[a], D.y[a], D.x[a], D.y[a], D.x[b], D.y[b], D.x[b], D.y[b]];
    if (e >= 0) {
      curve = this.curve(e, 5 * s > 3.2 ? this.cableShift[this.cableAt[out]] : 0);
      if (D.edgeA[e] !== a) curve = [6, 7, 4, 5, 2, 3, 0, 1].map(i => curve[i]);
    }
    if (!arrow) {
      c.beginPath();
      c.moveTo(curve[0], curve[1]);
      c.bezierCurveTo(...curve.slice(2));
      c.lineCap = "round";
      if (!thin) {
        c.strokeStyle = this.colours.ground;
        c.lineWidth = 6 / s;
        c.stroke();
      }
      c.strokeStyle = colour;
      c.lineWidth = (thin ? 1.8 : 1 + 2.2 * Math.sqrt(share ?? 1)) / s;
      c.stroke();
      return;
    }
    // The arrow a bit beyond the middle, so that both directions can be told apart.
    const [x, y, dx, dy] = along(curve, 0.58), length = Math.hypot(dx, dy);
    if (length * s < 4) return;
    const w = 5.5 / s, h = 11 / s, ux = dx / length, uy = dy / length;
    c.beginPath();
    c.moveTo(x + ux * h / 2, y + uy * h / 2);
    c.lineTo(x - ux * h / 2 - uy * w, y - uy * h / 2 + ux * w);
    c.lineTo(x - ux * h / 2 + uy * w, y - uy * h / 2 - ux * w);
    c.closePath();
    c.fillStyle = colour;
    c.strokeStyle = this.colours.ground;
    c.lineWidth = 1.2 / s;
    c.fill();
    c.stroke();
    if (!say || length * s < 150) return;
    c.font = `${11 / s}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineWidth = 3 / s;
    c.fillStyle = this.colours.ink;
    const [px, py] = along(curve, 0.7);
    c.strokeText(percent(share), px, py);
    c.fillText(percent(share), px, py);
  }

  // nodeAt is the node at a place on the canvas, -1 for none.
  nodeAt(sx, sy) {
    const D = this.D, {cell, columns, lines, start, list} = this.cells;
    const x = (sx - this.tx) / this.scale, y = (sy - this.ty) / this.scale;
    const reach = 50 + 5 / this.scale; // the largest node, and some pixels
    let best = -1, nearest = Infinity;
    const clamp = (v, n) => Math.min(Math.max(v, 0), n - 1);
    const c0 = clamp(Math.floor((x - reach - this.box.left) / cell), columns), c1 = clamp(Math.floor((x + reach - this.box.left) / cell), columns);
    const l0 = clamp(Math.floor((y - reach - this.box.top) / cell), lines), l1 = clamp(Math.floor((y + reach - this.box.top) / cell), lines);
    for (let l = l0; l <= l1; l++) {
      for (let i = start[l * columns + c0]; i < start[l * columns + c1 + 1]; i++) {
        const n = list[i];
        if (this.boxes.hides(n)) continue;
        const d = Math.max(Math.abs(D.x[n] - x), Math.abs(D.y[n] - y)) - D.radius[n];
        if (d < 4 / this.scale && d < nearest) {
          nearest = d;
          best = n;
        }
      }
    }
    return best;
  }

  // edgeAt is the edge at a place on the canvas, -1 for none.
  edgeAt(sx, sy) {
    const x = (sx - this.tx) / this.scale, y = (sy - this.ty) / this.scale;
    const reach = 5 / this.scale;
    let best = -1, nearest = reach;
    for (const e of this.seen) {
      const d = this.distance(this.curve(e, 0), this.D.edgeBend[e], x, y, reach);
      if (d < nearest) {
        nearest = d;
        best = e;
      }
    }
    return best;
  }

  // under is what is at a place on the canvas: a node, the name of an open box or a closed box, an
  // edge, a line between boxes; the others are -1 or null.
  under(x, y) {
    const {boxes} = this, at = {node: this.nodeAt(x, y), named: -1, box: -1, edge: -1, line: null, x, y};
    if (at.node >= 0) return at;
    if ((at.named = boxes.at(x, y, true)) >= 0 || (at.box = boxes.at(x, y, false)) >= 0 || (at.edge = this.edgeAt(x, y)) >= 0) return at;
    const px = (x - this.tx) / this.scale, py = (y - this.ty) / this.scale, reach = 4 / this.scale;
    at.line = boxes.joined.find(l => this.distance(l.curve, 0, px, py, reach) < reach) || null;
    return at;
  }

  // about says what a box or a line between boxes is; nothing for others.
  about({named, box, line}) {
    const {D, boxes} = this, name = n => n < D.nodes ? D.names[n] : boxes.names[n - D.nodes];
    if (named >= 0) return [...boxes.about(named), "click: close"];
    if (box >= 0) return [...boxes.about(box), "click: open"];
    const m = this.measure;
    return line && [`${name(line.a)} — ${name(line.b)}`, plural(line.cables, "cable"), m && `${quantity(m, m.edge[line.e])} ${m.unit} at most`].filter(Boolean);
  }

  // markAt is the port of a mark at a place on the canvas, -1 for none.
  markAt(sx, sy) {
    const x = (sx - this.tx) / this.scale, y = (sy - this.ty) / this.scale, reach = 5 / this.scale;
    const apart = 5 * this.scale > 3.2;
    const mark = this.marks.find(m => this.distance(this.line(m.a, m.b, m.bend, apart ? m.shift : 0, m.of), m.bend, x, y, reach) < reach);
    return mark ? mark.port : -1;
  }

  // distance is how far a place is from a curve, Infinity beyond reach.
  distance(curve, bent, x, y, reach) {
    const [ax, ay, cx, cy, dx, dy, bx, by] = curve, pieces = bent ? 16 : 1;
    if (x < Math.min(ax, bx, cx, dx) - reach || x > Math.max(ax, bx, cx, dx) + reach || y < Math.min(ay, by, cy, dy) - reach || y > Math.max(ay, by, cy, dy) + reach) return Infinity;
    let px = ax, py = ay, nearest = Infinity;
    for (let i = 1; i <= pieces; i++) {
      const [qx, qy] = pieces === 1 ? [bx, by] : along(curve, i / pieces);
      const dx = qx - px, dy = qy - py;
      const k = Math.min(Math.max(((x - px) * dx + (y - py) * dy) / (dx * dx + dy * dy || 1), 0), 1);
      nearest = Math.min(nearest, Math.hypot(x - px - k * dx, y - py - k * dy));
      [px, py] = [qx, qy];
    }
    return nearest;
  }

  // towards is the nearest node in a direction from the current one.
  towards(dx, dy) {
    const D = this.D, from = this.current, {x: fromX, y: fromY} = this.spot(from);
    let best = -1, nearest = Infinity;
    for (let n = 0; n < D.nodes + this.boxes.list.length; n++) {
      if (n === from || (n < D.nodes ? this.boxes.hides(n) : !this.boxes.shut[n - D.nodes])) continue;
      const at = this.spot(n), x = at.x - fromX, y = at.y - fromY;
      const along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (along <= 1e-3 || aside > 2 * along) continue;
      const far = along + 3 * aside;
      if (far < nearest) {
        nearest = far;
        best = n;
      }
    }
    return best;
  }

  emit(name, detail) { this.stage.dispatchEvent(new CustomEvent(name, {detail})); }

  // go makes a node the current one.
  go(n) {
    this.current = n;
    if (n >= 0) this.reveal(n);
    this.draw();
    this.emit("current", n);
  }

  listen() {
    const stage = this.stage;
    const place = ev => {
      const box = stage.getBoundingClientRect();
      return [ev.clientX - box.left, ev.clientY - box.top];
    };
    let drag = null;
    stage.addEventListener("pointerdown", ev => {
      if (ev.button !== 0) return;
      drag = {x: ev.clientX, y: ev.clientY, moved: false};
      stage.setPointerCapture(ev.pointerId);
    });
    stage.addEventListener("pointermove", ev => {
      if (drag) {
        const dx = ev.clientX - drag.x, dy = ev.clientY - drag.y;
        if (!drag.moved && Math.hypot(dx, dy) < 4) return;
        drag.moved = true;
        stage.classList.add("dragging");
        [drag.x, drag.y] = [ev.clientX, ev.clientY];
        this.pan(dx, dy);
        return;
      }
      const hover = this.heat ? this.heat.under(...place(ev)) : this.under(...place(ev));
      hover.lines = (this.heat || this).about(hover);
      this.hover = hover.node < 0 && hover.edge < 0 && !hover.lines ? null : hover;
      stage.style.cursor = this.hover ? "pointer" : "";
      this.emit("hover", this.hover);
      if (this.heat) this.move();
      else this.paintOverlay();
    });
    stage.addEventListener("pointerup", ev => {
      const was = drag;
      drag = null;
      stage.classList.remove("dragging");
      if (!was || was.moved) return;
      const [x, y] = place(ev);
      if (this.heat) {
        this.heat.pick(this.heat.under(x, y));
        return;
      }
      const {node, edge, named, box} = this.under(x, y);
      if (named >= 0) this.boxes.close(named);
      else if (box >= 0) this.boxes.open(box);
      else this.emit("pick", {node, edge, mark: node < 0 && edge < 0 ? this.markAt(x, y) : -1, further: ev.shiftKey});
    });
    stage.addEventListener("pointercancel", () => { drag = null; });
    stage.addEventListener("pointerleave", () => {
      this.hover = null;
      this.emit("hover", null);
      this.paintOverlay();
    });
    stage.addEventListener("wheel", ev => {
      ev.preventDefault();
      const [x, y] = place(ev);
      this.zoom(Math.exp(-ev.deltaY * (ev.deltaMode === 1 ? 0.05 : 0.0015)), x, y);
    }, {passive: false});
    stage.addEventListener("keydown", ev => {
      if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
      const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
      const way = arrows[ev.key];
      if (way && ev.shiftKey) this.pan(-60 * way[0], -60 * way[1]);
      else if (way && this.D.nodes) {
        const box = this.boxes.hides(0) ? this.D.nodes + this.boxes.of[0] : 0;
        const to = this.heat ? this.heat.towards(...way) : this.current < 0 ? box : this.towards(...way);
        if (to >= 0) this.go(to);
      } else if (ev.key === "Enter" && this.heat) this.heat.pick({cell: this.heat.at});
      else if (ev.key === "Enter" && this.current >= this.D.nodes) {
        const g = this.current - this.D.nodes;
        this.boxes.open(g);
        this.go(this.boxes.list[g].first);
      } else if (ev.key === "c" && this.current >= 0 && this.current < this.D.nodes && this.boxes.of?.[this.current] >= 0) {
        const g = this.boxes.of[this.current];
        this.boxes.close(g);
        this.go(this.D.nodes + g);
      } else if (ev.key === "Enter" && this.current >= 0) this.emit("pick", {node: this.current, edge: -1, further: ev.shiftKey, keyboard: true});
      else if (ev.key === "Escape") this.emit("escape");
      else if (ev.key === "+" || ev.key === "=") this.zoom(1.4);
      else if (ev.key === "-") this.zoom(1 / 1.4);
      else if (ev.key === "0") this.fit();
      else if ((ev.key === "f" || ev.key === "t") && this.current >= 0 && this.current < this.D.nodes) this.emit("end", {node: this.current, which: ev.key});
      else return;
      ev.preventDefault();
    });
  }
}
