package mesh

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// plot is a grid to be built for a test.
type plot struct {
	dims  []int
	wrap  []bool
	hosts func(position int) int // nil for one on each switch
	links []int                  // by dimension: parallel cables; nil for one each
	// missing says whether all cables from a position in a positive direction
	// are left out; absent whether the switch is.
	missing func(position, dim int) bool
	absent  func(position int) bool
	mbps    func(dim, cable int) fabric.Link // nil for the same everywhere
	seed    uint64                           // other than 0: GUIDs and port numbers in random order
	lmc     int
}

// grow builds a plot. Ports are numbered as they are needed, in the order of
// the seed, hosts not always last, so that nothing depends on numbers.
func grow(t testing.TB, p plot) *Grid {
	t.Helper()
	rnd := rand.New(rand.NewPCG(p.seed, 1))
	positions := 1
	for _, size := range p.dims {
		positions *= size
	}
	step := make([]int, len(p.dims))
	for d, n := len(p.dims)-1, 1; d >= 0; d-- {
		step[d] = n
		n *= p.dims[d]
	}
	if p.wrap == nil {
		p.wrap = make([]bool, len(p.dims))
	}
	guids := make([]int, positions)
	for i := range guids {
		guids[i] = i
	}
	type cable struct{ a, b, dim, copy int } // b < 0: a host
	var cables []cable
	for at := range positions {
		if p.absent != nil && p.absent(at) {
			continue
		}
		for d, size := range p.dims {
			x := at / step[d] % size
			to := at + step[d]
			if x == size-1 {
				to -= size * step[d]
			}
			if x == size-1 && !p.wrap[d] || p.missing != nil && p.missing(at, d) || p.absent != nil && p.absent(to) {
				continue
			}
			n := 1
			if p.links != nil {
				n = p.links[d]
			}
			for i := range n {
				cables = append(cables, cable{at, to, d, i})
			}
		}
		hosts := 1
		if p.hosts != nil {
			hosts = p.hosts(at)
		}
		for i := range hosts {
			cables = append(cables, cable{at, -1, 0, i})
		}
	}
	if p.seed != 0 {
		rnd.Shuffle(len(guids), func(i, j int) { guids[i], guids[j] = guids[j], guids[i] })
		rnd.Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })
	}
	var b fabric.Builder
	must := func(n int, err error) int {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return n
	}
	index := make([]int, positions)
	for at := range positions {
		if p.absent == nil || !p.absent(at) {
			index[at] = must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x1000 + guids[at]), Type: fabric.Switch, NumPorts: 40, Description: fmt.Sprint("switch ", at)}))
		}
	}
	used := make([]fabric.PortNum, positions)
	type end struct {
		at  int
		num fabric.PortNum
	}
	dirs := make(map[end]Dir)
	for i, c := range cables {
		used[c.a]++
		link := fabric.Link{Width: 4, Speed: fabric.QDR}
		if c.b < 0 {
			h := must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x900000 + i*2), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprintf("host %d/%d", c.a, c.copy)}))
			must(0, b.SetPort(h, 1, fabric.GUID(0x900001+i*2), 0, 0))
			must(0, b.Connect(index[c.a], used[c.a], h, 1, link))
			continue
		}
		if p.mbps != nil {
			link = p.mbps(c.dim, c.copy)
		}
		used[c.b]++
		dirs[end{c.a, used[c.a]}] = Plus(c.dim)
		dirs[end{c.b, used[c.b]}] = Minus(c.dim)
		must(0, b.Connect(index[c.a], used[c.a], index[c.b], used[c.b], link))
	}
	f := short.Must(b.Build())(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: p.lmc}))(t)
	coord := make([]int16, f.NumSwitches()*len(p.dims))
	dir := make([]Dir, f.NumPorts())
	for i := range dir {
		dir[i] = NoDir
	}
	for at, g := range guids {
		s, ok := f.SwitchByGUID(fabric.GUID(0x1000 + g))
		if !ok {
			continue
		}
		for d, size := range p.dims {
			coord[int(s)*len(p.dims)+d] = int16(at / step[d] % size)
		}
		for num := fabric.PortNum(1); num <= used[at]; num++ {
			if way, ok := dirs[end{at, num}]; ok {
				dir[f.Port(s, num)] = way
			}
		}
	}
	return newGrid(f, p.dims, p.wrap, coord, dir)
}

