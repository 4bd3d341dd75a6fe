package reproduce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Worked figures and rules of the Myrinet paper (M7 to M20).
var gerlaExhibits = []Experiment{
	exhibit("headers", "Fig. 2: source routes of multicast worms, and groups of IP addresses", gerlaHeaders),
	{Name: "deadlock", Title: "Fig. 3: a multicast worm and a unicast worm", Run: gerlaDeadlock},
	exhibit("path-deadlock", "Fig. 4: a multicast worm that host adapters pass on", gerlaPathDeadlock),
	exhibit("buffer-deadlock", "Figs. 6 and 7: buffers of host adapters", gerlaBufferDeadlock),
	exhibit("backpressure", "Fig. 1: STOP and GO", gerlaBackpressure),
	exhibit("reservation", "Fig. 5: a worm that asks for a buffer on its way", gerlaReservation),
	exhibit("tree", "Fig. 9: a rooted tree", gerlaTree),
	exhibit("order", "Sections 5 and 6: in which order members get messages", gerlaOrder),
	exhibit("paths", "Section 2: up/down paths and shortest ones", gerlaPaths),
	exhibit("broadcast", "Section 3: broadcast by the root", gerlaBroadcast),
}

var gerlaRows = []rowsClaim{
	{
		spec: "M7", words: "a header of ports and pointers describes a multicast tree (figure 2, section 8.1)", exhibit: "headers",
		why: "each switch finds the next port behind the pointer and stamps what is between on the copy",
	},
	{
		spec: "M8", words: "with up/down routing a multicast and a unicast worm can deadlock; on the spanning tree, with interruption or with flushing worms cannot (figure 3, section 3)",
		exhibit: "deadlock",
		why:     "a blocked branch stops the others, which hold what they have; two multicasts do that to each other on any tree",
		differ:  []string{"two multicasts at a time on the spanning tree"}, as: "for one multicast at a time",
	},
	{
		spec: "M14", words: "passing on by cut-through without room for a whole worm can deadlock, with room it cannot (figure 4, section 4)", exhibit: "path-deadlock",
		why: "through an adapter a worm goes up again after it went down, which up/down routes never do; an adapter that takes in all of it ends its path there",
	},
	{
		spec: "M16", words: "one class of buffers can deadlock, two classes cannot (figures 6 and 7, section 4)", exhibit: "buffer-deadlock",
		why: "messages ask for a higher ID or a higher class only",
	},
	{
		spec: "M1", words: "a buffer above one threshold stops the sender, below another one it has it go on (figure 1)", exhibit: "backpressure",
		why: "what comes until a STOP has arrived is two cables of bytes, for which there is room above the threshold",
	},
	{
		spec: "M15-ack", words: "a host without room drops the worm and says so, and the sender sends it again; no worm waits in the network for buffers (figure 5)", exhibit: "reservation",
		why: "a NACK comes back while the worm is still sent, which ends it",
	},
	{
		spec: "M18", words: "children have higher IDs than parents, and a worm that is flooded inverts its direction once at most (figure 9)", exhibit: "tree",
		why: "a worm climbs in the first class and descends in the second, and nothing climbs again",
	},
	{
		spec: "M17-order", words: "messages that start at the lowest ID, or at the root, come to all members in one order; others do not (sections 5 and 6)", exhibit: "order",
		why: "one host serializes all messages; a NACK could let the next one overtake, unless each send waits for the answer to the one before",
	},
	{
		spec: "M3", words: "up/down paths are generally not shortest paths (section 2)", exhibit: "paths",
		why:    "on a mesh they are, and elsewhere most are",
		differ: []string{"8x8 mesh: some paths are longer than shortest ones"}, as: "outside of meshes with the root in a corner",
	},
	{
		spec: "M12", words: "that a broadcast starts from the root does not significantly increase the overall path length (section 3)", exhibit: "broadcast",
		why:    "all links of the spanning tree are crossed in any case, and the way to the root comes on top; taken as: less than 10 %",
		differ: []string{"8x8 mesh: the way to the root makes broadcasts longer by less than 10 %"}, as: "where the root is not in the corner of a mesh",
	},
}

