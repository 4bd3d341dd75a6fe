package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
)

const (
	ownMLID = -1 // the group shares no MLID
	noMLID  = -2 // each receiver gets a unicast packet instead
)

// sharing joins groups that share MLIDs into clusters. Each step joins the two
// clusters whose packets then reach the fewest end ports besides their receivers.
type sharing struct {
	f        *fabric.Fabric
	groups   []Group
	maxStray float64

	of       []int     // by group: the first group of its cluster, or ownMLID or noMLID
	clusters []cluster // by first group of the cluster
	byPort   [][]int   // by PortID: clusters of which the port is a receiver
	list     []int     // first groups of all clusters, ascending
}

// cluster has the groups that share one MLID.
type cluster struct {
	groups    []int           // ascending
	receivers []fabric.PortID // of all groups, ascending
	wanted    int             // copies to receivers, if each group sends a packet
	stray     int             // the most copies to other ports then; a sender gets none of its own
	own       bool            // a group came with an MLID
	sl        fabric.SL       // the same for all groups, as trees may depend on it
	ports     []fabric.PortID // the masks; set for several groups
}

// partner is the cluster that costs another cluster the least to join.
type partner struct {
	cost    int // stray copies added; -1 for no partner
	cluster int
	groups  int // number of its groups when it was found
}

// share lets groups share MLIDs, and leaves some groups without, until MLIDs
// suffice. It takes O(groups x groups) at first, and O(groups) for each join.
func (b *budget) share(ctx context.Context) (*sharing, error) {
	s := newSharing(b)
	excess, err := s.join(ctx, b.need()-b.free)
	if err != nil {
		return nil, err
	}
	if s.drop(excess) > 0 {
		return nil, &BudgetError{MLIDs: b.free}
	}
	several := s.several()
	list, _, err := draftWith(ctx, b.schemes[len(b.schemes)-1], b.r, text.Each(several, s.unite), b.opt)
	if err != nil {
		return nil, err
	}
	for i, c := range several {
		if list[i].err != nil {
			return nil, list[i].err
		}
		if len(list[i].trees) != 1 {
			return nil, &BudgetError{MLIDs: b.free}
		}
		c.ports = list[i].trees[0].ports
	}
	for _, i := range s.list {
		if len(s.clusters[i].groups) == 1 {
			s.of[i] = ownMLID
		}
	}
	return s, nil
}

func newSharing(b *budget) *sharing {
	n := len(b.groups)
	s := &sharing{
		f:        b.r.Fabric,
		groups:   b.groups,
		maxStray: cmp.Or(b.opt.MaxStray, DefaultMaxStray),
		of:       make([]int, n),
		clusters: make([]cluster, n),
		byPort:   make([][]int, b.r.Fabric.NumPorts()),
	}
	for i := range b.groups {
		g := &b.groups[i]
		if len(b.steps[i].trees) != 1 {
			s.of[i] = ownMLID
			continue
		}
		s.of[i] = i
		s.list = append(s.list, i)
		s.clusters[i] = cluster{groups: []int{i}, receivers: g.Receivers, wanted: len(g.Receivers), own: g.MLID != 0, sl: g.SL}
		for _, p := range g.Receivers {
			s.byPort[p] = append(s.byPort[p], i)
		}
	}
	return s
}

// several lists the clusters of more than one group.
func (s *sharing) several() (list []*cluster) {
	for _, i := range s.list {
		if c := &s.clusters[i]; len(c.groups) > 1 {
			list = append(list, c)
		}
	}
	return list
}

// join joins clusters until excess MLIDs are saved, or every further pair has
// too many stray copies. It returns how many MLIDs are still to be saved. Of
// equally cheap pairs it takes the first.
func (s *sharing) join(ctx context.Context, excess int) (int, error) {
	found := make([]partner, len(s.clusters))
	newScratch := func() []int { return make([]int, len(s.clusters)) }
	_, err := par.ForEachWith(ctx, 0, len(s.list), newScratch, func(common []int, i int) error {
		found[s.list[i]] = s.findPartner(s.list[i], common)
		return nil
	})
	if err != nil {
		return 0, err
	}
	common := newScratch()
	for excess > 0 {
		var pair, best [3]int // cost, and the two clusters
		best[0] = -1
		at := 0
		for _, i := range s.list {
			x := &found[i]
			if pair = [3]int{x.cost, min(i, x.cluster), max(i, x.cluster)}; x.cost >= 0 && (best[0] < 0 || slices.Compare(pair[:], best[:]) < 0) {
				best, at = pair, i
			}
		}
		if best[0] < 0 {
			break
		}
		// The partner may have been joined to another since it was found.
		if x := &found[at]; len(s.clusters[x.cluster].groups) == x.groups {
			s.merge(best[1], best[2], best[0])
			excess--
			at = best[1]
		}
		found[at] = s.findPartner(at, common)
	}
	return excess, nil
}