// generated is the grid of a fabric that Generate made, with LIDs.
func generated(t testing.TB, spec Spec, opt lft.LIDOptions) *Grid {
	t.Helper()
	f := short.Must(Generate(spec))(t)
	return gridByNumber(t, f, spec, opt)
}

func gridByNumber(t testing.TB, f *fabric.Fabric, spec Spec, opt lft.LIDOptions) *Grid {
	t.Helper()
	wrap := spec.Wrap
	if wrap == nil {
		wrap = make([]bool, len(spec.Dims))
	}
	coord := make([]int16, 0, f.NumSwitches()*len(spec.Dims))
	dir := make([]Dir, f.NumPorts())
	for i := range dir {
		dir[i] = NoDir
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		at := int(s)
		for d := range spec.Dims {
			n := 1
			for _, size := range spec.Dims[d+1:] {
				n *= size
			}
			coord = append(coord, int16(at/n))
			at %= n
			plus, minus := directions(d)
			for num, way := range map[int]Dir{plus: Plus(d), minus: Minus(d)} {
				if p := f.Port(s, fabric.PortNum(num)); f.Peer(p) != fabric.NoPort {
					dir[p] = way
				}
			}
		}
	}
	g := newGrid(f, spec.Dims, wrap, coord, dir)
	if opt.Policy == lft.MeshLIDs {
		opt.MeshBases = g.LIDs
	}
	var err error
	if g.Fabric, err = lft.AssignLIDs(f, opt); err != nil {
		t.Fatal(err)
	}
	return g
}

func routed(t testing.TB, g *Grid, opt lft.Options) *lft.Routing {
	t.Helper()
	return short.Must(routeXY(t.Context(), g, opt))(t)
}

// walk is the ports by which a packet to a LID leaves the switches from s on,
// the last one the destination's own or its host's. ok is false where it is
// dropped.
func walk(t testing.TB, r *lft.Routing, s fabric.NodeID, lid fabric.LID) (ports []fabric.PortID, ok bool) {
	t.Helper()
	f := r.Fabric
	for range f.NumSwitches() + 1 {
		num := r.Tables.Row(s)[lid]
		if num == fabric.NoPath {
			return ports, false
		}
		p := f.Port(s, num)
		ports = append(ports, p)
		if num == fabric.ManagementPort {
			return ports, f.LIDPort(lid) == p
		}
		peer := f.Peer(p)
		if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
			return ports, peer != fabric.NoPort && f.LIDPort(lid) == peer
		}
		s = f.Owner(peer)
	}
	t.Fatalf("a packet for LID %d loops", lid)
	return nil, false
}

// channel is a port and a VL.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

// waitsFor gives for every channel that a packet can hold the channels that it
// may wait for, when every switch and its hosts send to every LID.
func waitsFor(t testing.TB, r *lft.Routing) map[channel]map[channel]bool {
	t.Helper()
	f := r.Fabric
	after := make(map[channel]map[channel]bool)
	for s := range fabric.NodeID(f.NumSwitches()) {
		for lid := range fabric.LID(len(f.LIDPorts())) {
			if f.LIDPort(lid) == fabric.NoPort {
				continue
			}
			sl := fabric.SL(0)
			if r.PathSLs != nil {
				sl = r.PathSLs.Row(s)[lid]
			}
			ports, _ := walk(t, r, s, lid)
			last := channel{port: fabric.NoPort}
			for _, p := range ports {
				if f.Num(p) == fabric.ManagementPort {
					break
				}
				c := channel{port: p}
				if r.SL2VL != nil {
					in := fabric.ManagementPort
					if last.port != fabric.NoPort {
						in = f.Num(f.Peer(last.port))
					}
					c.vl = r.SL2VL.At(in, p)[sl]
				}
				if after[c] == nil {
					after[c] = make(map[channel]bool)
				}
				if last.port != fabric.NoPort {
					after[last][c] = true
				}
				last = c
			}
		}
	}
	return after
}

