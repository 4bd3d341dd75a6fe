package groups

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// State is a group in one state of a fabric.
type State struct {
	Grouping string `json:"grouping"`
	Group    string `json:"group"`
	Hosts    int    `json:"hosts"`         // that the fabric has
	Absent   int    `json:"absent_hosts"`  // that the file names and the fabric lacks
	CutOff   int    `json:"cut_off_hosts"` // that no cables join to most hosts of the fabric
	Leaves   int    `json:"leaves"`        // switches that its hosts are cabled to
	// Uplinks is the cables between these and other switches.
	Uplinks int `json:"uplinks"`
	*Traffic
	// Findings is of check alone.
	Findings []Findings `json:"findings,omitempty"`
}

// Traffic is what tables do for a group.
type Traffic struct {
	// Pairs is the ordered pairs of a CA or router port and a LID of another one of which at
	// least one belongs to the group; Lost those of them that tables do not deliver.
	Pairs int64 `json:"pairs"`
	Lost  int64 `json:"lost_pairs"`
	// MaxRoutes is on the most loaded uplink, of both directions the greater.
	MaxRoutes int64 `json:"max_routes_per_uplink"`
}

// Findings is the findings of a rule about a group that are not waived.
type Findings struct {
	Rule     string          `json:"rule"`
	Severity verify.Severity `json:"severity"`
	Count    int             `json:"count"`
	// Units is the sum of verify.Finding.Count.
	Units int64 `json:"units"`
}

