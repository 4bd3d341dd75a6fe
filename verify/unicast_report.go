package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// report adds the findings of workers, except credit loops.
func (p *plan) report(r *Result, w *worker, opt Options) {
	c := NewCollector(&r.Findings, Rules, opt.Findings)
	p.reportParts(c, r, w)
	p.reportPorts(c)
	slices.SortFunc(w.troubles, func(a, b trouble) int { return cmp.Compare(a.lid, b.lid) })
	for i := range w.troubles {
		for k, t := range w.troubles[i].tallies {
			if t.pairs > 0 {
				c.Add(tallyRules[k].name, t.pairs, func(f *Finding) {
					f.LID = w.troubles[i].lid
					tallyRules[k].describe(p, f, t)
				})
			}
		}
	}
	p.reportEntries(c, r, w, opt.Complete)
	if w.nonMinimal > 0 {
		c.Add(NonMinimal, w.nonMinimal, func(f *Finding) {
			lid, from := w.stretch.lid, w.stretch.from
			list := p.f.HostsOn(fabric.NodeID(from))
			source := list[slices.IndexFunc(list, func(port fabric.PortID) bool {
				_, lost := p.discards(port, lid)
				return !lost
			})]
			way := p.witness(p.follow(source, lid, p.slsOf(source, lid)[0]), lid)
			f.LID, f.Switch, f.Witness = lid, way[0].Switch, way
			f.Message = fmt.Sprintf("%d of %d pairs pass more switches than they need to; from %s to %s it is %d instead of %d",
				w.nonMinimal, r.Unicast.Pairs, sourceName(p.f, source), lidName(p.f, lid), len(way), len(way)-int(w.stretch.extra))
		})
	}
	c.Close()
}

// tallyRules has, for each tally of a trouble, its rule and the function that fills in a finding.
var tallyRules = [numTallies]struct {
	name     string
	describe func(*plan, *Finding, tally)
}{
	tallyUnreachable:           {UnicastUnreachable, (*plan).describeDropped},
	tallyMisdelivered:          {Misdelivered, (*plan).describeDropped},
	tallyDropped:               {SLDropped, (*plan).describeDiscarded},
	tallyLoops:                 {UnicastLoop, (*plan).describeLoop},
	tallyManagementUnreachable: {ManagementUnreachable, (*plan).describeDropped},
	tallyManagementDropped:     {ManagementSLDropped, (*plan).describeDiscarded},
	tallyManagementLoops:       {ManagementLoop, (*plan).describeLoop},
}

// The most parts of a fabric that a finding names, and the most members of each.
const (
	namedParts   = 4
	namedMembers = 3
)

// reportParts adds one finding for all pairs that no cables join.
func (p *plan) reportParts(c *Collector, r *Result, w *worker) {
	if w.apart == [2]int64{} {
		return
	}
	order := text.Numbers[int](len(p.parts.List)) // the largest part first
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &p.parts.List[i], &p.parts.List[j]
		return cmp.Or(-cmp.Compare(a.Switches, b.Switches), -cmp.Compare(a.Ports, b.Ports))
	})
	size := func(x *fabric.Component) string {
		switch ports := text.Count(x.Ports, "CA port", "CA ports"); {
		case x.Switches == 0:
			return ports
		case x.Ports == 0:
			return text.Count(x.Switches, "switch", "switches")
		default:
			return text.Count(x.Switches, "switch", "switches") + " and " + ports
		}
	}
	var ports []Endpoint
	message := fmt.Sprintf("%d parts that no cable joins: ", len(order))
	for i, id := range order[:min(len(order), namedParts)] {
		x := &p.parts.List[id]
		if i > 0 {
			message += "; "
		}
		members := p.members(int32(id))
		message += size(x) + " with "
		named := EndpointsOf(p.f, members[:min(len(members), namedMembers)]...)
		ports = append(ports, named...)
		message += strings.Join(text.Each(named, Endpoint.String), ", ")
		if len(members) > namedMembers {
			message += ", .."
		}
	}
	if len(order) > namedParts {
		var rest fabric.Component
		for _, id := range order[namedParts:] {
			rest.Switches += p.parts.List[id].Switches
			rest.Ports += p.parts.List[id].Ports
		}
		message += fmt.Sprintf("; and %d more with %s", len(order)-namedParts, size(&rest))
	}
	add := func(rule, message string, pairs int64) {
		c.Add(rule, pairs, func(f *Finding) { f.Message, f.Ports = message, ports })
	}
	if w.apart[0] > 0 {
		add(Partitioned, fmt.Sprintf("%s; %d of %d pairs of CA ports cannot talk", message, w.apart[0], r.Unicast.Pairs), w.apart[0])
	}
	if w.apart[1] > 0 {
		pairs := fmt.Sprintf("%d of %d pairs with port 0 of a switch cannot talk", w.apart[1], r.Management.Pairs)
		if w.apart[0] > 0 {
			message = pairs + ": they are in different parts, which " + Partitioned + " names"
		} else {
			message += "; " + pairs
		}
		add(ManagementPartitioned, message, w.apart[1])
	}
}

