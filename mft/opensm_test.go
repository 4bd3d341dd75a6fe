package mft_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/dump/dumptest"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
)

// relabelled is f with random GUIDs, which OpenSM sorts in its own way, and
// without LIDs.
func relabelled(t testing.TB, f *fabric.Fabric, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	used := map[fabric.GUID]bool{}
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		for node.GUID = 0; node.GUID == 0 || used[node.GUID>>8]; {
			node.GUID = fabric.GUID(rnd.Uint64() >> 8 << 8)
		}
		used[node.GUID>>8] = true
		node.SystemGUID = 0
		short.Must(b.AddNode(node))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	return short.Must(b.Build())(t)
}

// someGroups is n groups with from one member to all hosts; some have ports 0
// of switches and members that only send or only receive.
func someGroups(f *fabric.Fabric, n int, rnd *rand.Rand) []mft.Group {
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	groups := make([]mft.Group, n)
	for i := range groups {
		from := f.CAPorts()
		if rnd.IntN(3) == 0 {
			from = ends
		}
		from = slices.Clone(from)
		rnd.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		members := 1 + rnd.IntN(min(len(from), 2+rnd.IntN(40)))
		g := &groups[i]
		g.Name = fmt.Sprintf("group %d", i)
		for k, p := range from[:members] {
			kind := 0
			if rnd.IntN(3) == 0 {
				kind = rnd.IntN(3)
			}
			if kind != 1 || k == 0 {
				g.Receivers = append(g.Receivers, p)
			}
			if kind != 2 || k == 0 {
				g.Senders = append(g.Senders, p)
			}
		}
		slices.Sort(g.Receivers)
		slices.Sort(g.Senders)
	}
	return groups
}

// TestOpenSMTrees: the real OpenSM makes the same masks.
func TestOpenSMTrees(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 0))
	for _, x := range short.Part(2, []struct {
		name string
		make func() (*fabric.Fabric, error)
	}{
		{"mesh", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 5}, Hosts: 2}) }},
		{"ring of two", func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{2, 4}, Wrap: []bool{true, true}, Hosts: 1})
		}},
		{"fat tree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
		{"irregular", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 3, Hosts: 50, Seed: 1})
		}},
	}) {
		t.Run(x.name, func(t *testing.T) {
			f := short.Must(x.make())(t)
			f = short.Must(lft.AssignLIDs(relabelled(t, f, rnd), lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
			groups := someGroups(f, 60, rnd)
			p := mustBuild(t, mft.OpenSM{}, &lft.Routing{Engine: "minhop", Fabric: f}, groups, mft.Options{})
			dir := t.TempDir()
			file := filepath.Join(dir, "sa.dump")
			short.Check(t, os.WriteFile(file, dumptest.SADump(f, p.Trees), 0o600))
			s, twin := ibsimtest.Start(t, f)
			if !twin.Same() {
				t.Fatal("ibsim gives other GUIDs")
			}
			run := short.Must(ibsim.RunOpenSM(t.Context(), s, ibsim.OpenSMConfig{Engine: "minhop", Dir: dir, Flags: 0x43, Options: []string{"sa_db_file " + file}}))(t)
			if run.NumErrors > 0 {
				t.Fatal(run.Errors)
			}
			data := short.Must(os.ReadFile(filepath.Join(dir, "opensm.mcfdbs")))(t)
			tables, problems, err := dump.ReadMFTs("opensm.mcfdbs", data, f, dump.Options{})
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			several := 0
			for i := range p.Trees {
				l := p.Trees[i].MLID
				got, want := p.Tables.Ports(l), tables.Ports(l)
				short.EqualList(t, got, want, groups[p.Trees[i].Group], names(f, got), "OpenSM", names(f, want))
				if len(want) > 2 {
					several++
				}
			}
			if several < 30 {
				t.Errorf("only %d groups with more than two ports", several)
			}
		})
	}
}

func names(f *fabric.Fabric, ports []fabric.PortID) (list []string) {
	for _, p := range ports {
		list = append(list, f.PortName(p))
	}
	return list
}
