package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// claim is a LID with the ports that have it, by PortID.
type claim struct {
	lid   fabric.LID
	ports []fabric.PortID
	owner fabric.PortID // to which the tables lead; NoPort where they do not tell
}

// intruders are the ports of which the LID is not; all but the first where the tables do not tell.
func (c *claim) intruders() []fabric.PortID {
	keeps := c.keeper()
	return slices.DeleteFunc(slices.Clone(c.ports), func(p fabric.PortID) bool { return p == keeps })
}

func (c *claim) keeper() fabric.PortID {
	if c.owner != fabric.NoPort {
		return c.owner
	}
	return c.ports[0]
}

// SettleLIDs gives each LID that several ports of a state have to the port that its tables lead to, and where they lead
// to none of these to the first by GUID. The other ones have no LID then. It returns the fabric with these LIDs and the
// finding about them, which is the same in whatever order a text has the ports; the fabric as it is if there are no such LIDs.
func SettleLIDs(s *state.State) (*fabric.Fabric, []verify.Finding) {
	list := findClaims(s)
	if list == nil {
		return s.Fabric, nil
	}
	f, settled := withOwners(s.Fabric, list)
	rule, _ := verify.FindRule(DuplicateLID, Rules)
	x := verify.Finding{Rule: rule.Name, Severity: rule.Severity, Witness: []verify.Hop{}, Fingerprint: Fingerprint(rule.Name, 1)}
	var unsure []fabric.PortID
	var words []string
	former := formerLIDs(f, s)
	for i := range list {
		c := &list[i]
		if !settled {
			c.owner = fabric.NoPort
		}
		out := c.intruders()
		x.Count += int64(len(out))
		x.Ports = append(x.Ports, verify.EndpointsOf(f, out...)...)
		if c.owner == fabric.NoPort {
			unsure = append(unsure, c.keeper())
		}
		words = append(words, c.describe(f, s, former))
	}
	x.Ports = append(x.Ports, verify.EndpointsOf(f, unsure...)...)
	x.Ports = x.Ports[:min(len(x.Ports), maxPorts)]
	x.Message = text.CountGrouped(x.Count, countWords[DuplicateLID][0], countWords[DuplicateLID][1])
	if x.Count > 3 {
		x.Message += ", so that two fabrics may be cabled together; the first"
		words = words[:1]
	}
	x.Message += ": " + strings.Join(words, "; ")
	return f, []verify.Finding{x}
}

// findClaims lists the LIDs that several ports have, ascending.
func findClaims(s *state.State) (list []claim) {
	ports := make(map[fabric.LID][]fabric.PortID)
	for i := range s.Problems {
		p := &s.Problems[i]
		if n, ok := s.Fabric.NodeByGUID(p.Node); ok && p.Kind == fabric.DuplicateLID {
			if ports[p.LID] == nil {
				ports[p.LID] = []fabric.PortID{s.Fabric.LIDPort(p.LID)}
			}
			ports[p.LID] = append(ports[p.LID], s.Fabric.Port(n, p.Port))
		}
	}
	for _, lid := range slices.Sorted(maps.Keys(ports)) {
		c := claim{lid: lid, ports: ports[lid], owner: fabric.NoPort}
		slices.Sort(c.ports)
		if s.Tables != nil {
			end := LeadsTo(s.Fabric, s.Tables, lid)
			for _, p := range c.ports {
				if end != fabric.NoPort && s.Fabric.Attachment(p) == end {
					c.owner = p
				}
			}
		}
		list = append(list, c)
	}
	return list
}

// withOwners is a fabric in which LIDs are those of the ports that keep them; as it is, and false, where that cannot be, since
// the LMCs of these ports have more LIDs in common.
func withOwners(f *fabric.Fabric, list []claim) (*fabric.Fabric, bool) {
	base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	for p := range fabric.PortID(f.NumPorts()) {
		base[p], lmc[p] = f.LID(p), f.LMC(p)
	}
	for _, c := range list {
		for _, p := range c.ports {
			base[p] = 0
		}
	}
	for _, c := range list {
		base[c.keeper()] = c.lid &^ (1<<lmc[c.keeper()] - 1)
	}
	g, err := f.WithLIDs(base, lmc)
	if err == nil {
		g, err = g.WithVirtualLIDs(f.VirtualLIDs())
	}
	if err != nil || g.MaxLID() > f.MaxLID() {
		return f, false
	}
	return g, true
}

// formerLIDs has by port of a switch the LIDs that no port has and the tables lead there.
func formerLIDs(f *fabric.Fabric, s *state.State) map[fabric.PortID][]fabric.LID {
	at := make(map[fabric.PortID][]fabric.LID)
	for lid := fabric.LID(1); s.Tables != nil && lid <= s.Tables.MaxLID(); lid++ {
		if f.LIDPort(lid) == fabric.NoPort {
			if end := LeadsTo(f, s.Tables, lid); end != fabric.NoPort {
				at[end] = append(at[end], lid)
			}
		}
	}
	return at
}

// describe says which port has the LID of which, and what to do.
func (c *claim) describe(f *fabric.Fabric, s *state.State, former map[fabric.PortID][]fabric.LID) string {
	name := func(p fabric.PortID) string {
		if at := f.Attachment(p); at != p && at != fabric.NoPort {
			return f.PortName(p) + " at " + f.PortName(at)
		}
		return f.PortName(p)
	}
	if c.owner == fabric.NoPort {
		why := "which of them is the intruder is not known without forwarding tables, --lfts FILE"
		if s.Tables != nil {
			why = "the tables do not tell which of them is the intruder, as they lead it to none of them or to several"
		}
		return fmt.Sprintf("%s have LID %d; %s; taken as that of the first", text.List(text.Each(c.ports, name), "and"), c.lid, why)
	}
	return strings.Join(text.Each(c.intruders(), func(p fabric.PortID) string {
		cure := "give it another LID, and restart its port"
		if lids := former[f.Attachment(p)]; len(lids) == 1<<f.LMC(p) {
			cure = fmt.Sprintf("the tables have LID %d for it, so give it that back (guid2lid), and restart its port", lids[0])
		}
		return fmt.Sprintf("%s is the intruder: it has LID %d, which the tables lead to %s; %s", name(p), c.lid, name(c.owner), cure)
	}), "; ")
}
