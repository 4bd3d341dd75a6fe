package mft

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

const (
	ownMLID = -1 // the group's MLIDs are its own
	noMLID  = -2 // a packet for each receiver instead
)

// sharing is which groups share MLIDs, found by agglomeration: the two clusters
// of groups are joined whose packets then reach the fewest end ports beyond
// their receivers, again and again.
type sharing struct {
	f        *fabric.Fabric
	groups   []Group
	maxStray float64

	of       []int32   // by group: the first group of those on its MLID, ownMLID or noMLID
	clusters []cluster // by group, at the first of them
	byPort   [][]int32 // by PortID: groups that it receives
	list     []int     // the clusters there are, ascending
	size     []clusterSize
	drafts   []drafted // of the clusters with several groups, in the order of list
}

// clusterSize is what a search wants to know of each of list.
type clusterSize struct {
	cluster, groups, receivers int32
}

// cluster is groups on one MLID.
type cluster struct {
	groups    []int           // ascending
	receivers []fabric.PortID // of all groups, ascending
	wanted    int             // copies to receivers, when each group sends a packet
	stray     int             // copies to others then, at most: a sender gets none of its own
	own       bool            // a group came with an MLID
	sl        fabric.SL       // of all groups: a scheme's trees may depend on it
	version   int             // changes with the groups
}

// share is two clusters that may be joined.
type share struct {
	cost     int // stray copies that it adds; -1 when there is no partner
	a, b     int // a < b
	va, vb   int // the versions that the cost is of
	searcher int // a or b: the one whose best partner the other is
}

// shares is a heap, the cheapest on top.
type shares []share

func (s shares) Len() int      { return len(s) }
func (s shares) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s shares) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[i].cost, s[j].cost), cmp.Compare(s[i].a, s[j].a),
		cmp.Compare(s[i].b, s[j].b), cmp.Compare(s[i].searcher, s[j].searcher)) < 0
}
func (s *shares) Push(x any) { *s = append(*s, x.(share)) }
func (s *shares) Pop() any {
	x := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return x
}

// share makes groups share MLIDs, and leaves some without, until the rest
// suffices. It takes O(groups x groups) at first, and O(groups) for each step.
func (b *budget) share(ctx context.Context) (*sharing, error) {
	excess := b.total() - b.free
	s := newSharing(b)
	excess, err := s.join(ctx, excess)
	if err != nil {
		return nil, err
	}
	if s.drop(excess) > 0 {
		return nil, &BudgetError{MLIDs: b.free}
	}
	var several []Group
	for _, i := range s.list {
		c := &s.clusters[i]
		if len(c.groups) == 1 {
			s.of[i] = ownMLID
			continue
		}
		several = append(several, s.whole(c))
	}
	last := b.schemes[len(b.schemes)-1]
	list, _, err := draftWith(ctx, last, b.r, several, b.opt)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].err != nil {
			return nil, list[i].err
		}
		if len(list[i].trees) != 1 {
			return nil, &BudgetError{MLIDs: b.free}
		}
	}
	s.drafts = list
	return s, nil
}

func newSharing(b *budget) *sharing {
	n := len(b.groups)
	s := &sharing{
		f:        b.r.Fabric,
		groups:   b.groups,
		maxStray: b.opt.MaxStray,
		of:       make([]int32, n),
		clusters: make([]cluster, n),
		byPort:   make([][]int32, b.r.Fabric.NumPorts()),
	}
	if s.maxStray == 0 {
		s.maxStray = DefaultMaxStray
	}
	for i := range b.groups {
		g := &b.groups[i]
		if len(b.list[i].trees) != 1 {
			s.of[i] = ownMLID
			continue
		}
		s.of[i] = int32(i)
		s.list = append(s.list, i)
		s.size = append(s.size, clusterSize{int32(i), 1, int32(len(g.Receivers))})
		s.clusters[i] = cluster{groups: []int{i}, receivers: g.Receivers, wanted: len(g.Receivers), own: g.MLID != 0, sl: g.SL}
		for _, p := range g.Receivers {
			s.byPort[p] = append(s.byPort[p], int32(i))
		}
	}
	return s
}

