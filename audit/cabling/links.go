package cabling

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// kind groups ports whose links should run alike: by the device of the port, and that at the far
// end.
type kind struct {
	near, far device
}

// device is a model of adapters or switches.
type device struct {
	vendor uint32
	id     uint16
	typ    fabric.NodeType
}

func (c *checker) device(n fabric.NodeID) device {
	x := c.f.Node(n)
	return device{x.VendorID, x.DeviceID, x.Type}
}

// census counts links by width and speed.
type census map[fabric.Link]int

// usual returns the most common link, of equally common ones the slower; one
// link equal to but, the judged one, does not count. If but is slower, and more
// than fewFaults links and 1/share of all are like but or slower, it returns
// but: these are an older generation and no fault.
func (s census) usual(but fabric.Link, share int) fabric.Link {
	var best fabric.Link
	most, slow := 0, 0
	for link, n := range s {
		if link == but || below(link, but) {
			slow += n
		}
		if link == but {
			n--
		}
		if n > most || n == most && n > 0 && cmp.Or(cmp.Compare(link.Mbps(), best.Mbps()), cmp.Compare(link.Width, best.Width), cmp.Compare(link.Speed, best.Speed)) < 0 {
			best, most = link, n
		}
	}
	if slow > fewFaults && share*slow > s.total() && below(but, best) {
		return but
	}
	return best
}

// fastest returns the greatest width and the greatest speed among link other and those of the
// census, of which it leaves one link equal to but out.
func (s census) fastest(but, other fabric.Link) fabric.Link {
	for link, n := range s {
		if link != but || n > 1 {
			other = fabric.Link{Width: max(other.Width, link.Width), Speed: max(other.Speed, link.Speed)}
		}
	}
	return other
}

// fewFaults is how many slower links count as faults, whatever their share.
const fewFaults = 3

func (s census) total() int {
	n := 0
	for _, k := range s {
		n += k
	}
	return n
}

// below returns true if a is narrower or slower than b; unknown widths and speeds are ignored.
func below(a, b fabric.Link) bool {
	return a.Width != 0 && b.Width != 0 && a.Width < b.Width ||
		a.Speed != fabric.SpeedUnknown && b.Speed != fabric.SpeedUnknown && a.Speed < b.Speed
}

// least returns the smaller width and the slower speed of a and b; if one is unknown, that of the
// other.
func least(a, b fabric.Link) fabric.Link {
	if a.Width == 0 || b.Width != 0 && b.Width < a.Width {
		a.Width = b.Width
	}
	if a.Speed == fabric.SpeedUnknown || b.Speed != fabric.SpeedUnknown && b.Speed < a.Speed {
		a.Speed = b.Speed
	}
	return a
}

// checkLinks reports slow links: below what the policy wants, what the expected topology has, or
// what both ends and their neighbours can do.
//
// What an end can do shows in its other links of the same kind. A switch can do
// what the fastest such link of its system does, and what is usual for the kind
// in the fabric, unless more than an eighth of the kind is as slow. A host can
// do what is usual for its kind: on its switch if there are three or more, else
// in the fabric. On one switch up to three hosts, or a quarter, count as slow.
//
// If more than half of the links, and more than fewFaults, are below what the policy wants, they
// are one finding.
func (c *checker) checkLinks(opt Options) {
	f := c.f
	shows := c.linksShown()
	var links [2]int   // of hosts, and between switches
	var below [2][]int // of hosts, and between switches: indices of their findings
	for _, x := range f.Cables() {
		link := slowerEnd(f, x.A, x.B)
		if link == (fabric.Link{}) {
			continue
		}
		k, n := 0, len(c.findings)
		if f.IsSwitch(f.Owner(x.A)) && f.IsSwitch(f.Owner(x.B)) {
			k = 1
		}
		links[k]++
		if c.checkLink(opt, x.A, x.B, link, shows); len(c.findings) > n && c.findings[n].Rule == LinkBelowRequired {
			below[k] = append(below[k], n)
		}
	}
	for k, list := range below {
		if len(list) <= fewFaults || 2*len(list) <= links[k] {
			continue
		}
		first := &c.findings[list[0]] // one finding: the policy is wrong
		first.Count = int64(len(list))
		first.Message = fmt.Sprintf("%s of %s are below what the policy wants; the first: %s", text.Grouped(len(list)),
			text.CountGrouped(links[k], [...]string{"link of a host", "link between switches"}[k], [...]string{"links of hosts", "links between switches"}[k]), first.Message)
		for _, i := range list[1:] {
			c.findings[i].Rule = ""
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(x verify.Finding) bool { return x.Rule == "" })
}

// slowerEnd returns the link of two cabled ports as the slower end reports it; zero if neither
// does.
func slowerEnd(f *fabric.Fabric, p, peer fabric.PortID) fabric.Link {
	a, b := f.Link(p), f.Link(peer)
	if a == (fabric.Link{}) || below(b, a) {
		return b
	}
	return a
}

// checkLink adds a finding if the link from p to peer is slow. shows is from linksShown.
func (c *checker) checkLink(opt Options, p, peer fabric.PortID, link fabric.Link, shows []fabric.Link) {
	f := c.f
	between := f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(peer))
	required := opt.Hosts
	if between {
		required = opt.Between
	}
	rule, why := LinkDegraded, "while other links of both ends or of their neighbours are"
	want := least(shows[p], shows[peer])
	if !between { // a host is compared with other hosts on its switch
		if want = shows[peer]; f.IsSwitch(f.Owner(p)) {
			want = shows[p]
		}
	}
	if m := c.expected; m != nil {
		x, y := m.BackPort[p], m.BackPort[peer]
		if x != fabric.NoPort && y != fabric.NoPort && m.e.Peer(x) == y && slowerEnd(m.e, x, y) != (fabric.Link{}) {
			want, why = slowerEnd(m.e, x, y), "the expected topology has"
		}
	}
	if below(link, required) {
		rule, want, why = LinkBelowRequired, required, "the policy wants"
	}
	if below(link, want) {
		c.add(rule, 1, verify.EndpointsOf(f, p, peer), "%s to %s is %s, %s %s", f.PortName(p), f.PortName(peer), linkName(link), why, linkName(want))
		if rule == LinkDegraded && !between { // it slows one host, and not what others send
			c.findings[len(c.findings)-1].Severity = verify.Warning
		}
	}
}