// waitInCycle returns true if channels can wait for each other in a cycle, by a plain
// search for an order of all of them.
func waitInCycle(t testing.TB, r *lft.Routing) bool {
	t.Helper()
	after := waitsFor(t, r)
	before := make(map[channel]int)
	for _, set := range after {
		for c := range set {
			before[c]++
		}
	}
	var free []channel
	for c := range after {
		if before[c] == 0 {
			free = append(free, c)
		}
	}
	n := 0
	for ; len(free) > 0; n++ {
		c := free[len(free)-1]
		free = free[:len(free)-1]
		for d := range after[c] {
			if before[d]--; before[d] == 0 {
				free = append(free, d)
			}
		}
	}
	return n < len(after)
}

// digits is a row of the tables from LID 1 on, a digit for each port.
func digits(r *lft.Routing, s fabric.NodeID, most int) string {
	var b strings.Builder
	for _, p := range r.Tables.Row(s)[1 : most+1] {
		fmt.Fprint(&b, p)
	}
	return b.String()
}

// TestXYTables has G-X3: the whole tables of a 5x5 mesh by the paper's rules
// (section 3.3.1 with n for m), and of a 2x3 mesh.
func TestXYTables(t *testing.T) {
	for _, tt := range []struct {
		dims []int
		want string
	}{
		{[]int{5, 5}, `5222211111111111111111111 4522211111111111111111111 4452211111111111111111111 4445211111111111111111111 4444511111111111111111111
3333352222111111111111111 3333345222111111111111111 3333344522111111111111111 3333344452111111111111111 3333344445111111111111111
3333333333522221111111111 3333333333452221111111111 3333333333445221111111111 3333333333444521111111111 3333333333444451111111111
3333333333333335222211111 3333333333333334522211111 3333333333333334452211111 3333333333333334445211111 3333333333333334444511111
3333333333333333333352222 3333333333333333333345222 3333333333333333333344522 3333333333333333333344452 3333333333333333333344445`},
		{[]int{2, 3}, "522111 452111 445111 333522 333452 333445"},
	} {
		g := generated(t, Spec{Dims: tt.dims, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
		r := routed(t, g, lft.Options{})
		for at, want := range strings.Fields(tt.want) {
			s := g.At(at)
			if got := digits(r, s, g.Positions()); got != want {
				t.Errorf("%v: N(%v) has %s, want %s", tt.dims, g.Coord(s), got, want)
			}
			// The LIDs of switches go the same way, and end on port 0 (X3).
			want = strings.ReplaceAll(want, "5", "0")
			if got := digits(r, s, 2*g.Positions())[g.Positions():]; got != want {
				t.Errorf("%v: N(%v) has %s for the LIDs of switches, want %s", tt.dims, g.Coord(s), got, want)
			}
		}
		if r.SL2VL != nil || r.PathSLs != nil {
			t.Errorf("%v: a mesh needs no VLs", tt.dims)
		}
	}
}

// TestXYPaths has G-X2: the five paths of the paper from N(2,2) (Fig. 5 and 7),
// port by port: the switch and the port out of it, the next switch and the
// port into it.
func TestXYPaths(t *testing.T) {
	g := generated(t, Spec{Dims: []int{5, 5}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
	r := routed(t, g, lft.Options{})
	from := g.At(2*5 + 2)
	for _, tt := range []struct{ name, to, want string }{
		{"P", "0,3", "2,2_3 1,2_1 1,2_3 0,2_1 0,2_2 0,3_4"},
		{"Q", "0,4", "2,2_3 1,2_1 1,2_3 0,2_1 0,2_2 0,3_4 0,3_2 0,4_4"},
		{"R", "3,3", "2,2_1 3,2_3 3,2_2 3,3_4"},
		{"S", "4,2", "2,2_1 3,2_3 3,2_1 4,2_3"},
		{"T", "4,0", "2,2_1 3,2_3 3,2_1 4,2_3 4,2_4 4,1_2 4,1_4 4,0_2"},
	} {
		var x, y int
		short.Must(fmt.Sscanf(tt.to, "%d,%d", &x, &y))(t)
		ports, ok := walk(t, r, from, fabric.LID(x*5+y+1))
		if !ok {
			t.Fatalf("%s does not arrive", tt.name)
		}
		at := func(p fabric.PortID) string {
			c := g.Coord(g.Fabric.Owner(p))
			return fmt.Sprintf("%d,%d_%d", c[0], c[1], g.Fabric.Num(p))
		}
		var got []string
		for _, p := range ports[:len(ports)-1] {
			got = append(got, at(p), at(g.Fabric.Peer(p)))
		}
		short.Equal(t, strings.Join(got, " "), tt.want, "path", tt.name, "to N", tt.to)
		if host := ports[len(ports)-1]; g.Fabric.Num(host) != 5 {
			t.Errorf("path %s leaves its last switch by port %d, want 5", tt.name, g.Fabric.Num(host))
		}
	}
}

// ringDistance is the hops from x to y on a ring or a line.
func ringDistance(size int, wrap bool, x, y int16) int {
	d := int(max(x, y) - min(x, y))
	if wrap {
		d = min(d, size-d)
	}
	return d
}

// shapes are small grids of all kinds.
func shapes() map[string]plot {
	return map[string]plot{
		"one switch":       {dims: []int{1}},
		"line":             {dims: []int{5}},
		"ring of 3":        {dims: []int{3}, wrap: []bool{true}},
		"ring of 4":        {dims: []int{4}, wrap: []bool{true}},
		"ring of 5":        {dims: []int{5}, wrap: []bool{true}},
		"ring of 6":        {dims: []int{6}, wrap: []bool{true}},
		"mesh":             {dims: []int{4, 3}, seed: 1},
		"cylinder":         {dims: []int{5, 3}, wrap: []bool{true, false}, seed: 2},
		"other cylinder":   {dims: []int{3, 6}, wrap: []bool{false, true}, seed: 3},
		"torus":            {dims: []int{4, 6}, wrap: []bool{true, true}, seed: 4},
		"odd torus":        {dims: []int{5, 3, 3}, wrap: []bool{true, true, true}, seed: 5},
		"even torus":       {dims: []int{4, 2, 4}, wrap: []bool{true, false, true}, seed: 6},
		"mixed":            {dims: []int{2, 4, 3, 2}, wrap: []bool{false, true, true, false}, seed: 7},
		"four rings":       {dims: short.Of([]int{4, 4, 4, 4}, []int{4, 3, 3, 3}), wrap: []bool{true, true, true, true}, hosts: func(at int) int { return (at%31 + 30) / 31 }},
		"hypercube":        {dims: []int{2, 2, 2, 2, 2}, seed: 8},
		"parallel links":   {dims: []int{3, 4}, wrap: []bool{true, true}, links: []int{2, 3}, seed: 9},
		"hosts on a few":   {dims: []int{3, 4}, wrap: []bool{false, true}, hosts: func(at int) int { return at % 3 }, links: []int{2, 1}, seed: 10},
		"several LIDs":     {dims: []int{3, 4}, lmc: 2, seed: 11},
		"several on torus": {dims: []int{5, 4}, wrap: []bool{true, true}, lmc: 1, seed: 12},
		"several in rings": {dims: []int{4, 2, 4, 3}, wrap: []bool{true, false, true, true}, lmc: 1, hosts: func(at int) int { return at & 1 }, seed: 13},
	}
}

// TestXY holds the routing of all kinds of grids to what it promises: all
// switches reach all LIDs by shortest paths, with one dimension after the
// other, and no cycle of channels exists, with and without the cables that
// close rings.
func TestXY(t *testing.T) {
	for name, shape := range shapes() {
		for _, noWrap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/no wrap %v", name, noWrap), func(t *testing.T) {
				g := grow(t, shape)
				checkXY(t, g, lft.Options{NoWrap: noWrap})
			})
		}
	}
}

// checkXY holds one routing to what it promises on a complete grid.
func checkXY(t testing.TB, g *Grid, opt lft.Options) *lft.Routing {
	t.Helper()
	r := routed(t, g, opt)
	f := g.Fabric
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		dest, _ := delivery(f, f.LIDPort(lid))
		if dest == fabric.NoNode {
			continue
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			ports, ok := walk(t, r, s, lid)
			if !ok {
				t.Fatalf("%v: N(%v) does not reach LID %d on N(%v)", g.Dims, g.Coord(s), lid, g.Coord(dest))
			}
			want := 1
			for d, size := range g.Dims {
				want += ringDistance(size, g.Wrap[d] && !opt.NoWrap, g.Coord(s)[d], g.Coord(dest)[d])
			}
			var dims []int
			for _, p := range ports[:len(ports)-1] {
				dims = append(dims, g.Dir(p).Dim())
			}
			if (lid-f.LID(f.LIDPort(lid)))%2 == 1 && (opt.VLs == 0 || r.SL2VL != nil && r.SL2VL.VLs() > 2) {
				slices.Reverse(dims)
			}
			if len(ports) != want || !slices.IsSorted(dims) {
				t.Fatalf("%v: N(%v) reaches LID %d on N(%v) by dimensions %v, want %d hops, dimensions in order",
					g.Dims, g.Coord(s), lid, g.Coord(dest), dims, want-1)
			}
		}
	}
	if waitInCycle(t, r) {
		t.Fatalf("%v, rings %v: channels wait for each other in a cycle", g.Dims, g.Wrap)
	}
	return r
}

