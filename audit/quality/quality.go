// Package quality measures how well forwarding tables use a fabric: routes on
// each cable, effective bisection bandwidth, contention of random
// permutations and of shifts, path diversity.
// It is for comparing routings, says nothing of whether they are right (verify
// does), and knows no engine.
// It makes no promise to other modules.
package quality

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
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
	// How many patterns of traffic to try, 0 for none: random bisections, random
	// permutations, and shifts, which are chosen at random where there are more.
	Bisections, Permutations, Shifts int
	// Seed chooses them. The same seed has the same bisections and permutations of a
	// fabric whatever its tables, so that tables can be compared by less than their
	// intervals.
	Seed    uint64
	Hottest int // bounds the list of most loaded channels
}

// Result is the figures of one set of tables.
type Result struct {
	Links Loads `json:"links"`
	// AllToAll is the greatest relative load of a channel when every port sends to every
	// LID: its routes times the rate of the fastest channel, over its own. A rate that is
	// not known counts as the commonest.
	AllToAll     float64       `json:"all_to_all"`
	Hottest      []Channel     `json:"hottest"` // most loaded first; by GUID and port where equal
	Bisection    *Bisection    `json:"bisection,omitempty"`
	Permutations *Permutations `json:"permutations,omitempty"`
	Shifts       *Shifts       `json:"shifts,omitempty"`
	Diversity    Diversity     `json:"diversity"`
	Lost         int64         `json:"lost"` // pairs that the tables do not deliver; they are on no link
}

// Loads says how routes spread over channels. A route is an ordered pair of a CA
// or router port and a LID of another one that the tables deliver; a channel is
// one direction of a cable between two switches.
type Loads struct {
	Channels int     `json:"channels"`
	Unused   int     `json:"unused"` // channels without a route
	Max      int64   `json:"max"`    // routes on the most loaded channel
	Mean     float64 `json:"mean"`   // over all channels, unused ones too
	Gini     float64 `json:"gini"`   // 0 when all carry the same, near 1 when one carries all
}

// Channel is the way out of a switch by a port, to another switch.
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

// Diversity says how many different ways the tables have between the same two
// switches: for each ordered pair of different switches with CA or router ports,
// the number of different sequences of channels from the one to the LIDs on the
// other. Of a switch with more than maxDiversityLIDs of them the first are taken.
type Diversity struct {
	Pairs int64   `json:"pairs"` // of switches
	Mean  float64 `json:"mean"`
	Min   int     `json:"min"`
	Max   int     `json:"max"`
	// Disjoint is about the LIDs of one port; nil when none has several.
	Disjoint *Disjoint `json:"disjoint,omitempty"`
}

// maxDiversityLIDs bounds the memory for the ways to one switch: 8 bytes each for
// every switch.
const maxDiversityLIDs = 256

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
	m := newMeasurement(f, t)
	if err := m.countRoutes(ctx); err != nil {
		return nil, err
	}
	r := m.result(opt.Hottest)
	var err error
	if r.Diversity.Disjoint, err = Disjointness(ctx, f, t); err != nil {
		return nil, err
	}
	if err := m.measurePatterns(ctx, r, &opt); err != nil {
		return nil, err
	}
	return r, nil
}

