package drift

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	Missing     = "drift-missing"
	Changed     = "drift-changed"
	Unread      = "drift-unread"
	LID         = "drift-lid"
	Cable       = "drift-cable"
	Extra       = "drift-extra"
	ForeignMLID = "drift-foreign-mlid"
)

// Rules lists the rules of Compare. Loops have the rules of package verify.
var Rules = verify.ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string

func (c *comparison) add(name string, n int64, sw fabric.GUID, format string, args ...any) *verify.Finding {
	x := verify.NewFinding(Rules, name, int(n), format, args...)
	x.Switch = sw
	c.r.Findings = append(c.r.Findings, x)
	return &c.r.Findings[len(c.r.Findings)-1]
}

// nodeName returns a node as switch "description" (GUID), or as the end node.
func (c *comparison) nodeName(p *Switch) string {
	what := "the end node"
	if _, is := c.Old.SwitchByGUID(p.Switch); is {
		what = "switch"
	}
	return fmt.Sprintf("%s %q (%s)", what, p.Name.Text, p.Switch)
}

func (c *comparison) addUnread(p *Switch, why string) {
	c.r.Unread++
	c.add(Unread, 1, p.Switch, "%s %s", c.nodeName(p), why)
}

// reportDifferences makes findings of a switch that differs.
func (c *comparison) reportDifferences(p *Switch) {
	for _, x := range []struct {
		rule, verb string
		of         func(*Counts) int
	}{
		{Missing, "lacks", func(n *Counts) int { return n.Missing }},
		{Changed, "has changed in", func(n *Counts) int { return n.Changed }},
		{Extra, "was not meant to have", func(n *Counts) int { return n.Extra }},
	} {
		n, words := 0, []string{}
		for k, counts := range p.counts() {
			if is := x.of(counts); is > 0 {
				n += is
				words = append(words, text.Count(is, counted[k][0], counted[k][1]))
			}
		}
		switch {
		case x.rule == Missing && p.Empty:
			c.addUnread(p, fmt.Sprintf("has none of its %s: it was not dumped, or its table is empty", text.Count(p.LFT.Missing, "entry", "entries")))
		case n > 0:
			c.add(x.rule, int64(n), p.Switch, "%s %s %s", c.nodeName(p), x.verb, strings.Join(words, ", "))
		}
	}
}

// counted has the words for what Switch.counts counts, one and many.
var counted = [...][2]string{{"entry", "entries"}, {"mask", "masks"}, {"SL-to-VL map", "SL-to-VL maps"}, {"choice", "choices"}}

func (p *Switch) counts() [4]*Counts { return [...]*Counts{&p.LFT, &p.MFT, &p.SL2VL, &p.Choices} }

// compareLIDsAndCables compares LIDs and cables, which only a live fabric tells.
func (c *comparison) compareLIDsAndCables() {
	f, live := c.Old, c.New
	gone := make(map[fabric.NodeID]int) // by switch: its cables that are gone or lead elsewhere
	for _, s := range f.Switches() {
		for p := range f.Cabled(s) {
			if c.Port[p] == fabric.NoPort || !c.SameCable(p, c.Port[p]) {
				gone[s]++
			}
		}
	}
	for _, s := range f.Switches() {
		to := c.Node[s]
		if to == fabric.NoNode || live.Node(to).NumPorts != f.Node(s).NumPorts {
			continue
		}
		n := f.Node(s)
		used := c.usedPorts(s, to)
		var inUse, idle []fabric.PortID
		for num := fabric.PortNum(1); num <= n.NumPorts; num++ {
			switch p := f.Port(s, num); {
			case c.SameCable(p, c.Port[p]):
			case used.Has(num):
				inUse = append(inUse, p)
			default:
				idle = append(idle, p)
			}
		}
		c.addCables(n.GUID, gone, inUse, verify.Error, "packets are sent to cables that are gone or lead elsewhere than when the tables were made")
		c.addCables(n.GUID, gone, idle, verify.Warning, "other cables than when the tables were made")
	}
	f.EndPorts(func(p fabric.PortID) {
		q := c.Port[p]
		if q == fabric.NoPort || f.LID(p) == 0 || f.LID(p) == live.LID(q) && f.LMC(p) == live.LMC(q) {
			return
		}
		x := c.add(LID, 1, 0, "%s has LID %d, LMC %d, and was meant to have LID %d, LMC %d", f.PortName(p), live.LID(q), live.LMC(q), f.LID(p), f.LMC(p))
		x.Ports = []verify.Endpoint{verify.EndpointOf(f, p)}
		switch n := f.Owner(p); { // a port without a cable has no LID
		case live.LID(q) != 0:
		case f.IsSwitch(n):
			if all := slices.Collect(f.Cabled(n)); gone[n] == len(all) && len(all) > 0 {
				x.Cause = c.cableCause(gone, slices.Max(all))
			}
		case f.PeerSwitch(p) != fabric.NoNode && !c.SameCable(p, q):
			x.Cause = c.cableCause(gone, f.Peer(p))
		}
	})
	for _, s := range live.Switches() {
		if c.Back[s] == fabric.NoNode {
			n := live.Node(s)
			c.add(Cable, 1, n.GUID, "switch %q (%s) was not there when the tables were made", live.Name(s).Text, n.GUID)
		}
	}
}

