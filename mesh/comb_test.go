package mesh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// copyTracker is the slow and obvious checker: it sends one packet and follows
// every copy by itself.
type copyTracker struct {
	f     *fabric.Fabric
	masks []bool          // by PortID of switches
	got   []int           // by PortID of end ports: copies
	cross []int           // by PortID of ports that lead to a switch: copies
	path  []fabric.PortID // that the copy at hand came in by
	depth int             // links to the farthest receiver
	waste int             // copies on links that come to no end port
	loop  bool
	hop   func(in, out fabric.PortID) // if not nil, told of every copy between switches
}

func newCopyTracker(f *fabric.Fabric, ports []fabric.PortID) *copyTracker {
	c := &copyTracker{f: f, masks: make([]bool, f.NumPorts()), got: make([]int, f.NumPorts()), cross: make([]int, f.NumPorts())}
	for _, p := range ports {
		c.masks[p] = true
	}
	return c
}

// send is a packet, after which nothing is known of those before.
func (c *copyTracker) send(sender fabric.PortID) {
	clear(c.got)
	clear(c.cross)
	c.depth, c.waste, c.loop = 0, 0, false
	if !c.f.IsSwitch(c.f.Owner(sender)) {
		sender = c.f.Peer(sender)
	}
	c.visit(sender)
}

// visit is a copy that came in by a port of a switch; it returns how many end
// ports it reaches.
func (c *copyTracker) visit(in fabric.PortID) int {
	if slices.Contains(c.path, in) {
		c.loop = true
		return 0
	}
	c.path = append(c.path, in)
	reached := 0
	s := c.f.Owner(in)
	for n := fabric.PortNum(0); n <= c.f.Node(s).NumPorts; n++ {
		out := c.f.Port(s, n)
		if out == in || !c.masks[out] {
			continue
		}
		end := out
		if n != fabric.ManagementPort {
			end = c.f.Peer(out)
		}
		if end != out && c.f.IsSwitch(c.f.Owner(end)) {
			c.cross[out]++
			if c.hop != nil {
				c.hop(in, out)
			}
			some := c.visit(end)
			if some == 0 {
				c.waste++
			}
			reached += some
			continue
		}
		c.got[end]++
		c.depth = max(c.depth, len(c.path)-1)
		reached++
	}
	c.path = c.path[:len(c.path)-1]
	return reached
}

// wrong says what is wrong with what became of the packet, "" for nothing.
func (c *copyTracker) wrong(sender fabric.PortID, receivers []fabric.PortID) string {
	if c.loop {
		return "it loops"
	}
	if c.waste > 0 {
		return fmt.Sprintf("%d copies come to no port", c.waste)
	}
	for p := range fabric.PortID(c.f.NumPorts()) {
		want := 0
		if _, is := slices.BinarySearch(receivers, p); is && p != sender {
			want = 1
		}
		if c.got[p] != want {
			return fmt.Sprintf("%s gets %d copies, want %d", c.f.PortName(p), c.got[p], want)
		}
		if c.cross[p] > 1 {
			return fmt.Sprintf("%d copies go by %s", c.cross[p], c.f.PortName(p))
		}
	}
	return ""
}

func combed(t testing.TB, c Comb, r *lft.Routing, groups []mft.Group, opt mft.Options) *mft.Plan {
	t.Helper()
	p := short.Must(c.Build(t.Context(), r, groups, opt))(t)
	return p
}

// mustBeExact follows a packet of every sender of every group, and wants each
// port in the masks but those of hosts to be used by one of them. It returns
// the copies over links and the greatest depth.
func mustBeExact(t testing.TB, groups []mft.Group, p *mft.Plan) (crossings, depth int) {
	t.Helper()
	f := p.Tables.Fabric()
	short.MustEqual(t, len(p.Trees), len(groups), "trees for groups")
	for i := range p.Trees {
		x := &p.Trees[i]
		g := &groups[x.Group]
		if !slices.Equal(x.Senders, g.Senders) || !slices.Equal(x.Receivers, g.Receivers) || x.Name != g.Name {
			t.Fatalf("tree %+v of group %+v", x, g)
		}
		used := make([]bool, f.NumPorts())
		ports := p.Tables.Ports(x.MLID)
		c := newCopyTracker(f, ports)
		for _, s := range x.Senders {
			c.send(s)
			if what := c.wrong(s, x.Receivers); what != "" {
				t.Fatalf("%s from %s: %s", x.Name, f.PortName(s), what)
			}
			for out, n := range c.cross {
				used[out] = used[out] || n > 0
				crossings += n
			}
			depth = max(depth, c.depth)
		}
		for _, out := range ports {
			if q := f.Peer(out); q != fabric.NoPort && f.IsSwitch(f.Owner(q)) && !used[out] {
				t.Fatalf("%s: no packet leaves by %s, which is in a mask", x.Name, f.PortName(out))
			}
		}
	}
	return crossings, depth
}