// members lists the first end ports of a part, one more than are named: ports 0 of its switches or,
// without switches, CA ports.
func (p *plan) members(part int32) (list []fabric.PortID) {
	x := &p.parts.List[part]
	if x.Switches == 0 {
		return []fabric.PortID{x.First, p.f.Peer(x.First)}
	}
	for s := p.f.Owner(x.First); len(list) < min(x.Switches, namedMembers+1); s++ {
		if p.parts.Of[s] == part {
			list = append(list, p.f.PortBase(s))
		}
	}
	return list
}

// reportPorts adds findings of ports that no tables reach.
func (p *plan) reportPorts(c *Collector) {
	f := p.f
	f.EndPorts(func(port fabric.PortID) {
		if f.LID(port) != 0 {
			return
		}
		if node := f.Owner(port); f.IsSwitch(node) {
			c.Add(ManagementUnassignedLID, 1, func(x *Finding) {
				x.Switch = f.Node(node).GUID
				x.Message = switchName(p.f, node) + " has no LID"
			})
			return
		}
		c.Add(UnassignedLID, 1, func(x *Finding) {
			x.Ports = []Endpoint{EndpointOf(p.f, port)}
			x.Message = fmt.Sprintf("%s %s, port GUID %s, has a cable and no LID", f.Node(f.Owner(port)).Type, f.PortName(port), f.PortGUID(port))
		})
	})
	for i, port := range f.CAPorts() {
		if f.CASwitches()[i] != fabric.NoNode {
			continue
		}
		peer := f.Peer(port)
		if lids := lidsOf(p.f, peer); lids > 0 && p.mute(port) {
			c.Add(SLDropped, lids, func(x *Finding) {
				x.Ports = []Endpoint{EndpointOf(p.f, port)}
				x.Message = fmt.Sprintf("%s is cabled to %s and cannot reach it: its SL-to-VL table drops all SLs", f.PortName(port), f.PortName(peer))
			})
		}
	}
}

// describeDropped fills in a finding of pairs of one LID whose packets are dropped.
func (p *plan) describeDropped(f *Finding, t tally) {
	lid := f.LID
	source := p.sourcesAt(t.from, lid, f.Rule == ManagementUnreachable)[0]
	path := p.follow(source, lid, p.slsOf(source, lid)[0])
	end := path[len(path)-1].s
	f.Switch, f.Witness = p.f.Node(fabric.NodeID(end)).GUID, p.witness(path, lid)
	verb := "cannot reach it"
	if f.Rule == Misdelivered {
		verb = "send to it and miss it"
	}
	f.Message = fmt.Sprintf("%s: %s %s; packets from %s end at %s, which %s",
		lidName(p.f, lid), text.Count(t.pairs, "port", "ports"), verb, sourceName(p.f, source),
		switchName(p.f, fabric.NodeID(end)), p.fate(end, lid))
}

