package mft_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
)

// flood is the slow and obvious checker: it sends one packet and follows every
// copy by itself.
type flood struct {
	f      *fabric.Fabric
	masks  []bool                // by PortID of switches
	copies map[fabric.PortID]int // by end port
	links  map[fabric.PortID]int // by port that leads to a switch
	depth  int                   // links on the way to the farthest end port
	all    int                   // copies to end ports
	waste  int                   // copies on links that come to no end port
	path   []fabric.PortID       // that the copy at hand came in by
	loop   bool
	steps  int
}

func newFlood(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID) *flood {
	fl := &flood{f: f, masks: make([]bool, f.NumPorts()), copies: map[fabric.PortID]int{}, links: map[fabric.PortID]int{}}
	for _, p := range ports {
		fl.masks[p] = true
	}
	if f.IsSwitch(f.Owner(sender)) {
		fl.visit(sender)
	} else {
		fl.visit(f.Peer(sender))
	}
	return fl
}

// visit is a copy that came in by a port of a switch.
func (fl *flood) visit(in fabric.PortID) {
	if slices.Contains(fl.path, in) {
		fl.loop = true
		return
	}
	if fl.steps++; fl.steps > 1_000_000 {
		panic("flood: too many copies")
	}
	fl.path = append(fl.path, in)
	s := fl.f.Owner(in)
	for n := fabric.PortNum(0); n <= fl.f.Node(s).NumPorts; n++ {
		out := fl.f.Port(s, n)
		if out == in || !fl.masks[out] {
			continue
		}
		switch peer := fl.f.Peer(out); {
		case n == 0:
			fl.copies[out]++
			fl.all++
			fl.depth = max(fl.depth, len(fl.path)-1)
		case peer == fabric.NoPort:
			panic("flood: a port without a cable in a mask")
		case fl.f.IsSwitch(fl.f.Owner(peer)):
			fl.links[out]++
			before := fl.all
			if fl.visit(peer); fl.all == before {
				fl.waste++
			}
		default:
			fl.copies[peer]++
			fl.all++
			fl.depth = max(fl.depth, len(fl.path)-1)
		}
	}
	fl.path = fl.path[:len(fl.path)-1]
}

// verdict is "loop", "duplicate", "missing", "stray" or "exact".
func (fl *flood) verdict(sender fabric.PortID, receivers []fabric.PortID) string {
	if fl.loop {
		return "loop"
	}
	for _, n := range fl.copies {
		if n > 1 {
			return "duplicate"
		}
	}
	for _, n := range fl.links {
		if n > 1 {
			return "duplicate"
		}
	}
	want := map[fabric.PortID]int{}
	for _, d := range receivers {
		if d != sender {
			want[d] = 1
		}
	}
	switch {
	case maps.Equal(fl.copies, want):
		return "exact"
	case len(fl.copies) < len(want):
		return "missing"
	}
	return "stray"
}

// mustBeExact floods from every sender of every tree, wants each copy that crosses
// a link to be of use, and compares the groups' senders with those of the trees.
func mustBeExact(t testing.TB, groups []mft.Group, p *mft.Plan) {
	t.Helper()
	f := p.Tables.Fabric()
	senders := make([][]fabric.PortID, len(groups))
	used := map[fabric.LID]bool{}
	for i := range p.Trees {
		x := &p.Trees[i]
		if i > 0 && p.Trees[i-1].MLID >= x.MLID {
			t.Fatalf("tree %d of %q has MLID %#x after %#x", i, x.Name, x.MLID, p.Trees[i-1].MLID)
		}
		used[x.MLID] = true
		if !slices.IsSorted(x.Senders) || x.Name != groups[x.Group].Name || !slices.Equal(x.Receivers, groups[x.Group].Receivers) {
			t.Fatalf("tree %+v of group %+v", x, groups[x.Group])
		}
		senders[x.Group] = append(senders[x.Group], x.Senders...)
		for _, s := range x.Senders {
			fl := newFlood(f, p.Tables.Ports(x.MLID), s)
			if v := fl.verdict(s, x.Receivers); v != "exact" || fl.waste > 0 {
				t.Fatalf("%s, MLID %#x of %q from %s: %s, %d copies come to no port", x.Scheme, x.MLID, x.Name, f.PortName(s), v, fl.waste)
			}
		}
	}
	for i := range groups {
		slices.Sort(senders[i])
		short.EqualList(t, senders[i], groups[i].Senders, "group", groups[i].Name, "has senders", "its trees")
	}
	short.MustEqual(t, len(used), len(p.Tables.MLIDs()), "trees", "MLIDs in the tables")
}