// endPorts is all end ports that a switch has or has a cable to, ascending.
func endPorts(f *fabric.Fabric) []fabric.PortID {
	var list []fabric.PortID
	f.EndPorts(func(p fabric.PortID) {
		if s, _ := delivery(f, p); s != fabric.NoNode {
			list = append(list, p)
		}
	})
	slices.Sort(list)
	return list
}

// pick is n of list at random, ascending.
func pick(rnd *rand.Rand, list []fabric.PortID, n int) []fabric.PortID {
	var some []fabric.PortID
	for _, i := range rnd.Perm(len(list))[:n] {
		some = append(some, list[i])
	}
	slices.Sort(some)
	return some
}

// randomGroups has up to most receivers and senders in a group, in part the same.
func randomGroups(rnd *rand.Rand, list []fabric.PortID, n, most int) []mft.Group {
	most = min(most, len(list))
	groups := make([]mft.Group, n)
	for i := range groups {
		g := &groups[i]
		g.Name = fmt.Sprint("group ", i)
		g.Receivers = pick(rnd, list, 1+rnd.IntN(most))
		switch rnd.IntN(3) {
		case 0:
			g.Senders = g.Receivers
		case 1:
			g.Senders = pick(rnd, list, 1+rnd.IntN(most))
		default:
			g.Senders = pick(rnd, g.Receivers, 1+rnd.IntN(len(g.Receivers)))
		}
	}
	return groups
}

// hostsByPosition is the hosts of a grid with one on each switch.
func hostsByPosition(g *Grid) []fabric.PortID {
	list := make([]fabric.PortID, g.Positions())
	for i, p := range g.Fabric.CAPorts() {
		list[g.Position(g.Fabric.CASwitches()[i])] = p
	}
	return list
}

// onTrunk puts all groups on the trunk with the coordinates, -1 in its own dimension,
// whether or not it is safe with unicast.
func onTrunk(g *Grid, at ...int) Comb {
	orders := combOrders(len(at))
	order := orders[0]
	if at[0] >= 0 {
		order = orders[1]
	}
	lane := combLane{tree: newCombTree(g, order, Trunk{At: at})}
	for sl := range fabric.SL(lft.NumSLs) {
		lane.sls = append(lane.sls, sl)
	}
	return Comb{Grid: g, lanes: []combLane{lane}}
}

