package banyan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

func banyan(t testing.TB, stages int, wrapAround bool) *fabric.Fabric {
	t.Helper()
	return short.Must(Banyan(stages, wrapAround))(t)
}

// rebuilt is a fabric with GUIDs in another order and other descriptions, whose
// cables go through recable: ports by node and number.
func rebuilt(t testing.TB, f *fabric.Fabric, seed uint64, recable func(cables [][2]fabric.PortID)) *fabric.Fabric {
	t.Helper()
	var cables [][2]fabric.PortID
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			cables = append(cables, [2]fabric.PortID{p, q})
		}
	}
	if recable != nil {
		recable(cables)
	}
	var b fabric.Builder
	guids := rand.New(rand.NewPCG(seed, 0)).Perm(f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		x := *f.Node(n)
		x.GUID = fabric.GUID(0x1000 + 16*guids[n])
		x.SystemGUID = x.GUID
		x.Description = fmt.Sprintf("node %d", guids[n])
		short.Must(b.AddNode(x))(t)
	}
	for _, c := range cables {
		short.Check(t, b.Connect(int(f.Owner(c[0])), f.Num(c[0]), int(f.Owner(c[1])), f.Num(c[1]), f.Link(c[0])))
	}
	return short.Must(b.Build())(t)
}

// TestDetect finds made networks again: by their descriptions every element and
// processor is where it was made to be, and without them as well.
func TestDetect(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, wrap := range []bool{false, true} {
			w := short.Must(Detect(banyan(t, n, wrap)))(t)
			f := w.Fabric
			checkPlaces(t, w, wrap)
			short.MustEqual(t, w.WrapAround(), wrap, "n=", n, "wrap-around", !wrap)
			// With other GUIDs and descriptions: the processors by the ways that
			// lead to them.
			w = short.Must(Detect(rebuilt(t, f, uint64(n), nil)))(t)
			for a := range w.Size() {
				x, y := w.Outputs[a], w.Inputs[a]
				if wrap && w.Fabric.Owner(x) != w.Fabric.Owner(y) {
					t.Fatalf("n=%d: processor %d sends by %s and receives by %s", n, a, w.Fabric.PortName(x), w.Fabric.PortName(y))
				}
				if end := follow(w, x, 5%w.Size()); end != w.Inputs[5%w.Size()] {
					t.Fatalf("n=%d: from %d to 5: %s", n, a, w.Fabric.PortName(end))
				}
			}
		}
	}
}

// checkPlaces holds that the elements and processors of a made network have the places
// that their descriptions say.
func checkPlaces(t *testing.T, w *Network, wrap bool) {
	t.Helper()
	f, n := w.Fabric, w.Stages
	for stage := range n {
		for e := range w.Size() / 2 {
			s := w.Element(stage, e)
			short.MustEqual(t, f.Node(s).Description, fmt.Sprintf("stage %d element %d", stage, e), "n=", n)
			if i, k := w.Position(s); i != stage || k != e {
				t.Fatalf("n=%d: place %d, %d of %q", n, i, k, f.Node(s).Description)
			}
		}
	}
	for a := range w.Size() {
		want := fmt.Sprintf(`"source %d"[1] "sink %d"[1]`, a, a)
		if wrap {
			want = fmt.Sprintf(`"host %d"[1] "host %d"[2]`, a, a)
		}
		short.MustEqual(t, f.PortName(w.Outputs[a])+" "+f.PortName(w.Inputs[a]), want, "n=", n, "processor", a)
		for _, p := range []fabric.PortID{w.Outputs[a], w.Inputs[a]} {
			if x, sends := w.Address(p); x != a || sends != (p == w.Outputs[a]) {
				t.Fatalf("n=%d: address %d, sends %v, want %d", n, x, sends, a)
			}
		}
	}
}

// follow is where a packet comes to by the bits of an address.
func follow(w *Network, p fabric.PortID, to int) fabric.PortID {
	f := w.Fabric
	for i := w.Stages - 1; i >= 0; i-- {
		p = f.Port(f.Owner(f.Peer(p)), fabric.PortNum(outputPort+to>>i&1))
	}
	return f.Peer(p)
}

