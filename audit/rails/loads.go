package rails

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/traffic"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Loads has the loads of traffic inside the rails, under forwarding tables. A flow goes from a port
// to a LID of another port.
type Loads struct {
	Patterns []PatternLoads `json:"patterns"` // ring, tree, all-to-all
	// Routes counts pairs of a port and a LID of another port of its rail that the tables deliver,
	// Lost those that they do not deliver.
	Routes int64 `json:"routes"`
	Lost   int64 `json:"lost"`
	// Leaving counts routes that pass a switch that is not on their rail.
	Leaving int64 `json:"leaving"`
	// Exits are the cables by which routes leave their rail, those with most routes first.
	Exits []Exit `json:"exits"`
	// Between is the load of routes between ports of different rails, if all ports send to all.
	Between Load `json:"between"`
}

// PatternLoads has the loads of a pattern that runs on each rail. The ranks of a rail are its
// ports, in natural order of their hosts.
type PatternLoads struct {
	Pattern string `json:"pattern"`
	// Rails has the loads of each rail alone, Together that of all rails at once.
	Rails    []Load `json:"rails"`
	Together Load   `json:"together"`
}

// Load is the load of a pattern of traffic.
type Load struct {
	Rail  int   `json:"rail,omitempty"` // 0 for several
	Ranks int   `json:"ranks,omitempty"`
	Flows int64 `json:"flows"` // that the tables deliver
	// Slowdown is the time of the busiest cable over the time of the busiest host cable: 1 on a
	// crossbar; 0 without flows.
	Slowdown float64 `json:"slowdown"`
	// Busiest is the cable between switches with most flows for its rate; nil if none has flows.
	Busiest *Cable `json:"busiest"`
}

// Cable is one direction of a cable, with its load.
type Cable struct {
	verify.Cable
	Flows int64 `json:"flows"`
}

// Exit is a cable by which routes leave a rail.
type Exit struct {
	Rail int `json:"rail"`
	Cable
	port fabric.PortID
}

// Load computes the loads of tables of r's fabric, and adds findings about them to r. It takes
// O(switches x LIDs). Errors: ctx's.
func (r *Result) Load(ctx context.Context, t *lft.Tables) (*Loads, error) {
	m := newMeter(r)
	l := &Loads{Exits: []Exit{}}
	var inside []int64
	for _, p := range traffic.Patterns {
		loads := PatternLoads{Pattern: p.Name, Rails: []Load{}}
		together := make([]int64, r.f.NumPorts())
		for rail, ends := range r.ends {
			var flows []int64
			var err error
			if p.Name == traffic.AllToAll.Name {
				if flows, err = lft.LoadsAmong(ctx, r.f, t, ends); err == nil {
					l.Exits = append(l.Exits, m.exits(rail, flows)...)
				}
			} else {
				flows, _, err = lft.DemandLoads(ctx, r.f, t, ends, p.On(len(ends)))
			}
			if err != nil {
				return nil, err
			}
			one := m.load(flows)
			one.Rail, one.Ranks = rail+1, len(ends)
			loads.Rails = append(loads.Rails, one)
			for i, n := range flows {
				together[i] += n
			}
		}
		loads.Together = m.load(together)
		inside = together // all-to-all is last
		l.Patterns = append(l.Patterns, loads)
	}
	slices.SortStableFunc(l.Exits, func(a, b Exit) int { return cmp.Compare(b.Flows, a.Flows) })
	if err := r.countRoutes(ctx, t, l, l.Patterns[len(l.Patterns)-1].Rails); err != nil {
		return nil, err
	}
	all, err := lft.LoadsAmong(ctx, r.f, t, slices.Concat(r.ends...))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] -= inside[i]
	}
	l.Between = m.load(all)
	r.sortFindings()
	return l, nil
}