// TestCombGolden has the comb of G-X6, byte by byte: the 5x5 mesh, the five
// members as receivers, all 25 nodes as senders, trunk row 2.
func TestCombGolden(t *testing.T) {
	g := generated(t, Spec{Dims: []int{5, 5}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
	hosts := hostsByPosition(g)
	at := func(x, y int) int { return 5*x + y }
	var receivers []fabric.PortID
	for _, i := range []int{at(0, 3), at(0, 4), at(3, 3), at(4, 0), at(4, 2)} {
		receivers = append(receivers, hosts[i])
	}
	slices.Sort(receivers)
	senders := slices.Clone(hosts)
	slices.Sort(senders)
	groups := []mft.Group{{Name: "G-X6", Receivers: receivers, Senders: senders}}
	p := combed(t, onTrunk(g, -1, 2), routed(t, g, lft.Options{}), groups, mft.Options{})
	mustBeExact(t, groups, p)
	const want = `y=4 {45} {4} {4} {4} {4}
y=3 {245} {4} {4} {45} {4}
y=2 {12} {13} {13} {123} {345}
y=1 {2} {2} {2} {2} {24}
y=0 {2} {2} {2} {2} {25}
`
	var b strings.Builder
	for y := 4; y >= 0; y-- {
		fmt.Fprintf(&b, "y=%d", y)
		for x := range 5 {
			b.WriteString(" {")
			for _, port := range p.Tables.Mask(g.At(at(x, y)), p.Trees[0].MLID) {
				fmt.Fprint(&b, g.Fabric.Num(port))
			}
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	short.Equal(t, b.String(), want)
	if note := "comb: trunk row 2 of the 5x5 mesh for 1 group, SL 0"; len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], note) {
		t.Errorf("notes %q, want %q", p.Notes, note)
	}
}

// TestCombClosedForm compares the masks of all groups on 3x3 and 4x2 switches
// with X12, as it stands there, when all hosts send.
func TestCombClosedForm(t *testing.T) {
	for _, dims := range [][]int{{3, 3}, {4, 2}} {
		g := generated(t, Spec{Dims: dims, Hosts: 1}, lft.LIDOptions{})
		r := routed(t, g, lft.Options{})
		m, n := dims[0], dims[1]
		hosts := hostsByPosition(g)
		var groups []mft.Group
		for set := range 1 << len(hosts) {
			x := mft.Group{Name: fmt.Sprint(set), Senders: slices.Sorted(slices.Values(hosts))}
			for i, p := range hosts {
				if set>>i&1 != 0 {
					x.Receivers = append(x.Receivers, p)
				}
			}
			slices.Sort(x.Receivers)
			groups = append(groups, x)
		}
		for trunk := range n {
			p := combed(t, onTrunk(g, -1, trunk), r, groups, mft.Options{})
			for i := range p.Trees {
				set := p.Trees[i].Group
				some := func(want func(x, y int) bool) bool {
					for at := range m * n {
						if set>>at&1 != 0 && want(at/n, at%n) {
							return true
						}
					}
					return false
				}
				for at := range m * n {
					x, y := at/n, at%n
					var want []fabric.PortNum
					add := func(port fabric.PortNum, is bool) {
						if is {
							want = append(want, port)
						}
					}
					above := some(func(x1, y1 int) bool { return x1 == x && y1 > y })
					below := some(func(x1, y1 int) bool { return x1 == x && y1 < y })
					add(1, y == trunk && some(func(x1, _ int) bool { return x1 > x }))
					add(2, y >= trunk && above || y < trunk && some(func(x1, y1 int) bool { return x1 != x || y1 > y }))
					add(3, y == trunk && some(func(x1, _ int) bool { return x1 < x }))
					add(4, y <= trunk && below || y > trunk && some(func(x1, y1 int) bool { return x1 != x || y1 < y }))
					add(5, set>>at&1 != 0)
					var got []fabric.PortNum
					for _, port := range p.Tables.Mask(g.At(at), p.Trees[i].MLID) {
						got = append(got, g.Fabric.Num(port))
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%v, trunk row %d, set %b: mask %v at N(%d,%d), want %v", dims, trunk, set, got, x, y, want)
					}
				}
			}
		}
	}
}

// TestCombExhaustive floods from every sender of every group on small meshes,
// for all sets of senders on 2x3, and some on 3x3.
func TestCombExhaustive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		dims []int
		all  bool
	}{{[]int{2, 3}, true}, {[]int{5}, true}, {[]int{3, 3}, false}, {[]int{2, 2, 2}, false}} {
		g := generated(t, Spec{Dims: tt.dims, Hosts: 1}, lft.LIDOptions{})
		r := routed(t, g, lft.Options{})
		hosts := hostsByPosition(g)
		set := func(bits int) []fabric.PortID {
			var list []fabric.PortID
			for i, p := range hosts {
				if bits>>i&1 != 0 {
					list = append(list, p)
				}
			}
			slices.Sort(list)
			return list
		}
		var groups []mft.Group
		for to := range 1 << len(hosts) {
			for from := range 1 << len(hosts) {
				if tt.all || from == to || from == 1<<len(hosts)-1 || rnd.IntN(short.Of(64, 640)) == 0 {
					groups = append(groups, mft.Group{Name: fmt.Sprintf("%b to %b", from, to), Receivers: set(to), Senders: set(from)})
				}
			}
		}
		for trunk := range tt.dims[len(tt.dims)-1] {
			at := []int{-1, trunk, 1 - trunk}[:len(tt.dims)]
			for from := 0; from < len(groups); from += 8000 {
				part := groups[from:min(from+8000, len(groups))]
				mustBeExact(t, part, combed(t, onTrunk(g, at...), r, part, mft.Options{}))
			}
		}
	}
}