// Measure says what the groups are like in f, which has the nodes of the set's fabric and no
// cables beyond it. Tables may be nil. NoGroup is left out where it has no hosts. With tables it
// takes O(switches x LIDs).
func (s *Set) Measure(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) ([]State, error) {
	states := make([]State, len(s.Groups))
	cut := s.cutOff(f)
	for i := range s.Groups {
		g := &s.Groups[i]
		x := State{Grouping: g.Grouping, Group: g.Name, Hosts: len(g.Hosts), Absent: g.Absent, Leaves: len(leavesOf(f, g.Nodes))}
		for _, h := range g.Hosts {
			if cut[h] {
				x.CutOff++
			}
		}
		x.Uplinks = len(g.Uplinks) - countCut(f, g.Uplinks)
		states[i] = x
	}
	if tables != nil {
		if err := s.measureTraffic(ctx, f, tables, states); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(states, func(x State) bool { return x.Group == NoGroup && x.Hosts == 0 }), nil
}

// countCut counts the ports without a cable.
func countCut(f *fabric.Fabric, ports []fabric.PortID) (n int) {
	for _, p := range ports {
		if f.Peer(p) == fabric.NoPort {
			n++
		}
	}
	return n
}

// measureTraffic fills in what tables do.
func (s *Set) measureTraffic(ctx context.Context, f *fabric.Fabric, tables *lft.Tables, states []State) error {
	routes, err := lft.ChannelLoads(ctx, f, tables)
	if err != nil {
		return err
	}
	lost, err := s.countLost(ctx, f, tables)
	if err != nil {
		return err
	}
	all := int64(len(f.CAPorts()))
	ports, lids := make([]int64, len(s.Groups)), make([]int64, len(s.Groups)) // by group
	for _, p := range f.CAPorts() {
		for _, g := range s.of[f.Owner(p)] {
			ports[g]++
		}
	}
	allLIDs := int64(0)
	for lid := range f.LIDPorts() {
		if p := destination(f, lid); p != fabric.NoPort {
			allLIDs++
			for _, g := range s.of[f.Owner(p)] {
				lids[g]++
			}
		}
	}
	for i := range states {
		t := &Traffic{Pairs: lids[i]*(all-1) + (allLIDs-lids[i])*ports[i], Lost: lost[i]}
		for _, p := range s.Groups[i].Uplinks {
			if q := f.Peer(p); q != fabric.NoPort {
				t.MaxRoutes = max(t.MaxRoutes, routes[p], routes[q])
			}
		}
		states[i].Traffic = t
	}
	return nil
}

// destination is the CA or router port with a cable that has a LID, NoPort without one.
func destination(f *fabric.Fabric, lid int) fabric.PortID {
	p := f.LIDPort(fabric.LID(lid))
	if p == fabric.NoPort || f.IsSwitch(f.Owner(p)) || f.Peer(p) == fabric.NoPort {
		return fabric.NoPort
	}
	return p
}

// lossCounter counts pairs that tables do not deliver.
type lossCounter struct {
	*Set
	f       *fabric.Fabric
	tables  *lft.Tables
	forest  *lft.Forest
	reached []bool  // by switch
	lost    []int64 // by group
}

// countLost counts by group the pairs that tables do not deliver.
func (s *Set) countLost(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) ([]int64, error) {
	start := func() *lossCounter {
		return &lossCounter{s, f, tables, lft.NewForest(f), make([]bool, f.NumSwitches()), make([]int64, len(s.Groups))}
	}
	counters, err := par.ForEachWith(ctx, 0, len(f.LIDPorts()), start, func(c *lossCounter, lid int) error {
		if dst := destination(f, lid); dst != fabric.NoPort {
			c.count(fabric.LID(lid), dst)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum := make([]int64, len(s.Groups))
	for _, c := range counters {
		for g, n := range c.lost {
			sum[g] += n
		}
	}
	return sum, nil
}

// count adds the ports whose packets to a LID do not arrive.
func (c *lossCounter) count(lid fabric.LID, dst fabric.PortID) {
	f := c.f
	c.forest.FindTree(c.tables, lid)
	delivered := 0
	for _, n := range c.forest.Order {
		c.reached[n] = true
		delivered += len(f.EndPortsOn(n))
	}
	to := c.of[f.Owner(dst)]
	for k, src := range f.CAPorts() {
		if delivered == len(f.CAPorts()) {
			break
		}
		at := f.CASwitches()[k]
		if src == dst || at != fabric.NoNode && c.reached[at] || f.Peer(src) == dst {
			continue
		}
		for _, g := range to {
			c.lost[g]++
		}
		for _, g := range c.of[f.Owner(src)] {
			if !slices.Contains(to, g) {
				c.lost[g]++
			}
		}
	}
	for _, n := range c.forest.Order {
		c.reached[n] = false
	}
}

// AddFindings counts findings by the groups that they are about. A finding about nodes of no
// group belongs to NoGroup of each grouping. states is what Measure made.
func (s *Set) AddFindings(states []State, list []verify.Finding) []State {
	type key struct {
		group int
		rule  string
		at    verify.Severity
	}
	sums := make(map[key]*Findings)
	for i := range list {
		x := &list[i]
		if x.Waiver != nil {
			continue
		}
		for _, g := range s.groupsOf(x) {
			k := key{g, x.Rule, x.Severity}
			if sums[k] == nil {
				sums[k] = &Findings{Rule: x.Rule, Severity: x.Severity}
			}
			sums[k].Count++
			sums[k].Units += x.Count
		}
	}
	byGroup := make([][]Findings, len(s.Groups))
	for k, n := range sums {
		byGroup[k.group] = append(byGroup[k.group], *n)
	}
	var all []State
	for i := range s.Groups {
		slices.SortFunc(byGroup[i], func(a, b Findings) int {
			return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Rule, b.Rule))
		})
		g := &s.Groups[i]
		x := State{Grouping: g.Grouping, Group: g.Name} // NoGroup, which Measure leaves out
		if len(states) > 0 && states[0].Grouping == g.Grouping && states[0].Group == g.Name {
			x, states = states[0], states[1:]
		} else if byGroup[i] == nil {
			continue
		}
		x.Findings = byGroup[i]
		all = append(all, x)
	}
	return all
}

// groupsOf lists the groups that a finding is about, ascending: those of the port with its LID,
// of its ports and its switch, and where it has none of these, of the switches of its witness.
func (s *Set) groupsOf(x *verify.Finding) (list []int) {
	var nodes []fabric.NodeID
	add := func(g fabric.GUID) {
		if n, ok := s.f.NodeByGUID(g); ok {
			nodes = append(nodes, n)
		}
	}
	if p := s.f.LIDPort(x.LID); x.LID != 0 && p != fabric.NoPort {
		nodes = append(nodes, s.f.Owner(p))
	}
	for _, e := range x.Ports {
		add(e.Node)
	}
	add(x.Switch)
	if nodes == nil {
		for _, h := range x.Witness {
			add(h.Switch)
		}
	}
	for _, n := range nodes {
		for _, g := range s.of[n] {
			list = append(list, int(g))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	for i := range s.Groups {
		if s.Groups[i].Name == NoGroup && !slices.ContainsFunc(list, func(g int) bool { return s.Groups[g].Grouping == s.Groups[i].Grouping }) {
			list = append(list, i)
		}
	}
	return list
}

// Loss is what a group loses by a failure.
type Loss struct {
	Grouping string `json:"grouping"`
	Group    string `json:"group"`
	Uplinks  int    `json:"lost_uplinks"`
	CutOff   int    `json:"cut_off_hosts"` // that were not before
}

// Losses says what groups lose in g, which is the set's fabric with fewer cables. Groups that lose
// nothing are not in the list.
func (s *Set) Losses(g *fabric.Fabric) (list []Loss) {
	cut := s.cutOff(g)
	for i := range s.Groups {
		x := Loss{Grouping: s.Groups[i].Grouping, Group: s.Groups[i].Name, Uplinks: countCut(g, s.Groups[i].Uplinks)}
		for _, h := range s.Groups[i].Hosts {
			if cut[h] && !s.cut[h] {
				x.CutOff++
			}
		}
		if x.Uplinks > 0 || x.CutOff > 0 {
			list = append(list, x)
		}
	}
	return list
}

// Worst is the most that a group loses by any of several failures.
type Worst struct {
	Grouping string `json:"grouping"`
	Group    string `json:"group"`
	Hosts    int    `json:"hosts"`
	AllLinks int    `json:"uplinks"`
	Uplinks  int    `json:"max_lost_uplinks"`
	CutOff   int    `json:"max_cut_off_hosts"`
	Failures int    `json:"failures"` // that take any of these
	by       string // the first failure that takes most uplinks
}

// Add takes the losses of one failure. list is of all groups, as Start makes it.
func Add(list []Worst, losses []Loss, failure string) {
	for _, l := range losses {
		for i := range list {
			w := &list[i]
			if w.Grouping != l.Grouping || w.Group != l.Group {
				continue
			}
			if w.Failures == 0 || l.Uplinks > w.Uplinks || l.Uplinks == w.Uplinks && l.CutOff > w.CutOff {
				w.by = failure
			}
			w.Failures++
			w.Uplinks, w.CutOff = max(w.Uplinks, l.Uplinks), max(w.CutOff, l.CutOff)
		}
	}
}

// Start is groups before any failure.
func Start(before []State) []Worst {
	list := []Worst{}
	for i := range before {
		list = append(list, Worst{Grouping: before[i].Grouping, Group: before[i].Group, Hosts: before[i].Hosts, AllLinks: before[i].Uplinks})
	}
	return list
}
