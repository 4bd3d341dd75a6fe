package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// compiled routes a fabric and makes what a page shows of it.
func compiled(t testing.TB, f *fabric.Fabric, engine string, opt compile.Options) *Input {
	t.Helper()
	r := fabrictest.Compile(t, f, engine, opt)
	in := &Input{
		Title: engine, Version: "test", State: state.Of(r.Routing), Result: r.Verify, Rules: verify.Rules,
	}
	in.Multicast = r.Plan
	shape := cabling.Recognize(in.Fabric)
	in.Shape, in.Levels = shape.String(), shape.Level()
	if len(shape.Dims) > 0 {
		if g, err := mesh.Detect(in.Fabric, mesh.DetectOptions{}); err == nil {
			in.Grid = &Grid{Dims: g.Dims, Wrap: g.Wrap}
			for s := range fabric.NodeID(in.Fabric.NumSwitches()) {
				in.Grid.Coord = append(in.Grid.Coord, g.Coord(s)...)
			}
		}
	}
	return in
}

// withGroups has two multicast groups: everybody, and one sender.
func withGroups(f *fabric.Fabric) ([]mft.Group, error) {
	all := slices.Clone(f.CAPorts())
	slices.Sort(all)
	return []mft.Group{
		{Name: "everybody", Receivers: all, Senders: all},
		{Name: "one sender", Receivers: []fabric.PortID{all[1], all[4], all[len(all)-1]}, Senders: all[:1]},
	}, nil
}

// broken changes entries of the tables at random, into ports that may not be, no path
// and the switch itself, and SL-to-VL tables, and checks them again.
func broken(t testing.TB, in *Input, entries int, seed uint64) *Input {
	t.Helper()
	f := in.Fabric
	tables := lft.NewTables(f.NumSwitches(), in.Tables.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		copy(tables.Row(s), in.Tables.Row(s))
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range entries {
		s := fabric.NodeID(rng.IntN(f.NumSwitches()))
		row := tables.Row(s)
		lid := 1 + rng.IntN(len(row)-1)
		row[lid] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 3))
		if rng.IntN(4) == 0 {
			row[lid] = fabric.NoPath
		}
	}
	c := copyOf(in)
	c.Tables, c.Multicast = tables, nil
	if in.SL2VL != nil {
		// Lanes that depend on the way in.
		c.SL2VL = in.SL2VL.Clone()
		for s := range fabric.NodeID(f.NumSwitches()) {
			ports := f.Node(s).NumPorts
			for out := range ports {
				for way := range ports + 1 {
					c.SL2VL.Set(way, f.Port(s, out+1), lft.ConstantVL(fabric.VL(rng.IntN(8))))
				}
			}
		}
	}
	var err error
	if c.Result, err = verify.Check(context.Background(), &state.State{Fabric: f, Tables: tables, SL2VL: c.SL2VL, PathSLs: c.PathSLs}, verify.Options{}); err != nil {
		t.Fatal(err)
	}
	return &c
}

// inputs are pages of several shapes, sound ones and others; made once, and not to be
// changed.
func inputs(t testing.TB) map[string]*Input {
	if inputsMade != nil {
		return inputsMade
	}
	lattice := short.Must(gen.Lattice(40, 7))(t)
	irregular := compiled(t, lattice, "minhop", compile.Options{LIDs: lft.LIDOptions{LMC: 1}})
	inputsMade = map[string]*Input{
		"torus with lanes":  compiled(t, fabrictest.Grid(t, 1, true, 6, 6), "xy", compile.Options{}),
		"torus with a loop": compiled(t, fabrictest.Grid(t, 1, true, 6, 6), "minhop", compile.Options{}),
		"mesh with groups":  compiled(t, fabrictest.Grid(t, 1, false, 5, 4), "xy", compile.Options{Groups: withGroups}),
		"cube":              compiled(t, fabrictest.Grid(t, 2, false, 3, 3, 4), "updn", compile.Options{}),
		"ring":              compiled(t, fabrictest.Grid(t, 3, true, 7), "updn", compile.Options{}),
		"fat tree":          compiled(t, fabrictest.FatTree(t, 8, 3), "updn", compile.Options{}),
		"lattice":           irregular,
		"broken lattice":    broken(t, irregular, 300, 3),
		"broken torus":      broken(t, compiled(t, fabrictest.Grid(t, 1, true, 4, 4), "xy", compile.Options{}), 40, 5),
	}
	return inputsMade
}