// TestCombExact floods from every sender of random groups of all end ports,
// switches' own included, on grids of all shapes; with their unicast paths the
// packets close no cycle.
func TestCombExact(t *testing.T) {
	for name, shape := range shapes() {
		t.Run(name, func(t *testing.T) {
			g := grow(t, shape)
			r := routed(t, g, lft.Options{})
			groups := randomGroups(rand.New(rand.NewPCG(3, 4)), endPorts(g.Fabric), short.Of(40, 8), 9)
			for _, balance := range []bool{false, true} {
				p := combed(t, Comb{Grid: g}, r, groups, mft.Options{Balance: balance})
				mustBeExact(t, groups, p)
				for _, x := range p.Trees {
					for _, port := range p.Tables.Ports(x.MLID) {
						if g.Wraps(port) {
							t.Fatalf("%s takes %s, which closes a ring", x.Name, g.Fabric.PortName(port))
						}
					}
				}
				if hasCycle(together(waitsFor(t, r), r, p)) {
					t.Error("unicast and multicast close a cycle")
				}
			}
			r, err := XY{}.Route(t.Context(), g.Fabric, lft.Options{})
			short.Check(t, err)
			p := combed(t, Comb{}, r, groups, mft.Options{}) // on the grid that both find
			mustBeExact(t, groups, p)
			if hasCycle(together(waitsFor(t, r), r, p)) {
				t.Error("without a grid unicast and multicast close a cycle")
			}
		})
	}
}

// together is the channels that wait for each other with unicast and with the
// packets of all senders of a plan.
func together(unicast map[channel]map[channel]bool, r *lft.Routing, p *mft.Plan) map[channel]map[channel]bool {
	// A packet that goes by a port of a tree that another went by before has the
	// same VL there, as it comes in and as it goes out.
	f := r.Fabric
	after := make(map[channel]map[channel]bool, len(unicast))
	for c, set := range unicast {
		after[c] = maps.Clone(set)
	}
	for i := range p.Trees {
		x := &p.Trees[i]
		c := newCopyTracker(f, p.Tables.Ports(x.MLID))
		held := make(map[fabric.PortID]channel) // by the port that a packet came in by
		known := make(map[[2]fabric.PortID]bool)
		c.hop = func(in, out fabric.PortID) {
			if known[[2]fabric.PortID{in, out}] {
				return
			}
			known[[2]fabric.PortID{in, out}] = true
			next := channel{port: out}
			if r.SL2VL != nil {
				next.vl = r.SL2VL.At(f.Num(in), out)[x.SL]
			}
			if after[next] == nil {
				after[next] = make(map[channel]bool)
			}
			if from, ok := held[in]; ok {
				after[from][next] = true
			}
			held[f.Peer(out)] = next
		}
		for _, s := range x.Senders {
			c.send(s)
		}
	}
	return after
}

// hasCycle returns true if channels wait for each other in a cycle, by taking
// away those that wait for none that is left.
func hasCycle(after map[channel]map[channel]bool) bool {
	before := make(map[channel][]channel)
	waits := make(map[channel]int)
	var free []channel
	for c, set := range after {
		waits[c] = len(set)
		if len(set) == 0 {
			free = append(free, c)
		}
		for d := range set {
			before[d] = append(before[d], c)
		}
	}
	gone := 0
	for ; len(free) > 0; gone++ {
		c := free[len(free)-1]
		free = free[:len(free)-1]
		for _, b := range before[c] {
			if waits[b]--; waits[b] == 0 {
				free = append(free, b)
			}
		}
	}
	return gone < len(after)
}

