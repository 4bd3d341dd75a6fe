// Following packets by the tables, like Go's Input.Path.

// route gives the way of a packet from an end port to a LID: the channels it takes
// (the port it leaves, the VL, the port it came from, the hop, the share of packets), and why it does not arrive, ""
// when it does. With adaptive routing it is the fan of all ways.
function route(D, src, lid) {
  const path = {src, lid, sl: 0, hops: [], lost: "", lostShare: 0};
  follow(D, path);
  if (path.lost && !path.lostShare) path.lostShare = 1;
  return path;
}

function follow(D, path) {
  const {src, lid} = path, column = D.column[lid];
  if (column < 0) {
    path.lost = `no port has LID ${lid}`;
    return;
  }
  if (D.peer[src] === noPort) {
    path.lost = `${D.portName(src)} has no cable`;
    return;
  }
  const columns = D.lids.length;
  const first = D.owner[D.peer[src]];
  if (D.sls && D.isSwitch(first)) path.sl = D.sls[D.slRow[first] * columns + column];
  if (D.choice) {
    fan(D, path, column);
    return;
  }
  const take = (inPort, out, from) => {
    let vl = 0;
    if (D.vlIndex) {
      const way = D.isSwitch(D.owner[out]) ? inPort : 0;
      vl = D.vlMaps[D.vlIndex[D.vlStart[out] + way] * numSLs + path.sl];
    }
    if (vl === dropVL) {
      path.lost = `the SL-to-VL table of ${D.portName(out)} drops SL ${path.sl}`;
      return false;
    }
    path.hops.push({out, vl, from, hop: path.hops.length, share: 1});
    return true;
  };
  if (!take(0, src, noPort)) return;
  let at = D.peer[src];
  while (D.isSwitch(D.owner[at])) {
    const s = D.owner[at], name = D.names[s];
    if (path.hops.length > D.switches) {
      path.lost = `the packet for LID ${lid} loops at ${name}`;
      return;
    }
    const num = D.lft[s * columns + column];
    if (num === noPath) {
      path.lost = `${name} has no entry for LID ${lid}`;
      return;
    }
    if (num === 0) {
      if (D.byLID[lid] !== D.base[s]) path.lost = `${name} takes LID ${lid} for its own`;
      return;
    }
    const out = D.base[s] + num;
    if (out >= D.base[s + 1]) {
      path.lost = `${name} sends LID ${lid} to port ${num}, which it does not have`;
      return;
    }
    if (D.peer[out] === noPort) {
      path.lost = `${name} sends LID ${lid} to port ${D.portText(out)}, which has no cable`;
      return;
    }
    if (!take(D.num(at), out, at)) return;
    at = D.peer[out];
  }
  if (D.byLID[lid] !== at) path.lost = `the packet for LID ${lid} comes to ${D.portName(at)}, which has another LID`;
  return;
}

// fan follows all choices of a packet, like Go's Input.follow.
function fan(D, path, column) {
  const columns = D.lids.length, {lid} = path;
  const lose = (share, why) => {
    path.lost = path.lost || why;
    path.lostShare += share;
  };
  let next = new Map(); // by port that packets come to: their share
  const take = (hop, from, out, share) => {
    const inPort = from === noPort ? 0 : D.num(from);
    let vl = 0;
    if (D.vlIndex) vl = D.vlMaps[D.vlIndex[D.vlStart[out] + (D.isSwitch(D.owner[out]) ? inPort : 0)] * numSLs + path.sl];
    if (vl === dropVL) return lose(share, `the SL-to-VL table of ${D.portName(out)} drops SL ${path.sl}`);
    path.hops.push({out, vl, from, hop, share});
    next.set(D.peer[out], (next.get(D.peer[out]) || 0) + share);
  };
  take(0, noPort, path.src, 1);
  for (let hop = 1; next.size; hop++) {
    const here = next;
    next = new Map();
    for (const [at, all] of here) {
      const s = D.owner[at], name = D.names[s];
      if (!D.isSwitch(s)) {
        if (D.byLID[lid] !== at) lose(all, `the packet for LID ${lid} comes to ${D.portName(at)}, which has another LID`);
        continue;
      }
      if (hop > D.switches) {
        lose(all, `the packet for LID ${lid} loops at ${name}`);
        continue;
      }
      const ports = D.choices(s, column, D.plft ? D.plft[at * numSLs + path.sl] : 0), share = all / Math.max(ports.length, 1);
      for (const num of ports) {
        const out = D.base[s] + num;
        if (num === 0) {
          if (D.byLID[lid] !== D.base[s]) lose(share, `${name} takes LID ${lid} for its own`);
        } else if (out >= D.base[s + 1]) lose(share, `${name} sends LID ${lid} to port ${num}, which it does not have`);
        else if (D.peer[out] === noPort) lose(share, `${name} sends LID ${lid} to port ${D.portText(out)}, which has no cable`);
        else take(hop, at, out, share);
      }
      if (!ports.length) lose(share, `${name} has no entry for LID ${lid}`);
    }
  }
}

// fanTo gives all that packets to a LID may take from every host: the ports that they leave, and at how
// many places they are lost; like Go's Input.Fan.
function fanTo(D, lid) {
  const column = D.column[lid], dst = D.byLID[lid], outs = new Set(), seen = new Set(), queue = [], fan = {lid, outs: [], lost: 0, why: ""};
  const lose = why => {
    if (++fan.lost === 1) fan.why = why;
  };
  const take = (inPort, out, sl) => {
    if (D.vlIndex && D.vlMaps[D.vlIndex[D.vlStart[out] + (D.isSwitch(D.owner[out]) ? inPort : 0)] * numSLs + sl] === dropVL) return lose(`the SL-to-VL table of ${D.portName(out)} drops SL ${sl}`);
    outs.add(out);
    const to = D.peer[out], state = to * numSLs + sl;
    if (!D.isSwitch(D.owner[to])) {
      if (to !== dst) lose(`the packet for LID ${lid} comes to ${D.portName(to)}, which has another LID`);
    } else if (!seen.has(state)) {
      seen.add(state);
      queue.push(state);
    }
  };
  for (let src = D.base[D.switches]; src < D.peer.length; src++) {
    if (D.peer[src] === noPort || !D.lid[src] || src === dst) continue;
    const first = D.owner[D.peer[src]];
    take(0, src, D.sls && D.isSwitch(first) ? D.sls[D.slRow[first] * D.lids.length + column] : 0);
  }
  for (const state of queue) {
    const at = Math.floor(state / numSLs), sl = state % numSLs, s = D.owner[at], name = D.names[s];
    const entry = D.lft[s * D.lids.length + column];
    const ports = D.choice ? D.choices(s, column, D.plft ? D.plft[at * numSLs + sl] : 0) : entry === noPath ? [] : [entry];
    for (const num of ports) {
      const out = D.base[s] + num;
      if (num === 0) {
        if (dst !== D.base[s]) lose(`${name} takes LID ${lid} for its own`);
      } else if (out >= D.base[s + 1]) lose(`${name} sends LID ${lid} to port ${num}, which it does not have`);
      else if (D.peer[out] === noPort) lose(`${name} sends LID ${lid} to port ${D.portText(out)}, which has no cable`);
      else take(D.num(at), out, sl);
    }
    if (!ports.length) lose(`${name} has no entry for LID ${lid}`);
  }
  fan.outs = [...outs].sort((a, b) => a - b);
  return fan;
}