func gerlaHeaders(_ context.Context, _ *Lab, f *Figure) error {
	const tree = "1(2 4) 3(5(1 2)) 6"
	t, _, err := parseTree(tree)
	if err != nil {
		return err
	}
	header, err := myrinet.AppendTree(nil, t)
	if err != nil {
		return err
	}
	f.add("header of a tree with 8 channels: "+tree, "", fmt.Sprintf("% x", header))
	f.add("port behind the first pointer, the next one of the switch", "3", header[1+header[1]])
	f.Calls = []string{"ibweave-papers model tree-header --tree '" + tree + "'"}
	rng := rand.New(rand.NewPCG(7, 7))
	same := true
	const trees = 500
	for range trees {
		t := randomTree(rng, 4)
		h, err := myrinet.AppendTree(nil, t)
		if err != nil {
			return err
		}
		back, err := splitTree(h)
		if err != nil {
			return err
		}
		same = same && fmt.Sprint(back) == fmt.Sprint(t)
	}
	f.add(fmt.Sprintf("switches that take headers apart send worms along the tree, %d random trees", trees), "yes", yes(same))
	// A unicast worm by ports 3, 5 and 1: each switch strips a byte.
	data := "data"
	sent, err := myrinet.AppendWorm(nil, myrinet.Route{3, 5, 1}, []byte(data))
	if err != nil {
		return err
	}
	var ports []string
	for range 3 {
		port, next, err := myrinet.Strip(sent)
		if err != nil {
			return err
		}
		ports, sent = append(ports, fmt.Sprint(port)), next
	}
	f.add("ports that switches strip of a unicast worm by 3, 5 and 1", "3 5 1", strings.Join(ports, " "))
	rest, err := myrinet.Open(sent)
	if err != nil {
		return err
	}
	f.add("what is left behind the last switch, with a new checksum at each", data, string(rest))
	for _, g := range []struct{ address, group string }{{"224.2.1.5", "5"}, {"239.9.9.5", "5"}, {"224.0.0.255", "255"}} {
		id, err := myrinet.GroupOf(netip.MustParseAddr(g.address))
		if err != nil {
			return err
		}
		f.add("group of "+g.address+": its last eight bits", g.group, id)
	}
	groups, err := myrinet.MyrinetGroups([]myrinet.Membership{
		{Group: netip.MustParseAddr("224.2.1.5"), Hosts: []int32{1, 2}}, {Group: netip.MustParseAddr("239.9.9.5"), Hosts: []int32{2, 3}},
	})
	if err != nil {
		return err
	}
	f.add("hosts of group 5, of 224.2.1.5 with 1 and 2 and 239.9.9.5 with 2 and 3", "[1 2 3]", groups[5])
	return nil
}

func randomTree(rng *rand.Rand, depth int) (t myrinet.TreeRoute) {
	for _, p := range rng.Perm(16)[:1+rng.IntN(3)] {
		b := myrinet.Branch{Port: fabric.PortNum(p)}
		if depth > 1 && rng.IntN(2) == 0 {
			b.Below = randomTree(rng, depth-1)
		}
		t = append(t, b)
	}
	return t
}

// splitTree takes a header apart as the switches on its way do.
func splitTree(header []byte) (t myrinet.TreeRoute, err error) {
	stamps, _, err := myrinet.Split(header)
	if err != nil {
		return nil, err
	}
	for _, s := range stamps {
		below, err := splitTree(s.Header)
		if err != nil {
			return nil, err
		}
		t = append(t, myrinet.Branch{Port: s.Port, Below: below})
	}
	return t, nil
}

// wormFlits is the length of worms in these figures.
const wormFlits = 20

