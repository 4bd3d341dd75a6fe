package mft

import (
	"context"
	"slices"
	"sync"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Cost is what multicast with a plan costs, when every sender of every tree
// sends one packet. Links are those between switches, each direction apart.
type Cost struct {
	// Trees is by index of Plan.Trees.
	Trees []TreeCost
	// Load is the copies by PortID of the switch port that they go out by, ports
	// of hosts included.
	Load []int64
	// MaxLink and MeanLink are the greatest load of a link and the mean over all
	// links of the fabric. Hottest has the greatest load; NoPort for none.
	MaxLink  int64
	MeanLink float64
	Hottest  fabric.PortID
	// MaxHost is the greatest load of a port that leads to an end port, switches'
	// ports 0 included: what the busiest receiver takes.
	MaxHost int64
	// Links is the sum of the trees' Links. Crossings is the copies that cross
	// links; Unicast is how many would with a unicast packet from each sender to
	// each of its receivers instead, over the paths of the routing, as far as
	// there are paths.
	Links, Crossings, Unicast int64
}

// TreeCost is the part of one tree.
type TreeCost struct {
	Links     int   // cables between switches in the masks
	Depth     int   // links that a packet crosses at most on its way to a receiver
	Crossings int64 // as in Cost
	Unicast   int64
}

// Saved is how many copies on links multicast spares, against unicast.
func (c *Cost) Saved() int64 { return c.Unicast - c.Crossings }

// Measure counts the copies of every sender's packets. Where the links of a tree
// close no circle it takes O(senders + ports in masks x ports of a switch in them),
// else O(senders x ports in masks), with packets that loop followed once round; and
// for the comparison with unicast O(switches x LIDs of receivers + senders x
// receivers).
func Measure(ctx context.Context, r *lft.Routing, p *Plan) (*Cost, error) {
	f := r.Fabric
	c := &Cost{Trees: make([]TreeCost, len(p.Trees)), Load: make([]int64, f.NumPorts()), Hottest: fabric.NoPort}
	var mu sync.Mutex
	var loads [][]int64
	err := parallel(ctx, len(p.Trees), func() func(int) {
		m := &meter{flow: newFlow(f), load: make([]int64, f.NumPorts())}
		mu.Lock()
		loads = append(loads, m.load)
		mu.Unlock()
		return func(i int) { c.Trees[i] = m.tree(&p.Trees[i], p.Tables.Ports(p.Trees[i].MLID)) }
	})
	if err != nil {
		return nil, err
	}
	for _, load := range loads {
		for i, n := range load {
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
	links := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		links += len(ports)
		next := 0
		for n := range fabric.PortID(f.Node(s).NumPorts) + 1 {
			p := f.PortBase(s) + n
			if next < len(ports) && ports[next] == p {
				next++
				if c.Load[p] > c.MaxLink {
					c.MaxLink, c.Hottest = c.Load[p], p
				}
			} else {
				c.MaxHost = max(c.MaxHost, c.Load[p])
			}
		}
	}
	if links > 0 {
		c.MeanLink = float64(c.Crossings) / float64(links)
	}
	return c, nil
}

// meter measures trees: scratch of one worker.
type meter struct {
	flow  *flow
	load  []int64
	count []int64 // by index in the masks: copies; -1 for not known yet
	depth []int32 // by index in flow.hops, or for a forest in the masks

	// For a forest, by index in the masks: senders there; the first edge into the
	// switch of which the mask begins there, and the next into the same one; -1
	// for none.
	here, first, next []int32
	stack             []int32
}

func (m *meter) tree(t *Tree, ports []fabric.PortID) TreeCost {
	var c TreeCost
	w := m.flow
	w.load(ports)
	m.count = append(m.count[:0], make([]int64, len(ports))...)
	for i := range w.edges {
		if e := &w.edges[i]; !e.host && (e.back < 0 || i < int(e.back)) {
			c.Links++
		}
	}
	if w.forest() {
		c.Depth = m.forest(t)
	} else {
		for _, s := range t.Senders {
			if in := terminal(w.f, s); in != fabric.NoPort {
				c.Depth = max(c.Depth, m.follow(in))
			}
		}
	}
	for i, n := range m.count {
		m.load[ports[i]] += n
		if !w.edges[i].host {
			c.Crossings += n
		}
	}
	return c
}

// forest counts the copies where links close no circle: as many go out by a port as
// there are senders on its side of it. It returns the links to the farthest
// receiver.
func (m *meter) forest(t *Tree) int {
	w := m.flow
	n := len(w.ports)
	fill := func(list []int32, with int32) []int32 {
		list = append(list[:0], make([]int32, n)...)
		for i := range list {
			list[i] = with
		}
		return list
	}
	m.here, m.first, m.next, m.depth = fill(m.here, 0), fill(m.first, -1), fill(m.next, -1), fill(m.depth, -1)
	for i := range w.edges {
		if e := &w.edges[i]; !e.host && e.from < e.to {
			m.next[i], m.first[e.from] = m.first[e.from], int32(i)
		}
		m.count[i] = -1
	}
	deepest := int32(0)
	for _, s := range t.Senders {
		in := terminal(w.f, s)
		if in == fabric.NoPort {
			continue
		}
		e := w.enter(in)
		if e.from == e.to {
			continue
		}
		m.here[e.from]++
		for k := e.from; k < e.to; k++ {
			if k != e.back {
				deepest = max(deepest, m.deep(k))
			}
		}
	}
	// Senders do not send back to themselves: their own port counts them as if
	// their packets had come in by it.
	own := m.next // not needed once the counts are known
	for i := range w.edges {
		m.copies(int32(i))
	}
	clear(own)
	for _, s := range t.Senders {
		if in := terminal(w.f, s); in != fabric.NoPort {
			if e := w.enter(in); e.back >= 0 {
				own[e.back]++
			}
		}
	}
	for i := range m.count {
		m.count[i] -= int64(own[i])
	}
	return int(deepest)
}

// copies is the number of senders whose packets go out by port i of the masks, if
// all those on its switch send by it.
func (m *meter) copies(i int32) {
	w := m.flow
	m.stack = append(m.stack[:0], i)
	for len(m.stack) > 0 {
		i := m.stack[len(m.stack)-1]
		from := w.mask[w.f.Owner(w.ports[i])].from
		n, known := int64(m.here[from]), true
		for k := m.first[from]; k >= 0; k = m.next[k] {
			switch {
			case w.edges[k].back == i: // came in by it
			case m.count[k] < 0:
				known = false
				m.stack = append(m.stack, k)
			default:
				n += m.count[k]
			}
		}
		if known {
			m.count[i] = n
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// deep is the links behind port i of the masks to the farthest receiver, 0 for
// none.
func (m *meter) deep(i int32) int32 {
	w := m.flow
	m.stack = append(m.stack[:0], i)
	for len(m.stack) > 0 {
		i := m.stack[len(m.stack)-1]
		e := &w.edges[i]
		n, known := int32(0), true
		for k := e.from; k < e.to && !e.host; k++ {
			switch {
			case k == e.back:
			case m.depth[k] < 0:
				known = false
				m.stack = append(m.stack, k)
			case w.edges[k].host || m.depth[k] > 0:
				n = max(n, m.depth[k]+1)
			}
		}
		if known {
			m.depth[i] = n
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
	return m.depth[i]
}

// follow is flow.run that counts, leaves out copies that come again, and returns
// the links to the farthest receiver.
func (m *meter) follow(in fabric.PortID) int {
	w := m.flow
	w.begin(in)
	m.depth = append(m.depth[:0], 0)
	deepest := int32(0)
	for i := int32(0); int(i) < len(w.hops); i++ {
		h, depth := w.hops[i], m.depth[i]
		for k := h.from; k < h.to; k++ {
			if k == h.back || w.seen[k] == w.now {
				continue
			}
			w.seen[k] = w.now
			m.count[k]++
			if e := &w.edges[k]; e.host {
				deepest = max(deepest, depth)
			} else {
				w.hops = append(w.hops, hop{from: e.from, to: e.to, back: e.back})
				m.depth = append(m.depth, depth+1)
			}
		}
	}
	return int(deepest)
}

// unicastLinks is by tree the links on the unicast paths from all its senders to
// all its receivers, LID by LID: O(switches x LIDs of receivers + senders x
// receivers of each tree).
func unicastLinks(ctx context.Context, r *lft.Routing, trees []Tree) ([]int64, error) {
	f := r.Fabric
	from := make([][]fabric.NodeID, len(trees)) // the senders' switches
	byPort := make([][]int32, f.NumPorts())     // by receiver: its trees
	var receivers []fabric.PortID
	for i := range trees {
		for _, s := range trees[i].Senders {
			if in := terminal(f, s); in != fabric.NoPort {
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
	var mu sync.Mutex
	var sums [][]int64
	err := parallel(ctx, len(receivers), func() func(int) {
		sum := make([]int64, len(trees))
		mu.Lock()
		sums = append(sums, sum)
		mu.Unlock()
		links := make([]uint8, f.NumSwitches())
		var path []fabric.NodeID
		return func(i int) {
			path = linksTo(r, receivers[i], links, path)
			for _, k := range byPort[receivers[i]] {
				n := int64(0)
				for _, s := range from[k] {
					n += int64(links[s])
				}
				sum[k] += n
			}
		}
	})
	if err != nil {
		return nil, err
	}
	total := make([]int64, len(trees))
	for _, sum := range sums {
		for i, n := range sum {
			total[i] += n
		}
	}
	return total, nil
}

// linksTo fills links, by NodeID, with the length of the unicast paths to end
// port d, in links between switches; 0 where there is no path. path is scratch.
func linksTo(r *lft.Routing, d fabric.PortID, links []uint8, path []fabric.NodeID) []fabric.NodeID {
	const unknown, onPath = 255, 254
	f, lid, end := r.Fabric, r.Fabric.LID(d), terminal(r.Fabric, d)
	for s := range links {
		links[s] = unknown
	}
	for s := range fabric.NodeID(len(links)) {
		path = path[:0]
		at, n := s, -1 // n: links from at on, when there is a path
		for links[at] == unknown {
			links[at] = onPath
			path = append(path, at)
			row := r.Tables.Row(at)
			if lid == 0 || int(lid) >= len(row) || row[lid] > f.Node(at).NumPorts {
				break
			}
			p := f.Port(at, row[lid])
			if p == end {
				n = 0
				break
			}
			q := f.Peer(p)
			if q == fabric.NoPort || !f.IsSwitch(f.Owner(q)) {
				break
			}
			if at = f.Owner(q); links[at] < onPath && (links[at] > 0 || f.Owner(end) == at) {
				n = int(links[at]) + 1
			}
		}
		for _, at := range slices.Backward(path) {
			links[at] = 0
			if n >= 0 {
				links[at] = uint8(min(n, onPath-1))
				n++
			}
		}
	}
	return path
}
