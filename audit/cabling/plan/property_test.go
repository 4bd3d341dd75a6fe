package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/dump"
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
		short.Check(t, err)
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

// FuzzPlan reads anything as a plan and compares a site with it: an error has no result,
// nothing panics, the sums are right, and the same input gives the same verdict.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"#StartDevice,StartPort,EndDevice,EndPort,LinkType\nleaf-00,Port 11,DIR0,Blade 01_Port 1/1,Data\nNODE0-0,NODE0-0 ibp11s0f0,leaf-00,Port 1, Data\n",
		",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height\n,R1,U3,Server 1,IB Port 1,x,leaf-00,Port 1,R1,U41\n,R2,U3,Server 1,IB Port 1,x,leaf-01,Port 1/1/1,R2,U41\n",
		"leaf-00;U1/3;node0-1;U1/P1\nleaf-00;8;\"gateway, the 0. of them\";1\nstorage0;mlx5_0/2;leaf-00;7\n",
		"MQM0000 leaf-00\n P1 -> HCA1 Node0-0 ibp11s0f0/P1\n P2 -4x-10G-> HCA1 Node0-0 ibp22s0f0/P1\n\nMCS0000 Dir0\n L1/U1/P1 -> MQM0000 leaf-00 P11\n S1/P2 -> X Y 1/2/3\n",
		"0x0000000000001900,Port 1,leaf-00,Port 300\n", "a,b,c,d\n", "P1 -> A B C\n", "\ufeff\"", "a,1/1/1/1,b,0\n",
		"sep=;\nleaf-00;IB1/8;leaf-01;sw1p2\n", ";From;;To;\r\nNr;Device;Port;Device;Port\r\n1;leaf-00.a.b;8;leaf-01;9.0\r\n", "Device|Port|Device|Port\rleaf-00|8|leaf-01|9\r",
	} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		p, err := Parse("f", data, lenient)
		if err != nil {
			if p != nil {
				t.Fatal("an error and a result")
			}
			return
		}
		if !lenient && len(p.Problems) > 0 {
			t.Fatal("rows were left out")
		}
		g := site(t, 2, 1)
		e, err := Bind(g, p)
		if err != nil {
			return
		}
		judged := func(e *Expected) *Verdict {
			v, findings := e.Judge(cabling.Check(g, cabling.Options{Expected: e.Fabric, Invented: e.Invented}))
			for _, x := range findings {
				if x.Message == "" {
					t.Fatal("a finding without a message")
				}
			}
			return v
		}
		v := judged(e)
		if v.AsPlanned < 0 || v.AsPlanned+len(v.Miswired)+len(v.MissingInFabric) != v.Planned || v.Planned > len(p.Cables) {
			t.Fatalf("sums: %s", v)
		}
		again := short.Must(Bind(g, p))(t)
		if u := judged(again); u.String() != v.String() || !slices.Equal(u.Miswired, v.Miswired) || !slices.Equal(u.MissingInPlan, v.MissingInPlan) {
			t.Fatalf("not the same twice: %s and %s", v, u)
		}
		var text bytes.Buffer
		short.Check(t, Write(&text, e.Fabric, NDT))
	})
}

// The real ibutils read the .topo files that we write, and we read those that they write.
// ibdmsh reads a plan of each fabric with the library of ibtopodiff and writes it again:
// read back it differs from the fabric in nothing; without one of its cables, in just that.
func TestIbutilsTopo(t *testing.T) {
	for name, f := range fabrics(t) {
		t.Run(name, func(t *testing.T) {
			var ours bytes.Buffer
			short.Check(t, Write(&ours, f, Topo))
			theirs := copyByIbutils(t, ours.Bytes())
			v, r := judge(t, f, theirs)
			if n := bytes.Count(ours.Bytes(), []byte("->")); v.AsPlanned != n || v.Planned != n || len(r.Recabled) > 0 {
				t.Fatalf("%d cables in the plan, and ibdmsh writes another one: %s", n, v)
			}
			if !bytes.Contains(theirs, []byte("by IBDM")) {
				t.Fatalf("not of ibutils:\n%s", theirs)
			}
			lines := strings.SplitAfter(ours.String(), "\n")
			at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "->") })
			v, _ = judge(t, f, copyByIbutils(t, []byte(strings.Join(slices.Delete(lines, at, at+1), ""))))
			if len(v.MissingInPlan) != 1 || v.AsPlanned != v.Planned {
				t.Fatalf("a cable less in the plan: %s", v)
			}
		})
	}
}