// TestCombDeadlock has B3 on one VL: with XY on 8x8, 200 sets of 50 random groups
// close no cycle; and when one group of a set is on another trunk, they mostly
// do.
func TestCombDeadlock(t *testing.T) {
	g := generated(t, Spec{Dims: []int{8, 8}, Hosts: 1}, lft.LIDOptions{})
	r := routed(t, g, lft.Options{})
	unicast := waitsFor(t, r)
	rnd := rand.New(rand.NewPCG(5, 6))
	cycles, part := 0, short.Of(1, 5)
	for i := range 200 / part {
		groups := randomGroups(rnd, g.Fabric.CAPorts(), 50, 16)
		p := combed(t, Comb{Grid: g}, r, groups, mft.Options{})
		if hasCycle(together(unicast, r, p)) {
			t.Fatalf("a cycle with %s", p.Notes)
		}
		if i >= 50/part {
			continue
		}
		// One group moves to another row.
		other := combed(t, onTrunk(g, -1, 2), r, groups, mft.Options{})
		moved := mft.NewTables(g.Fabric)
		for k := range p.Trees {
			from := p
			if k == 7 {
				from = other
			}
			moved.Add(p.Trees[k].MLID, from.Tables.Ports(p.Trees[k].MLID))
		}
		p.Tables = moved
		if hasCycle(together(unicast, r, p)) {
			cycles++
		}
	}
	t.Logf("one group on another row closes a cycle in %d of %d sets", cycles, 50/part)
	if part*cycles < 35 {
		t.Errorf("one group on another row closes a cycle in %d of %d sets only", cycles, 50/part)
	}
}

// TestCombCost has G-X11: hops and links on 16x16.
func TestCombCost(t *testing.T) {
	g := generated(t, Spec{Dims: []int{16, 16}, Hosts: 1}, lft.LIDOptions{})
	r := routed(t, g, lft.Options{})
	hosts := slices.Sorted(slices.Values(hostsByPosition(g)))
	for _, tt := range []struct {
		trunk, most int
		mean        float64
	}{{0, 45, 19.784}, {7, 31, 13.196}, {8, 31, 13.196}} {
		tree := newCombTree(g, []int{0, 1}, Trunk{At: []int{-1, tt.trunk}})
		sum, most := 0, 0
		for a := range int32(256) {
			for b := range a {
				n := 0
				for x, y := a, b; x != y; n++ { // the farther one from the root goes up
					if x > y {
						x = tree.Parent[x]
					} else {
						y = tree.Parent[y]
					}
				}
				sum, most = sum+2*n, max(most, n)
			}
		}
		if mean := float64(sum) / (256 * 255); mean < tt.mean-0.0005 || mean > tt.mean+0.0005 || most != tt.most {
			t.Errorf("trunk row %d: %.3f hops on average, %d at most; want %.3f and %d", tt.trunk, mean, most, tt.mean, tt.most)
		}
		all := []mft.Group{{Name: "all", Receivers: hosts, Senders: hosts}}
		p := combed(t, onTrunk(g, -1, tt.trunk), r, all, mft.Options{})
		cost := short.Must(mft.Measure(t.Context(), r, p))(t)
		if x := cost.Trees[0]; x.Links != 255 || x.Depth != tt.most || x.Crossings != 256*255 {
			t.Errorf("trunk row %d: %d links, depth %d, %d crossings; want 255, %d, %d", tt.trunk, x.Links, x.Depth, x.Crossings, tt.most, 256*255)
		}
	}
	// Links that a packet crosses, with groups of several sizes.
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, tt := range []struct {
		size     int
		xy, comb float64
	}{{4, 24.3, 24.2}, {16, 79.2, 69.2}, {102, 214.2, 208.8}} {
		var groups []mft.Group
		for i := range 400 {
			members := pick(rnd, hosts, tt.size)
			groups = append(groups, mft.Group{Name: fmt.Sprint(i), Receivers: members, Senders: pick(rnd, members, 1)})
		}
		for _, scheme := range []struct {
			mft.Scheme
			want float64
		}{{mft.Union{}, tt.xy}, {onTrunk(g, -1, 8), tt.comb}} {
			p := short.Must(scheme.Build(t.Context(), r, groups, mft.Options{}))(t)
			cost := short.Must(mft.Measure(t.Context(), r, p))(t)
			got := float64(cost.Crossings) / float64(len(groups))
			if got < scheme.want*0.96 || got > scheme.want*1.04 {
				t.Errorf("%s, groups of %d: %.1f links, want about %.1f", scheme.Name(), tt.size, got, scheme.want)
			}
			t.Logf("%s, groups of %d: %.1f links (%.1f)", scheme.Name(), tt.size, got, scheme.want)
		}
	}
}

