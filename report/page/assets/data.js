// The data of the page: what Go packed, as typed arrays.

const noPort = -1, noPath = 255, dropVL = 15, numSLs = 16;

// unpack gives the bytes of a gzip in base64. The worker of interactive pages has it, too.
async function unpack(text) {
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(text);
  } else {
    const binary = atob(text);
    bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  }
  return inflate(bytes);
}

const inflate = bytes => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();

// embedded gives an embedded text, which is no longer needed then.
function embedded(id) {
  const element = document.getElementById(id);
  element.remove();
  return element.textContent;
}

// load reads a document, with its arrays as members.
async function load(behind = "") {
  const [text, data] = await Promise.all(["document", "arrays"].map(id => unpack(embedded(id + behind))));
  return prepare(parse(text, data));
}

// parse gives a document its arrays.
function parse(text, data) {
  const D = JSON.parse(new TextDecoder().decode(text));
  unpackArrays(D, D.arrays, data);
  return D;
}

function unpackArrays(D, arrays, data) {
  const kinds = {u8: Uint8Array, u16: Uint16Array, i32: Int32Array, f32: Float32Array};
  for (const a of arrays) D[a.name] = new kinds[a.type](data, a.at, a.len);
}

// prepare finds what follows from a document.
function prepare(D) {
  D.nodes = D.names.length;

  D.owner = new Int32Array(D.peer.length);
  for (let n = 0; n < D.nodes; n++) D.owner.fill(n, D.base[n], D.base[n + 1]);
  D.byGUID = new Map();
  for (let n = D.nodes - 1; n >= 0; n--) D.byGUID.set(D.guids[n], n); // a switch before a host of its GUID
  // Hops have the names of nodes that several nodes may have; those of D.names have GUIDs then.
  for (const way of [...D.result.findings.map(f => f.witness), ...D.result.credit_loops.cycles])
    for (const h of way) h.name = D.names[D.byGUID.get(h.switch)] ?? h.name;

  // By LID: the column of the tables, and the end port.
  D.column = new Int32Array(65536).fill(-1);
  if (D.lids) D.lids.forEach((lid, i) => { D.column[lid] = i; });
  D.byLID = new Int32Array(65536).fill(noPort);
  for (let p = 0; p < D.lid.length; p++) {
    if (D.lid[p] === 0) continue;
    for (let k = 0; k < 1 << D.lmc[p]; k++) D.byLID[D.lid[p] + k] = p;
  }

  // By node: its edges; by port of a switch: its edge.
  D.edgeOf = new Int32Array(D.peer.length).fill(-1);
  D.edgesOf = Array.from({length: D.switches}, () => []);
  D.edges = D.edgeA.length;
  for (let e = 0; e < D.edges; e++) {
    D.edgesOf[D.edgeA[e]].push(e);
    D.edgesOf[D.edgeB[e]].push(e);
    for (let i = D.edgeCables[e]; i < D.edgeCables[e + 1]; i++) {
      const p = D.cables[i], q = D.peer[p];
      D.edgeOf[p] = D.edgeOf[q] = e;
    }
  }
  // By node that is no switch: the switches it is cabled to, the first one first.
  D.attached = new Int32Array(D.nodes).fill(-1);
  D.hosts = Array.from({length: D.switches}, () => []);
  for (let n = D.switches; n < D.nodes; n++) {
    for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) {
      const q = D.peer[p];
      if (q !== noPort && D.owner[q] < D.switches) {
        if (D.attached[n] < 0) D.attached[n] = D.owner[q];
        D.hosts[D.owner[q]].push(n);
      }
    }
  }
  // Where the members of each group begin.
  let at = 0;
  for (const g of D.groups) {
    const part = n => D.members.subarray(at, at += n);
    [g.ports, g.senders, g.receivers] = g.counts.map(part);
  }
  D.measures = measures(D);
  D.isSwitch = n => n < D.switches;
  // nodeOf is the switch or the host with a GUID, -1 for none.
  D.nodeOf = (guid, isSwitch) => {
    const n = D.byGUID.get(guid) ?? -1;
    return n >= 0 && D.isSwitch(n) !== Boolean(isSwitch) ? D.guids.indexOf(guid, isSwitch ? D.nodes : D.switches) : n;
  };
  // The ports by which a switch may send to the LID of a column, by a private LFT.
  D.choices = (s, column, plft) => {
    const columns = D.lids.length, list = [];
    if (plft * D.switches * columns >= D.choice.length) return list;
    const from = 32 * D.choice[(plft * D.switches + s) * columns + column];
    for (let p = 0; p < 256; p++) if (D.sets[from + (p >> 3)] >> (p & 7) & 1) list.push(p);
    return list;
  };
  D.num = p => p - D.base[D.owner[p]];
  // What is printed at the port stands behind its number, as in all texts of ibweave.
  const labelled = label => label ? `(${label})` : "";
  const labelOf = p => labelled(D.labels && D.labels[D.label[p]]);
  D.portText = p => `${D.num(p)}${labelOf(p)}`;
  D.portName = p => `${D.names[D.owner[p]]}[${D.num(p)}]${labelOf(p)}`;
  D.hopText = h => `${h.port}${labelled(h.label)}`;
  D.hopName = h => `${h.name}[${h.port}]${labelled(h.label)}`;
  // lidOf is a node's LID: of port 0 of a switch, of the first port of a host that has one.
  D.portOf = n => {
    if (D.isSwitch(n)) return D.base[n];
    for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) if (D.lid[p] && D.peer[p] !== noPort) return p;
    for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) if (D.peer[p] !== noPort) return p;
    return D.base[n] + 1;
  };
  // sources are the ports of a host that a path can begin at; portsOn those of hosts on a switch that
  // have a LID.
  const ports = (n, fits) => Array.from({length: D.base[n + 1] - D.base[n] - 1}, (_, i) => D.base[n] + 1 + i).filter(fits);
  D.sources = n => ports(n, p => D.peer[p] !== noPort);
  D.portsOn = s => ports(s, p => D.peer[p] !== noPort && !D.isSwitch(D.owner[D.peer[p]]) && D.lid[D.peer[p]]).map(p => D.peer[p]).sort((p, q) => p - q);
  D.lidOf = n => D.lid[D.portOf(n)] || 0;
  return D;
}

