// What the panel says. Each function makes the content of a tab.

// nodeButton is a name that shows its node.
function nodeButton(app, n, text) {
  return el("button", {type: "button", class: "node", onclick: () => app.select(n, true)}, text || app.D.names[n]);
}

function facts(rows) {
  return el("dl", {class: "facts"}, rows.filter(r => r).map(([name, value, kind]) => el("div", {class: kind || ""}, el("dt", {}, name), el("dd", {}, value))));
}

function overview(app) {
  const D = app.D, r = D.result, u = r.unicast, box = el("div", {});
  const bad = n => n > 0 ? "bad" : "good";
  box.append(facts([
    ["switches", grouped(r.fabric.switches)], ["CA ports", grouped(r.fabric.ca_ports)], ["links", grouped(r.fabric.links)], ["highest LID", grouped(r.fabric.max_lid)],
  ]));
  if (app.view.measure && app.view.measure.name !== "routes") box.append(...mostOf(app, app.view.measure));
  if (D.tables === "none") {
    box.append(el("p", {class: "note"}, "There are no forwarding tables, so there are no paths and no loads."));
    return box;
  }
  box.append(facts([
    ["pairs of ports", grouped(u.pairs)], ["not delivered", grouped(u.unreachable + u.loops), bad(u.unreachable + u.loops)],
    ["longer than shortest", grouped(u.non_minimal)], ["credit loops", grouped(r.credit_loops.count), bad(r.credit_loops.count)],
    ["VLs in use", grouped(r.credit_loops.vls)],
    r.multicast.mlids > 0 && ["multicast trees", grouped(r.multicast.mlids)],
  ]));
  if (D.tables !== "here") box.append(el("p", {class: "note"}, `The page does not hold the forwarding tables: ${D.tables}. So it shows no paths; ibweave report --view path:SRC,DST --svg FILE draws one.`));
  const hops = Object.entries(u.hop_histogram).map(([h, n]) => ({label: plural(+h, "switch", "switches"), value: n}));
  if (hops.length) box.append(el("h2", {}, "Switches on a path"), bars("Pairs of ports by switches on their path", hops, "pairs"));
  if (D.max > 0) {
    box.append(el("h2", {}, "Routes on a link"),
      el("p", {class: "note"}, `${decimal(D.mean)} on average, ${grouped(D.max)} at most; each direction of a cable between switches is one link.`),
      bars("Links by routes", loadBins(D, load => app.view.loadColour(load, D.measures[0])), "links"));
    const hot = [];
    for (let p = 0; p < D.routes.length; p++) if (D.edgeOf[p] >= 0 && D.routes[p] > 0) hot.push(p);
    hot.sort((a, b) => D.routes[b] - D.routes[a] || a - b);
    box.append(el("h2", {}, "Most loaded links"), el("ol", {class: "links"}, hot.slice(0, 8).map(p =>
      el("li", {}, el("button", {type: "button", onclick: () => app.showLink(p)}, swatch(app, D.routes[p]),
        el("span", {}, `${D.portName(p)} → ${D.portName(D.peer[p])}`), el("b", {}, grouped(D.routes[p])))))));
  }
  return box;
}

// mostOf lists the ports that have counted most, those of hosts too, whose cables have no colour in the
// drawing.
function mostOf(app, m) {
  const D = app.D, ports = [];
  for (let p = 0; p < D.peer.length; p++) if (D.peer[p] !== noPort && m.values[p] > 0) ports.push(p);
  ports.sort((a, b) => m.values[b] - m.values[a] || a - b);
  return [el("h2", {}, `${m.name}, ${m.unit}`), ports.length ? el("ol", {class: "links", id: "most"}, ports.slice(0, 8).map(p =>
    el("li", {}, el("button", {type: "button", onclick: () => app.showLink(p)}, swatch(app, m.values[p], m),
      el("span", {}, `${D.portName(p)} — ${D.portName(D.peer[p])}`), el("b", {}, quantity(m, m.values[p])))))) : el("p", {class: "note"}, "No port has counted any.")];
}

function swatch(app, load, m = app.D.measures[0]) {
  const s = el("i", {class: "swatch"});
  s.style.setProperty("--colour", app.view.loadColour(load, m));
  return s;
}

const kinds = ["node", "CA", "switch", "router", "aggregation node"];

