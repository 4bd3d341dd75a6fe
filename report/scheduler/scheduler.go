// Package scheduler finds what a job scheduler needs to know of a fabric: which hosts are
// on the same leaf, and which leaves in the same part of the tree. It writes Slurm's
// topology files. It makes no promise to other modules.
//
// A scheduler wants a tree of groups of hosts, but a fabric has many spines above each
// leaf. So a group above the leaves stands for all switches up to a level that cables join:
// a pod, then the whole fabric. A host with several ports is on several leaves, its rails;
// for the scheduler these are one leaf.
package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// Options choose the names of hosts and groups.
type Options struct {
	// Host finds a host's name in the name of its adapter: see names.Split.
	Host *regexp.Regexp
	// Numbered names leaves leaf1, leaf2 and so on, not after their switches.
	Numbered bool
}

// Topology is a forest of groups of hosts.
type Topology struct {
	// Groups lists the leaves in the natural order of their hosts, then the groups above
	// them, level by level. Each of these has at least two children.
	Groups  []Group         `json:"groups"`
	LeftOut []names.LeftOut `json:"left_out"`
	Hosts   int             `json:"hosts"`
}

// Group is a leaf, or a set of groups that switches up to its level join.
type Group struct {
	Name  string `json:"name"`
	Level int    `json:"level"` // 0 is a leaf
	// Switches are the switches of a leaf, several for rails; empty for other groups.
	Switches []fabric.GUID `json:"switches"`
	Hosts    []string      `json:"hosts"`    // of a leaf, in natural order
	Children []string      `json:"children"` // names of groups, for levels above 0
}

// ErrNoHosts means that no adapter's description has the name of a host.
var ErrNoHosts = errors.New("no channel adapter describes itself by the name of a host")

// Of finds the groups of a fabric. Storage, gateways, routers and aggregation nodes are no
// hosts: see fabric.Kind.
func Of(f *fabric.Fabric, opt Options) (*Topology, error) {
	t := &Topology{}
	b := &builder{f: f, opt: opt, taken: make(map[string]bool)}
	t.LeftOut = names.ListLeftOut(f, b.findUnits())
	for i := range b.units {
		t.Hosts += len(b.units[i].hosts)
	}
	if t.Hosts == 0 {
		return t, ErrNoHosts
	}
	b.joinUnits()
	t.Groups = b.leaves()
	t.Groups = append(t.Groups, b.above()...)
	return t, nil
}

// Leaves returns the groups of level 0.
func (t *Topology) Leaves() []Group {
	i := slices.IndexFunc(t.Groups, func(g Group) bool { return g.Level > 0 })
	if i < 0 {
		return t.Groups
	}
	return t.Groups[:i]
}

// unit is hosts with the same switches: a leaf to be.
type unit struct {
	name     string
	switches []fabric.NodeID // ascending
	hosts    []string
}

type builder struct {
	f     *fabric.Fabric
	opt   Options
	units []unit
	taken map[string]bool // names of groups
}

