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

// claim is a LID that several ports have. The first of ports keeps it, see SettleLIDs.
type claim struct {
	lid   fabric.LID
	ports []fabric.PortID
	told  bool // the tables lead to the first port
}

// few bounds the intruders that a message names.
const few = 3

// SettleLIDs leaves each LID that several ports have to one of them: the port that the tables lead
// to, else the first by GUID. It returns a fabric where the others have no LID, and the finding
// about them, which does not depend on the order of the text. Without shared LIDs it returns the
// fabric as it is and no finding.
func SettleLIDs(s *state.State) (*fabric.Fabric, []verify.Finding) {
	list := findClaims(s)
	if list == nil {
		return s.Fabric, nil
	}
	f := withOwners(s.Fabric, list)
	x := verify.NewFinding(Rules, DuplicateLID, 0, "")
	x.Fingerprint = Fingerprint(DuplicateLID, 1)
	former := make(map[fabric.PortID][]fabric.LID) // LIDs without a port, by BareEnd
	for lid := fabric.LID(1); s.Tables != nil && lid <= s.Tables.MaxLID(); lid++ {
		if f.LIDPort(lid) == fabric.NoPort {
			p := BareEnd(f, s.Tables, lid)
			former[p] = append(former[p], lid)
		}
	}
	var unsure []fabric.PortID
	var words []string
	for _, c := range list {
		x.Count += int64(len(c.ports) - 1)
		x.Ports = append(x.Ports, verify.EndpointsOf(f, c.ports[1:]...)...)
		if !c.told {
			unsure = append(unsure, c.ports[0])
		}
		if len(words) < few {
			words = append(words, c.describe(f, s, former))
		}
	}
	x.Ports = append(x.Ports, verify.EndpointsOf(f, unsure...)...)
	x.Ports = x.Ports[:min(len(x.Ports), maxPorts)]
	x.Message = text.CountGrouped(x.Count, countWords[DuplicateLID][0], countWords[DuplicateLID][1])
	if x.Count > few {
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
		c := claim{lid: lid, ports: ports[lid]}
		slices.Sort(c.ports)
		if s.Tables != nil {
			end := LeadsTo(s.Fabric, s.Tables, lid)
			i := slices.IndexFunc(c.ports, func(p fabric.PortID) bool { return end != fabric.NoPort && s.Fabric.Attachment(p) == end })
			if c.told = i >= 0; c.told {
				owner := c.ports[i]
				c.ports = slices.Insert(slices.Delete(c.ports, i, i+1), 0, owner)
			}
		}
		list = append(list, c)
	}
	return list
}

// withOwners returns a fabric in which only the first port of each claim has the LID. If LMCs make
// these ports share other LIDs, it returns f and clears told.
func withOwners(f *fabric.Fabric, list []claim) *fabric.Fabric {
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
		base[c.ports[0]] = c.lid &^ (1<<lmc[c.ports[0]] - 1)
	}
	g, err := f.WithLIDs(base, lmc)
	if err == nil {
		g, err = g.WithVirtualLIDs(f.VirtualLIDs())
	}
	if err == nil && g.MaxLID() <= f.MaxLID() {
		return g
	}
	for i := range list {
		list[i].told = false
	}
	return f
}

// describe tells which ports have the LID, which of them are intruders if the
// tables tell, and what to do. former has LIDs without a port, by the end port
// to which the tables lead.
func (c *claim) describe(f *fabric.Fabric, s *state.State, former map[fabric.PortID][]fabric.LID) string {
	name := func(p fabric.PortID) string {
		if at := f.Attachment(p); at != p && at != fabric.NoPort {
			return f.PortName(p) + " at " + f.PortName(at)
		}
		return f.PortName(p)
	}
	ports := c.ports[:min(len(c.ports), 1+few)]
	if !c.told {
		why := "which of them is the intruder is not known without forwarding tables, --lfts FILE"
		if s.Tables != nil {
			why = "the tables do not tell which of them is the intruder, as they lead it to none of them or to several"
		}
		return fmt.Sprintf("%s have LID %d; %s; taken as that of the first", text.List(text.Each(ports, name), "and"), c.lid, why)
	}
	return strings.Join(text.Each(ports[1:], func(p fabric.PortID) string {
		cure := "give it another LID, and restart its port"
		if former := former[p]; len(former) == 1<<f.LMC(p) {
			cure = fmt.Sprintf("the tables have LID %d for it, so give it that back (guid2lid), and restart its port", former[0])
		}
		return fmt.Sprintf("%s is the intruder: it has LID %d, which the tables lead to %s; %s", name(p), c.lid, name(c.ports[0]), cure)
	}), "; ")
}
