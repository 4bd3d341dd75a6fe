package ibdiagnet

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// builder makes a fabric of a draft.
type builder struct {
	*draft
	b       fabric.Builder
	index   map[fabric.GUID]int // of nodes in b
	nodeRow map[fabric.GUID]int // by node: its row in draft.nodes
	ports   map[portAt]*portRow // the first row of a port
	guids   map[fabric.GUID]portAt
	owner   map[fabric.LID]int // by LID: the line that gives it to a port
	cables  map[portAt]int     // by port: the line of its cable
}

// build makes a database of the rows.
func (d *draft) build() (*Database, error) {
	for _, name := range []string{"NODES", "LINKS"} {
		if _, there := d.lines[name]; there {
			continue
		}
		if i := slices.IndexFunc(d.problems, isCut); i >= 0 {
			return nil, parseError(d.file, d.problems[i].Line, nil, "no section %s, since %w: %w", name, ErrCut, ErrNoFabric)
		}
		return nil, parseError(d.file, 0, nil, "no section %s: %w", name, ErrNoFabric)
	}
	b := &builder{draft: d, index: map[fabric.GUID]int{}, nodeRow: map[fabric.GUID]int{}, ports: map[portAt]*portRow{},
		guids: map[fabric.GUID]portAt{}, owner: map[fabric.LID]int{}, cables: map[portAt]int{}}
	b.addNodes()
	if err := b.checkTypes(); err != nil {
		return nil, err
	}
	b.addPorts()
	b.addLinks()
	b.noteMissingLIDs()
	b.addLabels()
	if d.failed != nil {
		return nil, d.failed
	}
	if len(b.index) == 0 {
		return nil, parseError(d.file, d.lines["NODES"], nil, "no node in section NODES: %w", ErrNoFabric)
	}
	f, err := b.b.Build()
	if err != nil {
		return nil, parseError(d.file, 0, nil, "%w", err)
	}
	return b.makeDatabase(f), nil
}

// addNodes enters the nodes. A node may have a row for each of its ports, which must say
// the same.
func (b *builder) addNodes() {
	for i := range b.nodes {
		n := &b.nodes[i]
		if at, twice := b.nodeRow[n.node.GUID]; twice {
			first := &b.nodes[at]
			switch {
			case first.node.Type != n.node.Type || first.node.NumPorts != n.node.NumPorts:
				b.wrong(n.line, []byte(n.text), "NODES: node %s is a %s with %d ports here, and a %s with %d ports in line %d: two nodes have one GUID",
					n.node.GUID, n.node.Type, n.node.NumPorts, first.node.Type, first.node.NumPorts, first.line)
				continue
			case first.node.Description != n.node.Description:
				b.note(fabric.Contradiction, n.line, []byte(n.text), "NODES: node %s has another description in line %d: taken from there", n.node.GUID, first.line)
			}
			continue
		}
		n.node.EnhancedPort0 = n.node.Type == fabric.Switch && b.switches[n.node.GUID].EnhancedPort0
		at, err := b.b.AddNode(n.node)
		if err != nil {
			b.wrong(n.line, []byte(n.text), "NODES: %w", err)
			continue
		}
		b.index[n.node.GUID], b.nodeRow[n.node.GUID] = at, i
	}
}

// takeGUID gives a GUID to a port; it returns false if another port has it.
func (b *builder) takeGUID(p portAt, g fabric.GUID, line int) bool {
	if other, twice := b.guids[g]; twice && other != p {
		b.note(fabric.Contradiction, line, nil, "port GUID %s of %s is that of %s too: left out", g, p, other)
		return false
	}
	b.guids[g] = p
	return true
}

// checkTypes returns an error if NODES mistypes switches, by
// GUIDs that ports share: see topology.MistypedError.
func (b *builder) checkTypes() error {
	type end struct{ node, port fabric.GUID }
	rows := map[end]*portRow{} // the first one
	wrong := map[fabric.GUID]bool{}
	var mistyped *nodeRow // the first one
	for i := range b.draft.ports {
		p := &b.draft.ports[i]
		at, known := b.index[p.at.node]
		if !known || p.guid == 0 || wrong[p.at.node] || b.b.Node(at).Type == fabric.Switch {
			continue
		}
		first := rows[end{p.at.node, p.guid}]
		if first == nil {
			rows[end{p.at.node, p.guid}] = p
		} else if first.at != p.at {
			if wrong[p.at.node] = true; len(wrong) == 1 {
				mistyped = &b.nodes[b.nodeRow[p.at.node]]
			}
		}
	}
	switches := 0
	for _, at := range b.index {
		if b.b.Node(at).Type == fabric.Switch {
			switches++
		}
	}
	if mistyped == nil || switches > len(wrong) {
		return nil
	}
	return parseError(b.file, mistyped.line, []byte(mistyped.text), "NODES: %w", topology.MistypedError(mistyped.node.GUID, mistyped.node.Type))
}