// TestXYProperties has random grids with parallel links and missing cables and
// switches. A path must be the one of dimension order, found again here hop by
// hop, and be missing from its first switch on where it is broken. Nothing may
// wait in a cycle.
func TestXYProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := drawPlot(rt, true)
		shape.lmc = rapid.IntRange(0, 1).Draw(rt, "LMC")
		g := grow(t, shape)
		opt := lft.Options{NoWrap: rapid.Bool().Draw(rt, "no wrap")}
		r := routed(t, g, opt)
		f := g.Fabric
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			dest, _ := delivery(f, f.LIDPort(lid))
			if dest == fabric.NoNode {
				continue
			}
			reversed := len(g.Dims) > 1 && lid != f.LID(f.LIDPort(lid))
			for s := range fabric.NodeID(f.NumSwitches()) {
				want, whole := plainPath(g, s, dest, reversed, !opt.NoWrap)
				ports, ok := walk(t, r, s, lid)
				if !whole {
					if ok || len(ports) > 0 {
						rt.Fatalf("N(%v) to LID %d on N(%v): sets out by %v, and a cable is missing", g.Coord(s), lid, g.Coord(dest), g.Dir(ports[0]))
					}
					continue
				}
				var got []Dir
				for _, p := range ports[:max(1, len(ports))-1] {
					got = append(got, g.Dir(p))
				}
				if !ok || !slices.Equal(got, want) {
					rt.Fatalf("N(%v) to LID %d on N(%v): arrives %v by %v, want %v", g.Coord(s), lid, g.Coord(dest), ok, got, want)
				}
			}
		}
		if waitInCycle(t, r) {
			rt.Fatal("channels wait for each other in a cycle")
		}
	})
}

