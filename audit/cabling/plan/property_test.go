package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// pair is the two ends of a cable, the smaller port first.
type pair [2]fabric.PortID

func newPair(p, q fabric.PortID) pair { return pair{min(p, q), max(p, q)} }

// cablesOf lists the cables of a fabric.
func cablesOf(f *fabric.Fabric) (list []pair) {
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			list = append(list, pair{p, q})
		}
	}
	return list
}

// recable is a fabric with the same nodes and other cables.
func recable(t *testing.T, f *fabric.Fabric, cables []pair) *fabric.Fabric {
	t.Helper()
	b := &fabric.Builder{}
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(b.AddNode(*f.Node(n)))(t)
		for num := fabric.PortNum(1); num <= f.Node(n).NumPorts; num++ {
			short.Check(t, b.SetLabel(int(n), num, f.Label(f.Port(n, num))))
		}
	}
	for _, c := range cables {
		short.Check(t, b.Connect(int(f.Owner(c[0])), f.Num(c[0]), int(f.Owner(c[1])), f.Num(c[1]), fabric.Link{}))
	}
	return short.Must(b.Build())(t)
}

// site makes a fabric as sites have them: leaf switches cabled to directors of leaf and
// spine cards, hosts with several adapters, aggregation nodes, adapters without
// names, one with two ports, and labels on some switches.
func site(t *testing.T, leaves, directors int) *fabric.Fabric {
	t.Helper()
	b := &fabric.Builder{}
	guid := fabric.GUID(0x1000)
	node := func(typ fabric.NodeType, ports fabric.PortNum, system fabric.GUID, description string) int {
		guid += 0x100
		return short.Must(b.AddNode(fabric.Node{GUID: guid, SystemGUID: system, Type: typ, NumPorts: ports, Description: description}))(t)
	}
	join := func(m int, p int, n int, q int) {
		t.Helper()
		short.Check(t, b.Connect(m, fabric.PortNum(p), n, fabric.PortNum(q), fabric.Link{}))
	}
	var chips [][]int // by director: leaf chips
	for d := range directors {
		system := fabric.GUID(0xd000 + d)
		var list, spines []int
		for card := range 2 {
			spines = append(spines, node(fabric.Switch, 8, system, fmt.Sprintf("MF0;Dir%d:MCS0000/S%d/U1", d, card+1)))
		}
		for card := range 3 {
			for unit := range 2 {
				n := node(fabric.Switch, 8, system, fmt.Sprintf("MF0;Dir%d:MCS0000/L%02d/U%d", d, card+1, unit+1))
				list = append(list, n)
				for i, s := range spines {
					join(n, 7+i, s, 1+2*card+unit)
				}
			}
		}
		chips = append(chips, list)
	}
	for l := range leaves {
		system := fabric.GUID(0xe000 + l)
		n := node(fabric.Switch, 21, system, fmt.Sprintf("MF0;leaf-%02d:MQM0000/U1", l))
		if l%2 == 1 {
			for num := 1; num <= 20; num++ {
				short.Check(t, b.SetLabel(n, fabric.PortNum(num), fmt.Sprintf("1/%d/%d", (num+1)/2, 2-num%2)))
			}
		}
		join(n, 21, node(fabric.CA, 1, system, "Mellanox Technologies Aggregation Node"), 1)
		for h := range 2 {
			for a := range 2 {
				join(n, 1+2*h+a, node(fabric.CA, 1, 0, fmt.Sprintf("Node%d-%d ibp%ds0f0", l, h, 11*(a+1))), 1)
			}
		}
		join(n, 5, node(fabric.CA, 1, 0, "MT0000 ConnectX0   Some Vendor"), 1)
		two := node(fabric.CA, 2, 0, fmt.Sprintf("storage%d mlx5_0", l))
		join(n, 6, two, 1)
		join(n, 7, two, 2)
		join(n, 8, node(fabric.CA, 1, 0, fmt.Sprintf("gateway, the %d. of them", l)), 1)
		for d := range directors {
			for k := range 2 {
				join(n, 11+2*d+k, chips[d][(l+3*k)%len(chips[d])], 1+l/2%6)
			}
		}
	}
	return short.Must(b.Build())(t)
}