// TestDetectRefuses has fabrics that are nearly banyan networks.
func TestDetectRefuses(t *testing.T) {
	f := banyan(t, 3, true)
	port := func(name string) fabric.PortID {
		for p := range fabric.PortID(f.NumPorts()) {
			if f.Num(p) > 0 && f.PortName(p) == name {
				return p
			}
		}
		t.Fatalf("no port %s", name)
		return fabric.NoPort
	}
	swapped := func(a, b string) *fabric.Fabric {
		return rebuilt(t, f, 1, func(cables [][2]fabric.PortID) {
			p, q := port(a), port(b)
			for i := range cables {
				for k, x := range cables[i] {
					switch x {
					case p:
						cables[i][k] = q
					case q:
						cables[i][k] = p
					}
				}
			}
		})
	}
	lattice := short.Must(gen.Lattice(20, 1))(t)
	dropped := short.Must(gen.DropLinks(f, 1, 1))(t)
	ring := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 2, Hosts: 16, Seed: 1}))(t)
	// Two adapters more, cabled to each other.
	var apart fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(apart.AddNode(*f.Node(n)))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			short.Check(t, apart.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	for i := range 2 {
		short.Must(apart.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(i + 1), NumPorts: 1}))(t)
	}
	short.Check(t, apart.Connect(f.NumNodes(), 1, f.NumNodes()+1, 1, f.Link(f.CAPorts()[0])))
	added := short.Must(apart.Build())(t)
	// Elements with two ports, and without a processor below, beside adapters that are cabled to each other.
	made := func(switches int, ports fabric.PortNum, cables ...[4]int) *fabric.Fabric {
		var b fabric.Builder
		for i := range switches + 4 {
			n := fabric.Node{Type: fabric.CA, GUID: fabric.GUID(i + 1), NumPorts: 2}
			if i < switches {
				n.Type, n.NumPorts = fabric.Switch, ports
			}
			short.Must(b.AddNode(n))(t)
		}
		for _, c := range cables {
			short.Check(t, b.Connect(c[0], fabric.PortNum(c[1]), c[2], fabric.PortNum(c[3]), fabric.Link{}))
		}
		return short.Must(b.Build())(t)
	}
	var b fabric.Builder
	empty := short.Must(b.Build())(t)
	for _, tt := range []struct {
		f    *fabric.Fabric
		want string
	}{
		{lattice, "20 switches; a network of n stages has n * 2^(n-1)"},
		{empty, "0 switches"},
		{made(1, 2, [4]int{0, 1, 1, 1}, [4]int{0, 2, 1, 2}, [4]int{2, 1, 3, 1}), "has 2 ports; elements have 4"},
		{made(4, 4, [4]int{0, 1, 2, 3}, [4]int{0, 2, 3, 3}, [4]int{1, 1, 2, 4}, [4]int{1, 2, 3, 4}, [4]int{2, 1, 0, 3}, [4]int{2, 2, 1, 3},
			[4]int{3, 1, 0, 4}, [4]int{3, 2, 1, 4}, [4]int{4, 1, 5, 1}, [4]int{4, 2, 5, 2}, [4]int{6, 1, 7, 1}, [4]int{6, 2, 7, 2}), "no switch has a channel adapter on port 3"},
		{made(4, 4, [4]int{0, 3, 1, 1}, [4]int{0, 4, 1, 2}, [4]int{0, 1, 4, 1}, [4]int{0, 2, 4, 2}, [4]int{1, 3, 5, 1}, [4]int{1, 4, 5, 2},
			[4]int{2, 3, 3, 1}, [4]int{2, 4, 3, 2}, [4]int{2, 1, 6, 1}, [4]int{2, 2, 6, 2}, [4]int{3, 3, 7, 1}, [4]int{3, 4, 7, 2}), "would be processor 0 and processor 1"},
		{added, "18 ports of channel adapters; a network of 3 stages has 16"},
		{dropped, ": cables are on ports 1 to 4 of each switch"},
		{ring, "outputs are on ports 3 and 4, inputs on 1 and 2"},
		{swapped(`"stage 2 element 0"[1]`, `"stage 2 element 0"[3]`), "outputs are on ports 3 and 4, inputs on 1 and 2"},
		{swapped(`"stage 1 element 0"[1]`, `"stage 1 element 2"[1]`), "want one to"},
		{swapped(`"stage 1 element 0"[1]`, `"stage 1 element 0"[2]`), "want one to"},
		{swapped(`"stage 1 element 0"[1]`, `"stage 0 element 0"[1]`), "want one to input link 1 of stage 1, which is on another switch"},
		{swapped(`"stage 2 element 0"[1]`, `"stage 0 element 0"[1]`), "stages from the processors' inputs"},
	} {
		w, err := Detect(tt.f)
		if w != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
		r, err := Engine{}.Route(t.Context(), tt.f, lft.Options{})
		var no *lft.DomainError
		if r != nil || !errors.As(err, &no) || no.Engine != "banyan" || !strings.Contains(no.Reason, tt.want) {
			t.Errorf("engine: %v, want %s", err, tt.want)
		}
	}
	// Outputs of two processors swapped make a network all the same, but one in
	// which nodes do not receive at the address that they send from.
	if w, err := Detect(swapped(`"host 1"[1]`, `"host 6"[1]`)); err != nil || w.WrapAround() {
		t.Errorf("outputs of two processors swapped: %v", err)
	}
}

