package mft_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// TestPaperUnion is the worked example of Zhou, Liu and Chung (figure 7 and its
// table), source N(2,2) and DLIDs 4, 5, 19, 21 and 23 on a mesh of 5x5, with the
// ports of the hosts that the paper's table lacks (G-X4, E-X6).
func TestPaperUnion(t *testing.T) {
	g := newGrid(t, 5, 5)
	group := mft.Group{Name: "paper", Receivers: g.byLID(4, 5, 19, 21, 23), Senders: g.byLID(13)}
	p := mustBuild(t, mft.Union{}, g.r, []mft.Group{group}, mft.Options{})
	ports := p.Tables.Ports(p.Trees[0].MLID)
	const want = "(0,2)2 (0,3)2,5 (0,4)5 (1,2)3 (2,2)1,3 (3,2)1,2 (3,3)5 (4,0)5 (4,1)4 (4,2)4,5"
	short.Equal(t, g.masks(ports), want, "masks")
	mustBeExact(t, []mft.Group{group}, p)
	fl := newFlood(g.r.Fabric, ports, group.Senders[0])
	short.Equal(t, len(fl.links), 9, "links crossed, want 9")
	c := short.Must(mft.Measure(t.Context(), g.r, p))(t)
	short.Equal(t, c.Trees[0], (mft.TreeCost{Links: 9, Depth: 4, Crossings: 9, Unicast: 15}), "cost")

	// Any other sender on that MLID loses members silently (G-X5).
	for _, x := range []struct {
		x, y  int
		reach []int
	}{
		{0, 3, []int{5}}, {0, 4, nil}, {3, 3, nil}, {4, 0, nil}, {4, 2, []int{21}}, {3, 2, []int{19, 21, 23}},
		{0, 2, []int{4, 5}}, {1, 2, []int{4, 5}},
	} {
		fl := newFlood(g.r.Fabric, ports, g.host(x.x, x.y))
		var got []int
		for d := range fl.copies {
			got = append(got, int(g.r.Fabric.LID(d)))
		}
		slices.Sort(got)
		short.EqualList(t, got, x.reach, "from N", x.x, x.y, "packets reach")
	}
}

// TestPaperRows has all six nodes of the example send. Their paths on one MLID
// loop from each of them; an MLID for each row is exact (G-X6).
func TestPaperRows(t *testing.T) {
	g := newGrid(t, 5, 5)
	all := g.byLID(4, 5, 13, 19, 21, 23)
	groups := []mft.Group{{Name: "paper", Receivers: g.byLID(4, 5, 19, 21, 23), Senders: all}}
	one := mustBuild(t, mft.UnionRow{Class: make([]int32, 25)}, g.r, groups, mft.Options{})
	if len(one.Trees) == 1 {
		t.Error("all senders on one MLID")
	}
	mustBeExact(t, groups, one)

	var merged []fabric.PortID
	single := mustBuild(t, mft.Union{}, g.r, groups, mft.Options{})
	for _, x := range single.Tables.MLIDs() {
		merged = append(merged, single.Tables.Ports(x)...)
	}
	for _, s := range all {
		short.Equal(t, newFlood(g.r.Fabric, merged, s).verdict(s, groups[0].Receivers), "loop", "all on one MLID, from", g.r.Fabric.PortName(s))
	}

	for _, s := range []mft.Scheme{mft.UnionRow{Class: g.rows}, mft.UnionMerge{}} {
		p := mustBuild(t, s, g.r, groups, mft.Options{})
		mustBeExact(t, groups, p)
		var masks []string
		for _, x := range p.Trees {
			masks = append(masks, g.masks(p.Tables.Ports(x.MLID)))
		}
		short.MustEqual(t, len(masks), 4, s.Name(), "MLIDs, want 4")
		for _, want := range []string{
			"(0,2)2 (0,3)2,5 (0,4)5 (1,2)3 (2,2)1,3 (3,2)1,2,3 (3,3)5 (4,0)5 (4,1)4 (4,2)3,4,5",
			"(0,3)1,2,5 (0,4)5 (1,3)1,3 (2,3)1,3 (3,3)1,3,5 (4,0)5 (4,1)4 (4,2)4,5 (4,3)4",
		} {
			if !slices.Contains(masks, want) {
				t.Errorf("%s: no masks\n%s in\n%s", s.Name(), want, strings.Join(masks, "\n"))
			}
		}
	}
}

