// Package quality measures how well forwarding tables use a fabric: routes on each cable, effective
// bisection bandwidth, contention of random permutations and of shifts, disjoint paths. It is for
// comparing routings, and knows no engine; package verify tells whether routings are right. It
// makes no promise to other modules.
package quality

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// Defaults of programs for Options.
const (
	DefaultBisections   = 1000
	DefaultPermutations = 1000
	DefaultShifts       = 5000
)

// Options are the choices of Measure.
type Options struct {
	// CAOrder is the order of ports for shifts, as in lft.Routing; nil for that of LIDs.
	CAOrder []fabric.PortID
	// How many patterns of traffic to try, 0 for none. If there are more shifts, they are chosen at
	// random.
	Bisections, Permutations, Shifts int
	// Seed chooses the patterns. With one seed a fabric has the same
	// bisections and permutations whatever its tables, so tables can be told
	// apart by less than their intervals.
	Seed    uint64
	Hottest int // bounds the list of most loaded channels
}

// Result is the figures of one set of tables.
type Result struct {
	Links Loads `json:"links"`
	// AllToAll is the greatest relative load of a channel if every port sends to every LID: its
	// routes times the rate of the fastest channel, over its own rate. An unknown rate counts as
	// the most common one.
	AllToAll     float64       `json:"all_to_all"`
	Hottest      []Channel     `json:"hottest"` // most loaded first; by GUID and port where equal
	Bisection    *Bisection    `json:"bisection,omitempty"`
	Permutations *Permutations `json:"permutations,omitempty"`
	Shifts       *Shifts       `json:"shifts,omitempty"`
	Disjoint     *Disjoint     `json:"disjoint,omitempty"` // nil when no port has several LIDs
	Lost         int64         `json:"lost"`               // pairs that the tables do not deliver; they are on no link
}

// Loads describes how routes spread over channels. A route is an ordered pair of a CA
// or router port and a LID of another such port that the tables deliver; a channel is
// one direction of a cable between two switches.
type Loads struct {
	Channels int     `json:"channels"`
	Unused   int     `json:"unused"` // channels without a route
	Max      int64   `json:"max"`    // routes on the most loaded channel
	Mean     float64 `json:"mean"`   // over all channels, unused ones too
	Gini     float64 `json:"gini"`   // 0 when all carry the same, near 1 when one carries all
}

// Channel is the direction of a cable out of a switch by a port, to another switch.
type Channel struct {
	Switch   fabric.GUID    `json:"switch"`
	Name     fabric.Name    `json:"name"`
	Port     fabric.PortNum `json:"port"`
	Label    string         `json:"label,omitempty"` // of the port, see fabric.Fabric.Label
	ToSwitch fabric.GUID    `json:"to_switch"`
	ToName   fabric.Name    `json:"to_name"`
	ToPort   fabric.PortNum `json:"to_port"`
	ToLabel  string         `json:"to_label,omitempty"`
	Routes   int64          `json:"routes"`
}

// Measure looks at the tables t of fabric f, in which every switch has a row by
// its NodeID for all LIDs of f. It takes O(switches x LIDs), and O(CA ports x hops)
// for each pattern of traffic. Errors: tables that are not of this fabric, and ctx's.
func Measure(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt Options) (*Result, error) {
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return nil, err
	}
	if t.MaxLID() < f.MaxLID() {
		return nil, fmt.Errorf("tables of LIDs up to %d for a fabric of LIDs up to %d", t.MaxLID(), f.MaxLID())
	}
	m := &measurement{f: f, t: t, weight: make([]float64, f.NumPorts())}
	scale := bound.ScaleOf(f)
	for _, p := range f.Channels() {
		m.weight[p] = scale.Load(1, f.Link(p))
	}
	var err error
	if m.routes, err = lft.ChannelLoads(ctx, f, t); err != nil {
		return nil, err
	}
	r := m.result(opt.Hottest)
	if r.Disjoint, err = Disjointness(ctx, f, t); err != nil {
		return nil, err
	}
	if err := m.measurePatterns(ctx, r, &opt); err != nil {
		return nil, err
	}
	return r, nil
}

