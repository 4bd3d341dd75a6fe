// Command own-scheme compiles a fabric with a unicast engine and a multicast scheme of its own,
// which it hands to ibweave: LIDs, the proof and the files are ibweave's.
//
//	own-scheme FABRIC DIR [GUID..]
//
// The ports with these GUIDs are a multicast group, in which each sends to all others.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/verify"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "own-scheme:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want FABRIC DIR [GUID..]")
	}
	ctx := context.Background()
	f, err := ibweave.ReadFabric(args[0])
	if err != nil {
		return err
	}
	opt := compile.Options{}
	if len(args) > 2 {
		opt.Scheme = treeScheme{}
		opt.Groups = func(f *fabric.Fabric) ([]mft.Group, error) { return group(f, args[2:]) }
	}
	r, err := compile.Run(ctx, f, &compile.Engine{Engine: treeEngine{}, Summary: "all paths on one tree"}, opt)
	if err != nil {
		return err
	}
	for _, x := range r.Verify.Findings {
		fmt.Printf("%s: %s\n", x.Rule, x.Message)
	}
	if r.Verify.Fails(verify.Error) {
		return fmt.Errorf("the tables have errors")
	}
	files, err := ibweave.Write(ctx, args[1], r, ibweave.WriteOptions{})
	fmt.Printf("%d files, verdict %s\n", len(files), r.Verify.Verdict)
	return err
}

// group is the multicast group of the ports with GUIDs.
func group(f *fabric.Fabric, guids []string) ([]mft.Group, error) {
	g := mft.Group{Name: "group"}
	for _, text := range guids {
		guid, err := fabric.ParseGUID(text)
		if err != nil {
			return nil, err
		}
		found := len(g.Receivers)
		for _, p := range f.CAPorts() {
			if f.PortGUID(p) == guid {
				g.Receivers = append(g.Receivers, p)
			}
		}
		if len(g.Receivers) == found {
			return nil, fmt.Errorf("no port has the GUID %s", guid)
		}
	}
	slices.Sort(g.Receivers)
	g.Senders = g.Receivers
	return []mft.Group{g}, nil
}

// tree is a breadth-first spanning tree of the switches, with switch 0 as its root.
type tree struct {
	parent []fabric.NodeID  // by switch; NoNode for the root and for what cables do not join to it
	up     []fabric.PortNum // by switch: its port to the parent
	down   []fabric.PortNum // by switch: the parent's port to it
	order  []fabric.NodeID  // from the root down
}

func newTree(f *fabric.Fabric) *tree {
	n := f.NumSwitches()
	t := &tree{slices.Repeat([]fabric.NodeID{fabric.NoNode}, n), make([]fabric.PortNum, n), make([]fabric.PortNum, n), []fabric.NodeID{0}}
	for i := 0; i < len(t.order); i++ {
		s := t.order[i]
		ports, to := f.SwitchLinks(s)
		for k, v := range to {
			if v != 0 && t.parent[v] == fabric.NoNode {
				t.parent[v], t.down[v], t.up[v] = s, f.Num(ports[k]), f.Num(f.Peer(ports[k]))
				t.order = append(t.order, v)
			}
		}
	}
	return t
}

// treeEngine routes all packets on the tree: up to where the destination is below, and down.
type treeEngine struct{}

func (treeEngine) Name() string { return "tree" }

// Guarantee holds since paths of a tree go up and then down.
func (treeEngine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

func (e treeEngine) Route(_ context.Context, f *fabric.Fabric, _ lft.Options) (*lft.Routing, error) {
	t := newTree(f)
	if len(t.order) < f.NumSwitches() {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: "cables do not join all switches"}
	}
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		to := f.LIDPort(lid)
		if to == fabric.NoPort {
			continue
		}
		at, out := f.Owner(to), fabric.ManagementPort
		if !f.IsSwitch(at) { // a host: out by its cable
			q := f.Peer(to)
			if q == fabric.NoPort {
				continue
			}
			at, out = f.Owner(q), f.Num(q)
		}
		for s, up := range t.up {
			tables.Row(fabric.NodeID(s))[lid] = up
		}
		tables.Row(at)[lid] = out
		for ; t.parent[at] != fabric.NoNode; at = t.parent[at] {
			tables.Row(t.parent[at])[lid] = t.down[at]
		}
	}
	return &lft.Routing{Engine: e.Name(), Fabric: f, Tables: tables}, nil
}

// treeScheme gives each group the part of the tree that joins its members.
type treeScheme struct{}

func (treeScheme) Name() string { return "tree" }

func (treeScheme) Build(_ context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	f, t := r.Fabric, newTree(r.Fabric)
	named, err := mft.AssignIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	masks := make([][]fabric.PortID, len(named))
	for i, g := range named {
		members, receivers := make([]int, f.NumSwitches()), make([]int, f.NumSwitches()) // at and below each switch
		for _, p := range g.Receivers {
			masks[i] = append(masks[i], f.Peer(p))
			receivers[f.Owner(f.Peer(p))]++
		}
		copy(members, receivers)
		for _, p := range g.Senders {
			if !slices.Contains(g.Receivers, p) {
				members[f.Owner(f.Peer(p))]++
			}
		}
		for _, s := range slices.Backward(t.order[1:]) {
			members[t.parent[s]] += members[s]
			receivers[t.parent[s]] += receivers[s]
		}
		all, toAll := members[0], receivers[0]
		for _, s := range t.order[1:] {
			if members[s] == 0 || members[s] == all {
				continue // the tree of the group does not cross the cable above s
			}
			if receivers[s] > 0 {
				masks[i] = append(masks[i], f.Port(t.parent[s], t.down[s]))
			}
			if receivers[s] < toAll {
				masks[i] = append(masks[i], f.Port(s, t.up[s]))
			}
		}
		slices.Sort(masks[i])
	}
	return mft.NewPlan(f, "tree", named, masks), nil
}