// fabrics makes fabrics of many kinds.
func fabrics(t *testing.T) map[string]*fabric.Fabric {
	t.Helper()
	all := map[string]*fabric.Fabric{"site": site(t, 6, 2)}
	add := func(name string, f *fabric.Fabric, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all[name] = f
	}
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 4}, Wrap: []bool{true, false}, Hosts: 2})
	add("mesh", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2, HostsPerLeaf: 4})
	add("tree", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 2, Seed: 7})
	add("irregular", f, err)
	return all
}

// judge compares a fabric with a plan that was written of another one.
func judge(t *testing.T, f *fabric.Fabric, text []byte) (*Verdict, *cabling.Result) {
	t.Helper()
	p := short.Must(Parse("plan", text, false))(t)
	e := short.Must(Bind(f, p))(t)
	r := cabling.Check(f, cabling.Options{Expected: e.Fabric, Invented: e.Invented})
	v, _ := e.Judge(r)
	return v, r
}

// The plan of a fabric, in every form, is read back without a difference. With cables
// exchanged, taken away and added at random just these differ, and the moves mend it.
func TestPlanRoundTrip(t *testing.T) {
	trials := short.Of(40, 6)
	for name, f := range fabrics(t) {
		for _, form := range Forms {
			t.Run(name+"/"+form, func(t *testing.T) {
				var text bytes.Buffer
				short.Check(t, Write(&text, f, form))
				v, r := judge(t, f, text.Bytes())
				w := newWriter(f)
				planned := slices.DeleteFunc(cablesOf(f), func(c pair) bool { return !w.b.x.planned(c[0], c[1]) })
				if v.AsPlanned != len(planned) || v.Planned != len(planned) || len(v.Miswired)+len(v.MissingInFabric)+len(v.MissingInPlan)+len(r.Recabled) > 0 {
					t.Fatalf("%d cables to plan: %s", len(planned), v)
				}
				for _, x := range r.Findings {
					if x.Rule != cabling.DuplicateName && x.Rule != cabling.SplitFabric {
						t.Errorf("a finding where nothing differs: %s", x.Message)
					}
				}
				for trial := range trials {
					damage(t, f, text.Bytes(), planned, uint64(trial))
				}
			})
		}
	}
}

// damage changes the cables of f at random and compares with the plan of f.
func damage(t *testing.T, f *fabric.Fabric, text []byte, planned []pair, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 18))
	kept := cablesOf(f)
	order := rnd.Perm(len(planned))
	take := func() pair {
		c := planned[order[0]]
		order = order[1:]
		kept = slices.DeleteFunc(kept, func(x pair) bool { return x == c })
		return c
	}
	swaps, lost, more := rnd.IntN(3), rnd.IntN(3), rnd.IntN(3)
	for range lost {
		take()
	}
	used := map[fabric.PortID]bool{}
	for _, c := range cablesOf(f) {
		used[c[0]], used[c[1]] = true, true // the ports of lost cables stay free
	}
	for range swaps {
		a, b := take(), take()
		kept = append(kept, newPair(a[0], b[1]), newPair(b[0], a[1]))
	}
	var free []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
			if p := f.Port(s, num); !used[p] && names.ChipOf(f.Node(s).Description).Card != 'S' {
				free = append(free, p)
			}
		}
	}
	rnd.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	if len(free) < 2*more {
		more = 0
	}
	for range more {
		kept = append(kept, newPair(free[0], free[1]))
		free = free[2:]
	}
	g := recable(t, f, kept)
	v, r := judge(t, g, text)
	if len(v.Miswired) != 2*swaps || len(v.MissingInFabric) != lost || len(v.MissingInPlan) != more || v.AsPlanned != len(planned)-lost-2*swaps {
		t.Fatalf("seed %d: %d exchanges, %d cables lost, %d more: %s\n%v", seed, swaps, lost, more, v, r.Recabled)
	}
	mended(t, g, f, r)
}