// linksShown returns by PortID the width and speed that its owner can do, see checkLinks.
func (c *checker) linksShown() []fabric.Link {
	f := c.f
	shows := make([]fabric.Link, f.NumPorts())
	cables := f.Cables()
	differs := func(x fabric.Cable) bool { return f.Link(x.A) != cables[0].Link || f.Link(x.B) != cables[0].Link }
	if !slices.ContainsFunc(cables, differs) { // all links are alike, as in most fabrics
		for _, x := range cables {
			shows[x.A], shows[x.B] = x.Link, x.Link
		}
		return shows
	}
	kindOf := func(p fabric.PortID) kind { return kind{c.device(f.Owner(p)), c.device(f.Owner(f.Peer(p)))} }
	whole := make(map[kind]census)
	local := make(map[kind]census) // of one system at a time
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) != fabric.NoPort {
			addLink(whole, kindOf(p), f.Link(p))
		}
	}
	// The chips of a system count together: a plane can do what its sister planes do.
	systems := make([][]fabric.PortID, f.NumNodes()) // by the first chip
	for n, first := range c.units() {
		systems[first] = slices.AppendSeq(systems[first], f.Cabled(fabric.NodeID(n)))
	}
	for _, ports := range systems {
		clear(local)
		for _, p := range ports {
			addLink(local, kindOf(p), f.Link(p))
		}
		for _, p := range ports {
			k, own := kindOf(p), f.Link(p)
			near, all := local[k], whole[k].usual(own, 8)
			switch {
			case k.near.typ == fabric.Switch && k.far.typ == fabric.Switch:
				shows[p] = near.fastest(own, all)
			case near.total() >= 3:
				shows[p] = near.usual(own, 4)
			default:
				shows[p] = all
			}
		}
	}
	return shows
}

// units returns for each node the first chip of its system, or the node itself.
func (c *checker) units() []fabric.NodeID {
	unit := c.f.Nodes()
	for _, chips := range c.f.Systems() {
		for _, s := range chips {
			unit[s] = chips[0]
		}
	}
	return unit
}

// addLink counts a link if it is known.
func addLink(of map[kind]census, k kind, link fabric.Link) {
	if link == (fabric.Link{}) {
		return
	}
	if of[k] == nil {
		of[k] = make(census)
	}
	of[k][link]++
}

// SlowLinks returns the findings of LinkDegraded that Check makes without an expectation; none if
// widths and speeds are unknown. Those between switches, which are errors, come first. It takes
// O(ports).
func SlowLinks(f *fabric.Fabric) []verify.Finding {
	c := &checker{f: f}
	c.checkLinks(Options{})
	slices.SortStableFunc(c.findings, func(a, b verify.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c.findings
}

// linkName writes width and speed, or the one that is known.
func linkName(l fabric.Link) string {
	switch {
	case l.Speed == fabric.SpeedUnknown:
		return fmt.Sprintf("%dx", l.Width)
	case l.Width == 0:
		return l.Speed.String()
	}
	return l.String()
}

// checkLevels reports hosts on upper levels of a certain tree, and switches of an irregular tree
// that have fewer uplinks than most on their level.
func (c *checker) checkLevels(s *Shape) {
	f := c.f
	for i, p := range f.CAPorts() {
		at := f.CASwitches()[i]
		if s.Certain && s.level != nil && at != fabric.NoNode && s.level[at] > 0 && f.PortCounts(p, fabric.ForShape) {
			c.add(HostOnSpine, 1, verify.EndpointsOf(f, p, f.Peer(p)), "%s is cabled to %s, on level %d of %d",
				f.PortName(p), f.PortName(f.Peer(p)), s.level[at]+1, len(s.Levels))
		}
	}
	for level := int32(0); s.Kind == Tree && int(level) < len(s.Levels)-1; level++ {
		switches := slices.DeleteFunc(f.Switches(), func(sw fabric.NodeID) bool { return s.level[sw] != level })
		up := text.Each(switches, func(sw fabric.NodeID) int {
			return text.CountIf(f.Neighbors(sw), func(t fabric.NodeID) bool { return s.level[t] == level+1 })
		})
		usual := mode(up)
		for i, sw := range switches {
			if up[i] < usual {
				c.add(UnevenUplinks, usual-up[i], nodeEndpoints(f, sw), "switch %q (%s) has %s upward, most of its level have %d",
					f.Name(sw).Text, f.Node(sw).GUID, countCables(up[i]), usual)
			}
		}
	}
}

func countCables(n int) string { return text.Count(n, "cable", "cables") }

// mode returns the most common number, of equally common ones the greatest; 0 for none.
func mode(list []int) (best int) {
	times := make(map[int]int)
	for _, n := range list {
		times[n]++
	}
	for n, k := range times {
		if k > times[best] || k == times[best] && n > best {
			best = n
		}
	}
	return best
}
