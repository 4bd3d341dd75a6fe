package mft_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// routed gives a fabric dense LIDs and routes it.
func routed(t testing.TB, e lft.Engine) func(*fabric.Fabric, error) *lft.Routing {
	return func(f *fabric.Fabric, err error) *lft.Routing {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		return short.Must(e.Route(context.Background(), f, lft.Options{}))(t)
	}
}

// randomGroups is n groups of members hosts that all send and receive.
func randomGroups(f *fabric.Fabric, n, members int, seed uint64) []mft.Group {
	rnd := rand.New(rand.NewPCG(seed, 0))
	groups := make([]mft.Group, n)
	for i := range groups {
		ports := slices.Clone(f.CAPorts())
		rnd.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
		ports = ports[:min(members, len(ports))]
		slices.Sort(ports)
		groups[i] = mft.Group{Name: fmt.Sprintf("group %d", i), Receivers: ports, Senders: ports}
	}
	return groups
}