function details(app) {
  const D = app.D, n = app.selected, box = el("div", {});
  if (n < 0) {
    box.append(el("p", {class: "note"}, "Click on a switch or a host, or search for one, to see its links, loads and entries. With the keyboard: tab to the drawing, arrow keys, Enter."));
    return box;
  }
  const lid = D.lidOf(n), isSwitch = D.isSwitch(n);
  let cabled = 0;
  for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) if (D.peer[p] !== noPort) cabled++;
  box.append(el("h2", {class: "name"}, D.names[n]), facts([
    ["type", kinds[D.type[n]] || "node"], ["GUID", el("code", {}, D.guids[n])], ["LID", lid ? `${lid} (${hex(lid, 4)})` : "none"],
    ["ports", `${cabled} of ${D.base[n + 1] - D.base[n] - 1} cabled`],
  ]));
  if (D.tables === "here" && !isSwitch) {
    box.append(el("p", {class: "buttons"},
      el("button", {type: "button", id: "from-here", onclick: () => app.setEnd("from", n)}, "Path from here"),
      el("button", {type: "button", id: "to-here", onclick: () => app.setEnd("to", n)}, "Path to here")));
  }
  const entries = new Int32Array(256);
  if (D.lft && isSwitch) for (const port of D.lft.subarray(n * D.lids.length, (n + 1) * D.lids.length)) entries[port]++;
  const rows = [], m = app.view.measure, counter = m && m.name !== "routes" && m;
  for (let p = D.base[n] + 1; p < D.base[n + 1]; p++) {
    const q = D.peer[p];
    if (q === noPort) continue;
    rows.push(el("tr", {},
      el("td", {class: "number"}, D.portText(p)),
      el("td", {}, nodeButton(app, D.owner[q]), el("small", {}, ` port ${D.portText(q)}`)),
      el("td", {}, D.links[D.link[p]]),
      D.routes && el("td", {class: "number"}, D.edgeOf[p] >= 0 && swatch(app, D.routes[p]), grouped(D.routes[p])),
      D.routes && el("td", {class: "number"}, D.edgeOf[p] >= 0 && swatch(app, D.routes[q]), grouped(D.routes[q])),
      D.lft && isSwitch && el("td", {class: "number"}, grouped(entries[D.num(p)])),
      counter && [p, q].map(end => el("td", {class: "number"}, D.edgeOf[p] >= 0 && swatch(app, counter.values[end], counter), quantity(counter, counter.values[end])))));
  }
  box.append(el("h2", {}, "Links"), el("div", {class: "scroll"}, el("table", {id: "links"}, el("thead", {}, el("tr", {},
    el("th", {scope: "col", class: "number"}, "port"), el("th", {scope: "col"}, "to"), el("th", {scope: "col"}, "rate"),
    D.routes && el("th", {scope: "col", class: "number", title: "routes that leave by this port"}, "routes out"), D.routes && el("th", {scope: "col", class: "number", title: "routes that come in by this port"}, "in"),
    D.lft && isSwitch && el("th", {scope: "col", class: "number", title: "LIDs that the table sends there"}, "LIDs"),
    counter && [["here", "at this port"], ["there", "at the other end"]].map(([at, where]) => el("th", {scope: "col", class: "number", title: `${counter.name}, ${counter.unit}, ${where}`}, at)))), el("tbody", {}, rows))));
  if (D.lft && isSwitch) box.append(el("h2", {}, "Forwarding table"), entryTable(app, n));
  return box;
}

const mostEntries = 300;

// entryTable is the entries of a switch, with a filter.
function entryTable(app, n) {
  const D = app.D, columns = D.lids.length;
  const body = el("tbody", {}), count = el("p", {class: "note", role: "status"});
  const filter = el("input", {type: "search", id: "entries-filter", placeholder: "LID, name, or port:5", "aria-label": "Filter the forwarding table", oninput: () => fill()});
  const fill = () => {
    const want = filter.value.trim().toLowerCase(), port = /^port:(\d+)$/.exec(want);
    const rows = [];
    let found = 0;
    for (let i = 0; i < columns; i++) {
      const lid = D.lids[i], at = D.owner[D.byLID[lid]], out = D.lft[n * columns + i];
      if (port ? out !== +port[1] : want && !(String(lid) === want || hex(lid, 4) === want || D.names[at].toLowerCase().includes(want))) continue;
      if (++found > mostEntries) continue;
      rows.push(el("tr", {}, el("td", {class: "number"}, lid), el("td", {}, nodeButton(app, at)),
        el("td", {class: "number"}, out === noPath ? "no path" : out === 0 ? "own" : D.base[n] + out < D.base[n + 1] ? D.portText(D.base[n] + out) : out)));
    }
    body.replaceChildren(...rows);
    count.textContent = found > mostEntries ? `the first ${mostEntries} of ${grouped(found)} entries` : plural(found, "entry", "entries");
  };
  fill();
  return el("div", {}, filter, count, el("div", {class: "scroll"}, el("table", {id: "entries"},
    el("thead", {}, el("tr", {}, el("th", {scope: "col", class: "number"}, "LID"), el("th", {scope: "col"}, "of"), el("th", {scope: "col", class: "number"}, "port"))), body)));
}

