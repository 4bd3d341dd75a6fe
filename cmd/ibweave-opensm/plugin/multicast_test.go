package plugin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// mgid is the i-th MGID of a test.
func mgid(i int) mft.MGID { return netip.MustParseAddr(fmt.Sprintf("ff12:a01c::%x", i+1)) }

// someBoxes is n groups of random ports: full members, non-members, send-only
// ones.
func someBoxes(f *fabric.Fabric, n int, rnd *rand.Rand) []Box {
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	boxes := make([]Box, n)
	for i := range boxes {
		g := Group{MGID: mgid(i)}
		for k, p := range rnd.Perm(len(ends))[:2+rnd.IntN(len(ends)/2)] {
			state := mad.FullMember
			if k > 0 && rnd.IntN(2) == 0 {
				state = []mad.JoinState{mad.NonMember, mad.SendOnlyNonMember, mad.SendOnlyFullMember, mad.FullMember | mad.NonMember}[rnd.IntN(4)]
			}
			g.Members = append(g.Members, Member{f.PortGUID(ends[p]), state})
		}
		boxes[i] = Box{MLID: mft.MinMLID + fabric.LID(n-i), Groups: []Group{g}}
	}
	return boxes
}

// asked is the masks that OpenSM has after it has asked for boxes.
type asked map[fabric.LID][]SwitchPort

func (a asked) ask(o *opened, boxes []Box, which ...int) {
	for _, i := range which {
		a[boxes[i].MLID] = o.Masks(boxes[i], func() []Box { return boxes })
	}
}

func all(boxes []Box) []int {
	list := make([]int, len(boxes))
	for i := range list {
		list[i] = i
	}
	return list
}

// check verifies masks against the members of boxes, with the unicast tables.
func (a asked) check(t *testing.T, r *lft.Routing, boxes []Box) *verify.Result {
	t.Helper()
	byGUID := make(map[fabric.GUID]fabric.PortID)
	r.Fabric.EndPorts(func(p fabric.PortID) { byGUID[r.Fabric.PortGUID(p)] = p })
	boxes = slices.Clone(boxes)
	slices.SortFunc(boxes, func(a, b Box) int { return int(a.MLID) - int(b.MLID) })
	mc := &mft.Plan{Tables: mft.NewTables(r.Fabric)}
	for i, b := range boxes {
		var ports []fabric.PortID
		for _, at := range a[b.MLID] {
			s, ok := r.Fabric.SwitchByGUID(at.Switch)
			if !ok {
				t.Fatalf("no switch %s", at.Switch)
			}
			ports = append(ports, r.Fabric.Port(s, at.Port))
		}
		tree := mft.Tree{Group: i, Name: fmt.Sprint(i), MLID: b.MLID}
		for _, g := range b.Groups {
			for _, m := range g.Members {
				p, ok := byGUID[m.Port]
				if !ok {
					continue
				}
				tree.Senders = append(tree.Senders, p)
				if m.State&(mad.FullMember|mad.NonMember) != 0 {
					tree.Receivers = append(tree.Receivers, p)
				}
			}
		}
		slices.Sort(tree.Senders)
		slices.Sort(tree.Receivers)
		tree.Senders, tree.Receivers = slices.Compact(tree.Senders), slices.Compact(tree.Receivers)
		mc.Tables.Add(b.MLID, ports)
		mc.Trees = append(mc.Trees, tree)
	}
	return short.Must(verify.Check(context.Background(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: mc}, verify.Options{}))(t)
}

// clean says that nothing is missing, double, or can wait for ever.
func clean(v *verify.Result) bool {
	m := v.Multicast
	return m.Missing == 0 && m.Duplicates == 0 && m.Loops == 0 && m.CreditLoops == 0
}

var fabrics = []struct {
	engine string
	make   func() (*fabric.Fabric, error)
}{
	{"updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}) }},
	{"spam", func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 4, Hosts: 20, Seed: 3})
	}},
	{"minhop", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}) }},
	{"xy", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}) }},
	{"xy", func() (*fabric.Fabric, error) {
		return mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	}},
}