// TestCancelled: no network is routed, and no tree built, that nothing waits for.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := route(t, banyan(t, 3, true), 0, 0)
	if got, err := (Engine{}).Route(ctx, r.Fabric, lft.Options{}); got != nil || !errors.Is(err, context.Canceled) {
		t.Error(got, err)
	}
	w := short.Must(Detect(r.Fabric))(t)
	if got, err := (RegionTree{}).Build(ctx, r, []mft.Group{w.Group("g", 1, 2)}, mft.Options{}); got != nil || !errors.Is(err, context.Canceled) {
		t.Error(got, err)
	}
}

func route(t testing.TB, f *fabric.Fabric, lmc, vls int) *lft.Routing {
	t.Helper()
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: lmc}))(t)
	return short.Must(Engine{}.Route(t.Context(), f, lft.Options{VLs: vls}))(t)
}

func check(t testing.TB, r *lft.Routing, m *mft.Plan, copying verify.Copying) *verify.Result {
	t.Helper()
	s := state.Of(r)
	s.Multicast = m
	return short.Must(verify.Check(context.Background(), s, verify.Options{Copying: copying}))(t)
}

// TestEngine has all pairs reachable and no credit loop, management packets
// included, and packets to inputs of processors on shortest paths by their tags.
func TestEngine(t *testing.T) {
	for n := 1; n <= short.Of(5, 4); n++ {
		for _, wrap := range []bool{false, true} {
			for lmc := range 3 {
				r := route(t, rebuilt(t, banyan(t, n, wrap), uint64(n), nil), lmc, 0)
				f := r.Fabric
				v := check(t, r, nil, verify.Independent)
				if v.Unicast.Unreachable+v.Unicast.Loops+v.Management.Unreachable+v.Management.Loops != 0 ||
					v.CreditLoops.Count+v.Management.CreditLoops != 0 || v.CreditLoops.VLs != 2 || v.Verdict == verify.VerdictErrors {
					t.Fatalf("n=%d, wrap-around %v, LMC %d: %+v, %+v, %+v", n, wrap, lmc, v.Unicast, v.Management, v.Findings)
				}
				w := short.Must(Detect(f))(t)
				for a, in := range w.Inputs {
					for lid := range f.LIDs(in) {
						checkTags(t, w, r, a, lid)
						checkShortest(t, w, r, a, lid)
					}
				}
			}
		}
	}
}

// checkTags holds that packets to a LID of address a pass the input links that its tags
// say, from all processors.
func checkTags(t *testing.T, w *Network, r *lft.Routing, a int, lid fabric.LID) {
	t.Helper()
	f := r.Fabric
	for b, out := range w.Outputs {
		at := f.Peer(out)
		for i := w.Stages - 1; i >= 0; i-- {
			stage, number := w.Position(f.Owner(at))
			if link := inLink(i, b, a); stage != i || number != link/2 || int(f.Num(at)) != inputPort+link%2 {
				t.Fatalf("n=%d: from %d to %d at %s", w.Stages, b, a, f.PortName(at))
			}
			_, at = r.Tables.Step(f, f.Owner(at), lid)
		}
		short.MustEqual(t, at, w.Inputs[a], "n=", w.Stages, "from", b, "to", a, "at", f.PortName(at))
	}
}

