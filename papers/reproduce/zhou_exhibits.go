package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Worked examples and rules of the mesh papers (X2 to X11).
var zhouExhibits = []Experiment{
	exhibit("deadlock", "Figs. 1 and 2: four packets on a block of switches, with free turns and with XY routing", zhouDeadlock),
	exhibit("negative-first", "Figs. 3 and 4: a multicast with XY and with negative-first routing", zhouNegativeFirst),
	exhibit("lids", "Fig. 5: the LIDs of nodes", zhouLIDs),
	exhibit("paths", "Figs. 6 and 7: ports and paths in a 5x5 mesh", zhouPaths),
	exhibit("masks", "Fig. 9: the multicast forwarding tables of the worked example", zhouMasks),
	exhibit("senders", "Several senders with one multicast LID", zhouSenders),
	exhibit("copying", "Multicast by XY trees: how a switch copies decides on deadlock", zhouCopying),
}

// zhouConferenceExhibits are exhibits that the conference version has, too.
var zhouConferenceExhibits = []Experiment{
	zhouExhibits[0],
	exhibit("lids", "Fig. 3: the LIDs of nodes", zhouLIDs),
	exhibit("paths", "Figs. 4 and 5: ports and paths in a 5x5 mesh", zhouPaths),
	exhibit("masks", "Fig. 7: the multicast forwarding tables of the worked example", zhouMasks),
}

// conferenceExhibitClaims returns the claims about zhouConferenceExhibits.
func conferenceExhibitClaims() []Claim {
	return text.Where(claimsOf(zhouRows...), func(c Claim) bool {
		return slices.ContainsFunc(zhouConferenceExhibits, func(x Experiment) bool { return x.Name == c.Figures[0] })
	})
}

var zhouRows = []rowsClaim{
	{
		spec: "X8", words: "free turns can deadlock, XY routing cannot (figures 1 and 2)", exhibit: "deadlock",
		why: "each packet holds the cable that the one before it wants; XY has no turn from a column into a row, which a cycle needs",
	},
	{
		spec: "X7", words: "with negative-first routing N(3,2) gets a multicast twice, with XY routing once (figures 3 and 4)", exhibit: "negative-first",
		why:    "XY paths from one source never meet again once they have parted, those of adaptive negative-first may",
		differ: []string{"N(3,2) alone gets it twice, in some choice of negative-first paths"}, as: "adaptive negative-first",
	},
	{
		spec: "X2", words: "lid = x*m + y + 1 gives each node of a mesh of m x n a LID of its own (section 3.1)", exhibit: "lids",
		why:    "the number of a column's nodes is n and not m; both are the same in a square mesh (E-X1)",
		differ: []string{"LIDs in a mesh of 4 x 8 by the printed formula", "LIDs in a mesh of 8 x 16 by the printed formula", "LIDs in a mesh of 2 x 3 by the printed formula"},
		as:     "x*n + y + 1",
	},
	{
		spec: "X6", words: "forwarding tables lead along the paths of the path selection scheme (sections 3.2 and 3.3.1)", exhibit: "paths",
		why:    "cases 3 and 4 of section 3.2 have the signs of y exchanged (E-X3); the tables of section 3.3.1 lead to the destination",
		differ: []string{"case 3 as printed leads from N(2,2) to N(0,1)", "case 4 as printed leads from N(2,2) to N(0,3)"},
		as:     "towards the destination's y in cases 3 and 4",
	},
	{
		spec: "X9", words: "the union of output ports delivers a multicast to all destinations (section 3.3.2)", exhibit: "masks",
		why:    "the printed sets have no port to a node's own host, which members need (E-X6)",
		differ: []string{"members that the printed sets reach, of 5"}, as: "with the host's port at each member",
	},
	{
		spec: "X13", words: "masks of one multicast LID serve several sources (as cases 2 and 3 need; the paper gives those of one source)", exhibit: "senders",
		fails: "a table has one mask for a multicast LID, and masks of one source are wrong for another; the union of theirs has loops (E-X8)",
	},
	{
		spec: "X10", words: "XY routing keeps multicast from deadlock (sections 1 and 3)", exhibit: "copying",
		why:    "each copy leaves when its own port has room, and all that a packet holds meanwhile is one buffer (E-X10)",
		differ: copyingRows(false), as: "with virtual cut-through and copies that leave one by one",
	},
}

