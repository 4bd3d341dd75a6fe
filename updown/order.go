package updown

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Order is a strict total order of the switches. It gives every link a direction: up
// towards the switch that comes first.
type Order struct {
	// Rank is by NodeID: 0 for the switch on top, each rank once.
	Rank []int32
	// Switch is the inverse of Rank: the switch with each rank.
	Switch []fabric.NodeID
}

// NewOrder grows an order from roots. The first root is on top. Each further root is
// joined to the switches so far by a shortest path, whose switches come next. Then
// come all other switches by their distance from the switches so far, equal ones by
// GUID. A part that no root reaches is grown from its switch with the lowest GUID, and
// so on. So every switch but the first of its connected part has an upward link, and
// paths up to the top and down reach everything.
func NewOrder(f *fabric.Fabric, roots []fabric.NodeID) *Order {
	n := f.NumSwitches()
	o := &Order{Rank: slices.Repeat([]int32{-1}, n), Switch: make([]fabric.NodeID, 0, n)}
	search := graph.NewSearch[fabric.NodeID](n)
	for i, r := range roots {
		if i > 0 && o.Rank[r] < 0 {
			search.Run(f.Neighbors, o.Switch...)
			o.add(search.Path(r)...)
		}
		o.add(r)
	}
	search.Run(f.Neighbors, o.Switch...)
	o.addByDistance(search)
	for s := range fabric.NodeID(n) {
		if o.Rank[s] < 0 {
			search.Extend(f.Neighbors, s)
			o.addByDistance(search)
		}
	}
	return o
}

// OrderOf returns the Order with the ranks of the routing, or an error if they are no
// strict order.
func OrderOf(r *lft.Routing) (*Order, error) {
	list, err := lft.SwitchesByRank(r.Fabric, r.Order)
	if err != nil {
		return nil, err
	}
	return &Order{Rank: r.Order, Switch: list}, nil
}

// rankSwitches returns the order that a list of all switches gives. It keeps the list.
func rankSwitches(list []fabric.NodeID) *Order {
	o := &Order{Rank: make([]int32, len(list)), Switch: list}
	for r, s := range list {
		o.Rank[s] = int32(r)
	}
	return o
}

// add appends the switches that have no rank yet.
func (o *Order) add(list ...fabric.NodeID) {
	for _, s := range list {
		if o.Rank[s] < 0 {
			o.Rank[s] = int32(len(o.Switch))
			o.Switch = append(o.Switch, s)
		}
	}
}

// addByDistance appends the switches that a search has found after those with a rank,
// by distance, then GUID.
func (o *Order) addByDistance(search *graph.Search[fabric.NodeID]) {
	found := slices.Clone(search.Order[len(o.Switch):])
	slices.SortFunc(found, func(a, b fabric.NodeID) int {
		return cmp.Or(cmp.Compare(search.Distance[a], search.Distance[b]), cmp.Compare(a, b))
	})
	o.add(found...)
}

// errLonger says that a path is longer than a shortest one.
var errLonger = errors.New("longer than a shortest path")

// HasShortest returns true if legal paths between switches with hosts are shortest
// paths. Then so are the paths of Engine, and those that an lft.Incremental keeps. The
// error is ctx's.
func (o *Order) HasShortest(ctx context.Context, f *fabric.Fabric) (bool, error) {
	d, dist := newDirections(f, o), f.Distances()
	hosts := slices.DeleteFunc(f.Switches(), func(s fabric.NodeID) bool { return len(f.HostsOn(s)) == 0 })
	_, err := par.ForEachWith(ctx, 0, len(hosts), func() *tree { return newTree(d) }, func(x *tree, i int) error {
		if !x.growTo(hosts[i]) {
			return errLonger
		}
		least := dist.To(hosts[i])
		for _, s := range hosts {
			if x.hops[o.Rank[s]] != least[s] {
				return errLonger
			}
		}
		return nil
	})
	if errors.Is(err, errLonger) {
		return false, nil
	}
	return err == nil, err
}