function pathPanel(app) {
  const D = app.D, result = el("div", {id: "path", "aria-live": "polite"});
  if (D.tables !== "here") return el("p", {class: "note"}, "This state has no forwarding tables here.");
  const host = n => !D.isSwitch(n), any = n => D.lidOf(n) > 0;
  const from = picker(D, "from", "From host", host, n => app.setEnd("from", n));
  const to = picker(D, "to", "To host or switch", any, n => app.setEnd("to", n));
  const chosen = () => app.showPath(lid.hidden ? undefined : +lid.value, +port.value);
  const lid = el("select", {id: "lid", "aria-label": "LID of the destination", hidden: true, onchange: chosen});
  const port = el("select", {id: "port", "aria-label": "Port of the source", hidden: true, onchange: chosen});
  const all = el("button", {type: "button", id: "from-all", hidden: true, onclick: () => app.setEnd("from", -1)}, "From all hosts");
  app.path = {from, to, result, lid, port, all};
  return el("div", {}, el("div", {class: "ends"}, from.element, to.element,
    el("button", {type: "button", id: "swap", title: "The other way", "aria-label": "The other way", onclick: () => app.swapEnds()}, "⇅")), port, lid, el("p", {class: "buttons"}, all), result);
}

// percent is a share of packets: 12.5 %.
const percent = share => `${Number(decimal(100 * share))} %`;

// pathResult is the way of a packet, step by step; with choices all ports that it can come to.
function pathResult(app, path) {
  const D = app.D, steps = [], come = new Map(); // by hop and port: the share that comes
  const step = (n, kind, text) => steps.push(el("li", {class: kind}, nodeButton(app, n), text && el("small", {}, text)));
  step(D.owner[path.src], "host", path.hops.length ? `out of port ${D.portText(path.src)} · VL ${path.hops[0].vl}` : "");
  for (const h of path.hops) {
    const key = `${h.hop} ${D.peer[h.out]}`;
    come.set(key, (come.get(key) || 0) + h.share);
  }
  let choices = 1; // at most, of one switch
  for (const [key, share] of come) {
    const [hop, at] = key.split(" ").map(Number), s = D.owner[at];
    const next = path.hops.filter(h => h.from === at && h.hop === hop + 1), part = share < 0.9995;
    choices = Math.max(choices, next.length);
    let text = `${part ? `${percent(share)} · ` : ""}in by port ${D.portText(at)}`;
    if (next.length === 1) text += `, out of port ${D.portText(next[0].out)} · VL ${next[0].vl}${D.routes && !D.choice ? ` · ${grouped(D.routes[next[0].out])} routes` : ""}`;
    if (next.length > 1) text += `, out of ports ${next.map(h => D.portText(h.out)).join(", ")}, ${percent(next[0].share)} each · VL ${[...new Set(next.map(h => h.vl))].join(", ")}`;
    step(s, (D.isSwitch(s) ? "switch" : "host") + (part ? " part" : ""), text);
  }
  const switches = path.hops.length ? path.hops[path.hops.length - 1].hop : 0;
  const all = path.lostShare > 0.9995 || !D.choice ? "" : `${percent(path.lostShare)}, `;
  return [
    el("p", {class: path.lost ? "outcome bad" : "outcome good", role: "status"},
      path.lost ? `Lost: ${all}${path.lost}` : `Delivered to LID ${path.lid} through ${plural(switches, "switch", "switches")}, SL ${path.sl}${choices > 1 ? ", by any choice" : ""}`),
    choices > 1 && el("p", {class: "note"}, "Shares are those of switches that take all ports of a choice equally often."),
    el("ol", {class: choices > 1 ? "steps fan" : "steps"}, steps),
  ].filter(Boolean);
}