var inputsMade map[string]*Input

// TestLoads holds the routes on every channel against walking every pair.
// copyOf returns an input with a state of its own.
func copyOf(in *Input) Input {
	c, s := *in, *in.State
	c.State = &s
	return c
}

func TestLoads(t *testing.T) {
	for name, in := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			f := in.Fabric
			got := short.Must(lft.ChannelLoads(context.Background(), f, in.Tables))(t)
			want := make([]int64, f.NumPorts())
			plain := copyOf(in)
			plain.SL2VL, plain.PathSLs = nil, nil // lanes drop nothing here
			for _, src := range f.CAPorts() {
				for _, dst := range f.CAPorts() {
					for k := range fabric.LID(1) << f.LMC(dst) {
						if path := plain.Path(src, f.LID(dst)+k); src != dst && path.Lost == "" {
							for _, h := range path.Hops {
								want[h.Out]++
							}
						}
					}
				}
			}
			short.Diff(t, got, want)
			s := short.Must(newScene(context.Background(), in))(t)
			if b := in.Result.Balance; s.max != b.MaxRoutes || math.Abs(s.mean-b.MeanRoutes) > 1e-9 {
				t.Errorf("at most %d, mean %v; verify has %d and %v", s.max, s.mean, b.MaxRoutes, b.MeanRoutes)
			}
		})
	}
}

// TestPath holds the number of lost and looping pairs, and the hops of the others,
// against what verify counts.
func TestPath(t *testing.T) {
	for name, in := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			f := in.Fabric
			var hops verify.Histogram
			lost, loops := int64(0), int64(0)
			for _, src := range f.CAPorts() {
				for _, dst := range f.CAPorts() {
					if src == dst {
						continue
					}
					for k := range fabric.LID(1) << f.LMC(dst) {
						path := in.Path(src, f.LID(dst)+k)
						switch {
						case strings.Contains(path.Lost, " loops at "):
							loops++
						case path.Lost != "":
							lost++
						default:
							n := len(path.Hops) - 1
							for len(hops) <= n {
								hops = append(hops, 0)
							}
							hops[n]++
						}
					}
				}
			}
			want := in.Result.Unicast
			if lost != want.Unreachable || loops != want.Loops {
				t.Errorf("%d pairs lost and %d in loops, verify has %d and %d", lost, loops, want.Unreachable, want.Loops)
			}
			short.Diff(t, hops, want.HopHistogram)
		})
	}
}

// withChoices gives a page adaptive tables with random choices: groups of the ports that lead
// nearer, some with more that do not, are not there or have no cable, and two private LFTs that
// input ports and SLs select.
func withChoices(t testing.TB, in *Input, seed uint64) *Input {
	t.Helper()
	f := in.Fabric
	rng := rand.New(rand.NewPCG(seed, 2))
	c := copyOf(in)
	c.Adaptive = &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), Select: adaptive.NewSelector(f)}
	list := lft.ShortestNextHops(f)
	groups := map[[2]fabric.NodeID]adaptive.PortSet{} // by switch and destination
	var h lft.NextHops
	for _, to := range f.Switches() {
		h.Reset()
		short.Check(t, list(to, &h))
		for i, s := range h.Switches {
			var set adaptive.PortSet
			for _, p := range h.Ports(i) {
				set.Add(p)
			}
			if rng.IntN(40) == 0 {
				set.Add(fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 3)))
			}
			groups[[2]fabric.NodeID{s, to}] = set
		}
	}
	for range 2 {
		p := adaptive.NewPLFT(in.Tables)
		for s := range fabric.NodeID(f.NumSwitches()) {
			for lid, port := range f.LIDPorts() {
				if port == fabric.NoPort {
					continue
				}
				to := f.Owner(port)
				if !f.IsSwitch(to) {
					to = f.PeerSwitch(port)
				}
				if set, ok := groups[[2]fabric.NodeID{s, to}]; ok && rng.IntN(4) > 0 {
					c.Adaptive.Groups[s] = append(c.Adaptive.Groups[s], adaptive.Group{Subgroups: []adaptive.Subgroup{{Ports: set}}})
					p.Set(s, fabric.LID(lid), adaptive.Free, len(c.Adaptive.Groups[s])-1)
				}
			}
			for num := range f.Node(s).NumPorts + 1 {
				row := c.Adaptive.Select.Row(s, num)
				for sl := range row {
					row[sl] = uint8(rng.IntN(16) / 7) // 2 is one that there is not
				}
			}
		}
		c.Adaptive.PLFTs = append(c.Adaptive.PLFTs, p)
	}
	return &c
}