// describeDiscarded fills in a finding of pairs of one LID whose packets an
// SL-to-VL table drops. The witness ends with the drop, on VL 15.
func (p *plan) describeDiscarded(f *Finding, t tally) {
	lid := f.LID
	var source fabric.PortID
	var sl fabric.SL
	for _, source = range p.sourcesAt(t.from, lid, f.Rule == ManagementSLDropped) {
		var lost bool
		if sl, lost = p.discards(source, lid); lost {
			break
		}
	}
	f.Message = fmt.Sprintf("%s: %s cannot reach it; ", lidName(p.f, lid), text.Count(t.pairs, "port", "ports"))
	first := p.firstOut(source, lid)
	switch own := p.lanes.sl2vl.At(0, first); {
	case *own == lft.ConstantVL(lft.DropVL):
		f.Message += fmt.Sprintf("the SL-to-VL table of %s drops all SLs", p.f.PortName(first))
		return
	case first == source && own[sl] == lft.DropVL:
		f.Message += fmt.Sprintf("the SL-to-VL table of %s drops SL %d, which the path has", p.f.PortName(source), sl)
		return
	}
	path := p.follow(source, lid, sl)
	f.Witness = p.witness(path[:slices.IndexFunc(path, pathStep.isDrop)+1], lid)
	last := f.Witness[len(f.Witness)-1]
	f.Switch = last.Switch
	in := p.f.Attachment(source)
	if n := len(f.Witness) - 2; n >= 0 {
		in = p.f.Peer(p.f.Port(fabric.NodeID(path[n].s), path[n].port))
	}
	f.Message += fmt.Sprintf("packets of SL %d from %s end at switch %q (%s), %s%s",
		sl, sourceName(p.f, source), last.Name.Text, last.Switch, WhoseLanes, p.dropText(in, p.f.Port(p.f.Owner(in), last.Port), sl))
}

// WhoseLanes begins the part of a message that tells what an SL-to-VL table drops.
const WhoseLanes = "whose SL-to-VL table "

// dropText describes which SLs a switch's SL-to-VL table drops between ports in and out. It adds
// the other output ports to which the table drops sl from port in, and the other input ports from
// which it drops sl to all of these outputs.
func (p *plan) dropText(in, out fabric.PortID, sl fabric.SL) string {
	s, at := p.f.Owner(in), p.f.Num(in)
	drops := func(in, out fabric.PortNum) bool { return p.vlOf(in, p.f.Port(s, out), sl) == lft.DropVL }
	var sls, ins, outs []string
	for i, vl := range p.lanes.sl2vl.At(at, out) {
		if vl == lft.DropVL {
			sls = append(sls, strconv.Itoa(i))
		}
	}
	to := []fabric.PortNum{p.f.Num(out)}
	for n := fabric.PortNum(1); n <= p.f.Node(s).NumPorts; n++ {
		if n == to[0] || n != at && drops(at, n) {
			to, outs = append(to, n), append(outs, strconv.Itoa(int(n)))
		}
	}
	other := 0 // number of input ports; if there is one output port, without it
	for n := range p.f.Node(s).NumPorts + 1 {
		if len(outs) == 1 && n == to[0] {
			continue
		}
		if other++; !slices.ContainsFunc(to, func(out fabric.PortNum) bool { return n != out && !drops(n, out) }) {
			ins = append(ins, strconv.Itoa(int(n)))
		}
	}
	list := func(what string, numbers []string) string {
		if len(numbers) > 1 {
			what += "s"
		}
		return what + " " + strings.Trim(hostlist.Fold(numbers), "[]")
	}
	from := list("input port", ins)
	if len(ins) == other {
		from = "any input port"
	}
	return fmt.Sprintf("drops %s (VL %d) from %s to %s", list("SL", sls), lft.DropVL, from, list("output port", outs))
}

// describeLoop fills in a finding of pairs of one LID whose packets loop.
func (p *plan) describeLoop(f *Finding, t tally) {
	lid := f.LID
	source := p.sourcesAt(t.from, lid, f.Rule == ManagementLoop)[0]
	path := p.follow(source, lid, p.slsOf(source, lid)[0])
	again := p.next(path[len(path)-1].s, lid)
	i := slices.IndexFunc(path, func(at pathStep) bool { return at.s == again })
	f.Witness = rotate(p.witness(path[i:], lid))
	f.Switch = f.Witness[0].Switch
	f.Message = fmt.Sprintf("%s: packets from %s loop: %s", lidName(p.f, lid), text.Count(t.pairs, "port", "ports"), formatCycle(f.Witness, false, false))
}

