package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// checkPlan returns an error for multicast tables and trees that do not fit a fabric.
func checkPlan(m *mft.Plan, f *fabric.Fabric) error {
	if m.Tables == nil {
		return errors.New("multicast without tables")
	}
	if !fabric.SameNodes(m.Tables.Fabric(), f) {
		return errors.New("multicast tables of other nodes than the fabric has")
	}
	for i := range m.Trees {
		t := &m.Trees[i]
		if t.MLID < mft.MinMLID || t.MLID > mft.MaxMLID {
			return fmt.Errorf("group %q has MLID %#x: want %#x to %#x", t.Name, uint16(t.MLID), uint16(mft.MinMLID), uint16(mft.MaxMLID))
		}
		if t.SL >= lft.NumSLs {
			return fmt.Errorf("group %q has SL %d: want 0 to %d", t.Name, t.SL, lft.NumSLs-1)
		}
		for _, list := range [][]fabric.PortID{t.Senders, t.Receivers} {
			for i, p := range list {
				switch {
				case p < 0 || int(p) >= f.NumPorts() || i > 0 && list[i-1] >= p:
					return fmt.Errorf("group %q: its ports must ascend and be of the fabric", t.Name)
				case f.IsSwitch(f.Owner(p)) && f.Num(p) != fabric.ManagementPort:
					return fmt.Errorf("group %q: %s is a port of a switch, which has port 0 as an end port only", t.Name, f.PortName(p))
				}
			}
		}
	}
	return nil
}

// slsOf returns the set of SLs of multicast packets; none if m is nil.
func slsOf(m *mft.Plan) (set uint16) {
	if m == nil {
		return 0
	}
	set = 1 // of MLIDs without a tree
	for i := range m.Trees {
		set |= 1 << m.Trees[i].SL
	}
	return set
}

// mcPlan has what Check knows about multicast. Packets are followed from port
// to port. An arc is a port in a mask: a packet that leaves by it enters at
// the other end of its cable.
type mcPlan struct {
	*plan
	*mft.Plan
	copying  Copying
	capacity []int        // by NodeID: MLIDs that its table has room for, 0 if unknown; nil if all are
	mlids    []fabric.LID // of tables and trees, ascending
	start    []int        // by index in mlids, and one more: where its part of trees begins
	trees    []*mft.Tree  // by MLID

	graph *sharedGraph // of multicast packets only
	found mcFound
}

// mcFound has the findings about the packets of some MLIDs.
type mcFound struct {
	counts   MulticastCounts
	troubles []mcTrouble
	dead     []deadMask     // ports without a cable
	ends     []deadMask     // ports to switches where packets go no further
	gaps     []deadMask     // ports to switches, and ports of senders, where the switch has no mask
	unused   []deadMask     // for each MLID with ports that no packets reach, the first such port
	splits   map[split]bool // not if switches copy independently
}

// split is a packet that comes by channel in and leaves by both a and b. For packets of a CA, and
// of a switch's own port 0, in is negative: the complement (^) of the channel that leaves by the
// input port.
type split struct{ in, a, b int32 }

func (s split) compare(o split) int {
	return cmp.Or(cmp.Compare(s.in, o.in), cmp.Compare(s.a, o.a), cmp.Compare(s.b, o.b))
}

// mcTrouble counts faults of the packets of one tree: loop in senders, the others
// in pairs of a sender and an end port.
type mcTrouble struct {
	tree                            *mft.Tree
	missing, duplicate, loop, stray mcTally
}

type mcTally struct {
	n      int64
	sender fabric.PortID // the lowest sender with a fault
}

// count adds n faults of a sender.
func (t *mcTally) count(n int, sender fabric.PortID) {
	if n == 0 {
		return
	}
	if t.n == 0 || sender < t.sender {
		t.sender = sender
	}
	t.n += int64(n)
}

// deadMask is a port in the mask of an MLID, with a fault.
type deadMask struct {
	port fabric.PortID
	mlid fabric.LID
	n    int // for unused: number of ports
}

func (d deadMask) compare(o deadMask) int {
	return cmp.Or(cmp.Compare(d.port, o.port), cmp.Compare(d.mlid, o.mlid))
}

func newMulticast(p *plan, m *mft.Plan, copying Copying, capacity []int) *mcPlan {
	c := &mcPlan{plan: p, Plan: m, copying: copying, capacity: capacity, found: mcFound{splits: map[split]bool{}}}
	for i := range m.Trees {
		c.trees = append(c.trees, &m.Trees[i])
	}
	slices.SortStableFunc(c.trees, func(a, b *mft.Tree) int { return cmp.Compare(a.MLID, b.MLID) })
	c.mlids = slices.Clone(m.Tables.MLIDs())
	groups := make(map[int]bool)
	for _, t := range c.trees {
		c.mlids = append(c.mlids, t.MLID)
		groups[t.Group] = true
	}
	slices.Sort(c.mlids)
	c.mlids = slices.Compact(c.mlids)
	at := 0
	for _, mlid := range c.mlids {
		c.start = append(c.start, at)
		for at < len(c.trees) && c.trees[at].MLID == mlid {
			at++
		}
		if at == c.start[len(c.start)-1] {
			c.found.counts.Groups++
		}
	}
	c.start = append(c.start, at)
	c.found.counts.Groups += len(groups)
	c.found.counts.MLIDs = len(c.mlids)
	c.graph = newSharedGraph(p.onVLs)
	return c
}

