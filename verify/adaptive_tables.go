package verify

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// The names of the rules of AdaptiveTableRules.
const (
	AdaptiveStaticDiffers  = "adaptive-static-differs"
	AdaptivePortDown       = "adaptive-port-down"
	AdaptiveEmptyGroup     = "adaptive-empty-group"
	AdaptiveStaticOutside  = "adaptive-static-outside"
	AdaptiveUnselectedPLFT = "adaptive-unselected-plft"
	AdaptiveManyGroups     = "adaptive-many-groups"
	AdaptiveUnevenGroups   = "adaptive-uneven-groups"
	AdaptiveGroupOfOne     = "adaptive-group-of-one"
)

// AdaptiveTableRules lists the rules for adaptive tables by
// themselves, without paths; the gravest first.
var AdaptiveTableRules = ParseRules(adaptiveTableRuleTexts)

//go:embed adaptive_table_rules.txt
var adaptiveTableRuleTexts string

// CheckAdaptiveTables checks adaptive tables of f by AdaptiveTableRules, except
// AdaptiveStaticDiffers. It returns at most limit findings for each rule, in the order of switches;
// 0 stands for DefaultFindings. t.Check must have passed. It takes O(entries).
func CheckAdaptiveTables(f *fabric.Fabric, t *adaptive.Tables, limit int) []Finding {
	var list []Finding
	x := &tableCheck{f: f, t: t, found: newCollector(&list, limit)}
	if len(t.PLFTs) > 1 && t.Select == nil {
		x.add(AdaptiveUnselectedPLFT, fabric.NoNode, 0, len(t.PLFTs), "there are %d PLFTs, and it is not known which packets take which: want --plft FILE", len(t.PLFTs))
	}
	for _, s := range f.Switches() {
		x.checkGroups(s)
		x.checkStatic(s)
		if t.Select != nil {
			x.checkSelected(s)
		}
	}
	x.compareGroups()
	x.found.Close()
	return list
}

func newCollector(list *[]Finding, limit int) *Collector {
	return NewCollector(list, AdaptiveTableRules, cmp.Or(max(limit, 0), DefaultFindings))
}

// CompareStatic compares the static ports of private LFT 0 with the forwarding tables of f in
// ports, by the rule AdaptiveStaticDiffers. A switch without entries in t takes over those in
// ports. Results are as of CheckAdaptiveTables.
func CompareStatic(f *fabric.Fabric, t *adaptive.Tables, ports *lft.Tables, limit int) []Finding {
	var list []Finding
	c := newCollector(&list, limit)
	for _, s := range f.Switches() {
		static, row := t.PLFTs[0].Ports.Row(s), ports.Row(s)
		if !t.Has(s) {
			copy(static, row)
			continue
		}
		n, first := 0, fabric.LID(0)
		for l := range max(len(static), len(row)) {
			if lft.Entry(static, fabric.LID(l)) != lft.Entry(row, fabric.LID(l)) {
				if n++; n == 1 {
					first = fabric.LID(l)
				}
			}
		}
		if n > 0 {
			c.Add(AdaptiveStaticDiffers, int64(n), func(x *Finding) {
				x.Switch, x.LID = f.Node(s).GUID, first
				x.Message = fmt.Sprintf("%s has other static ports for adaptive routing than in its forwarding table for %s: port %d and %d for LID %d",
					switchName(f, s), text.Count(n, "LID", "LIDs"), lft.Entry(static, first), lft.Entry(row, first), first)
			})
		}
	}
	c.Close()
	return list
}

// tableCheck collects the findings of CheckAdaptiveTables.
type tableCheck struct {
	f     *fabric.Fabric
	t     *adaptive.Tables
	home  []fabric.NodeID // by LID: the switch of its port, or NoNode
	found *Collector
}

func (x *tableCheck) add(rule string, s fabric.NodeID, lid fabric.LID, count int, format string, args ...any) {
	x.found.Add(rule, int64(count), func(f *Finding) {
		f.LID, f.Message = lid, fmt.Sprintf(format, args...)
		if s != fabric.NoNode {
			f.Switch = x.f.Node(s).GUID
		}
	})
}

// used returns, by group of a switch, whether some entry may choose from it.
func (x *tableCheck) used(s fabric.NodeID) []bool {
	used := make([]bool, len(x.t.Groups[s]))
	for _, plft := range x.t.PLFTs {
		for lid := range plft.Row(s) {
			if state, group := plft.At(s, fabric.LID(lid)); state != adaptive.Static && group >= 0 {
				used[group] = true
			}
		}
	}
	return used
}

// isUp returns true if a switch has a cable on a port.
func (x *tableCheck) isUp(s fabric.NodeID, p fabric.PortNum) bool {
	return p > 0 && p <= x.f.Node(s).NumPorts && x.f.Peer(x.f.Port(s, p)) != fabric.NoPort
}