// measures lists what cables can show, routes first, like Go's scene.measures.
function measures(D) {
  const list = [], ports = D.peer.length;
  if (D.routes) list.push({...measure(D, "routes", "routes", D.routes), max: D.max, mean: D.mean});
  if (D.bound && D.routes) list.push(measure(D, "bound", "% of the bound", Float64Array.from(D.routes, (n, p) => n * D.bound[D.link[p]])));
  if (D.groups.length) {
    const trees = new Int32Array(ports);
    for (const g of D.groups) for (const p of g.ports) trees[p]++;
    list.push(measure(D, "trees", "multicast trees", trees));
  }
  if (D.choice) list.push(measure(D, "choices", "LIDs that may take it", countChoices(D)));
  return list.concat((D.counters || []).map((c, i) => measure(D, c.name, c.unit, D[`counter${i}`])));
}

// countChoices counts by port the LIDs for which a switch may choose it among several.
function countChoices(D) {
  const counts = new Int32Array(D.peer.length), columns = D.lids.length, plfts = D.choice.length / (D.switches * columns), sets = new Map();
  const portsOf = set => {
    if (!sets.has(set)) {
      const list = [];
      for (let p = 0; p < 256; p++) if (D.sets[32 * set + (p >> 3)] >> (p & 7) & 1) list.push(p);
      sets.set(set, list.length > 1 ? list : []);
    }
    return sets.get(set);
  };
  for (let s = 0; s < D.switches; s++) {
    for (let i = 0; i < columns; i++) {
      const seen = new Set();
      for (let plft = 0; plft < plfts; plft++) for (const p of portsOf(D.choice[(plft * D.switches + s) * columns + i])) seen.add(p);
      for (const p of seen) if (D.base[s] + p < D.base[s + 1]) counts[D.base[s] + p]++;
    }
  }
  return counts;
}

// measure is a value of ports, below 0 where it is not known, with its mean and its greatest on
// channels between switches, and by edge the greatest of its channels.
function measure(D, name, unit, values) {
  const edge = new Float64Array(D.edges).fill(-1);
  let sum = 0, n = 0, max = 0;
  for (let e = 0; e < D.edges; e++) {
    for (let i = D.edgeCables[e]; i < D.edgeCables[e + 1]; i++) {
      for (const p of [D.cables[i], D.peer[D.cables[i]]]) {
        edge[e] = Math.max(edge[e], values[p]);
        if (values[p] < 0) continue;
        sum += values[p];
        n++;
        max = Math.max(max, values[p]);
      }
    }
  }
  return {name, unit, values, edge, max, mean: sum / Math.max(n, 1), known: n > 0};
}

// quantity is a value of a measure: routes are counted, others have three digits.
function quantity(m, n) {
  if (n < 0) return "unknown";
  if (m.name === "routes") return grouped(n);
  const [by, prefix] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([by]) => n >= by) || [1, ""];
  return `${+(n / by).toPrecision(3)}${prefix ? " " + prefix : ""}`;
}

// thereAndBack is what a cable has of a measure, seen from a port.
function thereAndBack(D, m, p) {
  const q = D.peer[p];
  return m.name === "routes" ? `: ${grouped(m.values[p])} routes there, ${grouped(m.values[q])} back`
    : `: ${m.name} ${quantity(m, m.values[p])} at port ${D.num(p)}, ${quantity(m, m.values[q])} at the other end`;
}

// shortened shortens a text in the middle, to most characters.
function shortened(text, most) {
  if (text.length <= most) return text;
  const tail = Math.ceil((most - 1) * 0.6);
  return text.slice(0, most - 1 - tail) + "…" + text.slice(text.length - tail);
}

// distinct shortens names in the middle: words that all of them share become "…".
function distinct(names) {
  const words = names.map(name => name.split(/([\s:;,\/_.-]+)/));
  if (words.some(w => w.length !== words[0].length)) return names;
  const same = words[0].map((_, i) => words.every(w => w[i] === words[0][i]));
  return words.map((w, k) => {
    let short = "", skipped = "";
    const skip = () => {
      short += skipped.length > 2 ? "…" : skipped;
      skipped = "";
    };
    w.forEach((word, i) => {
      if (i % 2 === 0 && !same[i]) {
        skip();
        short += word;
      } else skipped += word;
    });
    skip();
    return short || names[k];
  });
}

const format = new Intl.NumberFormat("en-US");
const grouped = n => format.format(n);
const decimal = n => new Intl.NumberFormat("en-US", {minimumFractionDigits: 1, maximumFractionDigits: 1}).format(n);
const plural = (n, one, many) => `${grouped(n)} ${n === 1 ? one : many || one + "s"}`;
const hex = (n, digits) => "0x" + n.toString(16).padStart(digits, "0");

// el makes an element: attributes, then children, which are elements or text.
function el(tag, attributes, ...children) {
  const svg = ["svg", "path", "circle", "rect", "line", "text", "g", "title", "defs", "marker"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value != null) e.setAttribute(name, value);
  }
  e.append(...children.flat().filter(c => c != null && c !== false));
  return e;
}