// checkShortest holds that all switches send a LID of address a to a nearer switch, with SL 0.
func checkShortest(t *testing.T, w *Network, r *lft.Routing, a int, lid fabric.LID) {
	t.Helper()
	f := r.Fabric
	end := f.Owner(f.Peer(w.Inputs[a]))
	dist := f.Distances().To(end)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if s == end {
			continue
		}
		out, next := r.Tables.Step(f, s, lid)
		if to := f.PeerSwitch(out); dist[to]+1 != dist[s] {
			t.Fatalf("n=%d: LID %d goes by %s", w.Stages, lid, f.PortName(next))
		}
		short.MustEqual(t, r.PathSLs.Row(s)[lid], 0, "n=", w.Stages, "LID", lid, "has SL")
	}
}

// TestEngineOptions has numbers of VLs that the engine can use or not, and a context that ends.
func TestEngineOptions(t *testing.T) {
	f := short.Must(lft.AssignLIDs(banyan(t, 3, true), lft.LIDOptions{}))(t)
	for vls, want := range map[int]string{1: "it takes 2 VLs", 3: "3 data VLs"} {
		r, err := Engine{}.Route(t.Context(), f, lft.Options{VLs: vls})
		var no *lft.DomainError
		if r != nil || !errors.As(err, &no) || !strings.Contains(no.Reason, want) {
			t.Errorf("%d VLs: %v, want %s", vls, err, want)
		}
	}
	if v := check(t, route(t, f, 0, 8), nil, verify.Independent); v.Verdict == verify.VerdictErrors || v.CreditLoops.VLs != 2 {
		t.Errorf("8 VLs: %+v", v.Findings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := (Engine{}).Route(ctx, f, lft.Options{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestEngineNeedsTwoVLs breaks what keeps the engine's packets apart: on one VL
// there are credit loops.
func TestEngineNeedsTwoVLs(t *testing.T) {
	r := route(t, banyan(t, 3, true), 0, 0)
	r.SL2VL, r.PathSLs = nil, nil
	if v := check(t, r, nil, verify.Independent); v.CreditLoops.Count == 0 {
		t.Error("no credit loop on one VL")
	}
}

// flood sends a packet by the masks of an MLID: the copies that leave elements by
// stage and output link, and how many come to each processor.
func flood(t testing.TB, w *Network, tables *mft.Tables, mlid fabric.LID, source int) (hops [][2]int, copies map[int]int) {
	t.Helper()
	f := w.Fabric
	copies = map[int]int{}
	at := []fabric.PortID{f.Peer(w.Outputs[source])}
	for len(at) > 0 {
		in := at[0]
		at = at[1:]
		for _, out := range tables.Mask(f.Owner(in), mlid) {
			if out == in {
				continue
			}
			stage, number := w.Position(f.Owner(out))
			hops = append(hops, [2]int{stage, 2*number + int(f.Num(out)) - outputPort})
			if len(hops) > f.NumPorts() {
				t.Fatalf("MLID %#x from %d loops", uint16(mlid), source)
			}
			q := f.Peer(out)
			if q == fabric.NoPort {
				t.Fatalf("MLID %#x from %d leaves by %s", uint16(mlid), source, f.PortName(out))
			}
			if f.IsSwitch(f.Owner(q)) {
				at = append(at, q)
			} else {
				a, sends := w.Address(q)
				if sends {
					t.Fatalf("MLID %#x from %d comes to the output of %d", uint16(mlid), source, a)
				}
				copies[a]++
			}
		}
	}
	return hops, copies
}

// mustBuild makes the trees of groups.
func mustBuild(t testing.TB, r *lft.Routing, groups ...mft.Group) *mft.Plan {
	t.Helper()
	return short.Must(RegionTree{}.Build(t.Context(), r, groups, mft.Options{}))(t)
}

// TestRegionTree sends from every processor to every region and cube by masks:
// the copies take the links of destination tags (golden G-N1), and the
// independent checker finds them exact and without credit loops together with
// unicast packets.
func TestRegionTree(t *testing.T) {
	for n := 1; n <= 4; n++ {
		r := route(t, rebuilt(t, banyan(t, n, n%2 == 0), uint64(n), nil), 0, 0)
		w := short.Must(Detect(r.Fabric))(t)
		var groups []mft.Group
		for lo := range w.Size() {
			for hi := range w.Size() {
				if lo <= hi || lo >= w.Size()/2 && hi < w.Size()/2 {
					groups = append(groups, w.Group(fmt.Sprintf("region %d-%d", lo, hi), region(n, lo, hi)...))
				}
				if lo&hi == 0 {
					groups = append(groups, w.Group(fmt.Sprintf("cube %b, free %b", lo, hi), members(w, func(a int) bool { return a&^hi == lo })...))
				}
			}
		}
		p := mustBuild(t, r, groups...)
		short.MustEqual(t, len(p.Trees), len(groups), "n=", n, "trees")
		for _, x := range p.Trees {
			for source := range w.Size() {
				hops, copies := flood(t, w, p.Tables, x.MLID, source)
				slices.SortFunc(hops, func(a, b [2]int) int { return cmp.Or(cmp.Compare(b[0], a[0]), cmp.Compare(a[1], b[1])) })
				short.EqualList(t, hops, tagLinks(w, source, groups[x.Group].Receivers), "n=", n, x.Name, "from", source, "links")
				want := map[int]int{}
				for _, d := range groups[x.Group].Receivers {
					a, _ := w.Address(d)
					want[a] = 1
				}
				if !maps.Equal(copies, want) {
					t.Fatalf("n=%d, %s from %d: copies %v, want %v", n, x.Name, source, copies, want)
				}
			}
		}
		mustVerify(t, r, p)
	}
}

func members(w *Network, has func(int) bool) (list []int) {
	for a := range w.Size() {
		if has(a) {
			list = append(list, a)
		}
	}
	return list
}

// region is the addresses from lo to hi, which goes on at 0 after the last one.
func region(n, lo, hi int) (list []int) {
	for a := range (hi-lo)&(1<<n-1) + 1 {
		list = append(list, (lo+a)&(1<<n-1))
	}
	return list
}

// inLink is the input link of a stage that a packet from source to an address has: the bits
// of the address above stage, the bits of source below stage, then bit stage of source.
func inLink(stage, source, to int) int {
	return to>>(stage+1)<<(stage+1) | (source&(1<<stage-1))<<1 | source>>stage&1
}

// tagLinks lists the stages and output links that packets from source to receivers take
// by destination tags, each once, from the first stage and the first link on.
func tagLinks(w *Network, source int, receivers []fabric.PortID) (links [][2]int) {
	for stage := w.Stages - 1; stage >= 0; stage-- {
		var outs []int
		for _, d := range receivers {
			to, _ := w.Address(d)
			outs = append(outs, inLink(stage, source, to)&^1|to>>stage&1)
		}
		slices.Sort(outs)
		for _, out := range slices.Compact(outs) {
			links = append(links, [2]int{stage, out})
		}
	}
	return links
}

// mustVerify has the independent checker look at trees.
func mustVerify(t testing.TB, r *lft.Routing, p *mft.Plan) {
	t.Helper()
	v := check(t, r, &mft.Plan{Tables: p.Tables, Trees: p.Trees}, verify.Independent)
	m := v.Multicast
	if m.Missing+m.Duplicates+m.Loops+m.Stray+m.CreditLoops+v.Management.CreditLoops != 0 || v.Verdict == verify.VerdictErrors {
		t.Fatalf("%+v, %+v", m, v.Findings)
	}
}

// TestRegionTreeOfSome has random senders and receivers, which need not be
// regions, and masks nowhere but on their ways.
func TestRegionTreeOfSome(t *testing.T) {
	r := route(t, banyan(t, 5, true), 0, 0)
	w := short.Must(Detect(r.Fabric))(t)
	rng := rand.New(rand.NewPCG(5, 0))
	var groups []mft.Group
	for i := range 40 {
		g := w.Group(fmt.Sprint("group ", i), rng.Perm(32)[:rng.IntN(12)]...)
		g.Senders = nil
		for _, a := range rng.Perm(32)[:rng.IntN(5)] {
			g.Senders = append(g.Senders, w.Outputs[a])
		}
		slices.Sort(g.Senders)
		g.MLID = mft.MinMLID + fabric.LID(100-i)
		groups = append(groups, g)
	}
	p := mustBuild(t, r, groups...)
	mustVerify(t, r, p)
	for _, x := range p.Trees {
		used := map[[2]int]bool{}
		for _, s := range x.Senders {
			a, _ := w.Address(s)
			hops, _ := flood(t, w, p.Tables, x.MLID, a)
			for _, h := range hops {
				used[h] = true
			}
		}
		short.Equal(t, len(used), len(p.Tables.Ports(x.MLID)), x.Name, "ports in masks")
	}
}

// TestRegionTreeRefuses has groups that no header could be for.
func TestRegionTreeRefuses(t *testing.T) {
	r := route(t, banyan(t, 3, true), 0, 0)
	w := short.Must(Detect(r.Fabric))(t)
	good := w.Group("g", 1, 2)
	mesh := *r
	mesh.Fabric = short.Must(gen.Lattice(8, 1))(t)
	for _, tt := range []struct {
		r       *lft.Routing
		senders []fabric.PortID
		to      []fabric.PortID
		want    string
	}{
		{&mesh, good.Senders, good.Receivers, "this is no banyan network: 8 switches"},
		{r, w.Inputs[:1], good.Receivers, `sender "host 0"[2] is where a processor receives`},
		{r, good.Senders, w.Outputs[3:4], `receiver "host 3"[1] is where a processor sends`},
		{r, []fabric.PortID{r.Fabric.PortBase(0)}, good.Receivers, `"stage 2 element 0"[0] is no port of a processor`},
	} {
		g := good
		g.Senders, g.Receivers = tt.senders, tt.to
		p, err := RegionTree{}.Build(t.Context(), tt.r, []mft.Group{g}, mft.Options{})
		var no *mft.RefusedError
		if p != nil || !errors.As(err, &no) || no.Scheme != "region" || !strings.HasPrefix(no.Reason, tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if p, err := (RegionTree{}).Build(t.Context(), r, []mft.Group{good, good}, mft.Options{Capacity: 2}); p != nil || err == nil {
		t.Errorf("two groups on one MLID: %v", err)
	}
	if p := mustBuild(t, r); len(p.Trees) != 0 {
		t.Errorf("%d trees of no groups", len(p.Trees))
	}
}

// TestDeadlockInTables has what TestThreeWorms sees in the tables of an
// InfiniBand network: unsafe where switches copy as worms are copied, safe as
// InfiniBand's do.
func TestDeadlockInTables(t *testing.T) {
	r := route(t, banyan(t, 2, true), 0, 0)
	w := short.Must(Detect(r.Fabric))(t)
	packet := func(name string, from int, to ...int) mft.Group {
		g := w.Group(name, to...)
		g.Senders = w.Outputs[from : from+1]
		return g
	}
	p := mustBuild(t, r, packet("1", 1, 1, 2), packet("2", 2, 1, 2), packet("0", 0, 0))
	mustVerify(t, r, p)
	v := check(t, r, p, verify.Wormhole)
	if v.Multicast.CreditLoops == 0 || v.Verdict != verify.VerdictErrors {
		t.Errorf("worms: %+v", v.Multicast)
	}
}

// TestInterconnection has the tables that follow from Definition 1 of the
// paper for 8 and 16 processors.
func TestInterconnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   func(a int) int
		want string
	}{
		{"shuffle of 8", func(a int) int { return Shuffle(3, a) }, "0 2 4 6 1 3 5 7"},
		{"IC_2 of 8", func(a int) int { return Butterfly(2, a) }, "0 4 2 6 1 5 3 7"},
		{"IC_1 of 8", func(a int) int { return Butterfly(1, a) }, "0 2 1 3 4 6 5 7"},
		{"shuffle of 16", func(a int) int { return Shuffle(4, a) }, "0 2 4 6 8 10 12 14 1 3 5 7 9 11 13 15"},
		{"IC_3 of 16", func(a int) int { return Butterfly(3, a) }, "0 8 2 10 4 12 6 14 1 9 3 11 5 13 7 15"},
		{"IC_2 of 16", func(a int) int { return Butterfly(2, a) }, "0 4 2 6 1 5 3 7 8 12 10 14 9 13 11 15"},
		{"IC_1 of 16", func(a int) int { return Butterfly(1, a) }, "0 2 1 3 4 6 5 7 8 10 9 11 12 14 13 15"},
		{"IC_0 of 16", func(a int) int { return Butterfly(0, a) }, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"},
	} {
		var got []string
		for a := range strings.Fields(tt.want) {
			got = append(got, fmt.Sprint(tt.of(a)))
		}
		short.Equal(t, strings.Join(got, " "), tt.want, tt.name, got)
	}
}

// TestBanyanCables has every cable of the 8-processor network, by the tables
// of TestInterconnection.
func TestBanyanCables(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		f := short.Must(Banyan(3, wrap))(t)
		want := string(short.Must(os.ReadFile("testdata/banyan.txt"))(t))
		if wrap {
			for a := range 8 {
				want = strings.Replace(want, fmt.Sprintf(`"source %d"[1]`, a), fmt.Sprintf(`"host %d"[1]`, a), 1)
				want = strings.Replace(want, fmt.Sprintf(`"sink %d"[1]`, a), fmt.Sprintf(`"host %d"[2]`, a), 1)
			}
		}
		var got []string
		for p := range fabric.PortID(f.NumPorts()) {
			if peer := f.Peer(p); peer > p {
				got = append(got, f.PortName(p)+" "+f.PortName(peer))
			}
		}
		short.Diff(t, got, strings.Split(want[1:], "\n"), "wrap-around", wrap, "cables")
	}
}

// TestBanyanRoutesItself checks the property that the network is built for: a
// packet that leaves the element of stage i at the output that bit i of the
// destination says arrives there, from every processor, and enters stage i on
// the link that Theorem 2 of the paper gives: the bits of the destination
// above i, then those of the source below i, then bit i of the source.
func TestBanyanRoutesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "stages")
		wrap := rapid.Bool().Draw(t, "wrap-around")
		f := short.Must(Banyan(n, wrap))(t)
		src := rapid.IntRange(0, 1<<n-1).Draw(t, "source")
		dst := rapid.IntRange(0, 1<<n-1).Draw(t, "destination")
		from, to := fmt.Sprintf(`"source %d"[1]`, src), fmt.Sprintf(`"sink %d"[1]`, dst)
		if wrap {
			from, to = fmt.Sprintf(`"host %d"[1]`, src), fmt.Sprintf(`"host %d"[2]`, dst)
		}
		var at fabric.PortID = fabric.NoPort
		for _, p := range f.CAPorts() {
			if f.PortName(p) == from {
				at = f.Peer(p)
			}
		}
		for i := n - 1; i >= 0; i-- {
			low := src & (1<<i - 1)
			link := dst>>(i+1)<<(i+1) | low<<1 | src>>i&1
			want := fmt.Sprintf(`"stage %d element %d"[%d]`, i, link/2, 1+link%2)
			short.MustEqual(t, f.PortName(at), want, "from", src, "to", dst)
			at = f.Peer(f.Port(f.Owner(at), fabric.PortNum(3+dst>>i&1)))
		}
		short.MustEqual(t, f.PortName(at), to, "from", src, "to", dst, "arrived")
	})
}

// TestInOpenSM puts the tables into the real OpenSM on the real ibsim, and
// compares every entry that the switches then have.
func TestInOpenSM(t *testing.T) {
	short.NeedPrograms(t)
	for _, wrap := range []bool{false, true} {
		r := route(t, banyan(t, 3, wrap), 0, 0)
		got := short.Must(rehearse.Run(t.Context(), r.Fabric, r.Tables, rehearse.Options{}))(t)
		if got.EqualSwitches != r.Fabric.NumSwitches() || got.Differences != 0 {
			t.Errorf("wrap-around %v: %d of %d switches equal, %d entries differ: %v", wrap, got.EqualSwitches, r.Fabric.NumSwitches(), got.Differences, got.Samples)
		}
	}
}

// TestMasksInIBSim writes the masks of every region of eight processors into the
// switches of the real ibsim by SMPs, has dump_mfts of infiniband-diags read
// them, and sends packets by what that prints.
func TestMasksInIBSim(t *testing.T) {
	short.NeedPrograms(t)
	r := route(t, banyan(t, 3, true), 0, 0)
	w := short.Must(Detect(r.Fabric))(t)
	f := r.Fabric
	var groups []mft.Group
	var regions [][]int
	for lo := range w.Size() {
		for hi := range w.Size() {
			if lo <= hi || lo >= 4 && hi < 4 {
				regions = append(regions, region(3, lo, hi))
				groups = append(groups, w.Group(fmt.Sprintf("region %d-%d", lo, hi), regions[len(regions)-1]...))
			}
		}
	}
	p := mustBuild(t, r, groups...)

	file := filepath.Join(t.TempDir(), "banyan.topo")
	short.Check(t, os.WriteFile(file, topology.Append(nil, f), 0o600))
	sim := short.Must(ibsim.Start(t.Context(), file, ibsim.Config{
		Nodes: f.NumNodes(), Switches: f.NumSwitches(), Ports: f.NumPorts(),
		Host: fmt.Sprintf("S-%016x", uint64(f.Node(0).GUID)),
	}))(t)
	defer func() {
		short.Check(t, sim.Close())
	}()
	setMasks(t, sim, p.Tables)

	cmd := sim.Command(t.Context(), "dump_mfts")
	var out bytes.Buffer
	cmd.Stdout = &out
	short.Check(t, sim.Run(t.Context(), cmd))
	tables, problems, err := dump.ReadMFTs("dump_mfts", out.Bytes(), f, dump.Options{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, x := range p.Trees {
		for source := range w.Size() {
			_, copies := flood(t, w, tables, x.MLID, source)
			for a := range w.Size() {
				want := 0
				if slices.Contains(regions[x.Group], a) {
					want = 1
				}
				short.Equal(t, copies[a], want, x.Name, "from", source, "copies at", a)
			}
		}
		short.EqualList(t, tables.Ports(x.MLID), p.Tables.Ports(x.MLID), x.Name, "ports", "in the masks")
	}
}

// setMasks writes multicast tables into switches that have none.
func setMasks(t *testing.T, sim *ibsim.Sim, tables *mft.Tables) {
	t.Helper()
	conn := short.Must(sim.Dial(t.Context(), ""))(t)
	c := subnet.New(conn, subnet.Options{Timeout: 20 * time.Second})
	defer func() {
		short.Check(t, c.Close())
	}()
	d := short.Must(c.Discover(t.Context()))(t)
	f := tables.Fabric()
	for s := range fabric.NodeID(f.NumSwitches()) {
		// All ports of an element are in the first position of a mask.
		blocks := make([]mad.MulticastForwardingTable, (len(tables.MLIDs())+1)/mad.MLIDBlock+1)
		for _, l := range tables.MLIDs() {
			i := int(l - mft.MinMLID)
			for _, port := range tables.Mask(s, l) {
				blocks[i/mad.MLIDBlock][i%mad.MLIDBlock] |= 1 << f.Num(port)
			}
		}
		found, ok := d.Fabric.SwitchByGUID(f.Node(s).GUID)
		if !ok {
			t.Fatalf("no switch %s", f.Node(s).GUID)
		}
		for i := range blocks {
			var data mad.Data
			for k, mask := range blocks[i] {
				binary.BigEndian.PutUint16(data[2*k:], mask)
			}
			short.Must(c.SMP(t.Context(), subnet.Target{Route: d.Routes[found]}, mad.Set, mad.AttrMulticastForwardingTable, mad.MulticastModifier(i, 0), &data))(t)
		}
	}
}