// mended does the moves of a comparison of g with f, and wants the cables of f.
func mended(t *testing.T, g, f *fabric.Fabric, r *cabling.Result) {
	t.Helper()
	peer := make([]fabric.PortID, g.NumPorts())
	for p := range peer {
		peer[p] = g.Peer(fabric.PortID(p))
	}
	plug := func(p, q fabric.PortID) {
		if p != fabric.NoPort {
			peer[p] = q
		}
		if q != fabric.NoPort {
			peer[q] = p
		}
	}
	for _, c := range r.Recabled {
		for _, s := range c.Surplus {
			short.MustEqual(t, peer[s[0]], s[1], "no cable from", g.PortName(s[0]), "to", g.PortName(s[1]), "to take out")
			peer[s[0]], peer[s[1]] = fabric.NoPort, fabric.NoPort
		}
		done := map[string]bool{}
		for i := range c.Moves {
			m := &c.Moves[i]
			if done[m.Text(g)] {
				continue
			}
			done[m.Text(g)] = true
			a, b := peer[m.From], peer[m.To]
			if a == fabric.NoPort || (b != fabric.NoPort) != m.Exchange {
				t.Fatalf("%s: a plug is not there, or in the way", m.Text(g))
			}
			peer[m.From] = fabric.NoPort
			plug(a, m.To)
			if m.Exchange {
				plug(b, m.From)
			}
		}
		for _, l := range c.Lacking {
			if peer[l[0]] != fabric.NoPort || peer[l[1]] != fabric.NoPort {
				t.Fatalf("no room for the cable from %s to %s", g.PortName(l[0]), g.PortName(l[1]))
			}
			plug(l[0], l[1])
		}
	}
	for p := range peer {
		short.MustEqual(t, peer[p], f.Peer(fabric.PortID(p)), "after all moves", g.PortName(fabric.PortID(p)), "is not where it should be")
	}
}

// Any cables at all between the ports of a fabric are mended by the moves.
func TestMendAnything(t *testing.T) {
	f := site(t, 4, 1)
	var text bytes.Buffer
	short.Check(t, Write(&text, f, NDT))
	w := newWriter(f)
	for seed := range uint64(short.Of(200, 20)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var kept []pair
		var plugs []fabric.PortID
		for _, c := range cablesOf(f) {
			if !w.b.x.planned(c[0], c[1]) || rnd.IntN(3) == 0 {
				kept = append(kept, c)
			} else {
				plugs = append(plugs, c[0], c[1])
			}
		}
		rnd.Shuffle(len(plugs), func(i, j int) { plugs[i], plugs[j] = plugs[j], plugs[i] })
		for ; len(plugs) > 6; plugs = plugs[2:] {
			if w.b.x.planned(plugs[0], plugs[1]) {
				kept = append(kept, newPair(plugs[0], plugs[1]))
			}
		}
		g := recable(t, f, kept)
		_, r := judge(t, g, text.Bytes())
		mended(t, g, f, r)
	}
}

// The same fabric gives the same bytes, and no line of a plan is another's.
func TestWriteSame(t *testing.T) {
	f := site(t, 6, 2)
	for _, form := range Forms {
		var a, b bytes.Buffer
		short.Check(t, Write(&a, f, form))
		short.Check(t, Write(&b, f, form))
		short.Equal(t, a.String(), b.String(), form, "not the same twice")
	}
	var ndt bytes.Buffer
	short.Check(t, Write(&ndt, f, NDT))
	for _, want := range []string{"#StartDevice,StartPort,EndDevice,EndPort,LinkType\n", ",Blade 01_Port 2/1", "Node0-0,Node0-0 ibp11s0f0,leaf-00,Port 1,Data\n",
		"storage0,storage0 mlx5_0 Port 2,leaf-00,Port 7,Data\n", ",leaf-01,Port 1/1/2,", `"gateway, the 3. of them",Port 1,`} {
		short.Contains(t, ndt.String(), want, "no")
	}
	if strings.Contains(ndt.String(), "Aggregation") || strings.Contains(ndt.String(), "/S1") {
		t.Error("the plan has aggregation nodes, or cables of spine cards")
	}
}