// reportEntries adds findings of single table entries.
func (p *plan) reportEntries(c *Collector, r *Result, w *worker, complete bool) {
	if p.f.MaxLID() > 0 {
		for s := range p.n {
			row := p.t.Row(fabric.NodeID(s))
			if !slices.ContainsFunc(row[1:], func(e fabric.PortNum) bool { return e != fabric.NoPath }) {
				c.Add(EmptyTable, 1, func(f *Finding) {
					f.Switch = p.f.Node(fabric.NodeID(s)).GUID
					f.Message = switchName(p.f, fabric.NodeID(s)) + " has no forwarding entries"
				})
			}
		}
	}
	keys := make([]deadKey, 0, len(w.dead))
	for key := range w.dead {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b deadKey) int { return cmp.Or(cmp.Compare(a.sw, b.sw), cmp.Compare(a.port, b.port)) })
	for _, key := range keys {
		n := w.dead[key]
		c.Add(DeadEntry, n.lids, func(f *Finding) {
			node := p.f.Node(fabric.NodeID(key.sw))
			f.Switch, f.LID = node.GUID, n.first
			f.Ports = []Endpoint{{Node: node.GUID, Name: p.f.Name(fabric.NodeID(key.sw)), Port: key.port}}
			if key.port <= node.NumPorts {
				f.Ports[0].Label = p.f.Label(p.f.Port(fabric.NodeID(key.sw), key.port))
			}
			f.Message = fmt.Sprintf("%s: %s %s", lidName(p.f, n.first), switchName(p.f, fabric.NodeID(key.sw)), p.fate(key.sw, n.first))
			if n.lids > 1 {
				f.Message += fmt.Sprintf("; %d LIDs have this entry", n.lids)
			}
		})
	}
	slices.SortFunc(w.stale, func(a, b staleLID) int { return cmp.Compare(a.lid, b.lid) })
	var unowned []fabric.LID
	for _, n := range w.stale {
		if cycle := p.cycleOf(n.lid); len(cycle) > 0 {
			c.Add(UnownedLIDLoop, 1, func(f *Finding) {
				f.LID, f.Witness = n.lid, rotate(cycle)
				f.Switch = f.Witness[0].Switch
				f.Message = fmt.Sprintf("LID %d has no port, and packets for it loop: %s", n.lid, formatCycle(f.Witness, false, false))
			})
		}
		if p.f.LIDPort(n.lid) == fabric.NoPort {
			unowned = append(unowned, n.lid)
		}
		c.Add(StaleEntry, n.switches, func(f *Finding) {
			f.Switch, f.LID = p.f.Node(fabric.NodeID(n.first)).GUID, n.lid
			owner := "belongs to no port"
			if port := p.f.LIDPort(n.lid); port != fabric.NoPort {
				owner = "belongs to " + p.f.PortName(port) + ", which has no cable"
			}
			f.Message = fmt.Sprintf("LID %d %s, and %s for it, such as %s with port %s",
				n.lid, owner, text.Count(n.switches, "switch has an entry", "switches have entries"), switchName(p.f, fabric.NodeID(n.first)), p.entryText(n.first, p.entry(n.first, n.lid)))
		})
	}
	if !complete {
		r.leaveUnowned(unowned, UnicastRules...)
	}
}

// cycleOf returns a cycle in which packets for a LID without a port loop, or none: O(switches).
func (p *plan) cycleOf(lid fabric.LID) []Hop {
	to := make([]int32, 1)
	cycle := graph.FirstCycle(p.n, func(s int32) []int32 {
		if to[0] = p.next(s, lid); to[0] < 0 {
			return nil
		}
		return to
	})
	return p.witness(text.Each(cycle, func(s int32) pathStep { return pathStep{s: s, port: p.entry(s, lid)} }), lid)
}

// leaveGap leaves rules undecided if there is a gap: the text of the tables
// may lack its row. Pairs of CA ports whose packets end there are errors
// anyway; with the row, other packets might loop.
func (p *plan) leaveGap(r *Result, g gap) {
	if g.lid == 0 {
		return
	}
	r.leave(fmt.Sprintf("entries of other switches lead to %s, which has no entry for %s: its row may be lost, since the form of these tables has none where there is no path; dump_lfts text or opensm.fdbs decides",
		switchName(p.f, fabric.NodeID(g.at)), lidName(p.f, g.lid)), ManagementLoop, ManagementCreditLoop)
}

// pathStep is a switch on the path of a packet, and the channel by which the packet leaves it.
type pathStep struct {
	s    int32
	port fabric.PortNum
	vl   fabric.VL
}

// isDrop returns true if an SL-to-VL table drops the packet here.
func (x pathStep) isDrop() bool { return x.vl == lft.DropVL }