// addPorts enters the GUIDs and LIDs of end ports.
func (b *builder) addPorts() {
	for i := range b.draft.ports {
		p := &b.draft.ports[i]
		at, known := b.index[p.at.node]
		if !known {
			b.wrong(p.line, nil, "PORTS: node %s is not in NODES", p.at.node)
			continue
		}
		n := b.b.Node(at)
		if p.at.num > n.NumPorts || p.at.num == 0 && n.Type != fabric.Switch {
			b.wrong(p.line, nil, "PORTS: port %d of node %s, which has ports 1 to %d", p.at.num, n.GUID, n.NumPorts)
			continue
		}
		if first, twice := b.ports[p.at]; twice {
			if first.lid != p.lid || first.guid != p.guid || first.link != p.link {
				b.wrong(p.line, nil, "PORTS: port %s is another one in line %d; want one row for each port", p.at, first.line)
			}
			continue
		}
		b.ports[p.at] = p
		if (p.at.num == fabric.ManagementPort) != (n.Type == fabric.Switch) {
			continue // the GUID and LID of a switch are those of its port 0
		}
		guid := p.guid
		if guid != 0 && !b.takeGUID(p.at, guid, p.line) {
			guid = 0
		}
		lid, lmc := b.claim(p)
		if err := b.b.SetPort(at, p.at.num, guid, lid, lmc); err != nil {
			b.wrong(p.line, nil, "PORTS: %w", err)
		}
	}
}

// claim returns the LIDs of a port, and marks them as taken; LID 0 if it cannot have them.
func (b *builder) claim(p *portRow) (fabric.LID, uint8) {
	lid, err := parseNumber(p.lid)
	switch {
	case p.lid == "" || err == nil && lid == 0:
		return 0, p.info.LMC
	case err != nil || lid > uint64(fabric.MaxUnicastLID):
		b.badLID(p, p.lid)
		return 0, p.info.LMC
	}
	low, n := fabric.LID(lid), fabric.LID(1)<<p.info.LMC
	if low%n != 0 {
		b.wrong(p.line, nil, "PORTS: LID %d of port %s is not a multiple of %d, as LMC %d wants", low, p.at, n, p.info.LMC)
		return 0, p.info.LMC
	}
	for l := low; l < low+n; l++ {
		if line, twice := b.owner[l]; twice {
			b.wrong(p.line, nil, "PORTS: LID %d of port %s is that of the port in line %d too", l, p.at, line)
			return 0, p.info.LMC
		}
	}
	for l := low; l < low+n; l++ {
		b.owner[l] = p.line
	}
	return low, p.info.LMC
}

// badLID counts a port with an invalid LID.
func (b *builder) badLID(p *portRow, lid string) {
	x := b.count(fabric.InvalidLID, p.line, nil, "LID %s of port %s: want 1 to %d; it counts as a port without a LID", lid, p.at, fabric.MaxUnicastLID)
	if x.Count == 1 {
		x.Node, x.Port = p.at.node, p.at.num
	}
}

// noteMissingLIDs counts end ports with cables and no LID, if
// other ports have LIDs: no subnet manager has brought them up.
func (b *builder) noteMissingLIDs() {
	if len(b.owner) == 0 {
		return
	}
	cabled := map[fabric.GUID]bool{}
	for at := range b.cables {
		cabled[at.node] = true
	}
	for i := range b.draft.ports {
		p := &b.draft.ports[i]
		at, known := b.index[p.at.node]
		if !known || p.at.num > b.b.Node(at).NumPorts || b.ports[p.at] != p {
			continue
		}
		isSwitch := b.b.Node(at).Type == fabric.Switch
		if lid, err := parseNumber(p.lid); p.lid != "" && (err != nil || lid != 0) {
			continue
		}
		_, here := b.cables[p.at]
		if isSwitch && p.at.num == fabric.ManagementPort && cabled[p.at.node] || !isSwitch && here {
			b.badLID(p, cmp.Or(p.lid, "N/A"))
		}
	}
}

// addLinks enters the cables. A cable may be listed from both its ends.
func (b *builder) addLinks() {
	for _, l := range b.links {
		if l.ends[0] == l.ends[1] {
			x := b.note(fabric.Loopback, l.line, nil, "LINKS: a cable from port %s to itself: left out", l.ends[0])
			x.Node, x.Port = l.ends[0].node, l.ends[0].num
			continue
		}
		var at [2]int
		known := true
		for i, end := range l.ends {
			if at[i], known = b.index[end.node]; !known {
				b.wrong(l.line, nil, "LINKS: node %s is not in NODES", end.node)
				break
			}
		}
		if !known || b.isListed(&l, at) {
			continue
		}
		if err := b.b.Connect(at[0], l.ends[0].num, at[1], l.ends[1].num, b.linkOf(&l)); err != nil {
			b.wrong(l.line, nil, "LINKS: %w", err)
			continue
		}
		for _, end := range l.ends {
			b.cables[end] = l.line
		}
	}
}

