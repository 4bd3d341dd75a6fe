package groups

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Name names a group.
type Name struct {
	Grouping string `json:"grouping"`
	Group    string `json:"group"`
}

// String returns such as "rack r12".
func (n Name) String() string { return n.Grouping + " " + n.Group }

// State is a group in one state of a fabric.
type State struct {
	Name
	Hosts  int `json:"hosts"`         // in the fabric
	Absent int `json:"absent_hosts"`  // that the file names and the fabric lacks
	CutOff int `json:"cut_off_hosts"` // that are cut off from most hosts of the fabric
	Leaves int `json:"leaves"`        // switches that its hosts are cabled to
	// Uplinks counts the cables between its leaves and other switches.
	Uplinks int `json:"uplinks"`
	*Traffic
	// Findings is set by check alone.
	Findings []Findings `json:"findings,omitempty"`
}

// Traffic has the figures of a group under some tables.
type Traffic struct {
	// Pairs counts the ordered pairs of a CA or router port and a LID of
	// another such port, with at least one of them in the group; Lost counts
	// those that the tables do not deliver.
	Pairs int64 `json:"pairs"`
	Lost  int64 `json:"lost_pairs"`
	// MaxRoutes is the load of the busiest uplink, in the direction with more routes.
	MaxRoutes int64 `json:"max_routes_per_uplink"`
}

// Findings sums up the findings of a rule about a group, without waived ones.
type Findings struct {
	Rule     string          `json:"rule"`
	Severity verify.Severity `json:"severity"`
	Count    int             `json:"count"`
	// Units is the sum of verify.Finding.Count.
	Units int64 `json:"units"`
}