// plainPath is the directions of the path from s to t, and whether it is whole.
func plainPath(g *Grid, s, t fabric.NodeID, reversed, wrap bool) (dirs []Dir, whole bool) {
	dims := make([]int, len(g.Dims))
	for d := range dims {
		dims[d] = d
	}
	if reversed {
		slices.Reverse(dims)
	}
	at := slices.Clone(g.Coord(s))
	whole = true
	for _, d := range dims {
		size, to := int16(g.Dims[d]), g.Coord(t)[d]
		for at[d] != to {
			// Try both ways round.
			plus, minus := 0, 0
			for x := at[d]; x != to; x = (x + 1) % size {
				plus++
			}
			for x := at[d]; x != to; x = (x + size - 1) % size {
				minus++
			}
			way := Plus(d)
			if g.Wrap[d] && wrap {
				leave := to // the sum of the coordinates where the path leaves the ring
				for i, size := range g.Dims {
					if i != d && g.Wrap[i] && size%2 == 0 {
						leave += at[i]
					}
				}
				if minus < plus || minus == plus && leave%2 == 1 {
					way = Minus(d)
				}
			} else if to < at[d] {
				way = Minus(d)
			}
			dirs = append(dirs, way)
			here := g.At(position(g, at))
			if here == fabric.NoNode || len(g.Ports(here, way)) == 0 {
				whole = false
			}
			if way.Positive() {
				at[d] = (at[d] + 1) % size
			} else {
				at[d] = (at[d] + size - 1) % size
			}
		}
	}
	return dirs, whole
}