// measurePatterns measures the patterns that opt asks for.
func (m *measurement) measurePatterns(ctx context.Context, r *Result, opt *Options) (err error) {
	m.ends = text.Where(m.f.CAPorts(), func(p fabric.PortID) bool {
		return m.f.PeerSwitch(p) != fabric.NoNode && m.f.LID(p) != 0 && m.f.PortCounts(p, fabric.ForBisection)
	})
	m.rate = rates(m.f)
	m.next = make([]fabric.NodeID, m.f.NumPorts())
	for p := range m.next {
		m.next[p] = m.f.PeerSwitch(fabric.PortID(p))
	}
	if opt.Bisections > 0 {
		if r.Bisection, err = m.measureBisections(ctx, opt); err != nil {
			return err
		}
	}
	if opt.Permutations > 0 {
		if r.Permutations, err = m.measurePermutations(ctx, opt); err != nil {
			return err
		}
	}
	if opt.Shifts > 0 {
		r.Shifts, err = m.measureShifts(ctx, opt)
	}
	return err
}

// measurement is the data that all workers read.
type measurement struct {
	f      *fabric.Fabric
	t      *lft.Tables
	routes []int64   // by PortID, see lft.ChannelLoads
	weight []float64 // by PortID: the load of a route on a channel between switches, on the fabric's scale

	// Of patterns of traffic.
	ends []fabric.PortID // ports that send and receive
	rate []float64       // by PortID, see rates
	next []fabric.NodeID // by PortID: the switch at the other end, or NoNode
}

// countLost counts the pairs of a CA or router port and a LID of another one that the tables do not deliver.
func (m *measurement) countLost() (lost int64) {
	hosts, lids := int64(0), int64(0)
	for _, p := range m.f.CAPorts() {
		if !m.f.PortCounts(p, fabric.ForLoad) {
			continue
		}
		hosts++
		lids += int64(m.f.NumLIDs(p))
		if lost -= m.routes[p]; m.f.PeerSwitch(p) == fabric.NoNode { // only the other end of the cable reaches it
			lost -= int64(m.f.NumLIDs(p))
		}
	}
	return lost + lids*(hosts-1)
}

// result sums up the routes.
func (m *measurement) result(hottest int) *Result {
	f := m.f
	r := &Result{Lost: m.countLost(), Hottest: []Channel{}}
	var channels []Channel
	var all []int64
	for _, p := range f.Channels() {
		n := m.routes[p]
		all = append(all, n)
		r.AllToAll = max(r.AllToAll, float64(n)*m.weight[p])
		s, to := f.Owner(p), f.PeerSwitch(p)
		channels = append(channels, Channel{
			Switch: f.Node(s).GUID, Name: f.Name(s), Port: f.Num(p), Label: f.Label(p),
			ToSwitch: f.Node(to).GUID, ToName: f.Name(to), ToPort: f.Num(f.Peer(p)), ToLabel: f.Label(f.Peer(p)), Routes: n,
		})
	}
	r.Links = loadsOf(all)
	slices.SortStableFunc(channels, func(a, b Channel) int { return cmp.Compare(b.Routes, a.Routes) })
	r.Hottest = append(r.Hottest, text.Where(channels[:min(hottest, len(channels))], func(ch Channel) bool { return ch.Routes > 0 })...)
	return r
}

// loadsOf sums up the routes of channels, which it sorts.
func loadsOf(routes []int64) Loads {
	l := Loads{Channels: len(routes)}
	slices.Sort(routes)
	sum, ranked := 0.0, 0.0
	for i, n := range routes {
		if n == 0 {
			l.Unused++
		}
		sum += float64(n)
		ranked += float64(i+1) * float64(n)
		l.Max = max(l.Max, n)
	}
	if sum > 0 {
		n := float64(len(routes))
		l.Mean = sum / n
		l.Gini = 2*ranked/(n*sum) - (n+1)/n
	}
	return l
}