// TestSmallest is the smallest groups whose senders cannot share an MLID, and
// what is printed (G-X7).
func TestSmallest(t *testing.T) {
	g := newGrid(t, 2, 2)
	a, b, c := g.host(0, 0), g.host(0, 1), g.host(1, 0)
	d := g.host(1, 1)
	for _, x := range []struct {
		name               string
		receivers, senders []fabric.PortID
		masks, verdict     string
		want               string
	}{
		{"loop", []fabric.PortID{a, d}, []fabric.PortID{a, d}, "(0,0)1,5 (0,1)4 (1,0)2 (1,1)3,5", "loop",
			`packets of sender "host 0,0"[1] loop: ` +
				`"switch 0,0"[1], "switch 1,0"[2], "switch 1,1"[3], "switch 0,1"[4] and "switch 0,0"[1] again`},
		{"duplicate", []fabric.PortID{a, b, c}, []fabric.PortID{a, b}, "(0,0)1,2,5 (0,1)1,4,5 (1,0)5 (1,1)4", "duplicate",
			`two copies of a packet of sender "host 0,0"[1] ` +
				`go out by "switch 1,0"[5], after "switch 0,0"[1] and after "switch 0,0"[2], "switch 0,1"[1], "switch 1,1"[4]`},
		{"two", []fabric.PortID{a, c}, []fabric.PortID{a, b}, "", "",
			`two copies of a packet of sender "host 0,1"[1] ` +
				`go out by "switch 1,0"[5], after "switch 0,1"[1], "switch 1,1"[4] and after "switch 0,1"[4], "switch 0,0"[1]`},
	} {
		slices.Sort(x.receivers)
		groups := []mft.Group{{Name: x.name, Receivers: x.receivers, Senders: x.senders}}
		p := mustBuild(t, mft.Union{}, g.r, groups, mft.Options{})
		mustBeExact(t, groups, p)
		both := g.shared(p)
		why := ""
		for _, s := range x.senders {
			if why == "" {
				why = mft.Inexact(g.r.Fabric, both, s, x.receivers)
			}
		}
		short.Equal(t, why, x.want, x.name)
		if got := g.masks(both); x.masks != "" && got != x.masks {
			t.Errorf("%s: masks %s, want %s", x.name, got, x.masks)
		}
		for _, s := range x.senders {
			if v := newFlood(g.r.Fabric, both, s).verdict(s, x.receivers); x.verdict != "" && v != x.verdict {
				t.Errorf("%s from %s: %s", x.name, g.r.Fabric.PortName(s), v)
			}
		}
	}
}

