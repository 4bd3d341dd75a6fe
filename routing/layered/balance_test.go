package layered_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// cluster is leaves below spines, several cables between each two, less some cables of which
// the last between two switches may be one, and on each spine a host or none.
func cluster(t *rapid.T) (*fabric.Fabric, error) {
	leaves := rapid.IntRange(2, 9).Draw(t, "leaves")
	spines := rapid.IntRange(1, 5).Draw(t, "spines")
	cables := rapid.IntRange(1, 4).Draw(t, "cables")
	hosts := rapid.IntRange(1, spines*cables+2).Draw(t, "hosts")
	return cabled(leaves, spines, cables, hosts, rapid.IntRange(0, 1).Draw(t, "hosts on a spine"))
}

func cabled(leaves, spines, cables, hosts, onSpine int) (*fabric.Fabric, error) {
	p, err := gen.NewPlan(leaves+spines, leaves*hosts+spines*onSpine)
	if err != nil {
		return nil, err
	}
	leaf, spine := make([]int, leaves), make([]int, spines)
	for i := range spine {
		spine[i] = p.Switch(leaves*cables+1, "spine")
		if onSpine == 1 {
			p.Cable(p.CA(1, "host"), 1, spine[i], leaves*cables+1)
		}
	}
	for i := range leaf {
		leaf[i] = p.Switch(spines*cables+hosts, "leaf")
		for h := range hosts {
			p.Cable(p.CA(1, "host"), 1, leaf[i], spines*cables+h+1)
		}
		for s := range spine {
			for c := range cables {
				p.Cable(leaf[i], s*cables+c+1, spine[s], i*cables+c+1)
			}
		}
	}
	return p.Fabric()
}

// damaged leaves out cables as long as all is connected.
func damaged(t *rapid.T, f *fabric.Fabric, most int) (*fabric.Fabric, error) {
	spare := f.NumLinks() - len(f.CAPorts()) - (f.NumSwitches() - 1)
	return gen.DropLinks(f, rapid.IntRange(0, min(most, spare)).Draw(t, "missing"), rapid.Uint64().Draw(t, "seed"))
}

// Where the up*/down* paths of updn are as short as any, so that one lane is enough, the
// busiest link is at most a tenth busier than with updn, for the sake of routes that come
// together, and a second lane is taken only where it is less busy than with updn.
func TestNotBusierThanUpDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f *fabric.Fabric
		var err error
		if rapid.Bool().Draw(t, "fat tree") {
			f, err = gen.FatTree(gen.FatTreeSpec{Radix: 2 * rapid.IntRange(2, 4).Draw(t, "half radix"), Levels: rapid.IntRange(2, 3).Draw(t, "levels"),
				HostsPerLeaf: rapid.IntRange(0, 3).Draw(t, "hosts per leaf")})
		} else {
			f, err = cluster(t)
		}
		if err == nil {
			f, err = damaged(t, f, 6)
		}
		if err != nil {
			t.Fatal(err)
		}
		checkAgainstUpDown(t, withLIDs(t, 0)(f, nil))
	})
}

// Spines with a host of their own: moving routes into one lane made a link busier than updn's.
func TestNotBusierWithHostsOnSpines(t *testing.T) {
	f := short.Must(cabled(3, 3, 3, 3, 1))(t)
	checkAgainstUpDown(t, withLIDs(t, 0)(f, nil))
}

func checkAgainstUpDown(t require, f *fabric.Fabric) {
	t.Helper()
	r, v, vls := routed(t, f, lft.Options{})
	u := short.Must(updown.Engine{}.Route(context.Background(), f, lft.Options{}))(t)
	theirs := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: u.Tables}, verify.Options{}))(t)
	if theirs.Unicast.NonMinimal > 0 {
		return
	}
	if v.Unicast.NonMinimal > 0 {
		t.Errorf("%d pairs are longer than a shortest path", v.Unicast.NonMinimal)
	}
	a, b := busiest(t, f, r.Tables), busiest(t, f, u.Tables)
	if a > b+b/10 || vls > 1 && a >= b {
		t.Errorf("%d routes on the busiest link and %d lanes, %d routes with updn", a, vls, b)
	}
}

// busiest is the routes on the busiest link.
func busiest(t require, f *fabric.Fabric, tables *lft.Tables) int64 {
	t.Helper()
	q := short.Must(quality.Measure(context.Background(), f, tables, quality.Options{}))(t)
	return q.Links.Max
}