// TestFan holds the fans of random choices against following each packet by itself: the shares
// of all channels, and of the packets that are lost.
func TestFan(t *testing.T) {
	in := withChoices(t, inputs(t)["broken torus"], 4)
	f := in.Fabric
	wide, lost, partly := 0, 0, 0
	for _, src := range f.CAPorts() {
		for lid, end := range f.LIDPorts() {
			if end == fabric.NoPort || end == src {
				continue
			}
			path := in.Path(src, fabric.LID(lid))
			want, gone := map[Channel]float64{}, 0.0
			var walk func(from, out fabric.PortID, hop int, share float64)
			walk = func(from, out fabric.PortID, hop int, share float64) {
				vl, way := fabric.VL(0), fabric.PortNum(0)
				if from != fabric.NoPort {
					way = f.Num(from)
				}
				if vl = in.SL2VL.At(way, out)[path.SL]; vl == lft.DropVL {
					gone += share
					return
				}
				want[Channel{Out: out, VL: vl, Hop: hop, From: from}] += share
				at := f.Peer(out)
				s := f.Owner(at)
				switch {
				case !f.IsSwitch(s):
					if at != end {
						gone += share
					}
					return
				case hop >= 7: // broken entries can send packets round
					return
				}
				plft := in.Adaptive.Select.PLFT(s, f.Num(at), path.SL)
				var ports []fabric.PortNum
				if plft < 2 {
					set := in.Adaptive.Choices(plft, s, fabric.LID(lid))
					set.Each(func(p fabric.PortNum) { ports = append(ports, p) })
				}
				if len(ports) == 0 {
					gone += share
				}
				for _, p := range ports {
					part := share / float64(len(ports))
					switch {
					case p == 0 && f.PortBase(s) == end:
					case p == 0 || p > f.Node(s).NumPorts || f.Peer(f.Port(s, p)) == fabric.NoPort:
						gone += part
					default:
						walk(at, f.Port(s, p), hop+1, part)
					}
				}
			}
			walk(fabric.NoPort, src, 0, 1)
			for _, h := range path.Hops {
				if h.Hop > 7 {
					continue
				}
				share := h.Share
				if h.Share = 0; math.Abs(want[h]-share) > 1e-9 {
					t.Fatalf("%s to LID %d: %+v has %g, want %g", f.PortName(src), lid, h, share, want[h])
				}
				delete(want, h)
			}
			if len(want) > 0 || path.LostShare < gone-1e-9 || (path.Lost == "") != (path.LostShare == 0) || path.LostShare > 1+1e-9 {
				t.Fatalf("%s to LID %d: %d channels missing, %g lost (%s), want at least %g", f.PortName(src), lid, len(want), path.LostShare, path.Lost, gone)
			}
			switch {
			case path.LostShare > 0.999:
				lost++
			case path.LostShare > 0:
				partly++
			case slices.ContainsFunc(path.Hops, func(h Channel) bool { return h.Share < 0.4 }):
				wide++
			}
		}
	}
	if wide < 5 || lost < 5 || partly < 5 {
		t.Errorf("%d wide fans, %d lost and %d lost in part: too few to tell", wide, lost, partly)
	}
}

// TestLanes: on a torus the VL changes where the path crosses the dateline, as the
// tables say, and a table that drops the SL loses the packet.
func TestLanes(t *testing.T) {
	in := compiled(t, fabrictest.Grid(t, 1, true, 6, 6), "xy", compile.Options{})
	f := in.Fabric
	seen := [2]bool{}
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			for _, h := range in.Path(src, f.LID(dst)).Hops {
				seen[h.VL] = true
			}
		}
	}
	short.Equal(t, seen, [2]bool{true, true}, "VLs in use")
	src, dst := f.CAPorts()[0], f.CAPorts()[20]
	path := in.Path(src, f.LID(dst))
	in.SL2VL = in.SL2VL.Clone()
	in.SL2VL.SetOut(path.Hops[2].Out, lft.ConstantVL(lft.DropVL))
	if cut := in.Path(src, f.LID(dst)); len(cut.Hops) != 2 || !strings.Contains(cut.Lost, "drops SL") {
		t.Errorf("%d hops, lost %q: want it dropped after two", len(cut.Hops), cut.Lost)
	}
}