// gerlaFigure3 is the network of figure 3: a tree A-B, A-C, B-E, C-D with a cross link
// D-E, and hosts a, b, c and x at A, E, D and C.
func gerlaFigure3() (*gerlaNet, error) {
	p, err := gen.NewPlan(5, 4)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		p.Switch(8, name)
	}
	for _, c := range [][4]int{{0, 1, 1, 1}, {0, 2, 2, 1}, {1, 2, 4, 1}, {2, 2, 3, 1}, {3, 2, 4, 2}} {
		p.Cable(c[0], c[1], c[2], c[3])
	}
	for i, at := range []int{0, 4, 3, 2} {
		p.Cable(p.CA(1, string("abcx"[i])), 1, at, 8)
	}
	return withRoutes(p.Fabric())
}

// worms makes a worm for each way, a list of hosts: along tables t from the first to the others.
func (n *gerlaNet) worms(t *lft.Tables, flits int, ways ...[]fabric.PortID) ([]lan.SwitchWorm, error) {
	worms := make([]lan.SwitchWorm, len(ways))
	for i, way := range ways {
		var list []myrinet.Route
		for _, d := range way[1:] {
			r, err := myrinet.SourceRoute(n.f, t, way[0], n.f.LID(d))
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		r, err := myrinet.TreeOf(list)
		if err != nil {
			return nil, err
		}
		worms[i] = lan.SwitchWorm{Source: way[0], Route: r, Flits: flits}
	}
	return worms, nil
}

func (d *plan) stuckWorms(waits []lan.SwitchWait, names string) {
	for _, w := range waits {
		d.arrow(w.Port, string(names[w.For]), false)
		d.arrow(w.Port, string(names[w.Worm]), true)
	}
}

// named places the nodes whose names at has, at these coordinates.
func named(f *fabric.Fabric, at map[string][2]float64) place {
	return func(n fabric.NodeID) (drawing.Spot, bool) {
		name := f.Name(n).Text
		xy, ok := at[name]
		return drawing.Spot{Name: name, X: xy[0], Y: xy[1], End: !f.IsSwitch(n)}, ok
	}
}

func gerlaDeadlock(lab *Lab) (*Figure, error) {
	line := "switches --unicasts 20 --draws 200"
	if lab.Quick {
		line = "switches --unicasts 20 --draws 40"
	}
	lab.calls = 2
	random, err := callModel(lab, line)
	if err != nil {
		return nil, err
	}
	f := &Figure{Calls: random.Calls}
	return f, lab.Each(1, func(ctx context.Context, _ int) error { return f.addDeadlocks(ctx, random) })
}

// addDeadlocks adds the worms of Fig. 3 with each remedy, and those of random networks.
func (f *Figure) addDeadlocks(ctx context.Context, random *Figure) error {
	net, err := gerlaFigure3()
	if err != nil {
		return err
	}
	fab := net.f
	h := fab.CAPorts()
	a, b, c, x := h[0], h[1], h[2], h[3]
	for _, scheme := range []struct {
		name, loops, ends string
		tables            *lft.Tables
		remedy            lan.Remedy
	}{
		{"IDLE, all links", "yes", "deadlock", net.tables, lan.Idle},
		{"IDLE, spanning tree", "no", "all arrive", net.tree, lan.Idle},
		{lan.Interrupt.String() + ", all links", "", "all arrive", net.tables, lan.Interrupt},
		{lan.Flush.String() + ", all links", "", "all arrive", net.tables, lan.Flush},
	} {
		worms, err := net.worms(scheme.tables, wormFlits, []fabric.PortID{a, b, c}, []fabric.PortID{x, b})
		if err != nil {
			return err
		}
		r, err := lan.RunSwitches(worms, lan.SwitchOptions{Fabric: fab, Buffer: 1, Remedy: scheme.remedy, FlagAfter: 10, Timeout: 30})
		if err != nil {
			return err
		}
		f.add(scheme.name, scheme.ends, outcome(r.Deadlock != nil))
		if r.Deadlock != nil {
			d := drawFabric("Fig. 3: M from a to b and c, U from x to b", fab, named(fab, map[string][2]float64{
				"A": {1, 3}, "B": {2, 2}, "C": {0, 2}, "E": {2, 1}, "D": {0, 1}, "a": {1, 4}, "b": {2, 0}, "c": {0, 0}, "x": {0, 3},
			}))
			d.stuckWorms(r.Deadlock, "MU")
			f.Drawings = append(f.Drawings, d.Network)
		}
		if scheme.loops == "" {
			continue
		}
		// The same network and routes as forwarding tables.
		masks := mft.NewTables(fab)
		masks.Add(mft.MinMLID, treeMask(fab, worms[0]))
		v, err := verify.Check(ctx, &state.State{Fabric: fab, Tables: scheme.tables, Multicast: &mft.Plan{Tables: masks, Trees: []mft.Tree{
			{Name: "a", MLID: mft.MinMLID, Senders: []fabric.PortID{a}, Receivers: []fabric.PortID{b, c}},
		}}}, verify.Options{Copying: verify.Wormhole})
		if err != nil {
			return err
		}
		f.add(scheme.name+": verify finds a credit loop of worms", scheme.loops, yes(v.Multicast.CreditLoops > 0))
	}
	for i, name := range []string{"idle", "idle-tree", "interrupt", "flush"} {
		at := random.At(switchStuck+name, 20)
		f.add(fmt.Sprintf("of %d random networks deadlock with %s", at.N, name), []string{"", "0", "0", "0"}[i], math.Round(at.Y*float64(at.N)))
	}
	dead, err := twoOnALine()
	if err != nil {
		return err
	}
	f.add("two multicasts at a time on the spanning tree", outcome(false), outcome(dead))
	f.Parameters = []Parameter{{"worms", fmt.Sprintf("%d flits", wormFlits)}, {"buffers", "1 flit"}, {"start", "both at time 0"}}
	return nil
}

func treeMask(f *fabric.Fabric, w lan.SwitchWorm) []fabric.PortID {
	var ports []fabric.PortID
	var walk func(at fabric.NodeID, t myrinet.TreeRoute)
	walk = func(at fabric.NodeID, t myrinet.TreeRoute) {
		for _, b := range t {
			out := f.Port(at, b.Port)
			ports = append(ports, out)
			walk(f.Owner(f.Peer(out)), b.Below)
		}
	}
	walk(f.Owner(f.Peer(w.Source)), w.Route)
	slices.Sort(ports)
	return ports
}

// twoOnALine returns true if two multicasts deadlock on four switches in a row, which is a tree.
func twoOnALine() (bool, error) {
	net, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{4, 1}, Hosts: 1}))
	if err != nil {
		return false, err
	}
	h := net.f.CAPorts()
	worms, err := net.worms(net.tree, wormFlits, []fabric.PortID{h[1], h[0], h[3]}, []fabric.PortID{h[2], h[0], h[3]})
	if err != nil {
		return false, err
	}
	r, err := lan.RunSwitches(worms, lan.SwitchOptions{Fabric: net.f, Buffer: 1})
	return r != nil && r.Deadlock != nil, err
}