// join joins clusters until excess MLIDs are saved, or none can be joined
// without too many stray copies; it returns what is left.
func (s *sharing) join(ctx context.Context, excess int) (int, error) {
	found := make([]share, len(s.list))
	err := parallel(ctx, len(s.list), func() func(int) {
		p := newPartners(s)
		return func(i int) { found[i] = p.best(s.list[i]) }
	})
	if err != nil {
		return 0, err
	}
	h := shares(slices.DeleteFunc(found, func(x share) bool { return x.cost < 0 }))
	partners := newPartners(s)
	heap.Init(&h)
	for excess > 0 && len(h) > 0 {
		x := heap.Pop(&h).(share)
		if s.of[x.searcher] != int32(x.searcher) {
			continue // joined to another, which has searched since
		}
		a, b := &s.clusters[x.a], &s.clusters[x.b]
		if s.of[x.a] == int32(x.a) && s.of[x.b] == int32(x.b) && a.version == x.va && b.version == x.vb {
			s.merge(x)
			excess--
			x.searcher = x.a
		} else if v := s.clusters[x.searcher].version; x.searcher == x.a && v != x.va || x.searcher == x.b && v != x.vb {
			continue // has searched since
		}
		if y := partners.best(x.searcher); y.cost >= 0 {
			heap.Push(&h, y)
		}
	}
	return excess, nil
}

// merge makes one cluster of two, at the index of the first.
func (s *sharing) merge(x share) {
	a, b := &s.clusters[x.a], &s.clusters[x.b]
	for _, i := range b.groups {
		s.of[i] = int32(x.a)
	}
	groups := append(a.groups, b.groups...)
	slices.Sort(groups)
	*a = cluster{
		groups:    groups,
		receivers: union(nil, a.receivers, b.receivers),
		wanted:    a.wanted + b.wanted,
		stray:     a.stray + b.stray + x.cost,
		own:       a.own || b.own,
		sl:        a.sl,
		version:   a.version + 1,
	}
	*b = cluster{}
	s.remove(x.b)
	i, _ := slices.BinarySearch(s.list, x.a)
	s.size[i] = clusterSize{int32(x.a), int32(len(a.groups)), int32(len(a.receivers))}
}

// remove takes a cluster off the list.
func (s *sharing) remove(cluster int) {
	i, _ := slices.BinarySearch(s.list, cluster)
	s.list = slices.Delete(s.list, i, i+1)
	s.size = slices.Delete(s.size, i, i+1)
}

// partners searches for clusters to join: scratch of one worker.
type partners struct {
	s       *sharing
	common  []common // by cluster
	touched []int32  // the clusters that have receivers in common with the one at hand
	tick    int32
}

// common is what a cluster has in common with the one at hand.
type common struct {
	receivers int32
	tick      int32 // the last receiver that was counted
}

func newPartners(s *sharing) *partners {
	return &partners{s: s, common: make([]common, len(s.of))}
}

// best finds the cheapest cluster to join cluster i with, the first of equal
// ones. It takes O(receivers x groups of each + clusters).
func (p *partners) best(i int) share {
	s := p.s
	c := &s.clusters[i]
	p.touched = p.touched[:0]
	if int(p.tick) > math.MaxInt32-len(c.receivers) {
		clear(p.common)
		p.tick = 0
	}
	for _, port := range c.receivers {
		p.tick++
		for _, g := range s.byPort[port] {
			o := s.of[g]
			if o < 0 {
				continue
			}
			x := &p.common[o]
			if x.tick == p.tick {
				continue
			}
			x.tick = p.tick
			if x.receivers == 0 {
				p.touched = append(p.touched, o)
			}
			x.receivers++
		}
	}
	best := share{searcher: i, cost: -1}
	groups, receivers := len(c.groups), len(c.receivers)
	for _, o := range s.size {
		both := int(p.common[o.cluster].receivers)
		cost := groups*(int(o.receivers)-both) + int(o.groups)*(receivers-both)
		if best.cost >= 0 && cost >= best.cost || int(o.cluster) == i {
			continue
		}
		d := &s.clusters[o.cluster]
		if c.own && d.own || c.sl != d.sl {
			continue
		}
		if stray := c.stray + d.stray + cost; stray > 0 && float64(stray) > s.maxStray*float64(c.wanted+d.wanted) {
			continue
		}
		best.cost, best.a, best.b = cost, min(i, int(o.cluster)), max(i, int(o.cluster))
	}
	for _, o := range p.touched {
		p.common[o].receivers = 0
	}
	if best.cost >= 0 {
		best.va, best.vb = s.clusters[best.a].version, s.clusters[best.b].version
	}
	return best
}