// merge moves the groups of one cluster (from) to another (into); this adds cost stray copies.
func (s *sharing) merge(into, from, cost int) {
	a, b := &s.clusters[into], &s.clusters[from]
	for _, i := range b.groups {
		s.of[i] = into
	}
	for _, p := range b.receivers {
		s.byPort[p] = slices.DeleteFunc(s.byPort[p], func(i int) bool { return i == from })
		if !slices.Contains(s.byPort[p], into) {
			s.byPort[p] = append(s.byPort[p], into)
		}
	}
	a.groups = append(a.groups, b.groups...)
	slices.Sort(a.groups)
	a.receivers = union(nil, a.receivers, b.receivers)
	a.wanted += b.wanted
	a.stray += b.stray + cost
	a.own = a.own || b.own
	*b = cluster{}
	s.remove(from)
}

// remove takes a cluster off the list.
func (s *sharing) remove(cluster int) {
	i, _ := slices.BinarySearch(s.list, cluster)
	s.list = slices.Delete(s.list, i, i+1)
}

// findPartner returns the cheapest cluster for cluster i to join, the first
// among equals. common is scratch, by cluster. It takes O(receivers x
// clusters of each + clusters).
func (s *sharing) findPartner(i int, common []int) partner {
	c := &s.clusters[i]
	clear(common)
	for _, p := range c.receivers {
		for _, k := range s.byPort[p] {
			common[k]++
		}
	}
	best := partner{cost: -1}
	for _, k := range s.list {
		d := &s.clusters[k]
		cost := len(c.groups)*(len(d.receivers)-common[k]) + len(d.groups)*(len(c.receivers)-common[k])
		if k == i || best.cost >= 0 && cost >= best.cost || c.own && d.own || c.sl != d.sl {
			continue
		}
		if stray := c.stray + d.stray + cost; stray == 0 || float64(stray) <= s.maxStray*float64(c.wanted+d.wanted) {
			best = partner{cost, k, len(d.groups)}
		}
	}
	return best
}

// drop leaves the clusters with the fewest receivers without MLIDs until
// excess MLIDs are saved. It returns how many are still to be saved.
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

// unite makes one group of the groups of a cluster.
func (s *sharing) unite(c *cluster) Group {
	g := Group{Name: s.groups[c.groups[0]].Name, Receivers: c.receivers, SL: c.sl}
	for _, i := range c.groups {
		g.Senders = append(g.Senders, s.groups[i].Senders...)
	}
	slices.Sort(g.Senders)
	g.Senders = slices.Compact(g.Senders)
	return g
}

// add gives one MLID to each cluster of several groups.
func (s *sharing) add(a *assembly, scheme string) error {
	for _, c := range s.several() {
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
		a.masks[mlid] = c.ports
		for _, g := range c.groups {
			a.addTree(g, a.ids.MGID(g, 0), scheme, nil, s.groups[g].Senders, mlid)
		}
	}
	return nil
}

// mostNotes bounds the MLIDs that notes list, and the names in each note.
const mostNotes = 16

// notes tells which groups share an MLID, what strays, and which have none.
func (s *sharing) notes() []string {
	several := s.several()
	shared, stray, wanted := 0, 0, 0
	for _, c := range several {
		shared += len(c.groups)
		stray += c.stray
		wanted += c.wanted
	}
	var notes, without []string
	if shared > 0 {
		notes = append(notes, fmt.Sprintf("%d groups share %s, with at most %d stray copies for %d to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
			shared, text.Count(len(several), "MLID", "MLIDs"), stray, wanted))
		for _, c := range several[:min(mostNotes, len(several))] {
			notes = append(notes, s.note(c))
		}
		if more := len(several) - mostNotes; more > 0 {
			notes = append(notes, fmt.Sprintf("so do groups on %s more", text.Count(more, "MLID", "MLIDs")))
		}
	}
	for i, of := range s.of {
		if of == noMLID {
			without = append(without, fmt.Sprintf("%q", s.groups[i].Name))
		}
	}
	if len(without) > 0 {
		notes = append(notes, fmt.Sprintf("%s without an MLID, left to a unicast packet for each receiver: %s",
			text.Count(len(without), "group", "groups"), text.Few(without, mostNotes)))
	}
	return notes
}

// note describes the stray copies of one MLID.
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
			strays = append(strays, fmt.Sprintf("packets of %q reach %s as well", g.Name, text.Few(who, mostNotes)))
		}
	}
	note := "groups " + text.Few(names, mostNotes) + " share an MLID"
	if len(strays) == 0 {
		return note + ", and nothing strays"
	}
	return note + ": " + text.Few(strays, mostNotes)
}