// zhouMesh compiles a mesh of m columns and n rows, with the papers' LIDs and XY tables.
func zhouMesh(ctx context.Context, m, n int, opt compile.Options) (*compile.Result, error) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{m, n}, Hosts: 1})
	if err != nil {
		return nil, err
	}
	engine, err := compile.EngineByName("xy")
	if err != nil {
		return nil, err
	}
	opt.LIDs.Policy = lft.MeshLIDs
	return compile.Run(ctx, f, engine, opt)
}

// node returns N(x,y) of a generated mesh with n rows.
func node(n, x, y int) fabric.NodeID { return fabric.NodeID(x*n + y) }

// The ports of a switch (figure 6), and the port of its host.
const (
	east fabric.PortNum = iota + 1
	north
	west
	south
	hostPort
)

// hostOf returns the port of the host at a switch of a mesh.
func hostOf(f *fabric.Fabric, s fabric.NodeID) fabric.PortID { return f.Peer(f.Port(s, hostPort)) }

// meshPlace places the switches of a mesh with n rows by their coordinates.
func meshPlace(f *fabric.Fabric, n int) place {
	return func(s fabric.NodeID) (drawing.Spot, bool) {
		x, y := int(s)/n, int(s)%n
		return drawing.Spot{Name: fmt.Sprintf("N(%d,%d)", x, y), X: float64(x), Y: float64(y)}, f.IsSwitch(s)
	}
}

// follow draws the path from a host to a LID.
func (d *plan) follow(t *lft.Tables, from fabric.PortID, to fabric.LID, who string) error {
	path, err := t.Path(d.f, from, to, nil)
	if err != nil {
		return err
	}
	for _, out := range path[1:] {
		d.arrow(out, who, false)
	}
	return nil
}

// zhouTurns are the packets A to D of figure 1, with the port
// that each takes first if turns are free.
var zhouTurns = []struct {
	who    string
	x, y   int
	tx, ty int
	first  fabric.PortNum
}{{"A", 0, 0, 1, 1, east}, {"B", 1, 0, 0, 1, north}, {"C", 1, 1, 0, 0, west}, {"D", 0, 1, 1, 0, south}}

func zhouDeadlock(ctx context.Context, _ *Lab, f *Figure) error {
	r, err := zhouMesh(ctx, 2, 2, compile.Options{})
	if err != nil {
		return err
	}
	fab := r.Routing.Fabric
	free := r.Routing.Tables.Clone()
	names := map[fabric.GUID]string{}
	var packets []sim.Message
	for _, p := range zhouTurns {
		src, dst := hostOf(fab, node(2, p.x, p.y)), hostOf(fab, node(2, p.tx, p.ty))
		free.Row(node(2, p.x, p.y))[fab.LID(dst)] = p.first
		names[fab.Node(fab.Owner(src)).GUID] = p.who
		packets = append(packets, sim.Message{Src: src, DLID: fab.LID(dst), Bytes: 64})
	}
	for _, routing := range []struct {
		figure, name, loops, ends string
		tables                    *lft.Tables
	}{{"Fig. 1", "free turns", "yes", "deadlock", free}, {"Fig. 2", "XY routing", "no", "all arrive", r.Routing.Tables}} {
		v, err := verify.Check(ctx, &state.State{Fabric: fab, Tables: routing.tables}, verify.Options{})
		if err != nil {
			return err
		}
		f.add(routing.figure+", "+routing.name+": verify finds a credit loop", routing.loops, yes(v.CreditLoops.Count > 0))
		cfg := meshHardware()
		cfg.PacketBuffers(1, 64)
		dead, err := lock(ctx, sim.Network{State: state.State{Fabric: fab, Tables: routing.tables}}, cfg, packets)
		if err != nil {
			return err
		}
		f.add(routing.figure+", "+routing.name+": the four packets in the simulator", routing.ends, outcome(dead != nil))
		d := drawFabric(routing.figure+": "+routing.name, fab, meshPlace(fab, 2))
		if dead != nil {
			d.deadlock(dead, func(w *sim.Wait) string { return names[w.Src] })
			d.Notes = append(d.Notes, fmt.Sprintf("The simulator stands still at %s; verify has the cycle of %d channels.", dead.At, len(v.CreditLoops.Cycles[0])))
		} else {
			for i, p := range zhouTurns {
				if err := d.follow(routing.tables, packets[i].Src, packets[i].DLID, p.who); err != nil {
					return err
				}
			}
		}
		f.Drawings = append(f.Drawings, d.Network)
	}
	f.Parameters = []Parameter{{"mesh", "2x2"}, {"packets", "64 bytes each, all sent at time 0"}, {"buffer of a port", "1 packet"}}
	return nil
}