// checkGroups checks those groups of a switch that entries use.
func (x *tableCheck) checkGroups(s fabric.NodeID) {
	var empty, single []int // numbers
	var down adaptive.PortSet
	inUse := 0
	for i, used := range x.used(s) {
		if !used {
			continue
		}
		inUse++
		group := &x.t.Groups[s][i]
		ports := group.Ports()
		switch ports.Len() {
		case 0:
			empty = append(empty, group.Number)
		case 1:
			single = append(single, group.Number)
		}
		ports.Each(func(p fabric.PortNum) {
			if !x.isUp(s, p) {
				down.Add(p)
			}
		})
	}
	name := switchName(x.f, s)
	if inUse > adaptive.DefaultGroups {
		x.add(AdaptiveManyGroups, s, 0, inUse, "%s uses %s, more than the %d of a group table by default", name, text.Count(inUse, "group", "groups"), adaptive.DefaultGroups)
	}
	if len(empty) > 0 {
		x.add(AdaptiveEmptyGroup, s, 0, len(empty), "%s uses %s without a port, %d the first", name, text.Count(len(empty), "group", "groups"), empty[0])
	}
	if len(single) > 0 {
		x.add(AdaptiveGroupOfOne, s, 0, len(single), "%s uses %s of one port, %d the first", name, text.Count(len(single), "group", "groups"), single[0])
	}
	if n := down.Len(); n > 0 {
		x.found.Add(AdaptivePortDown, int64(n), func(found *Finding) {
			down.Each(func(p fabric.PortNum) {
				found.Ports = append(found.Ports, EndpointOf(x.f, x.f.Port(s, min(p, x.f.Node(s).NumPorts))))
			})
			found.Switch = x.f.Node(s).GUID
			found.Message = fmt.Sprintf("%s has groups with %s without a cable, %d the first", name, text.Count(n, "port", "ports"), found.Ports[0].Port)
		})
	}
}

// checkStatic finds static ports of a switch that are not in their entry's group.
func (x *tableCheck) checkStatic(s fabric.NodeID) {
	n, first, number := 0, fabric.LID(0), 0
	for _, plft := range x.t.PLFTs {
		for l, p := range plft.Ports.Row(s) {
			state, group := plft.At(s, fabric.LID(l))
			if p == fabric.NoPath || state == adaptive.Static || group < 0 {
				continue
			}
			g := &x.t.Groups[s][group]
			if ports := g.Ports(); ports.Has(p) || ports == (adaptive.PortSet{}) {
				continue
			}
			if n++; n == 1 {
				first, number = fabric.LID(l), g.Number
			}
		}
	}
	if n > 0 {
		x.add(AdaptiveStaticOutside, s, first, n, "%s has %s with a static port outside of its group, LID %d and group %d the first", switchName(x.f, s), text.Count(n, "entry", "entries"), first, number)
	}
}

// checkSelected finds the private LFTs that no packets take at a switch.
func (x *tableCheck) checkSelected(s fabric.NodeID) {
	var selected [256]bool
	for in := range int(x.f.Node(s).NumPorts) + 1 {
		if p := fabric.PortNum(in); p == fabric.ManagementPort || x.isUp(s, p) {
			for _, plft := range x.t.Select.Row(s, p) {
				selected[plft] = true
			}
		}
	}
	for k, plft := range x.t.PLFTs {
		if !selected[k] && plft.Has(s) {
			x.add(AdaptiveUnselectedPLFT, s, 0, 1, "%s has a PLFT %d that no input port with a cable selects", switchName(x.f, s), k)
		}
	}
}

// compareGroups compares switches whose cables lead to the same switches.
func (x *tableCheck) compareGroups() {
	for _, p := range x.f.LIDPorts() {
		home := fabric.NoNode
		if at := x.f.Attachment(p); at != fabric.NoPort {
			home = x.f.Owner(at)
		}
		x.home = append(x.home, home)
	}
	if len(x.home) == 0 {
		return // no LIDs
	}
	alike := map[string][]fabric.NodeID{}
	for _, s := range x.f.Switches() {
		if to := slices.Sorted(slices.Values(x.f.Neighbors(s))); len(to) > 0 {
			key := fmt.Sprint(to)
			alike[key] = append(alike[key], s)
		}
	}
	var uneven []Finding
	for _, list := range alike {
		if len(list) > 1 {
			uneven = append(uneven, x.compareAlike(list)...)
		}
	}
	slices.SortStableFunc(uneven, func(a, b Finding) int { return cmp.Compare(a.Switch, b.Switch) })
	for _, y := range uneven {
		x.found.Add(AdaptiveUnevenGroups, y.Count, func(f *Finding) { f.Switch, f.LID, f.Message = y.Switch, y.LID, y.Message })
	}
}

// compareAlike compares the choices of switches whose cables lead to the same switches.
func (x *tableCheck) compareAlike(list []fabric.NodeID) (uneven []Finding) {
	best := make([]int, len(x.home))
	most := make([]fabric.NodeID, len(best)) // by LID: a switch with the most choices
	counts := make([][]int, len(list))
	for k := range x.t.PLFTs {
		clear(best)
		top := int(min(fabric.LID(len(x.home)-1), x.t.PLFTs[k].Ports.MaxLID()))
		for i, s := range list {
			counts[i] = make([]int, top+1)
			for l := range counts[i] {
				ports := x.t.Choices(k, s, fabric.LID(l))
				counts[i][l] = ports.Len()
				if counts[i][l] > best[l] && x.home[l] != s && x.home[l] != fabric.NoNode {
					best[l], most[l] = counts[i][l], s
				}
			}
		}
		for i, s := range list {
			less, first := 0, 0
			for l, n := range counts[i] {
				if n < best[l] && x.home[l] != s && x.home[l] != fabric.NoNode {
					if less++; less == 1 {
						first = l
					}
				}
			}
			if less > 0 {
				uneven = append(uneven, Finding{Switch: x.f.Node(s).GUID, LID: fabric.LID(first), Count: int64(less),
					Message: fmt.Sprintf("%s has fewer choices for %s than a switch with the same cables: %d for LID %d, and %s has %d",
						switchName(x.f, s), text.Count(less, "LID", "LIDs"), counts[i][first], first, switchName(x.f, most[first]), best[first])})
			}
		}
	}
	return uneven
}