// of returns the trees of the i-th MLID. If none has senders, it makes a tree
// of the end ports in the masks, and assumed is true.
func (c *mcPlan) of(i int) (trees []*mft.Tree, assumed bool) {
	trees = c.trees[c.start[i]:c.start[i+1]]
	if slices.ContainsFunc(trees, func(t *mft.Tree) bool { return len(t.Senders) > 0 }) {
		return trees, false
	}
	t := &mft.Tree{Group: -1, MLID: c.mlids[i]}
	for _, p := range c.Tables.Ports(t.MLID) {
		switch peer := c.f.Peer(p); {
		case c.f.Num(p) == fabric.ManagementPort:
			t.Receivers = append(t.Receivers, p)
		case peer != fabric.NoPort && !c.f.IsSwitch(c.f.Owner(peer)):
			t.Receivers = append(t.Receivers, peer)
		}
	}
	slices.Sort(t.Receivers)
	t.Senders = t.Receivers
	return []*mft.Tree{t}, true
}

// add adds what another worker found.
func (x *mcFound) add(o *mcFound) {
	x.counts.add(&o.counts)
	x.troubles = append(x.troubles, o.troubles...)
	x.dead = append(x.dead, o.dead...)
	x.ends = append(x.ends, o.ends...)
	x.gaps = append(x.gaps, o.gaps...)
	x.unused = append(x.unused, o.unused...)
	maps.Copy(x.splits, o.splits)
}

// sort makes the lists independent of which worker had which MLID. All trees of an MLID were with
// one worker, in order.
func (x *mcFound) sort() {
	slices.SortStableFunc(x.troubles, func(a, b mcTrouble) int { return cmp.Compare(a.tree.MLID, b.tree.MLID) })
	slices.SortFunc(x.dead, deadMask.compare)
	slices.SortFunc(x.ends, deadMask.compare)
	slices.SortFunc(x.gaps, deadMask.compare)
	slices.SortFunc(x.unused, func(a, b deadMask) int { return cmp.Compare(a.mlid, b.mlid) })
}

func (c *MulticastCounts) add(o *MulticastCounts) {
	c.Pairs += o.Pairs
	c.Missing += o.Missing
	c.Duplicates += o.Duplicates
	c.Loops += o.Loops
	c.Stray += o.Stray
}

// injections lists the channels by which multicast packets leave CAs, with
// number 0.
func (c *mcPlan) injections() (list []NumberedChannel) {
	vls := make([]uint16, c.f.NumPorts())
	for i := range c.mlids {
		trees, _ := c.of(i)
		for _, t := range trees {
			for _, p := range t.Senders {
				if c.f.IsSwitch(c.f.Owner(p)) || c.f.Attachment(p) == fabric.NoPort {
					continue
				}
				if vl := c.vlOf(0, p, t.SL); vl != lft.DropVL {
					vls[p] |= 1 << vl
				}
			}
		}
	}
	for p, set := range vls {
		for ; set != 0; set &= set - 1 {
			port := fabric.PortID(p)
			list = append(list, NumberedChannel{GUID: c.f.Node(c.f.Owner(port)).GUID, Port: c.f.Num(port), VL: fabric.VL(bits.TrailingZeros16(set))})
		}
	}
	return list
}

// countUse counts how full multicast tables are. A subnet manager uses only MLIDs for which all
// switches have room, so the smallest table is the capacity of the fabric.
func (c *mcPlan) countUse() {
	if c.capacity == nil {
		return
	}
	used := make([]int, c.f.NumSwitches())
	for i := range c.Tables.MLIDs() {
		last := fabric.NoNode
		for _, p := range c.Tables.PortsAt(i) {
			if s := c.f.Owner(p); s != last {
				used[s]++
				last = s
			}
		}
	}
	n := &c.found.counts
	for s, capacity := range c.capacity {
		if capacity == 0 {
			continue
		}
		if n.Capacity == 0 || capacity < n.Capacity {
			n.Capacity = capacity
		}
		if t := n.Fullest; t == nil || used[s]*t.Capacity > t.MLIDs*capacity {
			node := fabric.NodeID(s)
			n.Fullest = &MulticastTable{SwitchOf(c.f, node), used[s], capacity}
		}
	}
}