// monotone lists the shortest ways of `right` steps east and `up` steps north.
func monotone(right, up int) [][]fabric.PortNum {
	if right == 0 && up == 0 {
		return [][]fabric.PortNum{nil}
	}
	var list [][]fabric.PortNum
	for _, step := range []struct {
		port      fabric.PortNum
		right, up int
	}{{east, right - 1, up}, {north, right, up - 1}} {
		if step.right < 0 || step.up < 0 {
			continue
		}
		for _, rest := range monotone(step.right, step.up) {
			list = append(list, append([]fabric.PortNum{step.port}, rest...))
		}
	}
	return list
}

// maskOf returns the ports on ways from a switch, and those to the hosts at their ends.
func maskOf(f *fabric.Fabric, from fabric.NodeID, ways [][]fabric.PortNum) []fabric.PortID {
	var ports []fabric.PortID
	for _, way := range ways {
		at := from
		for _, p := range way {
			out := f.Port(at, p)
			ports = append(ports, out)
			at = f.Owner(f.Peer(out))
		}
		ports = append(ports, f.Port(at, hostPort))
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// copies simulates a multicast from a host by masks, and returns by switch how many
// copies its host gets. It ends after 100 µs, as a copy may loop.
func copies(ctx context.Context, f *fabric.Fabric, masks []fabric.PortID, src fabric.PortID) (map[fabric.NodeID]int, error) {
	t := mft.NewTables(f)
	t.Add(mft.MinMLID, masks)
	got := arrivals{f, map[fabric.NodeID]int{}}
	cfg := meshHardware()
	cfg.PacketBuffers(1, 64)
	s, err := sim.New(sim.Network{State: state.State{Fabric: f, Multicast: &mft.Plan{Tables: t}}}, cfg, got)
	if err != nil {
		return nil, err
	}
	if err := s.Send(sim.Message{Src: src, DLID: mft.MinMLID, Bytes: 64}); err != nil {
		return nil, err
	}
	return got.at, s.Run(ctx, 100*sim.Microsecond)
}

// arrivals counts deliveries by switch.
type arrivals struct {
	f  *fabric.Fabric
	at map[fabric.NodeID]int
}

func (a arrivals) Wake(*sim.Sim, int64) {}

func (a arrivals) Deliver(_ *sim.Sim, d *sim.Delivery) { a.at[a.f.Owner(a.f.Peer(d.Port))]++ }

func zhouNegativeFirst(ctx context.Context, _ *Lab, f *Figure) error {
	const n = 4
	r, err := zhouMesh(ctx, n, n, compile.Options{})
	if err != nil {
		return err
	}
	fab := r.Routing.Fabric
	from := node(n, 1, 1)
	to := []fabric.NodeID{node(n, 2, 2), node(n, 3, 2), node(n, 3, 3)}
	count := func(ports []fabric.PortID) ([3]int, error) {
		got, err := copies(ctx, fab, ports, hostOf(fab, from))
		return [3]int{got[to[0]], got[to[1]], got[to[2]]}, err
	}
	var xy [][]fabric.PortNum
	for _, d := range to {
		path, err := r.Routing.Tables.Path(fab, hostOf(fab, from), fab.LID(hostOf(fab, d)), nil)
		if err != nil {
			return err
		}
		xy = append(xy, text.Each(path[1:len(path)-1], fab.Num))
	}
	once, err := count(maskOf(fab, from, xy))
	if err != nil {
		return err
	}
	f.add("XY routing: copies at N(2,2), N(3,2), N(3,3)", "[1 1 1]", once)
	// All destinations are north-east, so that adaptive negative-first takes any
	// shortest way.
	var shown [][]fabric.PortNum
	twice, alone, choices := 0, 0, 0
	for _, p := range monotone(1, 1) {
		for _, q := range monotone(2, 1) {
			for _, way := range monotone(2, 2) {
				got, err := count(maskOf(fab, from, [][]fabric.PortNum{p, q, way}))
				if err != nil {
					return err
				}
				choices++
				if got[1] > 1 {
					twice++
					if shown == nil {
						shown = [][]fabric.PortNum{p, q, way}
					}
				}
				if got == [3]int{1, 2, 1} {
					alone++
				}
			}
		}
	}
	f.add("N(3,2) gets it twice, in some choice of negative-first paths", "yes", yes(twice > 0))
	f.add("N(3,2) alone gets it twice, in some choice of negative-first paths", "yes", yes(alone > 0))
	f.add("choices of paths, and those with two or more copies at N(3,2)", "", fmt.Sprintf("%d, %d", choices, twice))
	nf, err := mesh.NegativeFirst.Route(ctx, fab, lft.Options{})
	if err != nil {
		return err
	}
	trees, err := oneSourceTrees(ctx, nf)
	if err != nil {
		return err
	}
	f.add("deterministic negative-first, each source with all others as its group: all get one copy", "", yes(trees))
	for i, ways := range [][][]fabric.PortNum{xy, shown} {
		d := drawFabric([]string{"Fig. 3: XY routing", "Fig. 4: negative-first routing, one of the choices"}[i], fab, meshPlace(fab, n))
		for k, way := range ways {
			at := from
			for _, p := range way {
				d.arrow(fab.Port(at, p), string("PQR"[k]), false)
				at = fab.Owner(fab.Peer(fab.Port(at, p)))
			}
		}
		f.Drawings = append(f.Drawings, d.Network)
	}
	f.Parameters = []Parameter{{"mesh", "4x4"}, {"multicast", "N(1,1) to N(2,2), N(3,2) and N(3,3)"}}
	return nil
}

// oneSourceTrees returns true if, by the verifier,
// multicast along a routing's paths from any one
// host to all others delivers one copy to each.
func oneSourceTrees(ctx context.Context, r *lft.Routing) (bool, error) {
	for _, src := range r.Fabric.CAPorts() {
		to := slices.DeleteFunc(slices.Clone(r.Fabric.CAPorts()), func(p fabric.PortID) bool { return p == src })
		plan, err := mft.Union{}.Build(ctx, r, []mft.Group{{Name: "all", Senders: []fabric.PortID{src}, Receivers: to}}, mft.Options{})
		if err != nil {
			return false, err
		}
		v, err := verify.Check(ctx, &state.State{Fabric: r.Fabric, Tables: r.Tables, Multicast: plan}, verify.Options{})
		if err != nil {
			return false, err
		}
		if v.Multicast.Missing+v.Multicast.Duplicates+v.Multicast.Loops+v.Multicast.Stray > 0 {
			return false, nil
		}
	}
	return true, nil
}

func zhouLIDs(ctx context.Context, _ *Lab, f *Figure) error {
	for _, m := range []struct {
		m, n  int
		names map[[2]int]string // what the paper has
	}{
		{4, 4, map[[2]int]string{{3, 2}: "15"}},
		{5, 5, map[[2]int]string{{0, 3}: "4", {0, 4}: "5", {3, 3}: "19", {4, 0}: "21", {4, 2}: "23"}},
		{2, 3, nil}, {4, 8, nil}, {8, 16, nil},
	} {
		r, err := zhouMesh(ctx, m.m, m.n, compile.Options{})
		if err != nil {
			return err
		}
		fab := r.Routing.Fabric
		lids, printed := map[fabric.LID]bool{}, map[int]bool{}
		for x := range m.m {
			for y := range m.n {
				lid := fab.LID(hostOf(fab, node(m.n, x, y)))
				lids[lid] = true
				printed[x*m.m+y+1] = true
				if want := m.names[[2]int{x, y}]; want != "" {
					f.add(fmt.Sprintf("N(%d,%d) in a mesh of %d x %d", x, y, m.m, m.n), want, lid)
				}
			}
		}
		if m.m != m.n {
			nodes := fmt.Sprint(m.m * m.n)
			f.add(fmt.Sprintf("LIDs in a mesh of %d x %d by the printed formula", m.m, m.n), nodes, len(printed))
			f.add(fmt.Sprintf("LIDs in a mesh of %d x %d with x*n + y + 1", m.m, m.n), nodes, len(lids))
			continue
		}
		d := drawFabric(fmt.Sprintf("A mesh of %d x %d", m.m, m.n), fab, func(s fabric.NodeID) (drawing.Spot, bool) {
			spot, ok := meshPlace(fab, m.n)(s)
			if ok {
				spot.Name = fmt.Sprint(fab.LID(hostOf(fab, s)))
			}
			return spot, ok
		})
		f.Drawings = append(f.Drawings, d.Network)
	}
	return nil
}

func zhouPaths(ctx context.Context, _ *Lab, f *Figure) error {
	const n = 5
	r, err := zhouMesh(ctx, n, n, compile.Options{})
	if err != nil {
		return err
	}
	fab, tables := r.Routing.Fabric, r.Routing.Tables
	for i, s := range [][2]int{{2, 2}, {1, 2}, {0, 2}} {
		f.add(fmt.Sprintf("port of LID 4 at N(%d,%d)", s[0], s[1]), []string{"3", "3", "2"}[i], tables.Row(node(n, s[0], s[1]))[4])
	}
	d := drawFabric("XY routing from N(2,2)", fab, meshPlace(fab, n))
	from := hostOf(fab, node(n, 2, 2))
	for _, p := range []struct {
		who, ports string
		x, y       int
	}{
		{"P", "2,2_3 1,2_1 1,2_3 0,2_1 0,2_2 0,3_4", 0, 3},
		{"Q", "2,2_3 1,2_1 1,2_3 0,2_1 0,2_2 0,3_4 0,3_2 0,4_4", 0, 4},
		{"R", "2,2_1 3,2_3 3,2_2 3,3_4", 3, 3},
		{"S", "2,2_1 3,2_3 3,2_1 4,2_3", 4, 2},
		{"T", "2,2_1 3,2_3 3,2_1 4,2_3 4,2_4 4,1_2 4,1_4 4,0_2", 4, 0},
	} {
		dlid := fab.LID(hostOf(fab, node(n, p.x, p.y)))
		path, err := tables.Path(fab, from, dlid, nil)
		if err != nil {
			return err
		}
		var ports []string
		for _, out := range path[1 : len(path)-1] {
			for _, at := range []fabric.PortID{out, fab.Peer(out)} {
				s := int(fab.Owner(at))
				ports = append(ports, fmt.Sprintf("%d,%d_%d", s/n, s%n, fab.Num(at)))
			}
		}
		f.add(fmt.Sprintf("ports to N(%d,%d), path %s", p.x, p.y, p.who), p.ports, strings.Join(ports, " "))
		if err := d.follow(tables, from, dlid, p.who); err != nil {
			return err
		}
	}
	// The cases of section 3.2 as printed: y goes up in case 3 and down in case 4.
	for i, c := range []struct{ x, y, step int }{{0, 1, 1}, {0, 3, -1}} {
		y := 2
		for range n {
			if y == c.y || y < 0 || y >= n {
				break
			}
			y += c.step
		}
		f.add(fmt.Sprintf("case %d as printed leads from N(2,2) to N(%d,%d)", i+3, c.x, c.y), "yes", yes(y == c.y))
	}
	f.Drawings = []drawing.Network{d.Network}
	return nil
}

// zhouGroup is the group of figure 9.
var zhouGroup = [][2]int{{0, 3}, {0, 4}, {3, 3}, {4, 0}, {4, 2}}

func exampleGroup(f *fabric.Fabric, senders ...[2]int) []mft.Group {
	ports := func(list [][2]int) (ports []fabric.PortID) {
		for _, c := range list {
			ports = append(ports, hostOf(f, node(5, c[0], c[1])))
		}
		slices.Sort(ports)
		return ports
	}
	return []mft.Group{{Name: "fig9", Senders: ports(senders), Receivers: ports(zhouGroup)}}
}

func zhouMasks(ctx context.Context, _ *Lab, f *Figure) error {
	const n = 5
	r, err := zhouMesh(ctx, n, n, compile.Options{Groups: func(f *fabric.Fabric) ([]mft.Group, error) { return exampleGroup(f, [2]int{2, 2}), nil }, Multicast: "union"})
	if err != nil {
		return err
	}
	fab, mlid := r.Routing.Fabric, r.Plan.Trees[0].MLID
	d := drawFabric("The tree of N(2,2)", fab, meshPlace(fab, n))
	var printed []fabric.PortID
	for _, row := range []struct {
		x, y int
		mask string
	}{{2, 2, "1 3"}, {1, 2, "3"}, {0, 2, "2"}, {0, 3, "2"}, {3, 2, "1 2"}, {4, 2, "4"}, {4, 1, "4"}} {
		s := node(n, row.x, row.y)
		for _, p := range strings.Fields(row.mask) {
			printed = append(printed, fab.Port(s, fabric.PortNum(p[0]-'0')))
		}
		var mask []string
		for _, p := range r.Plan.Tables.Mask(s, mlid) {
			if fab.Num(p) != hostPort {
				mask = append(mask, fmt.Sprint(fab.Num(p)))
				d.arrow(p, "M", false)
			}
		}
		f.add(fmt.Sprintf("output ports of N(%d,%d) to other nodes", row.x, row.y), row.mask, strings.Join(mask, " "))
	}
	slices.Sort(printed)
	got, err := copies(ctx, fab, printed, hostOf(fab, node(n, 2, 2)))
	if err != nil {
		return err
	}
	f.add("members that the printed sets reach, of 5", "5", len(got))
	ours, err := copies(ctx, fab, r.Plan.Tables.Ports(mlid), hostOf(fab, node(n, 2, 2)))
	if err != nil {
		return err
	}
	f.add("members that compiled masks reach, of 5", "5", len(ours))
	f.Drawings = []drawing.Network{d.Network}
	return nil
}

func zhouSenders(ctx context.Context, _ *Lab, f *Figure) error {
	const n = 5
	all := append([][2]int{{2, 2}}, zhouGroup...)
	groups := func(f *fabric.Fabric) ([]mft.Group, error) { return exampleGroup(f, all...), nil }
	each, err := zhouMesh(ctx, n, n, compile.Options{Groups: groups, Multicast: "union"})
	if err != nil {
		return err
	}
	byRow, err := zhouMesh(ctx, n, n, compile.Options{Groups: groups, Multicast: "union-row"})
	if err != nil {
		return err
	}
	fab, tables := each.Routing.Fabric, each.Routing.Tables
	group := exampleGroup(fab, all...)[0]
	check := func(what, paper string, masks *mft.Tables, trees []mft.Tree) error {
		v, err := verify.Check(ctx, &state.State{Fabric: fab, Tables: tables, Multicast: &mft.Plan{Tables: masks, Trees: trees}}, verify.Options{})
		if err != nil {
			return err
		}
		m := v.Multicast
		f.add(what, paper, fmt.Sprintf("%d lost, %d twice, %d senders loop", m.Missing, m.Duplicates, m.Loops))
		return nil
	}
	one := mft.Tree{Name: group.Name, MLID: mft.MinMLID, Senders: group.Senders, Receivers: group.Receivers}
	const clean = "0 lost, 0 twice, 0 senders loop"
	var union []fabric.PortID
	for _, t := range each.Plan.Trees {
		masks := mft.NewTables(fab)
		masks.Add(one.MLID, each.Plan.Tables.Ports(t.MLID))
		union = append(union, each.Plan.Tables.Ports(t.MLID)...)
		if t.Senders[0] != hostOf(fab, node(n, 2, 2)) {
			continue
		}
		if err := check("six senders with the masks of N(2,2)", clean, masks, []mft.Tree{one}); err != nil {
			return err
		}
	}
	slices.Sort(union)
	masks := mft.NewTables(fab)
	masks.Add(one.MLID, slices.Compact(union))
	if err := check("six senders with the union of their masks", clean, masks, []mft.Tree{one}); err != nil {
		return err
	}
	if err := check("six senders with a multicast LID each", "", each.Plan.Tables, each.Plan.Trees); err != nil {
		return err
	}
	if err := check(fmt.Sprintf("six senders with a multicast LID for each row, %d of them", len(byRow.Plan.Trees)), "", byRow.Plan.Tables, byRow.Plan.Trees); err != nil {
		return err
	}
	d := drawFabric("The union of the masks of six senders", fab, meshPlace(fab, n))
	for _, p := range masks.Ports(one.MLID) {
		d.arrow(p, "M", false)
	}
	f.Drawings = []drawing.Network{d.Network}
	f.Parameters = []Parameter{{"mesh", "5x5"}, {"group", "of figure 9; N(2,2) and the members send"}}
	return nil
}

// zhouKnots are multicasts that deadlock if switches do not copy as InfiniBand's do.
var zhouKnots = []struct {
	name      string
	m, n      int
	packets   []knotPacket
	copying   sim.Copying
	verifying verify.Copying
}{
	{"two on a line of 4, wormhole", 1, 4, []knotPacket{{0, 1, [][2]int{{0, 0}, {0, 3}}}, {0, 2, [][2]int{{0, 0}, {0, 3}}}}, sim.Wormhole, verify.Wormhole},
	{"two in a mesh of 2x2, wormhole", 2, 2, []knotPacket{{0, 0, [][2]int{{0, 1}, {1, 1}}}, {1, 0, [][2]int{{0, 1}, {1, 1}}}}, sim.Wormhole, verify.Wormhole},
	{"four in a mesh of 3x4, all ports of a packet reserved together", 3, 4, []knotPacket{
		{1, 3, [][2]int{{1, 0}}}, {0, 1, [][2]int{{1, 2}, {1, 0}}}, {2, 2, [][2]int{{1, 3}, {1, 1}}}, {1, 1, [][2]int{{1, 3}}},
	}, sim.Reserving, verify.Reserving},
	{"three in a mesh of 2x4, copies in step", 2, 4, []knotPacket{
		{0, 0, [][2]int{{1, 1}, {1, 3}}}, {0, 1, [][2]int{{1, 3}}}, {0, 1, [][2]int{{1, 3}, {1, 1}}},
	}, sim.LockStep, verify.LockStep},
}

// knotPacket is a packet from N(x,y) to some nodes.
type knotPacket struct {
	x, y int
	to   [][2]int
}

// copyingRows names the rows of zhouCopying in which copies leave one by one, or else the others.
func copyingRows(independent bool) (names []string) {
	for _, k := range zhouKnots {
		if independent {
			names = append(names, k.name+"; but with copies that leave one by one")
		} else {
			names = append(names, k.name)
		}
	}
	return names
}

func zhouCopying(ctx context.Context, _ *Lab, f *Figure) error {
	for i, k := range zhouKnots {
		r, err := zhouMesh(ctx, k.m, k.n, compile.Options{Multicast: "union", Groups: func(f *fabric.Fabric) (groups []mft.Group, err error) {
			for i, p := range k.packets {
				g := mft.Group{Name: fmt.Sprint(i), Senders: []fabric.PortID{hostOf(f, node(k.n, p.x, p.y))}}
				for _, d := range p.to {
					g.Receivers = append(g.Receivers, hostOf(f, node(k.n, d[0], d[1])))
				}
				slices.Sort(g.Receivers)
				groups = append(groups, g)
			}
			return groups, nil
		}})
		if err != nil {
			return err
		}
		fab := r.Routing.Fabric
		var messages []sim.Message
		names := map[fabric.LID]string{}
		for _, t := range r.Plan.Trees {
			messages = append(messages, sim.Message{Src: t.Senders[0], DLID: t.MLID, Bytes: 8})
			names[t.MLID] = string(rune('A' + t.Group))
		}
		for _, c := range []struct {
			copying sim.Copying
			check   verify.Copying
			row     string
		}{{k.copying, k.verifying, copyingRows(false)[i]}, {sim.Independent, verify.Independent, copyingRows(true)[i]}} {
			cfg := sim.Config{Mbps: 8000, FlitBytes: 1, BufferFlits: 8, Copying: c.copying, RoutingDelay: sim.Nanosecond, Arbitration: sim.LowestPort}
			if c.copying == sim.Wormhole {
				cfg.BufferFlits = 1
			}
			dead, err := lock(ctx, sim.Network{State: state.State{Fabric: fab, Multicast: r.Plan}}, cfg, messages)
			if err != nil {
				return err
			}
			f.add(c.row, outcome(false), outcome(dead != nil))
			v, err := verify.Check(ctx, &state.State{Fabric: fab, Tables: r.Routing.Tables, Multicast: r.Plan}, verify.Options{Copying: c.check})
			if err != nil {
				return err
			}
			f.add(c.row+": verify finds a credit loop", "", yes(v.Multicast.CreditLoops > 0))
			if dead == nil {
				continue
			}
			d := drawFabric(k.name, fab, meshPlace(fab, k.n))
			d.deadlock(dead, func(w *sim.Wait) string { return names[w.DLID] })
			f.Drawings = append(f.Drawings, d.Network)
		}
	}
	f.Parameters = []Parameter{{"packets", "8 flits, all sent at time 0"}, {"buffer of a port", "1 flit with wormhole, else a packet"}}
	return nil
}