func position(g *Grid, at []int16) int {
	n := 0
	for d, x := range at {
		n += int(x) * g.step[d]
	}
	return n
}

// TestXYEveryCPU has the same bytes on one CPU and on several.
func TestXYEveryCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	g := grow(t, plot{dims: []int{6, 5, 4}, wrap: []bool{true, true, false}, links: []int{1, 2, 3}, lmc: 1, seed: 3,
		missing: func(at, d int) bool { return at == 40 && d == 1 }})
	var want *lft.Routing
	for _, cpus := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cpus)
		r := routed(t, g, lft.Options{})
		if want == nil {
			want = r
		}
		for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
			if !slices.Equal(r.Tables.Row(s), want.Tables.Row(s)) || !slices.Equal(r.PathSLs.Row(s), want.PathSLs.Row(s)) {
				t.Fatalf("N(%v) has another row with %d CPUs", g.Coord(s), cpus)
			}
		}
	}
}

// TestXYStops has a context that ends.
func TestXYStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, wrap := range []bool{false, true} {
		g := grow(t, plot{dims: []int{4, 4}, wrap: []bool{wrap, wrap}})
		if r, err := routeXY(ctx, g, lft.Options{}); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("wrap %v: %v, want canceled", wrap, err)
		}
	}
}

// routes counts by channel the paths of all pairs of hosts, in the reckoning
// of the command line.
func routes(t testing.TB, r *lft.Routing) map[fabric.PortID]int {
	t.Helper()
	f := r.Fabric
	n := make(map[fabric.PortID]int)
	for i, from := range f.CAPorts() {
		for lid := range fabric.LID(len(f.LIDPorts())) {
			if p := f.LIDPort(lid); p == fabric.NoPort || p == from || f.IsSwitch(f.Owner(p)) {
				continue
			}
			ports, _ := walk(t, r, f.CASwitches()[i], lid)
			for _, p := range ports[:len(ports)-1] {
				n[p]++
			}
		}
	}
	return n
}

// TestXYRings has the ties on even rings divided: on a torus whose rings have
// a multiple of four positions each channel of a dimension carries the same, of
// two more than that neighbours differ by the paths of one tie only.
func TestXYRings(t *testing.T) {
	for _, tt := range []struct {
		dims []int
		want [][2]int // by dimension: least and most paths on a channel
	}{
		// In a ring of 4 each position has one path of a hop, and half a path
		// of two hops, in each direction: 2 channels' worth on 1 channel.
		{[]int{4}, [][2]int{{2, 2}}},
		{[]int{8}, [][2]int{{8, 8}}}, // 1 + 2 + 3 + 4/2
		{[]int{6}, [][2]int{{4, 5}}}, // 1 + 2 + 3/2
		{[]int{4, 4}, [][2]int{{8, 8}, {8, 8}}},
		{[]int{8, 4}, [][2]int{{32, 32}, {16, 16}}},
		{[]int{6, 6}, [][2]int{{24, 30}, {24, 30}}},
		{[]int{5, 6}, [][2]int{{18, 18}, {20, 25}}},
		{[]int{6, 5}, [][2]int{{20, 25}, {18, 18}}},
		{[]int{4, 6, 8}, [][2]int{{96, 96}, {128, 160}, {192, 192}}},
	} {
		wrap := make([]bool, len(tt.dims))
		for d := range wrap {
			wrap[d] = true
		}
		g := grow(t, plot{dims: tt.dims, wrap: wrap, seed: 5})
		n := routes(t, routed(t, g, lft.Options{}))
		for d := range tt.dims {
			least, most := 1<<30, 0
			for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
				for _, way := range []Dir{Plus(d), Minus(d)} {
					least, most = min(least, n[g.Ports(s, way)[0]]), max(most, n[g.Ports(s, way)[0]])
				}
			}
			short.Equal(t, [2]int{least, most}, tt.want[d], tt.dims, "channels of dimension", d, "carry paths")
		}
	}
}