// TestCombLoads compares the loads of all trunks with those that packets make; and the trunk that is chosen with all others.
func TestCombLoads(t *testing.T) {
	for name, shape := range shapes() {
		if len(shape.dims) < 2 || len(shape.dims) > 3 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			shape.links = nil
			g := grow(t, shape)
			r := routed(t, g, lft.Options{})
			rnd := rand.New(rand.NewPCG(9, 10))
			groups := randomGroups(rnd, endPorts(g.Fabric), 30, 5)
			x := &combChooser{g: g, groups: groups, vls: newSLVLs(g, r)}
			lines := short.Must(x.lines(t.Context(), combOrders(len(g.Dims))[0]))(t)
			measure := func(at ...int) int64 {
				cost := short.Must(mft.Measure(t.Context(), r, combed(t, onTrunk(g, at...), r, groups, mft.Options{})))(t)
				return cost.MaxLink
			}
			least, middle := int64(1)<<60, 0
			short.Equal(t, len(lines), g.Positions()/g.Dims[0], "lines")
			for _, l := range lines {
				load, distance := measure(l.at...), 0
				for d, y := range l.at[1:] {
					distance += abs(2*y - g.Dims[d+1] + 1)
				}
				if load != l.load || distance != l.distance {
					t.Errorf("trunk %v: %d copies on the busiest link, reckoned %d; distance %d, want %d", l.at, load, l.load, l.distance, distance)
				}
				if load < least || load == least && distance < middle {
					least, middle = load, distance
				}
			}
			chosen, _, err := Comb{Grid: g}.Choose(t.Context(), r, groups)
			short.Check(t, err)
			distance := 0
			at := chosen.lanes[0].tree.trunk.At
			for d, y := range at {
				if d > 0 {
					distance += abs(2*y - g.Dims[d] + 1)
				}
			}
			if got := measure(at...); got != least || distance != middle {
				t.Errorf("trunk %v: %d copies on the busiest link, %d from the middle; %d and %d are possible", at, got, distance, least, middle)
			}
		})
	}
}

// TestCombTurnModels has the trunks that the turn models allow.
func TestCombTurnModels(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 5}, Hosts: 1}, lft.LIDOptions{})
	groups := randomGroups(rand.New(rand.NewPCG(11, 12)), endPorts(g.Fabric), 100, 9)
	for _, tt := range []struct {
		engine TurnModel
		rows   []int // that are safe
		cols   []int
		want   string
	}{
		{NegativeFirst, []int{0}, []int{0}, "column 0"},
		{WestFirst, []int{0, 1, 2, 3, 4}, []int{0}, "row 2"},
		{NorthLast, []int{0}, []int{0, 1, 2, 3}, "column 1"},
	} {
		r := short.Must(routeTurns(t.Context(), tt.engine, g, lft.Options{}))(t)
		unicast := waitsFor(t, r)
		safe := func(at ...int) bool {
			p := combed(t, onTrunk(g, at...), r, groups, mft.Options{})
			mustBeExact(t, groups, p)
			return !hasCycle(together(unicast, r, p))
		}
		for y := range 5 {
			short.Equal(t, safe(-1, y), slices.Contains(tt.rows, y), r.Engine, "trunk row", y, tt.rows)
		}
		for x := range 4 {
			short.Equal(t, safe(x, -1), slices.Contains(tt.cols, x), r.Engine, "trunk column", x, tt.cols)
		}
		// All to all, the load is the same everywhere, and the middle decides.
		hosts := slices.Sorted(slices.Values(g.Fabric.CAPorts()))
		all := []mft.Group{{Name: "all", Receivers: hosts, Senders: hosts}}
		p := combed(t, Comb{Grid: g}, r, all, mft.Options{})
		mustBeExact(t, all, p)
		if want := fmt.Sprintf("comb: trunk %s of the 4x5 mesh for 1 group, SL 0", tt.want); p.Notes[0] != want {
			t.Errorf("%s: %q, want %q", r.Engine, p.Notes[0], want)
		}
	}
}

