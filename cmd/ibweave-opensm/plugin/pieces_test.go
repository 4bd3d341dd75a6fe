package plugin

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/updown"
)

// forgetful is updn with an entry for a host too few.
type forgetful struct{ updown.Engine }

func (forgetful) Name() string { return "forgetful" }
func (e forgetful) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	r, err := e.Engine.Route(ctx, f, opt)
	if err == nil {
		row := r.Tables.Row(0)
		for lid, p := range row { // of a host on another switch
			if at := r.Fabric.LIDPort(fabric.LID(lid)); p != fabric.NoPath && at != fabric.NoPort && !r.Fabric.IsSwitch(r.Fabric.Owner(at)) && r.Fabric.Owner(r.Fabric.Peer(at)) != 0 {
				row[lid] = fabric.NoPath
				break
			}
		}
	}
	return r, err
}

// apart is a snapshot of a mesh without the cables that cross a line.
func apart(t *testing.T, column int, rnd *rand.Rand) (*fabric.Fabric, *Snapshot) {
	t.Helper()
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 2})
	f = withLIDs(t, f, err)
	s := snapshotOf(f, rnd)
	x := func(node int32) int { // switches have GUIDs 0x200000 + 4y + x
		if s.Nodes[node].Type != uint8(fabric.Switch) {
			return -1
		}
		return int(s.Nodes[node].GUID) % 4
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range s.Ports[n.First : int(n.First)+int(n.NumPorts)+1] {
			p := &s.Ports[int(n.First)+k]
			if p.Peer >= 0 && x(int32(i)) >= 0 && x(p.Peer) >= 0 && (x(int32(i)) < column) != (x(p.Peer) < column) {
				p.Peer, p.Num = -1, 0
			}
		}
	}
	return f, s
}

// Of a subnet in pieces each has tables, and groups have masks on the largest: no
// engine of OpenSM's does better, so there is no reason to leave it to one. Tables
// that lack more than the cables are refused.
func TestPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	f, s := apart(t, 1, rnd)
	o := open(t, "")
	tables := short.Must(o.Route(o.engine("updn"), s))(t)
	if p := tables.pieces; len(p.List) != 2 || p.List[p.Largest()].Switches != 12 {
		t.Errorf("pieces %+v", p.List)
	}
	if log := o.ownLog(t); !strings.Contains(log, "the subnet is in 2 pieces that no cables join, and tables for each") {
		t.Error(log)
	}
	// Pairs within a piece are the pairs that are reached.
	if u := tables.Verify.Unicast; u.Unreachable != 2*8*24 || u.Pairs != 32*31 {
		t.Errorf("%+v", u)
	}
	boxes := someBoxes(f, 6, rnd)
	have := asked{}
	have.ask(o, boxes, all(boxes)...)
	for i := range boxes { // as if those elsewhere had not joined
		g := &boxes[i].Groups[0]
		g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(m Member) bool {
			p, ok := tables.endPort(m.Port)
			return ok && !tables.joinable(p)
		})
	}
	if v := have.check(t, tables.Routing, boxes); !clean(v) {
		t.Errorf("%+v\n%v", v.Multicast, v.Findings)
	}
	if len(o.lines) > 0 {
		t.Errorf("OpenSM's log has %q", o.lines)
	}

	o = open(t, "", compile.Engine{Engine: forgetful{}})
	if _, err := o.Route(0, s); err == nil || len(o.lines) != 1 || !strings.Contains(o.lines[0], "ERR IBW3: ibweave-forgetful: ") {
		t.Errorf("%v: %q", err, o.lines)
	}
}

// A switch that is alone, and two hosts with a cable between them.
func TestSmallPieces(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{
		{GUID: 1, Type: fabric.Switch, NumPorts: 4}, {GUID: 2, Type: fabric.Switch, NumPorts: 4}, {GUID: 3, Type: fabric.Switch, NumPorts: 4},
		{GUID: 0x10, Type: fabric.CA, NumPorts: 1}, {GUID: 0x20, Type: fabric.CA, NumPorts: 1}, {GUID: 0x30, Type: fabric.CA, NumPorts: 1},
	} {
		short.Must(b.AddNode(n))(t)
		port := fabric.PortNum(0)
		if n.Type == fabric.CA {
			port = 1
		}
		short.Check(t, b.SetPort(i, port, n.GUID+fabric.GUID(port), 0, 0))
	}
	for _, c := range [][4]int{{0, 1, 1, 1}, {0, 2, 3, 1}, {4, 1, 5, 1}} {
		short.Check(t, b.Connect(c[0], fabric.PortNum(c[1]), c[2], fabric.PortNum(c[3]), fabric.Link{Width: 4, Speed: fabric.QDR}))
	}
	f, err := b.Build()
	f = withLIDs(t, f, err)
	p := f.Components()
	want := []fabric.Component{{Switches: 2, Ports: 1, First: f.PortBase(0)}, {Switches: 1, First: f.PortBase(2)}, {Ports: 2, First: f.Port(4, 1)}}
	if !slices.Equal(p.List, want) || p.Largest() != 0 {
		t.Errorf("%+v, largest %d", p.List, p.Largest())
	}
	o := open(t, "")
	if _, err := o.Route(o.engine("updn"), snapshotOf(f, rand.New(rand.NewPCG(1, 1)))); err != nil {
		t.Error(err)
	}
}