// isListed returns true if an earlier row already has the cable.
func (b *builder) isListed(l *linkRow, at [2]int) bool {
	peer, port, ok := b.b.Connected(at[0], l.ends[0].num)
	return ok && peer == at[1] && port == l.ends[1].num
}

// linkOf returns the width and speed of a cable by PORTS:
// what one end knows, or the slower of two that differ.
func (b *builder) linkOf(l *linkRow) fabric.Link {
	var ends [2]fabric.Link
	for i, at := range l.ends {
		if p := b.ports[at]; p != nil {
			ends[i] = p.link
		}
	}
	x, y := ends[0].Or(ends[1]), ends[1].Or(ends[0])
	slow := x.Slower(y)
	if x != y {
		b.note(fabric.Contradiction, l.line, nil, "LINKS: the cable is %s at port %s and %s at port %s: taken as %s", x, l.ends[0], y, l.ends[1], slow)
	}
	return slow
}

// addLabels enters the labels that are printed beside the ports.
func (b *builder) addLabels() {
	for at, label := range b.labels {
		i, known := b.index[at.node]
		if !known || !topology.IsLabel([]byte(label)) {
			continue
		}
		_ = b.b.SetLabel(i, at.num, label) // fails if there is no such port: nothing depends on it
	}
}

// makeDatabase returns the rows' data on nodes and ports in the order of the fabric.
func (b *builder) makeDatabase(f *fabric.Fabric) *Database {
	d := &Database{Fabric: f, Date: b.date, SMs: b.sms, Warnings: b.warnings,
		Ports: make([]Port, f.NumPorts()), Switches: make([]Switch, f.NumSwitches()),
		nodeLines: map[fabric.GUID]int{}, portLines: map[fabric.PortID]int{}}
	portOf := func(at portAt) fabric.PortID {
		n, known := f.NodeByGUID(at.node)
		if !known || at.num > f.Node(n).NumPorts {
			return fabric.NoPort
		}
		return f.Port(n, at.num)
	}
	for g, i := range b.nodeRow {
		d.nodeLines[g] = b.nodes[i].line
	}
	for s := range f.NumSwitches() {
		d.Switches[s] = b.switches[f.Node(fabric.NodeID(s)).GUID]
	}
	for at, line := range b.cables {
		d.portLines[portOf(at)] = line
	}
	for at, p := range b.ports {
		d.Ports[portOf(at)] = p.info
	}
	for _, k := range b.pkeys {
		p := portOf(k.at)
		if p == fabric.NoPort {
			continue
		}
		if d.PKeys == nil {
			d.PKeys = make([][]fabric.PKey, f.NumPorts())
		}
		if d.PKeys[p] == nil {
			d.PKeys[p] = []fabric.PKey{}
		}
		if k.key.Partition() != 0 {
			d.PKeys[p] = append(d.PKeys[p], k.key)
		}
	}
	for _, v := range b.vports {
		if v.Port = portOf(v.at); v.Port != fabric.NoPort {
			d.VPorts = append(d.VPorts, v.VPort)
		}
	}
	d.Fabric, d.Virtual = b.withVirtual(f, d.VPorts)
	b.sortProblems()
	d.Problems = b.problems
	return d
}

// withVirtual returns f with the LIDs that only virtual ports have, count in number:
// each goes to the port that its virtual port is on.
func (b *builder) withVirtual(f *fabric.Fabric, ports []VPort) (g *fabric.Fabric, count int) {
	owner := map[fabric.LID]fabric.PortID{}
	for i := range ports {
		v := &ports[i]
		if v.LID == 0 || f.LIDPort(v.LID) == v.Port || f.PortGUID(v.Port) == 0 {
			continue
		}
		other := f.LIDPort(v.LID)
		if p, twice := owner[v.LID]; twice {
			other = p
		}
		if other != fabric.NoPort && other != v.Port {
			x := b.note(fabric.Contradiction, b.lines["VPORTS"], nil, "VPORTS: LID %d of virtual port %d on %s is that of %s too: left out", v.LID, v.Index, f.PortName(v.Port), f.PortName(other))
			x.Node, x.Port = f.Node(f.Owner(v.Port)).GUID, f.Num(v.Port)
			continue
		}
		owner[v.LID] = v.Port
	}
	g, err := f.WithVirtualLIDs(owner)
	if err != nil { // all was checked above
		return f, 0
	}
	return g, len(owner)
}
