package updown

import (
	"context"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// TestKeepOrderNearTop: failures next to the switch on top take the upward links of others.
// The busiest link of kept tables is not much busier for that than of tables from scratch.
func TestKeepOrderNearTop(t *testing.T) {
	ctx := context.Background()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: short.Of(12, 8), Levels: 3})
	f = routable(t, f, err)
	r := short.Must(Engine{}.Route(ctx, f, lft.Options{}))(t)
	order := make([]fabric.NodeID, len(r.Order))
	for s, rank := range r.Order {
		order[rank] = fabric.NodeID(s)
	}
	var failures [][]fabric.PortID
	for _, s := range order[:3] { // the leaf on top, and spines next to it
		ports, _ := f.SwitchLinks(s)
		failures = append(failures, ports[:1], ports[len(ports)-1:], ports)
	}
	for _, cables := range failures {
		g := short.Must(gen.Remaining(f, cables...))(t)
		kept := short.Must(lft.Reroute(ctx, Engine{}, g, lft.Options{Previous: r, FirstStep: true}))(t)
		v := short.Must(verify.Check(ctx, &state.State{Fabric: g, Tables: kept.Tables}, verify.Options{}))(t)
		scratch := route(t, g)
		if v.Unicast.Loops > 0 || v.CreditLoops.Count > 0 || v.Unicast.Unreachable > scratch.Unicast.Unreachable {
			t.Errorf("without %s and %d more: %d loops, %d credit loops, %d pairs unreachable", f.PortName(cables[0]), len(cables)-1,
				v.Unicast.Loops, v.CreditLoops.Count, v.Unicast.Unreachable)
		}
		if a, b := v.Balance.MaxRoutes, scratch.Balance.MaxRoutes; 2*a > 3*b {
			t.Errorf("without %s and %d more: %d routes on the busiest link, %d from scratch", f.PortName(cables[0]), len(cables)-1, a, b)
		}
	}
}