// cableCause returns the cause of a changed cable at a port of a switch: the cable itself, or the
// switch at one of its ends that lost more cables, if it lost more than one. gone counts lost
// cables by switch.
func (c *comparison) cableCause(gone map[fabric.NodeID]int, p fabric.PortID) string {
	f := c.Old
	s := f.Owner(p)
	if t := f.PeerSwitch(p); t != fabric.NoNode && (gone[t] > gone[s] || gone[t] == gone[s] && t < s) {
		s = t
	}
	switch {
	case c.Node[s] == fabric.NoNode:
		return fmt.Sprintf("switch %q (%s) is not in the live fabric", f.Name(s).Text, f.Node(s).GUID)
	case gone[s] > 1:
		return fmt.Sprintf("%d cables of %s are gone or lead elsewhere than when the tables were made", gone[s], f.Name(s))
	case f.Peer(p) == fabric.NoPort:
		return fmt.Sprintf("there is a cable at %s, and was none when the tables were made", f.PortName(p))
	}
	ends := []fabric.PortID{min(p, f.Peer(p)), max(p, f.Peer(p))}
	return fmt.Sprintf("the cable between %s and %s is gone, or leads elsewhere", f.PortName(ends[0]), f.PortName(ends[1]))
}

// usedPorts returns the ports by which a switch sends packets, by static
// entries and masks. An entry counts if its LID has a port in the live fabric
// or had one when the tables were made, so the cable of a host that is gone
// counts. Where the live state lacks tables, it uses those that are meant.
func (c *comparison) usedPorts(s, to fabric.NodeID) (used adaptive.PortSet) {
	tables, masks, at := c.live.Tables, c.live.Multicast, to
	if tables == nil {
		tables, at = c.meant.Tables, s
	}
	choices, by := c.live.Adaptive, to
	if choices == nil {
		choices, by = c.meant.Adaptive, s
	}
	if tables != nil {
		for lid, out := range tables.Row(at) {
			known := c.New.LIDPort(fabric.LID(lid)) != fabric.NoPort || c.Old.LIDPort(fabric.LID(lid)) != fabric.NoPort
			if known && out != fabric.NoPath && (choices == nil || choices.Choice(0, by, fabric.LID(lid)).State == adaptive.Static) {
				used.Add(out)
			}
		}
	}
	if at = to; masks == nil {
		masks, at = c.meant.Multicast, s
	}
	if masks != nil {
		for _, mlid := range masks.Tables.MLIDs() {
			for _, p := range masks.Tables.Mask(at, mlid) {
				used.Add(masks.Tables.Fabric().Num(p))
			}
		}
	}
	return used
}

// listed bounds the ports or MLIDs that a message lists.
const listed = 8

// addCables adds a finding about ports of a switch whose cables are not as meant, if any. It sets
// the cause if all have the same.
func (c *comparison) addCables(sw fabric.GUID, gone map[fabric.NodeID]int, ports []fabric.PortID, severity verify.Severity, what string) {
	if len(ports) == 0 {
		return
	}
	var ends []verify.Endpoint
	var causes []string
	for _, p := range ports {
		ends, causes = append(ends, verify.EndpointOf(c.Old, p)), append(causes, c.cableCause(gone, p))
	}
	x := c.add(Cable, int64(len(ports)), sw, "%s: %s", what, text.Few(text.Each(ends, verify.Endpoint.String), listed))
	x.Ports, x.Severity = ends, severity
	if slices.Min(causes) == slices.Max(causes) {
		x.Cause = causes[0]
	}
}

// findForeign lists the MLIDs that only the live state has.
func (c *comparison) findForeign() {
	var list []string
	first, meant := fabric.LID(0), c.meant.Multicast.Tables.MLIDs()
	for _, l := range c.live.Multicast.Tables.MLIDs() {
		if _, is := slices.BinarySearch(meant, l); is || len(c.live.Multicast.Tables.Ports(l)) == 0 {
			continue
		}
		list = append(list, fmt.Sprintf("%#x", uint16(l)))
		first = cmp.Or(first, l)
	}
	if list != nil {
		c.add(ForeignMLID, int64(len(list)), 0, "masks of MLIDs that were not compiled: %s", text.Few(list, listed)).LID = first
	}
}
