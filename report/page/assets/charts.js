// Small drawings in the panel.

// bars is a histogram: rows of label, value and what to say of it.
function bars(title, rows, unit) {
  const most = Math.max(1, ...rows.map(r => r.value)), all = rows.reduce((sum, r) => sum + r.value, 0);
  const list = el("ul", {class: "bars", "aria-label": title});
  for (const r of rows) {
    const share = all ? 100 * r.value / all : 0;
    const bar = el("span", {class: "bar"});
    bar.style.setProperty("--part", `${100 * r.value / most}%`);
    if (r.colour) bar.style.setProperty("--colour", r.colour);
    list.append(el("li", {title: `${r.say || r.label}: ${grouped(r.value)} ${unit}`},
      el("span", {class: "label"}, r.label), bar,
      el("span", {class: "value"}, grouped(r.value), el("small", {}, ` ${share < 10 ? share.toFixed(1) : Math.round(share)} %`))));
  }
  return list;
}

// loadBins sorts the channels between switches by load, into at most 12 bins of equal
// width.
function loadBins(D, colour) {
  const loads = [];
  for (let p = 0; p < D.routes.length; p++) if (D.edgeOf[p] >= 0) loads.push(D.routes[p]);
  const bins = Math.max(1, Math.min(12, D.max)), wide = Math.max(1, Math.ceil(D.max / bins));
  const rows = [{label: "unused", value: 0, colour: colour(0), say: "without a route"}];
  for (let from = 1; from <= D.max; from += wide) {
    const to = Math.min(from + wide - 1, D.max);
    rows.push({label: wide === 1 ? grouped(from) : `${grouped(from)}–${grouped(to)}`, value: 0, colour: colour((from + to) / 2)});
  }
  for (const n of loads) rows[n === 0 ? 0 : 1 + Math.floor((n - 1) / wide)].value++;
  let end = rows.length; // bins without channels below and above are left out
  while (end > 1 && rows[end - 1].value === 0) end--;
  let begin = 1;
  while (begin < end && rows[begin].value === 0) begin++;
  return [...(rows[0].value ? [rows[0]] : []), ...rows.slice(begin, end)];
}

// ring draws a cycle of channels: switches on a circle, and what each packet waits for.
function ring(D, cycle) {
  const n = cycle.length, size = 320, middle = size / 2, radius = n > 12 ? 126 : 108;
  const svg = el("svg", {viewBox: `-70 0 ${size + 140} ${size}`, class: "ring", role: "img",
    "aria-label": `cycle of ${plural(n, "channel")}: ${cycle.map(h => `${D.hopName(h)} VL ${h.vl}`).join(", ")}`});
  svg.append(el("defs", {}, el("marker", {id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse"},
    el("path", {d: "M0 0 8 4 0 8z", class: "head"}))));
  const at = (i, r) => {
    const a = 2 * Math.PI * i / n - Math.PI / 2;
    return [middle + r * Math.cos(a), middle + r * Math.sin(a)];
  };
  const names = briefly(cycle.map(h => h.name));
  const pad = Math.min(0.3, 16 / radius * n / (2 * Math.PI));
  for (let i = 0; i < n; i++) {
    const [x0, y0] = at(i + pad, radius), [x1, y1] = at(i + 1 - pad, radius);
    svg.append(el("path", {d: `M${x0} ${y0}A${radius} ${radius} 0 ${n === 1 ? 1 : 0} 1 ${x1} ${y1}`, class: "arc", "marker-end": "url(#head)"}));
    if (n <= 12) {
      const [x, y] = at(i + 0.5, radius - 30);
      svg.append(el("text", {x, y, class: "port"}, `port ${D.hopText(cycle[i])}`), el("text", {x, y: y + 14, class: "port"}, `VL ${cycle[i].vl}`));
    }
  }
  for (let i = 0; i < n; i++) {
    const [x, y] = at(i, radius);
    svg.append(el("rect", {x: x - 8, y: y - 8, width: 16, height: 16, rx: 3, class: "box"}));
    if (n <= 24) {
      const [tx, ty] = at(i, radius + 22);
      svg.append(el("text", {x: tx, y: ty + 4, class: "name", "text-anchor": tx < middle - 20 ? "end" : tx > middle + 20 ? "start" : "middle"}, shortened(names[i], 11), el("title", {}, cycle[i].name)));
    }
  }
  svg.append(el("text", {x: middle, y: middle - 4, class: "count"}, plural(n, "channel")), el("text", {x: middle, y: middle + 16, class: "count small"}, "each waits for the next"));
  return svg;
}
