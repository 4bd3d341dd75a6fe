package mft

import (
	"context"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Cost is the cost of multicast with a plan if every sender of every tree
// sends one packet. Links join switches; each direction is counted by itself.
type Cost struct {
	// Trees has an item for each of Plan.Trees.
	Trees []TreeCost
	// Load counts copies by PortID of the switch port that they leave by, to
	// hosts too.
	Load []int64
	// MaxLink and MeanLink are the greatest and the mean load of links. Hottest is the port of the
	// link with MaxLink, or NoPort.
	MaxLink  int64
	MeanLink float64
	Hottest  fabric.PortID
	// MaxHost is the greatest load of a port to an end port, switches' ports 0
	// included: the copies to the busiest receiver.
	MaxHost int64
	// Links is the sum of the trees' Links. Crossings counts how often copies
	// cross links. Unicast is the same count if senders instead send a unicast
	// packet to each of their receivers; receivers without a path count 0.
	Links, Crossings, Unicast int64
}

// TreeCost is the part of one tree in Cost.
type TreeCost struct {
	Links     int   // cables between switches in the masks
	Depth     int   // most links to a receiver
	Crossings int64 // as in Cost
	Unicast   int64
}

// Measure counts the copies of every sender's packets, around a loop once. For each tree it takes
// O(switches with senders x ports in masks), and for the comparison with unicast O(switches x LIDs
// of receivers + senders x receivers).
func Measure(ctx context.Context, r *lft.Routing, p *Plan) (*Cost, error) {
	f := r.Fabric
	c := &Cost{Trees: make([]TreeCost, len(p.Trees)), Load: make([]int64, f.NumPorts()), Hottest: fabric.NoPort}
	meters, err := par.ForEachWith(ctx, 0, len(p.Trees),
		func() *meter { return &meter{maskGraph: newMaskGraph(f), load: make([]int64, f.NumPorts())} },
		func(m *meter, i int) error {
			c.Trees[i] = m.measure(&p.Trees[i], p.Tables.Ports(p.Trees[i].MLID))
			return nil
		})
	if err != nil {
		return nil, err
	}
	for _, m := range meters {
		for i, n := range m.load {
			c.Load[i] += n
		}
	}
	unicast, err := unicastLinks(ctx, r, p.Trees)
	if err != nil {
		return nil, err
	}
	for i := range c.Trees {
		t := &c.Trees[i]
		t.Unicast = unicast[i]
		c.Links += int64(t.Links)
		c.Crossings += t.Crossings
		c.Unicast += t.Unicast
	}
	links := f.Channels()
	next := 0
	for i, n := range c.Load {
		if p := fabric.PortID(i); next == len(links) || links[next] != p {
			c.MaxHost = max(c.MaxHost, n)
			continue
		} else if n > c.MaxLink {
			c.MaxLink, c.Hottest = n, p
		}
		next++
	}
	if len(links) > 0 {
		c.MeanLink = float64(c.Crossings) / float64(len(links))
	}
	return c, nil
}

// meter measures trees: scratch of one worker.
type meter struct {
	maskGraph
	load  []int64 // by PortID
	count []int64 // copies, by index in the masks
	depth []int32 // links, by hop
}

// measure adds a tree to load. Senders on one switch make the same copies, except that none gets
// its own back.
func (m *meter) measure(t *Tree, ports []fabric.PortID) TreeCost {
	var c TreeCost
	m.maskGraph.load(ports)
	m.count = append(m.count[:0], make([]int64, len(ports))...)
	for i := range m.edges {
		if e := &m.edges[i]; !e.host && (e.back < 0 || i < int(e.back)) {
			c.Links++
		}
	}
	senders := make(map[fabric.NodeID]int64)
	for _, p := range t.Senders {
		if in := m.f.Attachment(p); in != fabric.NoPort {
			senders[m.f.Owner(in)]++
			if own := m.enter(in).back; own >= 0 {
				m.count[own]--
			}
		}
	}
	for s, n := range senders {
		c.Depth = max(c.Depth, m.countCopies(s, n))
	}
	for i, n := range m.count {
		m.load[ports[i]] += n
		if !m.edges[i].host {
			c.Crossings += n
		}
	}
	return c
}

// countCopies counts the copies if each of n senders on switch s sends a packet; a packet counts
// once at each port. It returns the number of links to the farthest receiver.
func (m *meter) countCopies(s fabric.NodeID, n int64) int {
	m.follow(edge{span: m.mask[s], back: -1}, true)
	m.depth = resize(m.depth, len(m.hops))
	m.depth[0] = 0
	deepest := int32(0)
	for i, h := range m.hops[1:] {
		m.count[h.out] += n
		m.depth[i+1] = m.depth[h.prev] + 1
		if h.host {
			deepest = max(deepest, m.depth[h.prev])
		}
	}
	return int(deepest)
}

// unicastLinks returns, by tree, the links on unicast paths from its senders to its receivers. It
// takes O(switches x receivers + senders x receivers of each tree).
func unicastLinks(ctx context.Context, r *lft.Routing, trees []Tree) ([]int64, error) {
	f := r.Fabric
	from := make([][]fabric.NodeID, len(trees)) // by tree: the senders' switches
	byPort := make([][]int32, f.NumPorts())     // by receiver: its trees
	var receivers []fabric.PortID
	for i := range trees {
		for _, s := range trees[i].Senders {
			if in := f.Attachment(s); in != fabric.NoPort {
				from[i] = append(from[i], f.Owner(in))
			}
		}
		for _, d := range trees[i].Receivers {
			if byPort[d] == nil {
				receivers = append(receivers, d)
			}
			byPort[d] = append(byPort[d], int32(i))
		}
	}
	total := make([]int64, len(trees))
	_, err := par.ForEachWith(ctx, 0, len(receivers), func() *lft.Forest { return lft.NewForest(f) }, func(forest *lft.Forest, i int) error {
		links := make([]int64, f.NumSwitches()) // 0 where there is no path
		forest.FindTree(r.Tables, f.LID(receivers[i]))
		for _, s := range forest.Order[min(1, len(forest.Order)):] {
			links[s] = links[f.PeerSwitch(forest.Next[s])] + 1
		}
		for _, k := range byPort[receivers[i]] {
			n := int64(0)
			for _, s := range from[k] {
				n += links[s]
			}
			atomic.AddInt64(&total[k], n)
		}
		return nil
	})
	return total, err
}