// TestXYParallel has the load divided over parallel links: on open grids to
// one LID's share, on rings nearly so, and by the links' speeds.
func TestXYParallel(t *testing.T) {
	slow := fabric.Link{Width: 1, Speed: fabric.QDR}
	fast := fabric.Link{Width: 4, Speed: fabric.QDR}
	for _, tt := range short.Part(4, []struct {
		name string
		plot plot
		// parts is the shares of a direction's links, by cable.
		parts []float64
		// slack is how many LIDs' worth of paths a link may be off its share.
		slack float64
	}{
		{"mesh, 2 links", plot{dims: []int{5, 4}, links: []int{2, 2}}, []float64{1, 1}, 0.5},
		{"ring of 11, 2 links", plot{dims: []int{11}, wrap: []bool{true}, links: []int{2}}, []float64{1, 1}, 0.5},
		{"torus, LMC 1, 3 links", plot{dims: []int{7, 5}, wrap: []bool{true, true}, links: []int{3, 3}, lmc: 1}, []float64{1, 1, 1}, 0.5},
		{"a slow link", plot{dims: []int{6, 6}, links: []int{2, 2}, mbps: func(_, i int) fabric.Link {
			return []fabric.Link{fast, slow}[i]
		}}, []float64{4, 1}, 0.8},
		{"mesh, 3 links, 2 hosts", plot{dims: []int{4, 4}, links: []int{3, 3}, hosts: func(int) int { return 2 }}, []float64{1, 1, 1}, 0.7},
		{"torus, 2 links", plot{dims: []int{8, 8}, wrap: []bool{true, true}, links: []int{2, 2}}, []float64{1, 1}, 0.5},
		{"ring, 4 links", plot{dims: []int{16}, wrap: []bool{true}, links: []int{4}}, []float64{1, 1, 1, 1}, 0.8},
		{"mesh, LMC 1", plot{dims: []int{5, 4}, links: []int{2, 2}, lmc: 1}, []float64{1, 1}, 0.5},
	}) {
		g := grow(t, tt.plot)
		r := routed(t, g, lft.Options{})
		n := routes(t, r)
		sum := 0.0
		for _, part := range tt.parts {
			sum += part
		}
		for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
			for way := range Dir(2 * len(g.Dims)) {
				ports := g.Ports(s, way)
				all, most := 0, 0 // paths, and those of the LID with the most
				for _, p := range ports {
					all += n[p]
				}
				perLID := make(map[fabric.LID]int)
				for u := range fabric.NodeID(g.Fabric.NumSwitches()) {
					for _, port := range g.Fabric.CAPorts() {
						for k := range 1 << g.Fabric.LMC(port) {
							lid := g.Fabric.LID(port) + fabric.LID(k)
							path, _ := walk(t, r, u, lid)
							for _, p := range path {
								if slices.Contains(ports, p) {
									perLID[lid] += len(g.Fabric.CAPorts()) / g.Fabric.NumSwitches()
									most = max(most, perLID[lid])
								}
							}
						}
					}
				}
				for i, p := range ports {
					want := float64(all) * tt.parts[i] / sum
					if off := math.Abs(float64(n[p]) - want); off > tt.slack*float64(most)+1e-9 {
						t.Errorf("%s: N(%v), direction %d, link %d carries %d of %d paths, want %.1f within %.1f",
							tt.name, g.Coord(s), way, i, n[p], all, want, tt.slack*float64(most))
					}
				}
			}
		}
	}
}