// gerlaRing returns six switches in a ring, with hosts. Up/down
// routes with root v take both sides of the ring. With adapters, A and
// B are switches with one cable, by which worms come and leave.
func gerlaRing(adapters bool) (*fabric.Fabric, error) {
	hosts := []struct {
		name string
		at   int
	}{{"A", 0}, {"B", 3}, {"S", 0}, {"C", 5}, {"y", 4}, {"z", 1}}
	switches := []string{"v", "p", "q", "w", "r", "u"}
	n := len(switches)
	if adapters {
		n += 2
	}
	p, err := gen.NewPlan(n, 8)
	if err != nil {
		return nil, err
	}
	for _, name := range switches {
		p.Switch(8, name)
	}
	for i := range switches {
		p.Cable(i, 1, (i+1)%len(switches), 2)
	}
	used := map[int]int{}
	for i, h := range hosts {
		var node int
		if adapters && i < 2 {
			node = p.Switch(1, h.name)
		} else {
			node = p.CA(1, h.name)
		}
		used[h.at]++
		p.Cable(node, 1, h.at, 4+used[h.at])
	}
	return p.Fabric()
}

func gerlaPathDeadlock(_ context.Context, _ *Lab, f *Figure) error {
	net, err := withRoutes(gerlaRing(false))
	if err != nil {
		return err
	}
	hosts := map[string]fabric.PortID{}
	for _, p := range net.f.CAPorts() {
		hosts[net.f.Name(net.f.Owner(p)).Text] = p
	}
	route := func(from, to string) (myrinet.Route, error) {
		return myrinet.SourceRoute(net.f, net.tables, hosts[from], net.f.LID(hosts[to]))
	}
	// X goes on at the adapters by the port that it came by.
	var x myrinet.Route
	for _, leg := range [][2]string{{"S", "A"}, {"A", "B"}, {"B", "C"}} {
		r, err := route(leg[0], leg[1])
		if err != nil {
			return err
		}
		if x != nil {
			x = append(x, 1)
		}
		x = append(x, r...)
	}
	y, err := route("y", "z")
	if err != nil {
		return err
	}
	through, err := withLIDs(gerlaRing(true))
	if err != nil {
		return err
	}
	ends := map[string]fabric.PortID{}
	for n := range fabric.NodeID(through.NumNodes()) {
		ends[through.Name(n).Text] = through.Port(n, 1)
	}
	const flits = 60
	for _, room := range []struct {
		what, paper string
		rooms       map[fabric.PortID]int
	}{
		{"adapters without room for the worm", "deadlock", nil},
		{"adapters with room for the worm", "all arrive", map[fabric.PortID]int{ends["A"]: flits, ends["B"]: flits}},
	} {
		// At some start of Y, X has the cables between A and B and not yet the one after B.
		found := false
		for start := range 40 {
			worms := []lan.SwitchWorm{{Source: ends["S"], Route: x.Tree(), Flits: flits}, {Source: ends["y"], Route: y.Tree(), Flits: flits, Start: start}}
			r, err := lan.RunSwitches(worms, lan.SwitchOptions{Fabric: through, Buffer: 1, Rooms: room.rooms})
			if err != nil {
				return err
			}
			if r.Deadlock == nil {
				continue
			}
			if !found {
				d := drawFabric("Fig. 4: X is passed on by A and B", through, named(through, map[string][2]float64{
					"v": {1, 2}, "p": {2, 2}, "q": {2, 1}, "w": {1, 0}, "r": {0, 1}, "u": {0, 2}, "A": {1, 3}, "B": {1, 1},
				}))
				d.stuckWorms(r.Deadlock, "XY")
				d.Notes = append(d.Notes, fmt.Sprintf("Y starts %d cycles after X.", start))
				f.Drawings = append(f.Drawings, d.Network)
			}
			found = true
		}
		f.add(room.what+", at some start of Y", room.paper, outcome(found))
	}
	f.Parameters = []Parameter{{"worms", fmt.Sprintf("%d flits", flits)}, {"buffers of switches", "1 flit"}, {"starts of Y", "0 to 39 cycles after X"}}
	return nil
}

