package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// item is a set of senders that share masks.
type item struct {
	// from has, for each switch with senders, the port where packets of one sender come in.
	// Packets of the switch's other senders leave by the same ports, except each sender's
	// own.
	from    []fabric.PortID
	senders []fabric.PortID
	ports   []fabric.PortID // the masks, ascending
}

// draftUnions makes a tree of each item that items returns for a group.
func draftUnions(ctx context.Context, r *lft.Routing, scheme string, groups []Group, items func(*unionMaker, *Group) ([]item, error)) ([]drafted, error) {
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		w := &unionMaker{r: r, f: r.Fabric, scheme: scheme, mark: make([]bool, r.Fabric.NumPorts()), masks: newMaskGraph(r.Fabric)}
		return func(g *Group) ([]draft, error) {
			list, err := items(w, g)
			if err != nil {
				return nil, err
			}
			trees := make([]draft, len(list))
			for i, x := range list {
				slices.Sort(x.senders)
				trees[i] = draft{senders: x.senders, ports: x.ports}
			}
			slices.SortFunc(trees, func(a, b draft) int { return cmp.Compare(a.senders[0], b.senders[0]) })
			return trees, nil
		}
	})
}

// unionMaker makes and merges items. Each worker has one.
type unionMaker struct {
	r      *lft.Routing
	f      *fabric.Fabric
	scheme string
	mark   []bool // by PortID: whether ports has it
	ports  []fabric.PortID
	masks  maskGraph
	merged []fabric.PortID
	path   []fabric.PortID // of the last addPath
}

func (w *unionMaker) refuse(g *Group, format string, args ...any) error {
	return &RefusedError{Scheme: w.scheme, Group: g.Name, Reason: fmt.Sprintf(format, args...), Suggest: []string{UpdnTree{}.Name()}}
}

// items returns an item for each switch with senders, by NodeID: senders on a
// switch have the same paths.
func (w *unionMaker) items(g *Group) ([]item, error) {
	for _, s := range g.Senders {
		if w.f.Attachment(s) == fabric.NoPort {
			return nil, w.refuse(g, "sender %s has no cable to a switch", w.f.PortName(s))
		}
	}
	at := func(s fabric.PortID) fabric.NodeID { return w.f.Owner(w.f.Attachment(s)) }
	senders := slices.Clone(g.Senders)
	slices.SortStableFunc(senders, func(a, b fabric.PortID) int { return cmp.Compare(at(a), at(b)) })
	var list []item
	for len(senders) > 0 {
		n := 1
		for n < len(senders) && at(senders[n]) == at(senders[0]) {
			n++
		}
		x, err := w.item(g, senders[:n:n])
		if err != nil {
			return nil, err
		}
		list = append(list, x)
		senders = senders[n:]
	}
	return list, nil
}

// item makes an item of senders on one switch. The masks have the ports on the paths
// from the switch to the receivers; a single sender is no receiver of its own packets.
func (w *unionMaker) item(g *Group, senders []fabric.PortID) (item, error) {
	for _, p := range w.ports {
		w.mark[p] = false
	}
	w.ports = w.ports[:0]
	sender := senders[0]
	from := w.f.Attachment(sender)
	if from == fabric.NoPort {
		return item{}, w.refuse(g, "sender %s has no cable to a switch", w.f.PortName(sender))
	}
	for _, d := range g.Receivers {
		if len(senders) == 1 && d == sender {
			continue
		}
		if reason := w.addPath(sender, d); reason != "" {
			return item{}, w.refuse(g, "sender %s has no unicast path to receiver %s: %s", w.f.PortName(sender), w.f.PortName(d), reason)
		}
	}
	slices.Sort(w.ports)
	w.masks.load(w.ports)
	if reason := w.masks.explainInexact(sender, g.Receivers); reason != "" {
		return item{}, w.refuse(g, "%s", reason)
	}
	return item{from: []fabric.PortID{from}, senders: senders, ports: slices.Clone(w.ports)}, nil
}

// addPath adds the switch ports on the path between two end ports to w.ports.
// It returns "", or why there is no path.
func (w *unionMaker) addPath(sender, d fabric.PortID) string {
	end := w.f.Attachment(d)
	if end == fabric.NoPort {
		return "it has no cable to a switch"
	}
	lid := w.f.LID(d)
	if lid == 0 {
		return "it has no LID"
	}
	path, err := w.r.Tables.Path(w.f, sender, lid, w.path[:0])
	if err != nil {
		return err.Error()
	}
	if !w.f.IsSwitch(w.f.Owner(sender)) {
		path = path[1:]
	}
	for _, p := range append(path, end) {
		if !w.mark[p] {
			w.mark[p] = true
			w.ports = append(w.ports, p)
		}
	}
	w.path = path
	return ""
}

// uniteClass makes one item of several; if that is not exact, it merges as
// many as first fit can.
func (w *unionMaker) uniteClass(items []item) []item {
	if len(items) == 1 {
		return items
	}
	var x item
	for i := range items {
		x.from = append(x.from, items[i].from...)
		x.senders = append(x.senders, items[i].senders...)
		x.ports = append(x.ports, items[i].ports...)
	}
	slices.Sort(x.ports)
	x.ports = slices.Compact(x.ports)
	if w.isExact(&x) {
		return []item{x}
	}
	return w.firstFit(items)
}

// firstFit merges each item into the first of the list that stays exact with it.
func (w *unionMaker) firstFit(items []item) []item {
	var list []item
next:
	for i := range items {
		x := &items[i]
		for k := range list {
			w.merged = union(w.merged[:0], list[k].ports, x.ports)
			y := item{from: append(list[k].from, x.from...), ports: w.merged}
			if w.isExact(&y) {
				y.senders = append(list[k].senders, x.senders...)
				y.ports = slices.Clone(w.merged)
				list[k] = y
				continue next
			}
		}
		list = append(list, item{from: slices.Clip(x.from), senders: slices.Clip(x.senders), ports: x.ports})
	}
	return list
}

// union merges a and b, both ascending, without doubles, and appends them to list to.
func union(to, a, b []fabric.PortID) []fabric.PortID {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			to = append(to, a[0])
			a = a[1:]
		case b[0] < a[0]:
			to = append(to, b[0])
			b = b[1:]
		default:
			to = append(to, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return append(append(to, a...), b...)
}

// isExact returns true if an item's masks deliver no packet by two paths. The
// masks must bring packets of each sender to all receivers.
func (w *unionMaker) isExact(x *item) bool {
	if len(x.from) == 1 {
		return true
	}
	w.masks.load(x.ports)
	if w.masks.isForest() {
		return true
	}
	for i := len(x.from) - 1; i >= 0; i-- { // the last added fails first
		if twice, _ := w.masks.sendPacket(x.from[i]); twice >= 0 {
			return false
		}
	}
	return true
}