// ibtopodiff reads a plan of ours and OpenSM's list of the fabric and finds the same
// systems in both. What Debian's build of it does after that is in docs/dev/plan.md.
func TestIbtopodiffReadsTopo(t *testing.T) {
	f := fabrics(t)["tree"]
	var topo, list bytes.Buffer
	short.Check(t, Write(&topo, f, Topo))
	short.Check(t, dump.WriteSubnetList(&list, f))
	dir := ibutilsFolder(t, topo.Bytes())
	short.Check(t, os.WriteFile(filepath.Join(dir, "subnet.lst"), list.Bytes(), 0o666))
	out, err := ibutils(t, dir, "", "ibtopodiff", "-t", "ours.topo", "-d", "subnet.lst", "-e")
	want := fmt.Sprintf("-I- Defined %d/%d systems/nodes", f.NumNodes(), f.NumNodes())
	if strings.Count(out, want) != 2 || strings.Contains(out, "-E-") {
		t.Errorf("want %q of both files: %v\n%s", want, err, out)
	}
}

// ibutils runs a program of the package ibutils in a folder made by ibutilsFolder.
func ibutils(t *testing.T, dir, input, program string, args ...string) (string, error) {
	t.Helper()
	short.NeedPrograms(t)
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed: apt-get install ibutils", program)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "IBDM_IBNL_PATH="+dir)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copyByIbutils has ibdmsh read a .topo file and write what it understood.
func copyByIbutils(t *testing.T, topo []byte) []byte {
	t.Helper()
	dir := ibutilsFolder(t, topo)
	script := "set f [new_IBFabric]\nIBFabric_parseTopology $f ours.topo\nIBFabric_dumpTopology $f theirs.topo .\nexit\n"
	out, err := ibutils(t, dir, script, "ibdmsh")
	if err != nil || strings.Contains(out, "-E-") {
		t.Fatalf("ibdmsh: %v\n%s\n%s", err, out, topo)
	}
	theirs, err := os.ReadFile(filepath.Join(dir, "theirs.topo"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return theirs
}

// ibutilsFolder is a folder with a .topo file and what ibutils want beside it: a file for
// each type of system that names its ports. Each type is one chip here.
func ibutilsFolder(t *testing.T, topo []byte) string {
	t.Helper()
	dir := t.TempDir()
	short.Check(t, os.WriteFile(filepath.Join(dir, "ours.topo"), topo, 0o666))
	ports := map[string][]string{} // by type
	add := func(typ, port string) {
		if !slices.Contains(ports[typ], port) {
			ports[typ] = append(ports[typ], port)
		}
	}
	typ := ""
	for line := range strings.Lines(string(topo)) {
		switch words := strings.Fields(line); len(words) {
		case 2:
			typ = words[0]
		case 5:
			add(typ, words[0])
			add(words[2], words[4])
		}
	}
	for typ, names := range ports {
		kind := "SW"
		if strings.HasPrefix(typ, "HCA") {
			kind = "CA"
		}
		text := fmt.Sprintf("TOPSYSTEM %s\n\nNODE %s %d CHIP U1\n", typ, kind, len(names))
		for i, name := range names {
			text += fmt.Sprintf("   %d -> %s\n", i+1, name)
		}
		short.Check(t, os.WriteFile(filepath.Join(dir, typ+".ibnl"), []byte(text), 0o666))
	}
	return dir
}