// shared is all masks of a plan in one.
func (g *grid) shared(p *mft.Plan) (ports []fabric.PortID) {
	for _, l := range p.Tables.MLIDs() {
		ports = append(ports, p.Tables.Ports(l)...)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// hosts is a subset of all hosts, ascending.
func (g *grid) hosts(set int) []fabric.PortID {
	var list []fabric.PortID
	for i := range g.m * g.n {
		if set>>i&1 != 0 {
			list = append(list, g.host(i/g.n, i%g.n))
		}
	}
	slices.Sort(list)
	return list
}

// TestPairs is all groups of small meshes with all pairs of members that send:
// they can share an MLID in one row, and when the group is in one column;
// otherwise packets loop when the columns differ and arrive twice when they do
// not (E-X8, G-X7).
func TestPairs(t *testing.T) {
	for _, dims := range [][2]int{{1, 4}, {4, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}, {2, 4}, {4, 2}} {
		g := newGrid(t, dims[0], dims[1])
		m, n := g.m, g.n
		var groups []mft.Group
		var wants []string
		for a := range m * n {
			for b := range a {
				for set := range 1 << (m * n) {
					if set>>a&1 == 0 || set>>b&1 == 0 {
						continue
					}
					oneColumn := true
					for i := range m * n {
						oneColumn = oneColumn && (set>>i&1 == 0 || i/n == a/n)
					}
					want := "loop"
					switch {
					case a%n == b%n || oneColumn:
						want = "exact"
					case a/n == b/n:
						want = "duplicate"
					}
					groups = append(groups, mft.Group{Receivers: g.hosts(set), Senders: g.hosts(1<<a | 1<<b)})
					wants = append(wants, want)
				}
			}
		}
		count := map[string]int{}
		const batch = 5000 // groups, so that all MLIDs suffice
		for at := 0; at < len(groups); at += batch {
			part := groups[at:min(at+batch, len(groups))]
			single := mustBuild(t, mft.Union{}, g.r, part, mft.Options{})
			merged := mustBuild(t, mft.UnionMerge{}, g.r, part, mft.Options{})
			both := make([][]fabric.PortID, len(part))
			trees := make([]int, len(part))
			for i := range single.Trees {
				x := &single.Trees[i]
				both[x.Group] = append(both[x.Group], single.Tables.Ports(x.MLID)...)
			}
			for i := range merged.Trees {
				trees[merged.Trees[i].Group]++
			}
			for i := range part {
				want := wants[at+i]
				count[want]++
				for _, s := range part[i].Senders {
					short.MustEqual(t, newFlood(g.r.Fabric, both[i], s).verdict(s, part[i].Receivers), want, m, "x", n, "group", part[i], "from", s)
				}
				if (trees[i] == 1) != (want == "exact") {
					t.Fatalf("%dx%d, group %+v: %d MLIDs, the union of both is %s", m, n, part[i], trees[i], want)
				}
			}
		}
		if m == 3 && n == 3 && (count["exact"] != 1152+18 || count["loop"] != 2304 || count["duplicate"] != 1134) {
			t.Errorf("3x3: %v", count)
		}
	}
}

// TestRows is all groups of 3x3 with all hosts sending: an MLID for each row,
// and the links that packets cross are as many as with an MLID for each sender
// (G-X7, X11). Every 16th group of 4x3 and 3x4.
func TestRows(t *testing.T) {
	for _, x := range []struct{ m, n, step int }{{3, 3, 1}, {4, 3, 16}, {3, 4, 16}} {
		g := newGrid(t, x.m, x.n)
		all := g.hosts(1<<(x.m*x.n) - 1)
		cases := 0
		for from := 1; from < 1<<(x.m*x.n); from += 100 * x.step {
			var groups []mft.Group
			for set := from; set < min(from+100*x.step, 1<<(x.m*x.n)); set += x.step {
				groups = append(groups, mft.Group{Name: fmt.Sprint(set), Receivers: g.hosts(set), Senders: all})
			}
			p := mustBuild(t, mft.UnionRow{Class: g.rows}, g.r, groups, mft.Options{})
			mustBeExact(t, groups, p)
			if len(p.Trees) != len(groups)*x.n || len(p.Notes) > 0 {
				t.Fatalf("%d trees for %d groups, notes %q", len(p.Trees), len(groups), p.Notes)
			}
			rows, single := crossings(p), crossings(mustBuild(t, mft.Union{}, g.r, groups, mft.Options{}))
			short.EqualList(t, rows, single, x.m, "x", x.n, "groups from", from, "links crossed")
			cases += len(groups) * len(all)
		}
		if x.step == 1 && cases != 4599 {
			t.Errorf("%d cases, want 4599", cases)
		}
	}
}

// crossings is by group and sender, ascending, the links that a packet crosses.
func crossings(p *mft.Plan) []string {
	var list []string
	for i := range p.Trees {
		x := &p.Trees[i]
		for _, s := range x.Senders {
			n := 0
			for _, k := range newFlood(p.Tables.Fabric(), p.Tables.Ports(x.MLID), s).links {
				n += k
			}
			list = append(list, fmt.Sprintf("%d from %d: %d", x.Group, s, n))
		}
	}
	slices.Sort(list)
	return list
}

// TestAllToAll is 256 senders in one group on 16x16: MLIDs (G-X11) and loads
// (B9).
func TestAllToAll(t *testing.T) {
	g := newGrid(t, 16, 16)
	all := g.r.Fabric.CAPorts()
	groups := []mft.Group{{Name: "all", Receivers: all, Senders: all}}
	for _, x := range short.Part(3, []struct {
		scheme mft.Scheme
		mlids  int
	}{
		{mft.OpenSM{}, 1}, {mft.UnionRow{Class: g.rows}, 16}, {mft.UnionMerge{}, 16},
		{mft.Union{}, 256}, {mft.UnionRow{}, 256},
	}) {
		p := mustBuild(t, x.scheme, g.r, groups, mft.Options{})
		short.Equal(t, len(p.Trees), x.mlids, x.scheme.Name(), "MLIDs")
		mustBeExact(t, groups, p)
		c := short.Must(mft.Measure(t.Context(), g.r, p))(t)
		if c.Crossings != 65_280 || c.Unicast != 696_320 || c.MaxHost != 255 {
			t.Errorf("%s: %d links crossed, with unicast %d, and %d packets for a host; want 65280, 696320, 255", x.scheme.Name(), c.Crossings, c.Unicast, c.MaxHost)
		}
		if x.scheme.Name() != "opensm" && (c.MaxLink != 240 || c.Load[c.Hottest] != 240) {
			t.Errorf("%s: %d packets on the hottest link, want 240", x.scheme.Name(), c.MaxLink)
		}
	}
}

// TestNegativeFirst is the paper's figure 4: of the 36 ways to choose minimal
// negative-first paths from N(1,1) to (2,2), (3,2) and (3,3), 24 bring some
// receiver two copies (G-X8). XY has one way.
func TestNegativeFirst(t *testing.T) {
	g := newGrid(t, 4, 4)
	group := mft.Group{Name: "figure 4", Senders: []fabric.PortID{g.host(1, 1)}}
	ends := [3][2]int{{2, 2}, {3, 2}, {3, 3}}
	for _, e := range ends {
		group.Receivers = append(group.Receivers, g.host(e[0], e[1]))
	}
	slices.Sort(group.Receivers)
	p := mustBuild(t, mft.Union{}, g.r, []mft.Group{group}, mft.Options{})
	mustBeExact(t, []mft.Group{group}, p)
	short.Equal(t, g.masks(p.Tables.Ports(0xc001)), "(1,1)1 (2,1)1,2 (2,2)5 (3,1)2 (3,2)2,5 (3,3)5", "masks")

	copies := map[[3]int]int{}
	refused := 0
	for a := range 1 << 2 {
		for b := range 1 << 3 {
			for c := range 1 << 4 {
				r := *g.r
				r.Tables = lft.NewTables(16, g.r.Fabric.MaxLID())
				ok := true
				for k, steps := range [3]int{a, b, c} {
					ok = ok && g.path(r.Tables, ends[k], steps)
				}
				if !ok {
					continue
				}
				var union []fabric.PortID
				for k, steps := range [3]int{a, b, c} {
					union = append(union, g.steps(ends[k], steps)...)
				}
				fl := newFlood(g.r.Fabric, union, group.Senders[0])
				var got [3]int
				for k, e := range ends {
					got[k] = fl.copies[g.host(e[0], e[1])]
				}
				copies[got]++
				if got == [3]int{1, 1, 1} {
					mustBeExact(t, []mft.Group{group}, mustBuild(t, mft.Union{}, &r, []mft.Group{group}, mft.Options{}))
				} else {
					refused++
					no := mustRefuse(t, mft.Union{}, &r, []mft.Group{group})
					if !strings.Contains(no.Reason, "two copies") || !slices.Equal(no.Suggest, []string{"updn-tree"}) {
						t.Errorf("%v", no)
					}
				}
			}
		}
	}
	want := map[[3]int]int{{1, 1, 1}: 12, {2, 2, 2}: 12, {1, 2, 2}: 4, {2, 3, 3}: 4, {2, 1, 2}: 2, {2, 2, 1}: 2}
	for k, n := range copies {
		short.Equal(t, want[k], n, "choices with copies", k)
	}
	short.Equal(t, refused, 24, "choices refused, want 24")
}

// steps is the ports on a path from N(1,1) to an end that steps east where a bit
// of steps is set, else north, and to the host; nil when that leads elsewhere.
func (g *grid) steps(end [2]int, steps int) []fabric.PortID {
	f := g.r.Fabric
	var ports []fabric.PortID
	x, y := 1, 1
	for i := range end[0] + end[1] - 2 {
		if steps>>i&1 != 0 {
			ports = append(ports, f.Port(g.at(x, y), 1))
			x++
		} else {
			ports = append(ports, f.Port(g.at(x, y), 2))
			y++
		}
		if x > end[0] || y > end[1] {
			return nil
		}
	}
	return append(ports, f.Port(g.at(x, y), 5))
}

// path writes the path of steps into tables.
func (g *grid) path(tables *lft.Tables, end [2]int, steps int) bool {
	list := g.steps(end, steps)
	for _, p := range list {
		f := g.r.Fabric
		tables.Row(f.Owner(p))[f.LID(g.host(end[0], end[1]))] = f.Num(p)
	}
	return list != nil
}

// TestNoPath is tables with holes.
func TestNoPath(t *testing.T) {
	for _, x := range []struct {
		name string
		spot func(g *grid)
		want string
	}{
		{"no entry", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = fabric.NoPath },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: "switch 1,0" has no entry for LID 4; use updn-tree`},
		{"no such port", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = 9 },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: "switch 1,0" sends LID 4 to port 9, which it does not have; use updn-tree`},
		{"loop", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = 3 },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: the packet for LID 4 loops at "switch 0,0"; use updn-tree`},
		{"another host", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = 5 },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: the packet for LID 4 comes to "host 1,0"[1], which has another LID; use updn-tree`},
		{"port 0", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = 0 },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: "switch 1,0" takes LID 4 for its own; use updn-tree`},
		{"no cable", func(g *grid) { g.r.Tables.Row(g.at(1, 0))[4] = 4 },
			`union cannot serve group g: sender "host 0,0"[1] has no unicast path to receiver "host 1,1"[1]: "switch 1,0" sends LID 4 to port 4, which has no cable; use updn-tree`},
	} {
		g := newGrid(t, 2, 2)
		x.spot(g)
		groups := []mft.Group{{Name: "g", Receivers: g.byLID(1, 4), Senders: g.byLID(1)}}
		if no := mustRefuse(t, mft.Union{}, g.r, groups); no.Error() != x.want {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, no, x.want)
		}
		no := mustRefuse(t, mft.UnionMerge{}, g.r, groups)
		short.Equal(t, strings.Replace(no.Error(), "union-merge", "union", 1), x.want, x.name, no)
	}
}

// TestMergeNoWorse has few receivers and other hosts that send: more than a row
// of them can share an MLID. It holds the MLIDs, summed over groups, at what they
// are.
func TestMergeNoWorse(t *testing.T) {
	g := newGrid(t, 5, 5)
	total := map[string]int{}
	for seed := range short.Of(uint64(40), 8) {
		groups := randomGroups(g.r.Fabric, 30, 3, seed)
		for i, senders := range randomGroups(g.r.Fabric, 30, 2+int(seed)/2, seed+100) {
			groups[i].Senders = senders.Senders
		}
		count := func(s mft.Scheme) []int {
			list := make([]int, len(groups))
			p := mustBuild(t, s, g.r, groups, mft.Options{})
			mustBeExact(t, groups, p)
			for i := range p.Trees {
				list[p.Trees[i].Group]++
			}
			return list
		}
		single, rows := count(mft.Union{}), count(mft.UnionRow{Class: g.rows})
		merged := count(mft.UnionMerge{})
		for i := range groups {
			if max(merged[i], rows[i]) > single[i] {
				t.Fatalf("seed %d, group %d: %d MLIDs; %d by row, %d single", seed, i, merged[i], rows[i], single[i])
			}
			total["single"] += single[i]
			total["rows"] += rows[i]
			total["merged"] += merged[i]
		}
	}
	if total["merged"] > short.Of(4722, 563) || total["rows"] != short.Of(5239, 656) || total["single"] != short.Of(13800, 840) {
		t.Errorf("%v", total)
	}
}
