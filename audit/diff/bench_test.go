package diff

import (
	"context"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
)

// The 720 switches and 3,456 hosts of a 3-level fat tree of radix 24, from one
// engine to another: a quarter of all entries change.
func BenchmarkCompareFatTree24(b *testing.B) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))(b)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(b)
	var states [2]*state.State
	for i, e := range []lft.Engine{updown.Engine{}, lft.Minhop{}} {
		r := short.Must(e.Route(context.Background(), f, lft.Options{}))(b)
		states[i] = &state.State{Name: e.Name(), Fabric: f, Tables: r.Tables}
	}
	b.ReportAllocs()
	for b.Loop() {
		short.Must(Compare(context.Background(), states[0], states[1]))(b)
	}
}