// TestCombCables has parallel cables: with Options.Balance the groups take turns,
// and without they take the first.
func TestCombCables(t *testing.T) {
	g := grow(t, plot{dims: []int{3, 3}, links: []int{3, 2}, seed: 1})
	r := routed(t, g, lft.Options{})
	hosts := slices.Sorted(slices.Values(g.Fabric.CAPorts()))
	var groups []mft.Group
	for i := range 12 {
		groups = append(groups, mft.Group{Name: fmt.Sprint(i), Receivers: hosts, Senders: hosts})
	}
	for _, balance := range []bool{false, true} {
		p := combed(t, Comb{Grid: g}, r, groups, mft.Options{Balance: balance})
		mustBeExact(t, groups, p)
		use := make(map[fabric.PortID]int)
		for _, x := range p.Trees {
			for _, port := range p.Tables.Ports(x.MLID) {
				use[port]++
			}
		}
		for s := range fabric.NodeID(9) {
			for way := range Dir(4) {
				var got, want []int
				ports := g.Ports(s, way)
				for _, port := range ports {
					got = append(got, use[port])
					want = append(want, 12/len(ports))
				}
				slices.Sort(got)
				if len(got) == 0 || got[len(got)-1] == 0 {
					continue // not in the comb
				}
				if !balance {
					for i := range want {
						want[i] = 0
					}
					want[len(want)-1] = 12
				}
				if !slices.Equal(got, want) {
					t.Errorf("balance %v: %v groups on the cables of N(%v) in direction %v, want %v", balance, got, g.Coord(s), way, want)
				}
			}
		}
	}
}

func TestCombEveryCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	g := grow(t, shapes()["parallel links"])
	r := routed(t, g, lft.Options{})
	r.SL2VL = lft.NewSL2VL(g.Fabric, lft.IdentityVLs(4))
	groups := randomGroups(rand.New(rand.NewPCG(13, 14)), endPorts(g.Fabric), 300, 9)
	var first *mft.Plan
	for _, n := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(n)
		p := combed(t, Comb{}, r, groups, mft.Options{Balance: true})
		if first == nil {
			first = p
		}
		for _, mlid := range p.Tables.MLIDs() {
			if !slices.Equal(p.Tables.Ports(mlid), first.Tables.Ports(mlid)) {
				t.Fatalf("MLID %#x differs on %d CPUs", mlid, n)
			}
		}
	}
}

// TestXYTrees has the paths from every source as a tree, on rings of even length,
// too: mft.Union, with an MLID for each sender, serves all hosts of all grids
// whose neighbours are joined by one cable each.
func TestXYTrees(t *testing.T) {
	list := shapes()
	for _, dims := range [][]int{{4, 4}, {6, 6}, {4, 4, 4}, {4, 6}, {8, 4}} {
		list[fmt.Sprint(dims)] = plot{dims: dims, wrap: []bool{true, true, true}[:len(dims)]}
	}
	for name, shape := range list {
		if shape.links != nil {
			continue // LIDs of one switch are divided over parallel cables
		}
		t.Run(name, func(t *testing.T) {
			g := grow(t, shape)
			f := g.Fabric
			r := routed(t, g, lft.Options{})
			all := slices.Sorted(slices.Values(f.CAPorts()))
			groups := []mft.Group{{Name: "all", Receivers: all, Senders: all}}
			if name == "four rings" { // of the 256 hosts some
				groups = randomGroups(rand.New(rand.NewPCG(1, 1)), endPorts(f), 5, 40)
			}
			p := short.Must(mft.Union{}.Build(t.Context(), r, groups, mft.Options{}))(t)
			for i := range p.Trees {
				x := &p.Trees[i]
				c := newCopyTracker(f, p.Tables.Ports(x.MLID))
				c.send(x.Senders[0])
				if what := c.wrong(x.Senders[0], x.Receivers); what != "" {
					t.Fatalf("%s: %s", f.PortName(x.Senders[0]), what)
				}
			}
		})
	}
}