// Measure returns the figures of the groups in f, which has the nodes of the set's fabric and some
// or all of its cables. tables may be nil. NoGroup is left out if it has no hosts. With tables it
// takes O(switches x LIDs).
func (s *Set) Measure(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) ([]State, error) {
	states := make([]State, len(s.Groups))
	cut := s.cutOff(f)
	for i := range s.Groups {
		g := &s.Groups[i]
		states[i] = State{
			Name: g.name(), Hosts: len(g.Hosts), Absent: g.Absent, CutOff: text.CountIf(g.Hosts, func(h int32) bool { return cut[h] }),
			Leaves: len(leavesOf(f, g.Nodes)), Uplinks: text.CountIf(g.Uplinks, func(p fabric.PortID) bool { return f.Peer(p) != fabric.NoPort }),
		}
	}
	if tables != nil {
		if err := s.measureTraffic(ctx, f, tables, states); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(states, func(x State) bool { return x.Group == NoGroup && x.Hosts == 0 }), nil
}

func (s *Set) measureTraffic(ctx context.Context, f *fabric.Fabric, tables *lft.Tables, states []State) error {
	routes, err := lft.ChannelLoads(ctx, f, tables)
	if err != nil {
		return err
	}
	lost, err := s.countLost(ctx, f, tables)
	if err != nil {
		return err
	}
	all, allLIDs := int64(len(f.CAPorts())), int64(0)
	ports, lids := make([]int64, len(s.Groups)), make([]int64, len(s.Groups)) // by group
	for _, p := range f.CAPorts() {
		own := int64(f.NumLIDs(p))
		allLIDs += own
		for _, g := range s.of[f.Owner(p)] {
			ports[g]++
			lids[g] += own
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

// countLost counts by group the pairs that tables do not deliver.
func (s *Set) countLost(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) ([]int64, error) {
	type count struct {
		reached []bool  // by switch: it reaches the LID; false between trees
		lost    []int64 // by group
	}
	var ends, others []fabric.PortID // ports cabled to switches, and to each other
	for i, p := range f.CAPorts() {
		if f.CASwitches()[i] != fabric.NoNode {
			ends = append(ends, p)
		} else {
			others = append(others, p)
		}
	}
	lose := func(c *count, from []fabric.PortID, dst fabric.PortID) {
		to := s.of[f.Owner(dst)]
		for _, src := range from {
			if src == dst || src == f.Peer(dst) {
				continue
			}
			for _, g := range s.of[f.Owner(src)] {
				if !slices.Contains(to, g) {
					c.lost[g]++
				}
			}
			for _, g := range to {
				c.lost[g]++
			}
		}
	}
	start := func() *count { return &count{make([]bool, f.NumSwitches()), make([]int64, len(s.Groups))} }
	counts, err := lft.EachTree(ctx, f, tables, ends, f.AllLIDs, start, func(c *count, i int, tree *lft.Forest) {
		for _, n := range tree.Order {
			c.reached[n] = true
		}
		for n := range c.reached {
			if !c.reached[n] {
				lose(c, f.EndPortsOn(fabric.NodeID(n)), ends[i])
			}
		}
		clear(c.reached)
		lose(c, others, ends[i])
	})
	if err != nil {
		return nil, err
	}
	sum := start()
	for _, p := range others {
		for range f.NumLIDs(p) {
			lose(sum, f.CAPorts(), p)
		}
	}
	for _, c := range counts {
		for g, n := range c.lost {
			sum.lost[g] += n
		}
	}
	return sum.lost, nil
}

// AddFindings counts findings by the groups that they are about. A finding about nodes in no
// group counts for NoGroup of each grouping. states is the result of Measure.
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
		x := State{Name: g.name()} // NoGroup, which Measure leaves out
		if len(states) > 0 && states[0].Name == g.name() {
			x, states = states[0], states[1:]
		} else if byGroup[i] == nil {
			continue
		}
		x.Findings = byGroup[i]
		all = append(all, x)
	}
	return all
}

// groupsOf lists the groups that a finding is about: those of its switch, its
// ports and the port with its LID; if it names none, of the switches of its
// witness. For a grouping without such a group it lists NoGroup.
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

// Loss has what a group loses by a failure.
type Loss struct {
	Name
	Uplinks int `json:"lost_uplinks"`
	CutOff  int `json:"cut_off_hosts"` // hosts that are newly cut off
}

// Losses returns the losses of groups in g, which is the set's fabric with fewer cables. It
// leaves out groups that lose nothing.
func (s *Set) Losses(g *fabric.Fabric) (list []Loss) {
	cut := s.cutOff(g)
	for i := range s.Groups {
		x := Loss{
			Name:    s.Groups[i].name(),
			Uplinks: text.CountIf(s.Groups[i].Uplinks, func(p fabric.PortID) bool { return g.Peer(p) == fabric.NoPort }),
			CutOff:  text.CountIf(s.Groups[i].Hosts, func(h int32) bool { return cut[h] && !s.cut[h] }),
		}
		if x.Uplinks > 0 || x.CutOff > 0 {
			list = append(list, x)
		}
	}
	return list
}

// Worst has the most that a group loses by any of several failures.
type Worst struct {
	Name
	Hosts    int    `json:"hosts"`
	AllLinks int    `json:"uplinks"`
	Uplinks  int    `json:"max_lost_uplinks"`
	CutOff   int    `json:"max_cut_off_hosts"`
	Failures int    `json:"failures"` // by which it loses anything
	by       string // the first failure by which it loses most uplinks
}

// Add adds the losses of one failure to list, which has all groups.
func Add(list []Worst, losses []Loss, failure string) {
	for _, l := range losses {
		i := slices.IndexFunc(list, func(w Worst) bool { return w.Name == l.Name })
		if i < 0 {
			continue
		}
		w := &list[i]
		if w.Failures == 0 || l.Uplinks > w.Uplinks || l.Uplinks == w.Uplinks && l.CutOff > w.CutOff {
			w.by = failure
		}
		w.Failures++
		w.Uplinks, w.CutOff = max(w.Uplinks, l.Uplinks), max(w.CutOff, l.CutOff)
	}
}