// Masks stay exact for all members as ports join and leave, and free of credit
// loops together with unicast. Masks of groups that have not changed stay.
func TestMasks(t *testing.T) {
	for _, tc := range fabrics {
		for seed := range uint64(short.Of(4, 1)) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			f, err := tc.make()
			f = withLIDs(t, f, err)
			o := open(t, "")
			s := snapshotOf(f, rnd)
			s.QoS = true
			tables := short.Must(o.Route(o.engine(tc.engine), s))(t)
			boxes := someBoxes(f, 12, rnd)
			have := asked{}
			have.ask(o, boxes, all(boxes)...)
			if v := have.check(t, tables.Routing, boxes); !clean(v) {
				t.Fatalf("%s: %+v\n%v", tc.engine, v.Multicast, v.Findings)
			}
			joins := func(have asked, when string) {
				for range 10 {
					// Some join, some leave; OpenSM asks for their groups only.
					var which []int
					for range 1 + rnd.IntN(3) {
						i := rnd.IntN(len(boxes))
						which = append(which, i)
						g := &boxes[i].Groups[0]
						if len(g.Members) > 2 && rnd.IntN(2) == 0 {
							g.Members = slices.Delete(slices.Clone(g.Members), 1, 2)
						} else {
							p := f.CAPorts()[rnd.IntN(len(f.CAPorts()))]
							g.Members = append(slices.Clone(g.Members), Member{f.PortGUID(p), mad.FullMember})
						}
					}
					have.ask(o, boxes, which...)
					if v := have.check(t, tables.Routing, boxes); !clean(v) {
						t.Fatalf("%s, after %s: %+v\n%v", tc.engine, when, v.Multicast, v.Findings)
					}
				}
			}
			joins(have, "joins")
			// OpenSM routes again without a change: who joined and left before no longer
			// matters, so that another OpenSM has the same masks. From then on they stay.
			sweep := func(o *opened) asked {
				short.Must(o.Route(o.engine(tc.engine), s))(t)
				a := asked{}
				a.ask(o, boxes, all(boxes)...)
				return a
			}
			again := sweep(o)
			if v := again.check(t, tables.Routing, boxes); !clean(v) {
				t.Fatalf("%s, after a sweep: %+v\n%v", tc.engine, v.Multicast, v.Findings)
			}
			for name, other := range map[string]asked{"another sweep": sweep(o), "another OpenSM": sweep(open(t, ""))} {
				for l := range have {
					if !slices.Equal(again[l], other[l]) {
						t.Fatalf("%s: MLID %#x has other masks after %s", tc.engine, uint16(l), name)
					}
				}
			}
			// It only asks for the groups that ports join, whether it has swept without news,
			// or has been told to route again.
			joins(again, "joins after sweeps")
			reroute := *s
			reroute.Reroute = true
			if r, err := o.Route(o.engine(tc.engine), &reroute); err != nil || r.SweepAgain {
				t.Fatal(r.SweepAgain, err)
			}
			joins(again, "joins after rerouting")
			if len(o.lines) > 0 {
				t.Errorf("OpenSM's log has %q", o.lines)
			}
		}
	}
}

// OpenSM that starts again gets the masks that the one before had after its last
// sweep.
func TestMasksAfterRestart(t *testing.T) {
	for _, tc := range fabrics {
		rnd := rand.New(rand.NewPCG(9, 9))
		f, err := tc.make()
		f = withLIDs(t, f, err)
		boxes := someBoxes(f, 12, rnd)
		var first asked
		for range 2 {
			o := open(t, "")
			s := snapshotOf(f, rnd)
			s.QoS = true
			short.Must(o.Route(o.engine(tc.engine), s))(t)
			have := asked{}
			order := all(boxes)
			rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			have.ask(o, boxes, order...)
			if first == nil {
				first = have
			}
			for l := range have {
				if !slices.Equal(first[l], have[l]) {
					t.Errorf("%s: MLID %#x differs", tc.engine, uint16(l))
				}
			}
		}
	}
}