// grid is a generated mesh of m columns and n rows with XY tables made the
// obvious way.
type grid struct {
	m, n int
	r    *lft.Routing
	rows []int32 // by NodeID
}

func newGrid(t testing.TB, m, n int) *grid {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{m, n}, Hosts: 1}))(t)
	g := &grid{m: m, n: n, rows: make([]int32, m*n)}
	lids, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	g.r = &lft.Routing{Engine: "xy", Fabric: f}
	for x := range m {
		for y := range n {
			lids[g.host(x, y)] = fabric.LID(x*n + y + 1)
			lids[f.PortBase(g.at(x, y))] = fabric.LID(m*n + x*n + y + 1)
			g.rows[g.at(x, y)] = int32(y)
		}
	}
	g.r.Fabric = short.Must(f.WithLIDs(lids, lmc))(t)
	g.r.Tables = lft.NewTables(m*n, g.r.Fabric.MaxLID())
	for x := range m {
		for y := range n {
			row := g.r.Tables.Row(g.at(x, y))
			for lid := 1; lid <= 2*m*n; lid++ {
				to := (lid - 1) % (m * n)
				switch dx, dy := to/n, to%n; {
				case dx > x:
					row[lid] = 1
				case dx < x:
					row[lid] = 3
				case dy > y:
					row[lid] = 2
				case dy < y:
					row[lid] = 4
				case lid <= m*n:
					row[lid] = 5
				default:
					row[lid] = fabric.ManagementPort
				}
			}
		}
	}
	return g
}

// at is the switch N(x,y), which the generator numbers row by row, x slowest.
func (g *grid) at(x, y int) fabric.NodeID { return fabric.NodeID(x*g.n + y) }

func (g *grid) host(x, y int) fabric.PortID {
	f := g.r.Fabric
	return f.Peer(f.Port(g.at(x, y), 5))
}

// byLID is the hosts with LIDs, ascending.
func (g *grid) byLID(lids ...int) []fabric.PortID {
	list := []fabric.PortID{}
	for _, l := range lids {
		list = append(list, g.r.Fabric.LIDPort(fabric.LID(l)))
	}
	slices.Sort(list)
	return list
}

// masks are the masks of an MLID like the specification prints them:
// "(0,2)2 (0,3)2,5", by x, then y.
func (g *grid) masks(ports []fabric.PortID) string {
	var b []byte
	for x := range g.m {
		for y := range g.n {
			first := true
			for _, p := range ports {
				f := g.r.Fabric
				if f.Owner(p) != g.at(x, y) {
					continue
				}
				if first {
					if len(b) > 0 {
						b = append(b, ' ')
					}
					b = fmt.Appendf(b, "(%d,%d)%d", x, y, f.Num(p))
				} else {
					b = fmt.Appendf(b, ",%d", f.Num(p))
				}
				first = false
			}
		}
	}
	return string(b)
}

func mustBuild(t testing.TB, s mft.Scheme, r *lft.Routing, groups []mft.Group, opt mft.Options) *mft.Plan {
	t.Helper()
	return short.Must(s.Build(t.Context(), r, groups, opt))(t)
}

func mustRefuse(t testing.TB, s mft.Scheme, r *lft.Routing, groups []mft.Group) *mft.RefusedError {
	t.Helper()
	p, err := s.Build(t.Context(), r, groups, mft.Options{})
	var no *mft.RefusedError
	if !errors.As(err, &no) || p != nil {
		t.Fatalf("%s: %v, %v; want a refusal", s.Name(), p, err)
	}
	return no
}