// fanResult is by switch the ports that it may send to a destination, those with a choice first.
function fanResult(app, fan, by) {
  const D = app.D, most = 200, switches = [...by.keys()].filter(D.isSwitch), choices = s => Number(by.get(s).length > 1);
  const rows = switches.slice().sort((a, b) => choices(b) - choices(a) || a - b), some = switches.filter(choices).length;
  return [
    el("p", {class: fan.lost ? "outcome bad" : "outcome good", role: "status"}, fan.lost ? `Packets are lost at ${plural(fan.lost, "place")}; the first: ${fan.why}`
      : `All packets to LID ${fan.lid} arrive, through ${plural(switches.length, "switch", "switches")}, ${grouped(some)} with a choice of ports`),
    el("table", {id: "fan"}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "switch"), el("th", {scope: "col"}, "may send by ports"))),
      el("tbody", {}, rows.slice(0, most).map(s => el("tr", {}, el("td", {}, nodeButton(app, s)), el("td", {}, by.get(s).map(D.portText).join(", ")))))),
    rows.length > most && el("p", {class: "note"}, `and ${grouped(rows.length - most)} more`),
  ].filter(Boolean);
}

function groupsPanel(app) {
  const D = app.D, list = el("ul", {class: "choices", id: "groups"});
  const filter = el("input", {type: "search", placeholder: "Name, MGID or MLID", "aria-label": "Filter the groups", oninput: () => fill()});
  const about = el("div", {id: "group"});
  app.groupAbout = about;
  const most = 200, count = el("p", {class: "note", role: "status"});
  const fill = () => {
    const want = filter.value.trim().toLowerCase();
    const fit = D.groups.map((g, i) => i).filter(i => {
      const g = D.groups[i];
      return !want || [g.name, g.mgid || "", hex(g.mlid, 4)].some(s => s.toLowerCase().includes(want));
    });
    list.replaceChildren(...fit.slice(0, most).map(i => {
      const g = D.groups[i];
      return el("li", {}, el("button", {type: "button", "data-group": i, "aria-pressed": String(app.group === i), onclick: () => app.showGroup(i)},
        el("span", {}, g.name), el("small", {}, `${hex(g.mlid, 4)} · ${plural(g.receivers.length, "receiver")}`)));
    }));
    count.textContent = fit.length > most ? `the first ${most} of ${grouped(fit.length)}` : plural(fit.length, "tree");
  };
  fill();
  return el("div", {}, D.groups.length > 8 && filter, count, list, about);
}

function groupAbout(app, i) {
  const D = app.D, g = D.groups[i];
  const names = (title, ports) => ports.length > 0 && [el("h2", {}, title), el("p", {class: "members"},
    [...ports.subarray(0, 60)].map(p => nodeButton(app, D.owner[p])), ports.length > 60 && `and ${grouped(ports.length - 60)} more`)];
  return [el("h2", {class: "name"}, g.name), facts([
    ["MLID", el("code", {}, hex(g.mlid, 4))], g.mgid && ["MGID", el("code", {}, g.mgid)], g.scheme && ["scheme", g.scheme], ["SL", g.sl],
    ["senders", grouped(g.senders.length)], ["receivers", grouped(g.receivers.length)], ["ports in masks", grouped(g.ports.length)],
  ]), names("Senders", g.senders), names("Receivers", g.receivers)].flat();
}

function loopsPanel(app) {
  const D = app.D, cycles = D.result.credit_loops.cycles, box = el("div", {id: "loop"});
  app.loopAbout = box;
  return el("div", {},
    el("p", {class: "note"}, `${plural(D.result.credit_loops.count, "set")} of channels that wait for each other; the shortest cycle of each:`),
    el("ul", {class: "choices", id: "loops"}, cycles.map((c, i) => el("li", {},
      el("button", {type: "button", "data-loop": i, "aria-pressed": "false", onclick: () => app.showLoop(c, i)}, el("span", {}, `Cycle ${i + 1}`), el("small", {}, plural(c.length, "channel")))))), box);
}

function loopAbout(app, cycle) {
  const D = app.D;
  return [ring(D, cycle), el("ol", {class: "steps loop"}, cycle.map((h, i) => {
    const next = cycle[(i + 1) % cycle.length];
    return el("li", {class: "switch"}, nodeButton(app, D.byGUID.get(h.switch), h.name),
      el("small", {}, `port ${D.hopText(h)} · VL ${h.vl}: a packet to ${h.lid >= 0xc000 ? "MLID " + hex(h.lid, 4) : "LID " + h.lid} waits for ${D.hopName(next)}`));
  }))];
}