// refusing panics or refuses where a scheme is to be made.
type failing struct {
	mft.Scheme
	how string
}

func (s failing) Build(ctx context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	switch s.how {
	case "panic":
		panic("a fault on purpose")
	case "refuse":
		return nil, &mft.RefusedError{Scheme: s.Name(), Group: groups[0].Name, Reason: "it does not want to"}
	}
	plan, err := s.Scheme.Build(ctx, r, groups, opt)
	if err != nil {
		return nil, err
	}
	t := mft.NewTables(r.Fabric) // masks with a port too few
	for _, l := range plan.Tables.MLIDs() {
		ports := plan.Tables.Ports(l)
		t.Add(l, ports[:max(0, len(ports)-1)])
	}
	plan.Tables = t
	return plan, nil
}

// However a scheme fails, OpenSM gets masks: the last that were verified while
// they fit, else others that are exact.
func TestMasksNeverFail(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	f = withLIDs(t, f, err)
	for _, how := range []string{"panic", "refuse", "wrong"} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, before %v", how, before), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(5, 5))
				o := open(t, "")
				s := snapshotOf(f, rnd)
				short.Must(o.Route(o.engine("updn"), s))(t)
				boxes := someBoxes(f, 6, rnd)
				first := asked{}
				if before {
					first.ask(o, boxes, all(boxes)...)
				}
				// A new routing, and its schemes do not work.
				tables := short.Must(o.Route(o.engine("minhop"), s))(t)
				o.masks.renew(tables)
				for _, name := range []string{unionScheme, updnTreeScheme} {
					real := short.Must(o.masks.scheme(t.Context(), name, nil))(t)
					o.masks.schemes[name] = failing{real, how}
				}
				have := asked{}
				have.ask(o, boxes, all(boxes)...)
				v := have.check(t, tables.Routing, boxes)
				if how == "wrong" && !before {
					// The last updn-tree is taken as it is, and said not to be proven.
					if len(o.lines) == 0 || !strings.Contains(o.lines[0], "ERR IBW7: ibweave-minhop: multicast masks are installed that are not proven: multicast-") {
						t.Errorf("OpenSM's log has %q", o.lines)
					}
					return
				}
				if v.Multicast.Missing > 0 || v.Multicast.Duplicates > 0 || v.Multicast.Loops > 0 {
					t.Errorf("%+v %v", v.Multicast, v.Findings)
				}
				want := "6 groups have any tree, such as ff12:a01c::"
				if before {
					want = "6 groups have last verified, such as ff12:a01c::"
					for l := range have {
						if !slices.Equal(first[l], have[l]) {
							t.Errorf("MLID %#x does not have its former masks", uint16(l))
						}
					}
				}
				if !slices.ContainsFunc(o.lines, func(l string) bool { return strings.Contains(l, "ERR IBW7: ibweave-minhop: "+want) }) {
					t.Errorf("OpenSM's log has %q, want %q", o.lines, want)
				}
			})
		}
	}
}

