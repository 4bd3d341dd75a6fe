// Package fattree routes fat trees, also damaged ones, by destination: on a full tree every
// shift permutation of the hosts in their order is free of contention (Zahavi, D-Mod-K
// Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees, CCIT
// report 776, Technion, 2010). It makes no promise to other modules.
//
// A fat tree has levels, and most cables lead to the next level. Packets come down to a host
// by a chain of switches, which the number of the host determines: host i of a leaf uses
// uplink i modulo the number of uplinks, and so on. All switches send packets up to the
// chain of their destination.
//
// The engine prefers chains, but allows all shortest up*/down* paths of an order of the
// switches, as updn does: on a full tree all paths up and then down. The balancer of package
// lft keeps chains that are allowed if the load is good, and chooses all other paths.
package fattree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// Engine is the fattree engine.
type Engine struct{}

var _ lft.IncrementalEngine = Engine{}

// Name is "fattree".
func (Engine) Name() string { return "fattree" }

// Guarantee is Reachable and NoCreditLoop.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// KeepOrder returns the order that updn keeps.
func (Engine) KeepOrder(f *fabric.Fabric, was []int32) ([]int32, bool) {
	return updown.Engine{}.KeepOrder(f, was)
}

const (
	// At least hostsOnLeaves percent of the hosts must be on leaves, and cablesByLevel
	// percent of the cables must lead to the next level.
	hostsOnLeaves = 66
	cablesByLevel = 75
)

// Route takes levels from package levels, or from the distance to opt.Roots if there are
// any, and the order of updn. Without roots it returns a *lft.DomainError if a connected
// part has many hosts above the leaves, or many cables that do not lead to the next level.
//
// With opt.Previous it updates those tables as updn does, even if the fabric is no longer a
// fat tree: the tables are up*/down* for any shape.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	n := f.NumSwitches()
	index, level := make([]int32, n), levels.Of(f)
	search := graph.NewSearch[fabric.NodeID](n)
	search.Run(f.Neighbors, opt.Roots...)
	r := &lft.Routing{Engine: e.Name(), Fabric: f}
	var trees []*numbers
	var refused error
	for _, part := range listParts(f) {
		if search.Reached(part[0]) {
			height := int32(0)
			for _, s := range part {
				height = max(height, search.Distance[s])
			}
			for _, s := range part {
				level[s] = height - search.Distance[s]
			}
		}
		x := newTree(f, part, level, index)
		if !search.Reached(part[0]) && refused == nil {
			refused = x.checkShape()
		}
		hosts := numberHosts(x)
		trees = append(trees, hosts)
		r.CAOrder = append(r.CAOrder, hosts.listCAOrder()...)
		if note := x.describe(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
	if p := opt.Previous; p != nil && p.Order != nil && len(opt.Roots) == 0 {
		kept, err := lft.Reroute(ctx, e, f, opt)
		if err != nil {
			return nil, err
		}
		kept.CAOrder, kept.Notes = r.CAOrder, r.Notes
		if refused != nil {
			kept.Notes = append(kept.Notes, "the tables are kept, and could not be made again: "+refused.Error())
		}
		return kept, nil
	}
	if refused != nil {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: refused.Error()}
	}
	order, err := updown.OrderFor(ctx, f, &opt)
	if err != nil {
		return nil, err
	}
	r.Order = order.Rank
	wanted := lft.NewTables(n, f.MaxLID())
	units := lft.LoadUnits(f)
	full := len(units) == 0 || slices.Min(units) == slices.Max(units)
	regular := false // in some part
	for _, hosts := range trees {
		chains := newChains(hosts)
		chains.writeEntries(wanted)
		full = full && chains.isFull()
		regular = regular || !chains.mixed
	}
	next := updown.NextHops(e, f, order)
	if regular {
		r.Tables, err = lft.Prefer(ctx, f, wanted, full, next)
	} else {
		r.Tables, err = lft.Balance(ctx, f, next)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// listParts lists the switches of each connected component, parts and switches by NodeID.
func listParts(f *fabric.Fabric) [][]fabric.NodeID {
	of, n := graph.Components(f.NumSwitches(), f.Neighbors)
	list := make([][]fabric.NodeID, n)
	for s, c := range of {
		list[c] = append(list[c], fabric.NodeID(s))
	}
	return list
}

// countOdd returns the numbers of all hosts, hosts above the leaves, cables between
// switches, and those of them that do not lead to the next level.
func (x *tree) countOdd() (hosts, above, cables, astray int) {
	for u, s := range x.switches {
		n := len(x.f.HostsOn(s))
		hosts += n
		if x.level[u] > 0 {
			above += n
		}
		ports, _ := x.f.SwitchLinks(s)
		cables += len(ports) // both ends
		astray += len(ports) - 2*len(x.ups[u])
	}
	return hosts, above, cables / 2, astray / 2
}

// checkShape returns an error if the part is no fat tree.
func (x *tree) checkShape() error {
	hosts, above, cables, astray := x.countOdd()
	if on := hosts - above; 100*on < hostsOnLeaves*hosts {
		return fmt.Errorf("hosts of a fat tree are on its leaves, but only %d of %d are on those that look like leaves (--roots GUID,.. says which switches are on top)", on, hosts)
	}
	if good := cables - astray; 100*good < cablesByLevel*cables {
		return fmt.Errorf("cables of a fat tree lead to the next level, but only %d of %d do (--roots GUID,.. says which switches are on top)", good, cables)
	}
	return nil
}

// describe returns a note about a tree of several switches, "" for one switch.
func (x *tree) describe() string {
	if len(x.switches) == 1 {
		return ""
	}
	sizes := text.Each(x.byLevel, func(list []int32) string { return fmt.Sprint(len(list)) })
	s := fmt.Sprintf("fat tree of %s, with %s switches from the leaves up", text.Count(len(x.byLevel), "level", "levels"), strings.Join(sizes, ", "))
	_, above, _, astray := x.countOdd()
	if above > 0 {
		s += fmt.Sprintf("; %d hosts above the leaves", above)
	}
	if astray > 0 {
		s += "; " + text.Count(astray, "cable does", "cables do") + " not lead to the next level"
	}
	return s
}