// drop leaves the clusters with the fewest receivers without MLIDs until excess
// MLIDs are saved, and returns what is left.
func (s *sharing) drop(excess int) int {
	order := slices.Clone(s.list)
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(s.clusters[i].wanted, s.clusters[j].wanted), cmp.Compare(j, i))
	})
	for _, i := range order {
		if excess <= 0 {
			break
		}
		if s.clusters[i].own {
			continue
		}
		for _, g := range s.clusters[i].groups {
			s.of[g] = noMLID
		}
		s.remove(i)
		excess--
	}
	return excess
}

// whole is the groups of a cluster as one.
func (s *sharing) whole(c *cluster) Group {
	g := Group{Name: s.groups[c.groups[0]].Name, Receivers: c.receivers, SL: c.sl}
	for _, i := range c.groups {
		g.Senders = append(g.Senders, s.groups[i].Senders...)
	}
	slices.Sort(g.Senders)
	g.Senders = slices.Compact(g.Senders)
	return g
}

// add gives MLIDs to the groups that share them.
func (s *sharing) add(a *assembly, scheme string) error {
	next := 0
	for _, i := range s.list {
		c := &s.clusters[i]
		if len(c.groups) == 1 {
			continue
		}
		first := c.groups[0]
		for _, g := range c.groups {
			if s.groups[g].MLID != 0 {
				first = g
			}
		}
		mlid, err := a.ids.MLID(first)
		if err != nil {
			return err
		}
		a.masks = append(a.masks, masks{mlid, s.drafts[next].trees[0].ports})
		next++
		for _, g := range c.groups {
			a.tree(g, 0, scheme, s.groups[g].Senders, mlid)
		}
	}
	return nil
}

// notes lists who shares an MLID and what strays, and who has none.
func (s *sharing) notes() []string {
	var list, without []string
	shared, stray, wanted := 0, 0, 0
	for _, i := range s.list {
		c := &s.clusters[i]
		if len(c.groups) == 1 {
			continue
		}
		shared += len(c.groups)
		stray += c.stray
		wanted += c.wanted
		if len(list) < mostNotes {
			list = append(list, s.note(c))
		}
	}
	for i, of := range s.of {
		if of == noMLID {
			without = append(without, fmt.Sprintf("%q", s.groups[i].Name))
		}
	}
	var notes []string
	if shared > 0 {
		clusters := 0
		for _, i := range s.list {
			if len(s.clusters[i].groups) > 1 {
				clusters++
			}
		}
		notes = append(notes, fmt.Sprintf("%d groups share %s, with at most %d stray copies for %d to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
			shared, count(clusters, "MLID"), stray, wanted))
		notes = append(notes, list...)
		if more := clusters - len(list); more > 0 {
			notes = append(notes, fmt.Sprintf("so do groups on %s more", count(more, "MLID")))
		}
	}
	if len(without) > 0 {
		notes = append(notes, fmt.Sprintf("%s without an MLID, left to a unicast packet for each receiver: %s", count(len(without), "group"), few(without)))
	}
	return notes
}

// mostNotes is how many shared MLIDs, and names in a note, are listed.
const mostNotes = 16

// note is the stray copies of one MLID.
func (s *sharing) note(c *cluster) string {
	var names, strays []string
	for _, i := range c.groups {
		g := &s.groups[i]
		names = append(names, fmt.Sprintf("%q", g.Name))
		var who []string
		for _, p := range c.receivers {
			if _, is := slices.BinarySearch(g.Receivers, p); !is && !slices.Equal(g.Senders, []fabric.PortID{p}) {
				who = append(who, s.f.PortName(p))
			}
		}
		if len(who) > 0 {
			strays = append(strays, fmt.Sprintf("packets of %q reach %s as well", g.Name, few(who)))
		}
	}
	note := "groups " + few(names) + " share an MLID"
	if len(strays) == 0 {
		return note + ", and nothing strays"
	}
	return note + ": " + few(strays)
}

// count is "1 MLID" or "2 MLIDs".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func few(list []string) string {
	if len(list) <= mostNotes {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNotes], ", "), len(list)-mostNotes)
}
