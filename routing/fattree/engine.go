// Package fattree routes fat trees, full and damaged ones: by destination, so that every
// shift permutation of the hosts in their order is free of contention on a full tree
// (Zahavi, D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real
// Life Fat Trees, CCIT report 776, Technion, 2010). It makes no promise to other modules.
//
// A fat tree has levels, and cables lead to the next level only. Packets come down to a
// destination by one chain of switches, which follows from the host's position: host i of
// a leaf uses uplink i modulo the number of uplinks, and so on. All switches send up to the
// chain of a destination. A missing cable or switch displaces the chains that it was part
// of, and no others, to where the load is least.
//
// Paths go up in the levels and then down. The guarantee follows from a strict order of
// the switches, with a leaf on top: a path by levels is taken only if it is a legal
// up*/down* path of the order. So each port has a legal path to each other one, also where
// no path up and then down is left, and between the switches at the top.
package fattree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// Engine is the fattree engine.
type Engine struct{}

var _ lft.Engine = Engine{}

// Name is "fattree".
func (Engine) Name() string { return "fattree" }

// Guarantee is Reachable and NoCreditLoop. Paths between hosts on leaves are shortest
// paths as long as some path up and then down is left.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

const (
	// In percent: hostsOnLeaves of the hosts must be on leaves, and joinedPairs of the pairs
	// of leaves must have a path up and then down.
	hostsOnLeaves = 66
	joinedPairs   = 75
)

// Route takes levels from package levels, or the distance from opt.Roots where there are any, and fills the
// tables. It refuses, with a *lft.DomainError, a fabric with a cable between switches
// that are not on neighbouring levels; and without roots, one with many hosts on
// upper levels, or with many pairs of leaves without a path up and then down.
//
// It takes O(switches x LIDs) and, for each switch above the leaves, O(channels).
// It ignores opt.Previous: a cable changes the chains that use it only.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	n := f.NumSwitches()
	r := &lft.Routing{Engine: e.Name(), Fabric: f, Tables: lft.NewTables(n, f.MaxLID()), Order: make([]int32, n)}
	hosts := make([]int32, n)
	for s := range hosts {
		hosts[s] = int32(len(f.HostsOn(fabric.NodeID(s))))
	}
	index, level := make([]int32, n), levels.Of(f)
	search := graph.NewSearch[fabric.NodeID](n)
	placed := int32(0)
	for _, part := range listComponents(f) {
		k := &ranker{f: f, part: part, level: level, search: search}
		byRoots := k.rankFromRoots(opt.Roots)
		if !byRoots {
			k.liftPendants()
		}
		if err := k.checkCables(); err != nil {
			return nil, &lft.DomainError{Engine: e.Name(), Reason: err.Error()}
		}
		x := newTree(f, part, index, level, hosts)
		x.findReach()
		if !byRoots {
			if err := x.checkShape(); err != nil {
				return nil, &lft.DomainError{Engine: e.Name(), Reason: err.Error()}
			}
		}
		x.findOrder()
		p := newPlan(x)
		fill := newFiller(newChains(p), r.Tables)
		if err := fill.fillTables(ctx); errors.Is(err, errTooLong) {
			return nil, &lft.DomainError{Engine: e.Name(), Reason: fmt.Sprintf("a path has more than %d links", fabric.MaxHops-1)}
		} else if err != nil {
			return nil, err
		}
		for u, s := range part {
			r.Order[s] = placed + x.rank[u]
		}
		placed += int32(len(part))
		r.CAOrder = append(r.CAOrder, p.listCAOrder()...)
		if note := fill.describe(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
	if note := describeRates(f); note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r, nil
}

// describeRates is a note that cables between switches have different rates; "" if they
// have one rate.
func describeRates(f *fabric.Fabric) string {
	var slow, fast fabric.Link
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			link := f.Link(p)
			if rate := link.Mbps(); rate > 0 {
				if slow.Mbps() == 0 || rate < slow.Mbps() {
					slow = link
				}
				if rate > fast.Mbps() {
					fast = link
				}
			}
		}
	}
	if slow.Mbps() == fast.Mbps() {
		return ""
	}
	return fmt.Sprintf("fattree ignores rates: cables between switches are %s to %s, and slow ones get as many routes as fast ones", slow, fast)
}

// checkShape returns an error if a fabric with levels is no fat tree.
func (x *tree) checkShape() error {
	all, on := int32(0), int32(0)
	for u, h := range x.hosts {
		all += h
		if x.level[u] == 0 {
			on += h
		}
	}
	if 100*on < hostsOnLeaves*all {
		return fmt.Errorf("hosts of a fat tree are on its leaves, but only %d of %d are on those that look like leaves (--roots GUID,.. says which switches are on top)", on, all)
	}
	joined, pairs := x.countJoined()
	if 100*joined < joinedPairs*pairs {
		return fmt.Errorf("only %d of %d pairs of leaves have a way up and then down (--roots GUID,.. says which switches are on top)", joined, pairs)
	}
	return nil
}

// countJoined counts the ordered pairs of leaves with hosts, and how many of them have a path
// up and then down.
func (x *tree) countJoined() (joined, pairs int) {
	leaves := make([]uint64, x.words)
	n := 0
	for u, h := range x.hosts {
		if h > 0 && x.level[u] == 0 {
			leaves[u>>6] |= 1 << (u & 63)
			n++
		}
	}
	set := make([]uint64, x.words)
	forEachSwitch(leaves, func(u int32) {
		clear(set)
		for k := range x.reach {
			for w, word := range x.setOf(x.reach[k], u) {
				set[w] |= word & leaves[w]
			}
		}
		forEachSwitch(set, func(int32) { joined++ })
	})
	return joined - n, n*n - n
}

// describe describes a tree of several switches.
func (x *filler) describe() string {
	if len(x.switches) == 1 {
		return ""
	}
	var sizes []string
	above := int32(0)
	for l := range x.height + 1 {
		list := x.byLevel(l)
		sizes = append(sizes, fmt.Sprint(len(list)))
		for _, u := range list {
			if l > 0 {
				above += x.hosts[u]
			}
		}
	}
	s := fmt.Sprintf("fat tree of %d levels, with %s switches from the leaves up", x.height+1, strings.Join(sizes, ", "))
	if above > 0 {
		s += fmt.Sprintf("; %d hosts above the leaves", above)
	}
	if joined, pairs := x.countJoined(); joined < pairs {
		s += fmt.Sprintf("; %d of %d pairs of leaves have no way up and then down, and go by %s", pairs-joined, pairs, x.f.Name(x.switches[x.byRank[0]]))
	}
	return s
}
