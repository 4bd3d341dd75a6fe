package drain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
)

// Parts returns the parts to drain: switches by name, with all chips of a system, then cables by
// NODE:PORT, then groups of set. Errors begin with the flag of a name that means nothing, or wrap a
// *fabric.ParseError.
func Parts(f *fabric.Fabric, switches, cables, groupNames []string, set *groups.Set) (parts []Part, err error) {
	for _, name := range switches {
		nodes, err := names.Find(f, name)
		if err != nil {
			return nil, fmt.Errorf("--switch: %w", err)
		}
		var chips []fabric.NodeID
		system := ""
		for _, s := range nodes {
			if !f.IsSwitch(s) {
				return nil, fmt.Errorf("--switch: %q: %s is no switch", name, f.Name(s))
			}
			is := names.ChipOf(f.Name(s).Text).System
			if len(chips) > 0 && is != system { // chips of one system are one part
				parts = append(parts, SwitchPart(f, chips))
				chips = nil
			}
			chips, system = append(chips, s), is
		}
		parts = append(parts, SwitchPart(f, chips))
	}
	for _, name := range cables {
		p, err := FindPort(f, name)
		if err != nil {
			return nil, fmt.Errorf("--cable: %q: %w", name, err)
		}
		parts = append(parts, CablePart(f, p))
	}
	for _, name := range groupNames {
		g, err := set.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--host-group: %w", err)
		}
		parts = append(parts, groupPart(f, g))
	}
	return parts, nil
}

// groupPart returns the part of a group: its hosts, their cables, and leaves without other hosts.
func groupPart(f *fabric.Fabric, g *groups.Group) Part {
	p := Part{Name: fmt.Sprintf("%s, %s", g, text.Count(len(g.Hosts), "host", "hosts")), Nodes: slices.Clone(g.Nodes)}
	for _, n := range g.Nodes {
		p.Cables = slices.AppendSeq(p.Cables, f.Cabled(n))
	}
	leaves := 0
	for _, leaf := range g.Leaves {
		if !slices.ContainsFunc(f.EndPortsOn(leaf), func(end fabric.PortID) bool {
			_, ours := slices.BinarySearch(g.Nodes, f.Owner(end))
			return !ours && f.Kind(f.Owner(end)) != fabric.AggregationKind
		}) {
			p.AddSwitch(f, leaf)
			leaves++
		}
	}
	if leaves > 0 {
		p.Name += " and " + text.Count(leaves, "leaf", "leaves")
	}
	return p
}

// Without returns a fabric without some cables. A text names nodes or a group of set, which may be
// nil, to leave out all their cables, or one cable by NODE:PORT.
func Without(f *fabric.Fabric, texts []string, set *groups.Set) (*fabric.Fabric, error) {
	var cut []fabric.PortID
	for _, text := range texts {
		nodes, err := names.Find(f, text)
		if err == nil {
			for _, n := range nodes {
				cut = slices.AppendSeq(cut, f.Cabled(n))
			}
			continue
		}
		if strings.Contains(text, ":") {
			p, noPort := FindPort(f, text)
			if noPort == nil {
				cut = append(cut, p)
				continue
			}
			err = noPort
		}
		if set != nil {
			g, noGroup := set.Find(text)
			if noGroup == nil {
				cut = append(cut, groupPart(f, g).Cables...)
				continue
			}
			err = fmt.Errorf("%w; %w", err, noGroup)
		}
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	if len(cut) == 0 {
		return f, nil
	}
	return f.Without(cut...), nil
}

// FindPort finds a port with a cable by NODE:PORT.
func FindPort(f *fabric.Fabric, name string) (fabric.PortID, error) {
	p, err := names.NewFinder(f).Port(name)
	if err == nil && f.Peer(p) == fabric.NoPort {
		return fabric.NoPort, fmt.Errorf("%s has no cable", f.PortName(p))
	}
	return p, err
}