// measurePatterns fills in what opt asks for.
func (m *measurement) measurePatterns(ctx context.Context, r *Result, opt *Options) (err error) {
	m.ends, m.rate = senders(m.f), rates(m.f)
	m.longest = m.totals.longest
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

// measurement is what workers share.
type measurement struct {
	f       *fabric.Fabric
	t       *lft.Tables
	jobs    []job   // by destination switch
	sources []int64 // by switch: its hosts
	hosts   int64   // CA and router ports that count for load
	apart   int64   // pairs with a LID of a port that is cabled to another CA
	totals  *counts
	weight  []float64 // see weights

	// Of patterns of traffic.
	ends []fabric.PortID // that send
	rate []float64       // by PortID, see rates
	next []fabric.NodeID // by PortID: the switch at the other end, or NoNode
	// longest is how many switches a delivered route passes at most.
	longest int
}

// job is the LIDs of the hosts on a switch.
type job struct {
	t    fabric.NodeID
	lids []fabric.LID
}

func newMeasurement(f *fabric.Fabric, t *lft.Tables) *measurement {
	m := &measurement{f: f, t: t, weight: weights(f), sources: make([]int64, f.NumSwitches())}
	for _, p := range f.CAPorts() {
		if f.PortCounts(p, fabric.ForLoad) {
			m.hosts++
		}
	}
	for i, p := range f.CAPorts() {
		if f.CASwitches()[i] == fabric.NoNode && f.LID(p) != 0 && f.PortCounts(p, fabric.ForLoad) { // only the other end of the cable reaches it
			m.apart += (m.hosts - 2) << f.LMC(p)
		}
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		j := job{t: s}
		for _, p := range slices.Sorted(slices.Values(f.HostsOn(s))) {
			m.sources[s]++
			if f.LID(p) == 0 {
				continue
			}
			for k := range fabric.LID(1) << f.LMC(p) {
				j.lids = append(j.lids, f.LID(p)+k)
			}
		}
		if j.lids != nil {
			m.jobs = append(m.jobs, j)
		}
	}
	return m
}

// counts is the scratch and the sums of one worker.
type counts struct {
	routes []int64 // by PortID
	lost   int64
	pairs  int64 // of switches
	ways   int64 // sum over these pairs
	min    int
	max    int

	forest *lft.Forest
	depth  []int // by switch: how many switches a route from there passes
	// longest is the greatest depth.
	longest int
	hash    []uint64 // by switch and index in the LIDs of the job; 0 for not delivered
	list    []uint64
}

func (m *measurement) newCounts() *counts {
	n := m.f.NumSwitches()
	return &counts{
		routes: make([]int64, m.f.NumPorts()),
		min:    math.MaxInt,
		forest: lft.NewForest(m.f),
		depth:  make([]int, n),
	}
}

// countRoutes fills in m.totals.
func (m *measurement) countRoutes(ctx context.Context) error {
	m.totals = m.newCounts()
	all, err := par.ForEachWith(ctx, 0, len(m.jobs), m.newCounts, func(c *counts, i int) error {
		m.count(c, &m.jobs[i])
		return nil
	})
	if err != nil {
		return err
	}
	sum := m.totals
	for _, c := range all {
		for i, n := range c.routes {
			sum.routes[i] += n
		}
		sum.lost += c.lost
		sum.pairs += c.pairs
		sum.ways += c.ways
		sum.longest = max(sum.longest, c.longest)
		sum.min, sum.max = min(sum.min, c.min), max(sum.max, c.max)
	}
	return nil
}

// count adds the routes to the LIDs of a job, and the ways there.
func (m *measurement) count(c *counts, j *job) {
	wide := min(len(j.lids), maxDiversityLIDs)
	c.hash = append(c.hash[:0], make([]uint64, m.f.NumSwitches()*wide)...)
	for k, lid := range j.lids {
		c.forest.FindTree(m.t, lid)
		order := c.forest.Order
		c.measureDepth(m.f)
		if k < wide {
			c.hash[int(j.t)*wide+k] = 1
			for _, s := range order[min(1, len(order)):] {
				out := c.forest.Next[s]
				onward := c.hash[int(m.f.Owner(m.f.Peer(out)))*wide+k]
				c.hash[int(s)*wide+k] = mix(onward, uint64(out)) | 1
			}
		}
		sources := int64(0)
		for _, s := range order {
			sources += m.sources[s]
		}
		if len(order) == 0 {
			c.lost += m.hosts - 1 // the port itself is no source
		} else {
			c.lost += m.hosts - sources
		}
		c.forest.Flow(m.sources, func(out fabric.PortID, routes int64) { c.routes[out] += routes })
	}
	for s, hosts := range m.sources {
		if hosts == 0 || fabric.NodeID(s) == j.t {
			continue
		}
		c.list = append(c.list[:0], c.hash[s*wide:][:wide]...)
		slices.Sort(c.list)
		c.list = slices.Compact(c.list)
		ways := len(c.list)
		if c.list[0] == 0 {
			ways--
		}
		c.pairs++
		c.ways += int64(ways)
		c.min, c.max = min(c.min, ways), max(c.max, ways)
	}
}

// measureDepth takes the longest route of the forest.
func (c *counts) measureDepth(f *fabric.Fabric) {
	for i, s := range c.forest.Order {
		c.depth[s] = 1
		if i > 0 {
			c.depth[s] += c.depth[f.Owner(f.Peer(c.forest.Next[s]))]
		}
		c.longest = max(c.longest, c.depth[s])
	}
}

// mix makes a number of the ways x and then y, splitmix64's last step.
func mix(x, y uint64) uint64 {
	x = (x ^ y*0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// result sums up the totals.
func (m *measurement) result(hottest int) *Result {
	f, c := m.f, m.totals
	r := &Result{Lost: c.lost + m.apart, Hottest: []Channel{}}
	var channels []Channel
	var all []int64
	for _, p := range f.Channels() {
		n := c.routes[p]
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
	for _, ch := range channels[:min(hottest, len(channels))] {
		if ch.Routes > 0 {
			r.Hottest = append(r.Hottest, ch)
		}
	}
	if c.pairs > 0 {
		r.Diversity = Diversity{Pairs: c.pairs, Mean: float64(c.ways) / float64(c.pairs), Min: c.min, Max: c.max}
	}
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