func gerlaBufferDeadlock(ctx context.Context, lab *Lab, f *Figure) error {
	net, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))
	if err != nil {
		return err
	}
	fab, tables, hosts, id := net.f, net.tables, net.f.CAPorts(), net.idByPlace
	group := func(name string, n int) mft.Group {
		return mft.Group{Name: name, Receivers: hosts[:n], Senders: hosts[:n]}
	}
	for _, classes := range []int{1, 2} {
		s, err := myrinet.Build(fab, tables, []mft.Group{group("X and Y", 2)}, myrinet.Options{Classes: classes, ID: id, Return: true})
		if err != nil {
			return err
		}
		what := fmt.Sprintf("hosts A and B with %d %s of buffers", classes, []string{"class", "classes"}[classes-1])
		waits := s.Check().Deadlock
		f.add(what+": waits close a cycle", yes(classes == 1), yes(waits != nil))
		if waits != nil {
			f.Drawings = append(f.Drawings, drawWaits("Fig. 6: one class of buffers", waits, func(host int32) string { return "host " + string('A'+host) }))
		}
		dead, err := overloaded(ctx, lab, fab, tables, classes, id)
		if err != nil {
			return err
		}
		f.add(fmt.Sprintf("six groups of six on a 4x4 torus, overloaded, with %d %s", classes, []string{"class", "classes"}[classes-1]), outcome(classes == 1), outcome(dead))
	}
	five, err := myrinet.Build(fab, tables, []mft.Group{group("five", 5)}, myrinet.Options{ID: id})
	if err != nil {
		return err
	}
	f.add("Fig. 7: from host 3 of five, hosts and classes", "4/1 5/1 1/2 2/2", circuitFrom(five, 3))
	four, err := myrinet.Build(fab, tables, []mft.Group{group("four", 4)}, myrinet.Options{ID: id, Return: true})
	if err != nil {
		return err
	}
	f.add("Fig. 8: hop length of a circuit of four", "4", four.Groups[0].Hops)
	return nil
}

