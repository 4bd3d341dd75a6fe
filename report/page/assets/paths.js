// Following packets by the tables, like Go's Input.Path.

// route gives the way of a packet from an end port to a LID: the channels it takes
// (the port it leaves, the VL), and why it does not arrive, "" when it does.
function route(D, src, lid) {
  const path = {src, lid, sl: 0, hops: [], lost: ""};
  const column = D.column[lid];
  if (column < 0) {
    path.lost = `no port has LID ${lid}`;
    return path;
  }
  if (D.peer[src] === noPort) {
    path.lost = `${D.portName(src)} has no cable`;
    return path;
  }
  const columns = D.lids.length;
  const first = D.owner[D.peer[src]];
  if (D.sls && D.isSwitch(first)) path.sl = D.sls[D.slRow[first] * columns + column];
  const take = (inPort, out) => {
    let vl = 0;
    if (D.vlIndex) {
      const way = D.isSwitch(D.owner[out]) ? inPort : 0;
      vl = D.vlMaps[D.vlIndex[D.vlStart[out] + way] * numSLs + path.sl];
    }
    if (vl === dropVL) {
      path.lost = `the SL-to-VL table of ${D.portName(out)} drops SL ${path.sl}`;
      return false;
    }
    path.hops.push({out, vl});
    return true;
  };
  if (!take(0, src)) return path;
  let at = D.peer[src];
  while (D.isSwitch(D.owner[at])) {
    const s = D.owner[at], name = D.names[s];
    if (path.hops.length > D.switches) {
      path.lost = `the packet for LID ${lid} loops at ${name}`;
      return path;
    }
    const num = D.lft[s * columns + column];
    if (num === noPath) {
      path.lost = `${name} has no entry for LID ${lid}`;
      return path;
    }
    if (num === 0) {
      if (D.byLID[lid] !== D.base[s]) path.lost = `${name} takes LID ${lid} for its own`;
      return path;
    }
    const out = D.base[s] + num;
    if (out >= D.base[s + 1]) {
      path.lost = `${name} sends LID ${lid} to port ${num}, which it does not have`;
      return path;
    }
    if (D.peer[out] === noPort) {
      path.lost = `${name} sends LID ${lid} to port ${D.portText(out)}, which has no cable`;
      return path;
    }
    if (!take(D.num(at), out)) return path;
    at = D.peer[out];
  }
  if (D.byLID[lid] !== at) path.lost = `the packet for LID ${lid} comes to ${D.portName(at)}, which has another LID`;
  return path;
}