// TestLayout: nothing lies on anything else, every switch link is in one edge, hosts are
// near their switch.
func TestLayout(t *testing.T) {
	islands := short.Must(gen.NewPlan(4, 4))(t)
	for range 4 {
		islands.Switch(4, "switch")
	}
	for range 4 {
		islands.CA(1, "host")
	}
	islands.Cable(0, 1, 1, 1)
	islands.Cable(4, 1, 0, 2)
	islands.Cable(5, 1, 6, 1) // two hosts alone
	plan := short.Must(islands.Fabric())(t)
	nothing := short.Must(new(fabric.Builder).Build())(t)
	random := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 60, Degree: 4, Hosts: 90, Seed: 5}))(t)
	fabrics := map[string]*Input{
		"islands":   {State: &state.State{Fabric: plan}},
		"irregular": {State: &state.State{Fabric: random}},
		"by levels": {State: &state.State{Fabric: fabrictest.FatTree(t, 12, 3)}},
		"empty":     {State: &state.State{Fabric: nothing}},
	}
	for name, in := range inputs(t) {
		fabrics[name] = in
	}
	for name, in := range fabrics {
		t.Run(name, func(t *testing.T) {
			f := in.Fabric
			l := arrange(in)
			for a := range fabric.NodeID(f.NumNodes()) {
				if l.radius[a] <= 0 {
					t.Fatalf("%q is not placed", f.Node(a).Description)
				}
				for b := range a {
					if max(abs(l.x[a]-l.x[b]), abs(l.y[a]-l.y[b])) < l.radius[a]+l.radius[b] {
						t.Fatalf("%q and %q lie on each other", f.Node(a).Description, f.Node(b).Description)
					}
				}
			}
			cables := 0
			for i, e := range l.edges {
				for _, p := range l.ports(i) {
					cables++
					if f.Owner(p) != e.a || f.Owner(f.Peer(p)) != e.b {
						t.Errorf("%s is in the edge of %d and %d", f.PortName(p), e.a, e.b)
					}
				}
			}
			want := 0
			for s := range fabric.NodeID(f.NumSwitches()) {
				ports, _ := f.SwitchLinks(s)
				want += len(ports)
			}
			short.Equal(t, 2*cables, want, cables, "cables in edges, the fabric")
		})
	}
}

func abs(x float32) float32 { return max(x, -x) }

// TestPods: in a fat tree of three levels the leaves and spines of a pod stand side by
// side, in the order of pods.
func TestPods(t *testing.T) {
	f := fabrictest.FatTree(t, 8, 3)
	l := arrange(&Input{State: &state.State{Fabric: f}, Levels: cabling.Recognize(f).Level()})
	for _, kind := range []string{"leaf", "spine"} {
		var row []fabric.NodeID
		for s := range fabric.NodeID(f.NumSwitches()) {
			if strings.HasPrefix(f.Node(s).Description, kind) {
				row = append(row, s)
			}
		}
		slices.SortFunc(row, func(a, b fabric.NodeID) int { return int(l.x[a]) - int(l.x[b]) })
		for i, s := range row {
			if want := fmt.Sprintf("pod %d", i/4); !strings.HasSuffix(f.Node(s).Description, want) {
				t.Errorf("%s %d from the left is %q, want one of %s", kind, i, f.Node(s).Description, want)
			}
		}
	}
}