const severities = ["error", "warning", "note"];

function findingsPanel(app) {
  const D = app.D, all = D.result.findings;
  const undecided = D.result.undecided.length > 0 && el("ul", {class: "findings", id: "undecided"}, D.result.undecided.map(u =>
    el("li", {}, el("p", {class: "finding"}, el("span", {class: "badge warning"}, "undecided"), el("code", {}, u.rule), el("span", {class: "message"}, u.reason)))));
  if (!all.length) return undecided || el("p", {class: "note"}, "Nothing was found.");
  const list = el("ul", {class: "findings", id: "findings"}), count = el("p", {class: "note", role: "status", id: "findings-count"});
  const wanted = new Set(severities);
  const rule = el("select", {id: "rule", "aria-label": "Rule", onchange: () => fill()}, el("option", {value: ""}, "all rules"),
    [...new Set(all.map(f => f.rule))].map(r => el("option", {value: r}, `${r} (${all.filter(f => f.rule === r).length})`)));
  const text = el("input", {type: "search", id: "findings-text", placeholder: "Text, name or GUID", "aria-label": "Text in findings", oninput: () => fill()});
  const boxes = severities.map(s => {
    const n = all.filter(f => f.severity === s).length;
    const b = el("button", {type: "button", class: "filter " + s, "aria-pressed": "true", "data-severity": s, disabled: n === 0, onclick: () => {
      if (wanted.delete(s)) b.setAttribute("aria-pressed", "false");
      else {
        wanted.add(s);
        b.setAttribute("aria-pressed", "true");
      }
      fill();
    }}, `${n} ${n === 1 ? s : s + "s"}`);
    return b;
  });
  const fill = () => {
    const want = text.value.trim().toLowerCase();
    const fit = all.filter(f => wanted.has(f.severity) && (!rule.value || f.rule === rule.value) &&
      (!want || [f.message, f.rule, f.cause || "", f.switch, ...(f.ports || []).map(e => e.name + e.node), ...f.witness.map(h => h.name + h.switch)].join("\n").toLowerCase().includes(want)));
    const groups = new Map(); // findings with one cause are one entry
    for (const f of fit) {
      const key = f.cause || f.message;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(f);
    }
    const place = new Map((D.causes || []).map((c, i) => [c, i])), at = ([key]) => place.get(key) ?? place.size;
    list.replaceChildren(...[...groups].sort((a, b) => at(a) - at(b)).flatMap(([, found]) => found[0].cause ? cause(app, found) : found.map(f => finding(app, f))));
    count.textContent = fit.length === all.length ? plural(all.length, "finding") : `${grouped(fit.length)} of ${plural(all.length, "finding")}`;
  };
  fill();
  return el("div", {}, undecided, el("div", {class: "filters", role: "group", "aria-label": "Filters"}, boxes, rule, text), count, list);
}

// cause shows a cause, and behind a fold each of its findings.
function cause(app, found) {
  const f = found[0];
  return el("li", {class: f.waiver ? "waived" : ""}, el("button", {type: "button", class: "finding", onclick: () => app.showFinding(f)},
    el("span", {class: "badge " + f.severity}, f.severity), el("code", {}, f.rule), el("span", {class: "message"}, f.cause)),
  el("details", {}, el("summary", {}, plural(found.length, "finding")), el("ul", {class: "findings"}, found.map(x => finding(app, x)))));
}

function finding(app, f) {
  const D = app.D, about = D.rules.find(r => r.name === f.rule);
  const button = el("button", {type: "button", class: "finding", onclick: () => app.showFinding(f)},
    el("span", {class: "badge " + f.severity}, f.severity), el("code", {}, f.rule), el("span", {class: "message"}, f.message),
    f.waiver && el("small", {}, `waived until ${f.waiver.until}: ${f.waiver.reason}`));
  return el("li", {class: f.waiver ? "waived" : ""}, button,
    f.witness.length > 0 && el("details", {}, el("summary", {}, plural(f.witness.length, "hop")),
      el("ol", {}, f.witness.map(h => el("li", {}, `${D.hopName(h)} VL ${h.vl}${h.lid ? `, to ${h.lid >= 0xc000 ? "MLID " + hex(h.lid, 4) : "LID " + h.lid}` : ""}`)))),
    about && el("details", {}, el("summary", {}, "What it means"), el("p", {}, about.explain || about.summary)));
}