// findUnits makes a unit of all hosts with the same switches. It returns the nodes that are
// no hosts, by reason.
func (b *builder) findUnits() (leftOut map[string][]fabric.NodeID) {
	hosts, leftOut := names.Hosts(b.f, b.opt.Host, fabric.HostKind)
	index := make(map[string]int)
	for _, h := range hosts {
		var all []fabric.NodeID
		for _, n := range h.Nodes {
			before := len(all)
			for p := range b.f.Cabled(n) {
				if s := b.f.PeerSwitch(p); s != fabric.NoNode {
					all = append(all, s)
				}
			}
			if len(all) == before {
				leftOut[names.NotCabled] = append(leftOut[names.NotCabled], n)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		all = slices.Compact(all)
		key := fmt.Sprint(all)
		i, known := index[key]
		if !known {
			i = len(b.units)
			index[key] = i
			b.units = append(b.units, unit{switches: all})
		}
		b.units[i].hosts = append(b.units[i].hosts, h.Name)
	}
	return leftOut
}

// joinUnits joins a unit to the greatest one that has all of its switches, or only some of
// them. So a host with a port that is down, or a login node with a second cable, joins the
// hosts next to it. It sorts units, the greatest first.
func (b *builder) joinUnits() {
	slices.SortStableFunc(b.units, func(u, v unit) int { return cmp.Compare(len(v.hosts), len(u.hosts)) })
	into := make([]int, len(b.units)) // by unit: the one that it joins
	for i := range b.units {
		u := &b.units[i]
		into[i] = i
		if k := slices.IndexFunc(b.units[:i], func(v unit) bool {
			return len(v.hosts) > len(u.hosts) && (isSubset(u.switches, v.switches) || isSubset(v.switches, u.switches))
		}); k >= 0 {
			into[i] = into[k]
		}
	}
	joined := make([]unit, len(b.units))
	for i := range b.units {
		u := &joined[into[i]]
		u.hosts = append(u.hosts, b.units[i].hosts...)
		u.switches = append(u.switches, b.units[i].switches...)
	}
	b.units = slices.DeleteFunc(joined, func(u unit) bool { return u.hosts == nil })
	for i := range b.units {
		u := &b.units[i]
		u.hosts = text.SortNatural(u.hosts)
		slices.Sort(u.switches)
		u.switches = slices.Compact(u.switches)
	}
}

// isSubset returns true if all elements of a are in b; both are ascending.
func isSubset(a, b []fabric.NodeID) bool {
	return !slices.ContainsFunc(a, func(s fabric.NodeID) bool {
		_, ok := slices.BinarySearch(b, s)
		return !ok
	})
}

// leaves names the units and sorts them by their hosts. A unit of several switches is named
// after the first name of these.
func (b *builder) leaves() []Group {
	for i := range b.units {
		u := &b.units[i]
		all := text.Each(u.switches, b.switchName)
		if u.name = text.SortNatural(all)[0]; len(all) > 1 {
			u.name += fmt.Sprintf("-and-%d", len(all)-1)
		}
	}
	slices.SortFunc(b.units, func(x, y unit) int {
		return cmp.Or(text.Natural(x.hosts[0], y.hosts[0]), strings.Compare(x.hosts[0], y.hosts[0]))
	})
	groups := make([]Group, len(b.units))
	for i := range b.units {
		u := &b.units[i]
		if b.opt.Numbered {
			u.name = fmt.Sprintf("leaf%d", i+1)
		}
		u.name = b.unused(u.name, b.f.Node(u.switches[0]).GUID)
		groups[i] = Group{Name: u.name, Hosts: u.hosts, Children: []string{}}
		groups[i].Switches = text.Each(u.switches, func(s fabric.NodeID) fabric.GUID { return b.f.Node(s).GUID })
	}
	return groups
}

// switchName returns a switch's name in letters that Slurm allows. For chips of a director,
// card and number follow the name of the system.
func (b *builder) switchName(s fabric.NodeID) string {
	c := names.ChipOf(b.f.Name(s).Text)
	name := c.System
	if c.Card != 0 {
		name += fmt.Sprintf("-%c%02d", c.Card, c.Slot)
	}
	if c.Card != 0 || c.Unit > 1 {
		name += fmt.Sprintf("-U%d", c.Unit)
	}
	return cmp.Or(names.Plain(name), "switch")
}

// unused returns a name that no group has: the given one, if need be with a GUID added.
func (b *builder) unused(name string, g fabric.GUID) string {
	if b.taken[name] {
		name += "-" + strings.TrimPrefix(g.String(), "0x")
	}
	b.taken[name] = true
	return name
}

// above makes the groups above the leaves: for each level of switches, the groups that its
// cables join.
func (b *builder) above() (groups []Group) {
	level := levels.Of(b.f)
	joins := graph.NewUnionFind[fabric.NodeID](b.f.NumSwitches())
	for i := range b.units {
		for _, s := range b.units[i].switches {
			joins.Join(b.units[i].switches[0], s)
		}
	}
	now := text.Each(b.units, func(u unit) string { return u.name }) // by unit: its highest group
	for k, high := int32(1), slices.Max(level); k <= max(high, 1); k++ {
		for s := range fabric.NodeID(b.f.NumSwitches()) {
			for _, to := range b.f.Neighbors(s) {
				if max(level[s], level[to]) <= k {
					joins.Join(s, to)
				}
			}
		}
		children := make(map[fabric.NodeID][]string)
		var roots []fabric.NodeID
		for i := range b.units {
			root := joins.Find(b.units[i].switches[0])
			if children[root] == nil {
				roots = append(roots, root)
			}
			if !slices.Contains(children[root], now[i]) {
				children[root] = append(children[root], now[i])
			}
		}
		named := make(map[fabric.NodeID]string)
		for _, root := range roots {
			if len(children[root]) < 2 {
				continue
			}
			name := "top"
			if len(roots) > 1 {
				name = fmt.Sprintf("%s%d", [...]string{"pod", "zone"}[min(k-1, 1)], len(named)+1)
				if k > 2 {
					name = fmt.Sprintf("level%d-%d", k, len(named)+1)
				}
			}
			name = b.unused(name, b.f.Node(root).GUID)
			named[root] = name
			groups = append(groups, Group{Name: name, Level: int(k), Switches: []fabric.GUID{}, Hosts: []string{}, Children: children[root]})
		}
		for i := range b.units {
			if name, is := named[joins.Find(b.units[i].switches[0])]; is {
				now[i] = name
			}
		}
	}
	return groups
}