// countRoutes counts the routes inside each rail, and makes findings of routes that are lost or
// leave the rail. allToAll has by rail the load of all its routes.
func (r *Result) countRoutes(ctx context.Context, t *lft.Tables, l *Loads, allToAll []Load) error {
	type count struct {
		leaving int64
		stays   []bool // by switch: its route to the LID stays on the rail
	}
	for rail, ends := range r.ends {
		sources := make([]int64, r.f.NumSwitches())
		pairs := int64(0)
		for _, p := range ends {
			sources[r.f.PeerSwitch(p)]++
			pairs += int64(r.f.NumLIDs(p) * (len(ends) - 1))
		}
		start := func() *count { return &count{stays: make([]bool, r.f.NumSwitches())} }
		counts, err := lft.EachTree(ctx, r.f, t, ends, r.f.AllLIDs, start, func(c *count, i int, tree *lft.Forest) {
			for k, s := range tree.Order {
				c.stays[s] = r.isOn(s, rail+1) && (k == 0 || c.stays[r.f.PeerSwitch(tree.Next[s])])
				if !c.stays[s] {
					c.leaving += sources[s]
				}
			}
			if len(tree.Order) > 0 && !c.stays[tree.Order[0]] { // the port sends nothing to itself
				c.leaving--
			}
		})
		if err != nil {
			return err
		}
		leaving, routes := int64(0), allToAll[rail].Flows
		for _, c := range counts {
			leaving += c.leaving
		}
		l.Routes += routes
		l.Lost += pairs - routes
		l.Leaving += leaving
		if routes < pairs {
			r.add(Lost, pairs-routes, nil, "the tables do not deliver %d of %d pairs of ports of rail %d", pairs-routes, pairs, rail+1)
		}
		if leaving > 0 {
			var ports []fabric.PortID
			for _, e := range l.Exits {
				if e.Rail == rail+1 && len(ports) < 2*listedExits {
					ports = append(ports, e.port, r.f.Peer(e.port))
				}
			}
			r.add(Left, leaving, ports, "%d of %d routes between ports of rail %d pass switches of other rails", leaving, routes, rail+1)
		}
	}
	return nil
}

// listedExits bounds the cables that a finding lists.
const listedExits = 8

// meter computes loads relative to the rates of cables.
type meter struct {
	r        *Result
	channels []fabric.PortID // with a cable, of hosts on rails and between switches
	rate     []int64         // by index in channels
}

func newMeter(r *Result) *meter {
	m := &meter{r: r, channels: slices.Clone(r.f.Channels())}
	for _, ends := range r.ends {
		for _, p := range ends {
			m.channels = append(m.channels, p, r.f.Peer(p))
		}
	}
	m.rate = bound.Rates(r.f, m.channels)
	return m
}

// load sums up the flows of a pattern by channel.
func (m *meter) load(flows []int64) Load {
	f := m.r.f
	// Indices of the slowest channels: inner between switches, host at a host; -1 for none.
	inner, host := -1, -1
	longer := func(i, than int) bool {
		n := flows[m.channels[i]]
		return n > 0 && (than < 0 || n*m.rate[than] > flows[m.channels[than]]*m.rate[i])
	}
	var l Load
	for i, p := range m.channels {
		switch {
		case f.IsSwitch(f.Owner(p)) && f.PeerSwitch(p) != fabric.NoNode:
			if longer(i, inner) {
				inner = i
			}
			continue
		case !f.IsSwitch(f.Owner(p)):
			l.Flows += flows[p]
		}
		if longer(i, host) {
			host = i
		}
	}
	if host < 0 {
		return l
	}
	l.Slowdown = 1
	if inner >= 0 {
		p, q := m.channels[inner], m.channels[host]
		l.Slowdown = max(1, float64(flows[p]*m.rate[host])/float64(flows[q]*m.rate[inner]))
		l.Busiest = &Cable{verify.CableOf(f, p), flows[p]}
	}
	return l
}

// exits lists the channels by which routes leave a rail: from a host, or a switch on the rail, to a switch that
// is not on it.
func (m *meter) exits(rail int, flows []int64) (list []Exit) {
	f := m.r.f
	for _, p := range m.channels {
		to := f.PeerSwitch(p)
		if flows[p] == 0 || to == fabric.NoNode || m.r.isOn(to, rail+1) {
			continue
		}
		if from := f.Owner(p); !f.IsSwitch(from) || m.r.isOn(from, rail+1) {
			list = append(list, Exit{rail + 1, Cable{verify.CableOf(f, p), flows[p]}, p})
		}
	}
	return list
}
