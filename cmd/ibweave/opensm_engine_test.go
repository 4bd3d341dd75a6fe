package main

import (
	"io"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// channel is a VL of a port.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

// hasCreditLoop walks from each CA port to the LIDs of all others, on the lane that vl gives for an
// SL and a way through a node, and takes channels away that wait for none until none is left.
func hasCreditLoop(t *testing.T, r *lft.Routing, vl func(sl fabric.SL, in fabric.PortNum, out fabric.PortID) fabric.VL) bool {
	f, waits := r.Fabric, map[channel]map[channel]bool{}
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			first, lid := f.PeerSwitch(src), f.LID(dst)
			sl := fabric.SL(0)
			if r.PathSLs != nil {
				sl = r.PathSLs.SL(src, first, lid)
			}
			last := channel{src, vl(sl, 0, src)}
			for at := first; ; {
				out := f.Port(at, r.Tables.Row(at)[lid])
				next := channel{out, vl(sl, f.Num(f.Peer(last.port)), out)}
				if waits[last] == nil {
					waits[last] = map[channel]bool{}
				}
				waits[last][next] = true
				if f.Peer(out) == dst {
					break
				}
				last, at = next, f.Owner(f.Peer(out))
				if len(waits) > f.NumPorts()*lft.NumSLs {
					t.Fatal("a forwarding loop")
				}
			}
		}
	}
	for more := true; more; {
		more = false
		for c, on := range waits {
			for next := range on {
				if waits[next] == nil {
					delete(on, next)
				}
			}
			if len(on) == 0 {
				delete(waits, c)
				more = true
			}
		}
	}
	return len(waits) > 0
}

// TestOpenSMLanes has engines of OpenSM that rest on lanes route random fabrics. With SL-to-VL
// tables and path SLs as read there is a credit loop just where a plain walk finds one, which on one
// lane it does on most, and without path SLs no loop is certain.
func TestOpenSMLanes(t *testing.T) {
	t.Parallel()
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	fabrics := []*fabric.Fabric{torus}
	for seed := range uint64(short.Of(6, 1)) {
		f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 8 + int(seed), Degree: 2 + 2*int(seed%2), Hosts: 12, Seed: seed}))(t)
		fabrics = append(fabrics, f)
	}
	a := &app{stderr: io.Discard}
	onOneLane := 0
	for i, f := range fabrics {
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		for _, engine := range openSMLanes {
			r, in, used, err := a.routeByOpenSM(t.Context(), f, engine)
			if err != nil {
				t.Fatal(err)
			}
			if used != engine {
				continue
			}
			if engine != "nue" && r.PathSLs == nil || r.SL2VL == nil || len(in.State.Undecided) > 0 {
				t.Fatalf("fabric %d, %s: path SLs %v, SL-to-VL tables %v, %v; want them", i, engine, r.PathSLs != nil, r.SL2VL != nil, in.State.Undecided)
			}
			want := hasCreditLoop(t, r, func(sl fabric.SL, in fabric.PortNum, out fabric.PortID) fabric.VL { return r.SL2VL.At(in, out)[sl] })
			if got := loops(t, a, in, r); (got.CreditLoops.Count > 0) != want || want {
				t.Errorf("fabric %d, %s: %d credit loops, a walk finds one: %v; want none", i, engine, got.CreditLoops.Count, want)
			}
			if hasCreditLoop(t, r, func(fabric.SL, fabric.PortNum, fabric.PortID) fabric.VL { return 0 }) {
				onOneLane++
				r.PathSLs = nil
				got := loops(t, a, in, r)
				if got.CreditLoops.Count > 0 || !slices.ContainsFunc(got.Undecided, func(u verify.Undecided) bool { return u.Rule == verify.CreditLoop }) {
					t.Errorf("fabric %d, %s without path SLs: %d credit loops, undecided %v; want it undecided", i, engine, got.CreditLoops.Count, got.Undecided)
				}
			}
		}
	}
	if onOneLane < 2 {
		t.Errorf("%d routings have a credit loop on one lane; want some", onOneLane)
	}
}

// loops verifies a routing of OpenSM.
func loops(t *testing.T, a *app, in *audit, r *lft.Routing) *verify.Result {
	t.Helper()
	s := state.Of(r)
	s.UnknownSLs = in.State.UnknownSLs
	return short.Must(a.checkTables(t.Context(), s, verify.Options{Complete: true}))(t)
}