func TestViewErrors(t *testing.T) {
	all := inputs(t)
	none := copyOf(all["cube"])
	none.Tables, none.SL2VL, none.PathSLs = nil, nil, nil
	for _, c := range []struct {
		in         *Input
		view, want string
	}{
		{all["cube"], "path:host 0,0,0/1,absent", `no node is called "absent"`},
		{all["cube"], "path:0xffff,1", `"0xffff"`},
		{all["cube"], "path:60000,1", "no port has LID 60000"},
		{all["cube"], "path:switch 0,0,0,host 0,0,0/1", "a path starts at a host"},
		{all["cube"], "group:x", "no multicast tables"},
		{all["cube"], "credit-loop", "0 are known"},
		{all["mesh with groups"], "group:absent", `no group is called "absent"`},
		{all["torus with a loop"], "credit-loop:2", "1 are known"},
		{&none, "path:1,2", "no forwarding tables"},
		{&none, "fan:1", "no forwarding tables"},
		{all["cube"], "fan:absent", `no node is called "absent"`},
	} {
		view := short.Must(ParseView(c.view))(t)
		if _, err := Draw(context.Background(), c.in, view); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.view, err, c.want)
		}
	}
	for _, s := range []string{"", "fabric:x", "path:", "path:a", "group:", "fan:", "boxes:pods", "credit-loop:0", "credit-loop:x", "tree"} {
		if _, err := ParseView(s); err == nil || !strings.Contains(err.Error(), "want fabric") {
			t.Errorf("ParseView(%q): %v", s, err)
		}
	}
}