// Masks no longer fit a fabric that has changed.
func TestMasksThatNoLongerFit(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(5, 5))
	o := open(t, "")
	s := snapshotOf(f, rnd)
	short.Must(o.Route(o.engine("updn"), s))(t)
	boxes := someBoxes(f, 6, rnd)
	asked{}.ask(o, boxes, all(boxes)...)
	if _, ok := o.masks.stillFit(mgid(0)); !ok {
		t.Fatal("masks do not fit their own fabric")
	}
	// Any cable between switches that the masks use is cut.
	s = &Snapshot{Settings: s.Settings, Nodes: s.Nodes, Ports: slices.Clone(s.Ports), MaxLID: s.MaxLID}
	var cut fabric.PortID
	for _, p := range o.masks.set[mgid(0)].ports {
		if q := f.Peer(p); q != fabric.NoPort && f.IsSwitch(f.Owner(q)) {
			cut = p
		}
	}
	for i := range s.Nodes {
		for k := range s.Ports[s.Nodes[i].First : int(s.Nodes[i].First)+int(s.Nodes[i].NumPorts)+1] {
			at := &s.Ports[int(s.Nodes[i].First)+k]
			for _, p := range []fabric.PortID{cut, f.Peer(cut)} {
				if s.Nodes[i].GUID == f.Node(f.Owner(p)).GUID && k == int(f.Num(p)) {
					at.Peer = -1
				}
			}
		}
	}
	tables := short.Must(o.Route(o.engine("updn"), s))(t)
	o.masks.renew(tables)
	if _, ok := o.masks.stillFit(mgid(0)); ok {
		t.Error("masks fit though a cable of theirs is gone")
	}
	have := asked{}
	have.ask(o, boxes, all(boxes)...)
	if v := have.check(t, tables.Routing, boxes); !clean(v) {
		t.Errorf("%+v", v.Multicast)
	}
}

// A group that OpenSM asks for and does not list, unknown members, and
// solicited-node groups that share an MLID.
func TestOddBoxes(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(5, 5))
	o := open(t, "")
	if got := o.Masks(Box{}, nil); got != nil {
		t.Error(got)
	}
	tables := short.Must(o.Route(o.engine("updn"), snapshotOf(f, rnd)))(t)
	boxes := someBoxes(f, 2, rnd)
	boxes[0].Groups = append(boxes[0].Groups, Group{MGID: mgid(40), Members: []Member{{f.PortGUID(f.CAPorts()[0]), mad.FullMember}, {0x77, mad.FullMember}}})
	have := asked{boxes[0].MLID: o.Masks(boxes[0], func() []Box { return nil })}
	if v := have.check(t, tables.Routing, boxes[:1]); !clean(v) || len(o.lines) != 1 || !strings.Contains(o.lines[0], "ERR IBW7: ") {
		t.Errorf("%+v %q", v.Multicast, o.lines)
	}
	have.ask(o, boxes, 0, 1)
	if v := have.check(t, tables.Routing, boxes); !clean(v) || len(o.lines) != 1 {
		t.Errorf("%+v %q", v.Multicast, o.lines)
	}
	if log := o.ownLog(t); !strings.Contains(log, "members are not in the subnet") {
		t.Error(log)
	}
	empty := Box{MLID: 0xc100, Groups: []Group{{MGID: mgid(50)}}}
	if got := o.Masks(empty, func() []Box { return append(slices.Clone(boxes), empty) }); len(got) != 0 {
		t.Errorf("a group without members has %v", got)
	}
}

// The masks by which OpenSM is left to itself are the compiler's: here those of
// a scheme that is named.
func TestNamedScheme(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, scheme := range []string{"updn-tree", "comb"} {
		engine, ok := "updn", scheme == "comb"
		if ok {
			engine = "xy"
		}
		o := open(t, "multicast: {scheme: "+scheme+"}")
		tables := short.Must(o.Route(o.engine(engine), snapshotOf(f, rnd)))(t)
		boxes := someBoxes(f, 5, rnd)
		have := asked{}
		have.ask(o, boxes, all(boxes)...)
		var groups []mft.Group
		for i := range boxes {
			w := o.masks.wish(&boxes[i])
			groups = append(groups, w.members)
		}
		e, _ := compile.EngineByName(engine)
		r := short.Must(compile.Run(t.Context(), tables.Fabric, e, compile.Options{
			LIDs: lft.LIDOptions{LMC: lft.KeepLMC}, Multicast: scheme,
			Groups: func(*fabric.Fabric) ([]mft.Group, error) { return groups, nil },
		}))(t)
		for _, b := range boxes {
			if got, want := have[b.MLID], o.masks.switchPorts(r.Plan.Tables.Ports(b.MLID)); !slices.Equal(got, want) {
				t.Errorf("%s: MLID %#x has %v, want %v", scheme, uint16(b.MLID), got, want)
			}
		}
	}
}