// circuitFrom lists the hosts that a message from host id
// visits, each with the buffer class there.
func circuitFrom(s *myrinet.Schedule, id int32) string {
	var says []string
	at, held, from := int32(slices.IndexFunc(s.Hosts, func(h myrinet.Host) bool { return h.ID == id })), myrinet.Class(0), myrinet.Anyone
	for range s.Groups[0].Hops {
		i := slices.IndexFunc(s.Groups[0].Sends, func(x myrinet.Send) bool {
			return x.At == at && x.Held == held && (x.From == myrinet.Anyone || x.From == from)
		})
		if i < 0 {
			break
		}
		x := s.Groups[0].Sends[i]
		says = append(says, fmt.Sprintf("%d/%d", s.Hosts[x.To].ID, x.Class))
		at, held, from = x.To, x.Class, x.At
	}
	return strings.Join(says, " ")
}

func drawWaits(title string, waits []myrinet.Wait, name func(host int32) string) drawing.Network {
	d := drawing.Network{Title: title, Arrows: []drawing.Arrow{}, Cables: [][2]int{}}
	n := len(waits)
	for i, w := range waits {
		angle := 2 * math.Pi * float64(i) / float64(n)
		d.Spots = append(d.Spots, drawing.Spot{Name: fmt.Sprintf("%s, class %d", name(w.At), w.Held), X: 1 - math.Cos(angle), Y: 1 + math.Sin(angle)})
		if n > 2 || i == 0 {
			d.Cables = append(d.Cables, [2]int{i, (i + 1) % n})
		}
		d.Arrows = append(d.Arrows, drawing.Arrow{From: i, To: (i + 1) % n, Who: string("XYZ"[i%3]), Waits: true})
	}
	return d
}

// overloaded returns true if hosts that send without end
// deadlock, with buffers for one worm in each class.
func overloaded(ctx context.Context, lab *Lab, fab *fabric.Fabric, tables *lft.Tables, classes int, id func(fabric.PortID) int32) (bool, error) {
	rng := rand.New(rand.NewPCG(lab.Seed, 0x6e1b))
	hosts := fab.CAPorts()
	groups := make([]mft.Group, 6)
	for g := range groups {
		groups[g].Name = fmt.Sprintf("group %d", g)
		for _, h := range rng.Perm(len(hosts))[:6] {
			groups[g].Receivers = append(groups[g].Receivers, hosts[h])
		}
		slices.Sort(groups[g].Receivers)
		groups[g].Senders = groups[g].Receivers
	}
	s, err := myrinet.Build(fab, tables, groups, myrinet.Options{Classes: classes, ID: id})
	if err != nil {
		return false, err
	}
	_, err = lan.Run(ctx, lan.Options{
		Fabric: fab, Tables: tables, Schedule: s, Wires: lan.DefaultWires(), Seed: lab.Seed, Messages: 2000, Time: 1 << 40,
		Adapters: lan.Adapters{Buffer: 2000, Acks: true, Timeout: 500, AckBytes: 8, CutThrough: true},
		Traffic:  lan.Traffic{Window: 2, Multicast: 1, MeanBytes: 400, MaxBytes: 2000},
	})
	if _, ok := errors.AsType[*lan.DeadlockError](err); ok {
		return true, nil
	}
	return false, err
}