// follow follows packets with an SL for a LID from an end port until they
// leave the switches or would enter a switch again. It goes on where SL-to-VL
// tables drop them.
func (p *plan) follow(source fabric.PortID, lid fabric.LID, sl fabric.SL) (path []pathStep) {
	in := p.f.Attachment(source)
	seen := make([]bool, p.n)
	for s := int32(p.f.Owner(in)); s >= 0 && !seen[s]; s = p.next(s, lid) {
		seen[s] = true
		x := pathStep{s: s, port: p.entry(s, lid)}
		if x.port <= p.f.Node(fabric.NodeID(s)).NumPorts {
			out := p.f.Port(fabric.NodeID(s), x.port)
			x.vl = p.vlOf(p.f.Num(in), out, sl)
			in = p.f.Peer(out)
		}
		path = append(path, x)
	}
	return path
}

// witness returns the channels of a path, with lid.
func (p *plan) witness(path []pathStep, lid fabric.LID) []Hop {
	hops := make([]Hop, len(path))
	for i, x := range path {
		hops[i] = hopOf(p.f, fabric.NodeID(x.s), x.port)
		hops[i].VL, hops[i].LID = x.vl, lid
	}
	return hops
}

// firstOut returns the first port by which packets for a LID leave a node: of
// a CA its own port; of a switch the port of its entry, or port 0 if the
// entry is no port.
func (p *plan) firstOut(source fabric.PortID, lid fabric.LID) fabric.PortID {
	n := p.f.Owner(source)
	if !p.f.IsSwitch(n) {
		return source
	}
	e := p.entry(int32(n), lid)
	if e > p.f.Node(n).NumPorts {
		return source
	}
	return p.f.Port(n, e)
}

// slsOf lists the SLs that packets from a port for a LID may have, one of
// each class: SL 0 on one VL, and the lowest if the port's own table drops
// all. The forwarding tables must lead to the LID.
func (p *plan) slsOf(source fabric.PortID, lid fabric.LID) []fabric.SL {
	l := p.lanes
	if l == nil {
		return []fabric.SL{0}
	}
	if l.sls != nil {
		if sl := l.slsFrom(source, p.f.Owner(p.f.Attachment(source)))[lid]; sl != lft.UnknownSL {
			return []fabric.SL{sl}
		}
	}
	own := l.sl2vl.At(0, p.firstOut(source, lid))
	var sls []fabric.SL
	for _, c := range l.classes {
		if own[c.sl] != lft.DropVL {
			sls = append(sls, c.sl)
		}
	}
	if sls == nil {
		return []fabric.SL{l.classes[0].sl}
	}
	return sls
}

// discards returns true, and the SL of lost packets, if SL-to-VL tables drop packets from a port
// for a LID. The forwarding tables must lead to the LID.
func (p *plan) discards(source fabric.PortID, lid fabric.LID) (fabric.SL, bool) {
	if p.lanes == nil {
		return 0, false
	}
	sls := p.slsOf(source, lid)
	dropped := text.Where(sls, func(sl fabric.SL) bool {
		return p.vlOf(0, source, sl) == lft.DropVL || slices.ContainsFunc(p.follow(source, lid, sl), pathStep.isDrop)
	})
	if len(dropped) == 0 || p.lanes.certain && len(dropped) < len(sls) {
		return 0, false
	}
	return dropped[0], true
}

// fate describes what switch s does with packets for a LID that end there.
func (p *plan) fate(s int32, lid fabric.LID) string {
	if e := p.entry(s, lid); e != fabric.NoPath {
		return fateBy(p.f, fabric.NodeID(s), e, "")
	}
	return "has no entry for it"
}

// entryText returns the port of an entry of switch s, with its label if the switch has the port.
func (p *plan) entryText(s int32, e fabric.PortNum) string {
	if e > p.f.Node(fabric.NodeID(s)).NumPorts {
		return strconv.Itoa(int(e))
	}
	return p.f.PortText(p.f.Port(fabric.NodeID(s), e))
}

// sourcesAt lists the ports whose packets for a LID start at switch s: CA and
// router ports, in the order of the switch's ports. If management is set,
// port 0 of s follows, or is alone if a CA has the LID.
func (p *plan) sourcesAt(s int32, lid fabric.LID, management bool) (list []fabric.PortID) {
	to := p.f.LIDPort(lid)
	if !management || p.f.IsSwitch(p.f.Owner(to)) {
		for _, host := range p.f.EndPortsOn(fabric.NodeID(s)) {
			if host != to {
				list = append(list, host)
			}
		}
	}
	if base := p.f.PortBase(fabric.NodeID(s)); management && base != to {
		list = append(list, base)
	}
	return list
}