// TestForeignParts: parts of another fabric are errors.
func TestForeignParts(t *testing.T) {
	all := inputs(t)
	cube, torus := all["cube"], all["torus with lanes"]
	for name, change := range map[string]func(in *Input){
		"tables of":            func(in *Input) { in.Tables = torus.Tables },
		"SL-to-VL tables":      func(in *Input) { in.SL2VL = torus.SL2VL },
		"path SLs of":          func(in *Input) { in.PathSLs = lft.NewPathSLs(1, 5) },
		"multicast tables":     func(in *Input) { in.Multicast = all["mesh with groups"].Multicast },
		"coordinates in":       func(in *Input) { in.Grid = all["ring"].Grid },
		"levels of 2 switches": func(in *Input) { in.Levels = make([]int32, 2) },
	} {
		in := copyOf(cube)
		change(&in)
		short.Contains(t, fmt.Sprint(Write(context.Background(), io.Discard, &in)), name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	short.Equal(t, Write(ctx, io.Discard, cube), context.Canceled, "want that it was cancelled")
}

// TestHostileNames: descriptions cannot end the script or the title.
func TestHostileNames(t *testing.T) {
	f := fabrictest.Grid(t, 1, false, 2, 2)
	names := map[fabric.GUID]string{}
	for n := range fabric.NodeID(f.NumNodes()) {
		names[f.Node(n).GUID] = "</script><img src=x>\xff{{script}}"
	}
	in := compiled(t, f.WithNames(names), "updn", compile.Options{})
	in.Title = "</title><script>alert(1)</script>{{arrays}}"
	var b bytes.Buffer
	short.Check(t, Write(context.Background(), &b, in))
	short.Equal(t, strings.Count(b.String(), "</script>"), 3, "script elements end, want 3")
	if strings.Contains(b.String(), "<img") || strings.Count(b.String(), "</title>") != 1 {
		t.Error("a name became markup")
	}
}

// TestNames: where several nodes have one name, the page has their GUIDs in it.
func TestNames(t *testing.T) {
	f := fabrictest.Grid(t, 1, false, 2, 2)
	names := map[fabric.GUID]string{f.Node(0).GUID: "same", f.Node(1).GUID: "same", f.Node(2).GUID: ""}
	s := short.Must(newScene(context.Background(), compiled(t, f.WithNames(names), "updn", compile.Options{})))(t)
	doc := s.document(new(packer))
	want := []string{"same " + f.Node(0).GUID.String(), "same " + f.Node(1).GUID.String(), f.Node(2).GUID.String(), "switch 1,1"}
	short.EqualList(t, doc.Names[:4], want, "names")
}

// TestFans: all ways to a LID are those of packets from every host, in pictures and in the page, also by tables
// that lose packets.
func TestFans(t *testing.T) {
	all := inputs(t)
	cases := map[string]*Input{"choices": withChoices(t, all["broken torus"], 4), "lanes": all["torus with lanes"], "broken lattice": all["broken lattice"]}
	for _, name := range short.Keys(cases, "choices") {
		in := cases[name]
		t.Run(name, func(t *testing.T) {
			p := open(t, in)
			f := in.Fabric
			type fanned struct {
				Outs []int
				Lost int
				Why  string
			}
			got := eval[map[fabric.LID]fanned](p, "Object.fromEntries(ibweave.data.byLID.entries().filter(([, p]) => p >= 0).map(([lid]) => [lid, (f => ({Outs: f.outs, Lost: f.lost, Why: f.why}))(ibweave.fan(lid))]))")
			for l, dst := range f.LIDPorts() {
				if dst == fabric.NoPort {
					continue
				}
				lid, want := fabric.LID(l), map[int]bool{}
				loses := false
				for src := range fabric.PortID(f.NumPorts()) {
					if f.IsSwitch(f.Owner(src)) || f.Peer(src) == fabric.NoPort || src == dst {
						continue
					}
					path := in.Path(src, lid)
					loses = loses || path.Lost != "" && !strings.Contains(path.Lost, "loops at")
					for _, h := range path.Hops {
						want[int(h.Out)] = true
					}
				}
				fan, outs := in.Fan(lid), []int{}
				for _, out := range fan.Outs {
					outs = append(outs, int(out))
				}
				if !slices.Equal(outs, slices.Sorted(maps.Keys(want))) || loses && fan.Lost == 0 || fan.Lost > 0 == (fan.Why == "") {
					t.Fatalf("LID %d: ports %v, lost at %d places, %q; want %v, lost %t", lid, outs, fan.Lost, fan.Why, slices.Sorted(maps.Keys(want)), loses)
				}
				short.Diff(t, got[lid], fanned{outs, fan.Lost, strings.ReplaceAll(fan.Why, `"`, "")}, "LID", lid)
			}
			short.Equal(t, slices.ContainsFunc(slices.Collect(maps.Values(got)), func(x fanned) bool { return x.Lost > 0 }), (name != "lanes"), "packets are lost")
		})
	}
}

// TestPodNames: pods have numbers where the names of their switches share what those of others do, too.
func TestPodNames(t *testing.T) {
	f := fabrictest.FatTree(t, 4, 3)
	names := make(map[fabric.GUID]string)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if name := f.Node(s).Description; strings.Contains(name, "pod") {
			names[f.Node(s).GUID] = fmt.Sprintf("chassis-%d/U%d", s, 1+strings.Count("23", name[len(name)-1:]))
		}
	}
	s := short.Must(newScene(context.Background(), compiled(t, f.WithNames(names), "updn", compile.Options{})))(t)
	got := []string{}
	for _, g := range s.groupings[0].Groups {
		got = append(got, g.Name)
	}
	short.EqualList(t, got, []string{"pod 1", "pod 2", "pod 3", "pod 4", "core 0", "core 1"}, "groups")
}

// TestSharedName: what names of a group share in whole words, a domain apart.
func TestSharedName(t *testing.T) {
	f := fabrictest.Grid(t, 0, false, 2, 1)
	for _, c := range []struct{ a, b, want string }{
		{"leaf 1 pod 3", "leaf 2 pod 3", "pod 3"},
		{"spine-a1.dc1.example.org", "spine-a2.dc1.example.org", "spine"},
		{"pod3-leaf1.example.org", "pod3-leaf2.example.org", "pod3"},
		{"leaf1.example.org", "leaf2.example.org", ""},
		{"x", "y", ""},
	} {
		named := f.WithNames(map[fabric.GUID]string{f.Node(0).GUID: c.a, f.Node(1).GUID: c.b})
		short.Equal(t, sharedName(named, []fabric.NodeID{0, 1}), c.want, c.a, "and", c.b, "share")
	}
}

func FuzzParseView(f *testing.F) {
	for _, s := range []string{"fabric", "path:a,b", "group:g", "credit-loop", "credit-loop:3", "path:", "heat:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseView(s)
		if (err != nil) != (v == View{}) {
			t.Errorf("ParseView(%q) = %v, %v", s, v, err)
		}
	})
}

// TestSevens: text with seven bits in a character gives the data again, and has nothing that HTML
// changes.
func TestSevens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		var b bytes.Buffer
		writeSevens(&b, data)
		if bytes.ContainsAny(b.Bytes(), "\x00\r<") || !utf8.Valid(b.Bytes()) {
			t.Fatalf("%q", b.Bytes())
		}
		var back []byte
		held, n := uint32(0), 0
		for _, r := range b.String() {
			held = held<<7 | uint32(r)&127
			if n += 7; n >= 8 {
				n -= 8
				back = append(back, byte(held>>n))
			}
		}
		short.EqualList(t, back, data)
	})
}
