package lft

import (
	"errors"
	"maps"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// hosts is a switch with a host on each of its ports.
func hosts(t *testing.T, n int) *fabric.Fabric {
	t.Helper()
	b := &fabric.Builder{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.AddNode(fabric.Node{GUID: 0x10, Type: fabric.Switch, NumPorts: fabric.PortNum(n)})
	must(err)
	for i := 1; i <= n; i++ {
		_, err := b.AddNode(fabric.Node{GUID: fabric.GUID(0x100 + 2*i), Type: fabric.CA, NumPorts: 1})
		must(err)
		must(b.SetPort(i, 1, fabric.GUID(0x101+2*i), fabric.LID(i+1), 0))
		must(b.Connect(0, fabric.PortNum(i), i, 1, fabric.Link{}))
	}
	must(b.SetPort(0, 0, 0x10, 1, 0))
	f, err := b.Build()
	must(err)
	return f
}

// A virtual port's LID has the entries and SLs of its port, in tables that may end before it.
func TestAddVirtualLIDs(t *testing.T) {
	f := hosts(t, 3)
	r := short.Must(Minhop{}.Route(t.Context(), f, Options{}))(t)
	host := f.CAPorts()[1]
	r.PathSLs = NewPathSLs(1, f.MaxLID())
	r.PathSLs.SetRow([]fabric.SL{0, 1, 2, 3, 4}, 0)
	r.PathSLs.SetPorts([]fabric.SL{5, 6, 7, UnknownSL, 8}, f.CAPorts()[0])
	before := *r
	short.Check(t, r.AddVirtualLIDs(map[fabric.LID]fabric.PortID{9: host, 200: host}))
	lid := f.LID(host)
	row := r.Tables.Row(0)
	if r.Tables.MaxLID() != 200 || row[9] != row[lid] || row[200] != row[lid] || row[lid] != f.Num(f.Peer(host)) || row[8] != fabric.NoPath {
		t.Errorf("entries %v", row)
	}
	if p := r.PathSLs; p.Row(0)[200] != 3 || p.Row(0)[4] != 4 || p.PortRow(f.CAPorts()[0])[9] != UnknownSL || p.MaxLID() != 200 {
		t.Errorf("SLs %v and %v", p.Row(0), p.PortRow(f.CAPorts()[0]))
	}
	if before.Tables.MaxLID() != 4 || before.PathSLs.MaxLID() != 4 || r.Fabric.NumLIDs(host) != 3 || f.NumLIDs(host) != 1 {
		t.Error("the routing before is another one now")
	}
	want := map[fabric.LID]fabric.PortID{9: host, 200: host}
	if got := r.Fabric.VirtualLIDs(); !maps.Equal(got, want) || len(r.Fabric.WithoutVirtualLIDs().VirtualLIDs()) != 0 {
		t.Errorf("virtual LIDs %v, want %v", got, want)
	}
	before = *r
	if err := r.AddVirtualLIDs(nil); err != nil || r.Tables != before.Tables {
		t.Errorf("nothing to add: %v", err)
	}
	var overlap *fabric.LIDOverlapError
	if err := r.AddVirtualLIDs(map[fabric.LID]fabric.PortID{2: host}); !errors.As(err, &overlap) || r.Tables != before.Tables {
		t.Errorf("LID of another port: %v", err)
	}
}

// LIDs of virtual ports stay free for them, and another port cannot have one.
func TestAssignBesideVirtualLIDs(t *testing.T) {
	f := hosts(t, 3)
	first, last := f.CAPorts()[0], f.CAPorts()[2]
	lids, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	f.EndPorts(func(p fabric.PortID) { lids[p] = f.LID(p) })
	lids[last] = 0
	f = short.Must(f.WithLIDs(lids, lmc))(t)
	f = short.Must(f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{4: first, 5: first}))(t)
	g, err := AssignLIDs(f, LIDOptions{LMC: KeepLMC})
	if err != nil || g.LID(last) != 6 || len(g.VirtualLIDs()) != 0 {
		t.Errorf("LID %d, %v; want 6 and no virtual port", g.LID(last), err)
	}
	if g, err = AssignLIDs(f, LIDOptions{Policy: DenseLIDs, LMC: KeepLMC}); err != nil || g.MaxLID() != 4 {
		t.Errorf("LIDs up to %d, %v; want 4", g.MaxLID(), err)
	}
	var conflict *LIDConflictError
	_, err = AssignLIDs(f, LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{Port: f.PortGUID(last), Min: 5, Max: 5}}})
	if !errors.As(err, &conflict) || conflict.LID != 5 {
		t.Errorf("guid2lid gives away LID 5: %v", err)
	}
	if _, err = AssignLIDs(f, LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{Port: f.PortGUID(first), Min: 5, Max: 5}}}); err != nil {
		t.Errorf("a port takes the LID of its virtual port: %v", err)
	}
}
