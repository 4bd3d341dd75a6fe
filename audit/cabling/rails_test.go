package cabling

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// railed is a tree with hosts on four rails, whose adapters are called as sites do.
func railed(t testing.TB) *fabric.Fabric {
	t.Helper()
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 32, Pods: []int{2}, Hosts: 6, Rails: 4, Spines: 4}))(t)
	return short.Must(gen.Options{Names: "site"}.Apply(f))(t)
}

// Check has the rules of rails where hosts have several ports and agree where these belong, and no
// second finding about a port that they name. An expected topology says all by itself.
func TestRails(t *testing.T) {
	f := railed(t)
	swap := func(list []cable, p, q fabric.PortID) {
		for i := range list {
			switch list[i].b {
			case p:
				list[i].b = q
			case q:
				list[i].b = p
			}
		}
	}
	at := func(host string, adapter string) fabric.PortID { return port(f, host+" mlx5_"+adapter, 1) }
	for name, tc := range map[string]struct {
		change func(list []cable) []cable
		want   []string
	}{
		"whole": {func(list []cable) []cable { return list }, nil},
		"swapped": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0003", "1"))
			return list
		}, []string{"error rail-swapped 2"}},
		"mixed": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0004", "1"))
			return list
		}, []string{"error rail-mixed 1", "error rail-mixed 1"}},
		"another unit": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0009", "0"))
			return list
		}, []string{"warning rail-mixed 1", "warning rail-mixed 1"}},
		"missing": {func(list []cable) []cable {
			return slices.DeleteFunc(list, func(c cable) bool { return c.b == at("node0003", "2") })
		}, []string{"warning isolated-node 1", "warning rail-missing 1"}},
		"no rails": {func(list []cable) []cable { // hosts are cabled by chance
			var hosts []int
			for i := range list {
				if !f.IsSwitch(f.Owner(list[i].b)) {
					hosts = append(hosts, i)
				}
			}
			r := rand.New(rand.NewPCG(4, 4))
			r.Shuffle(len(hosts), func(i, j int) {
				a, b := &list[hosts[i]], &list[hosts[j]]
				a.b, b.b = b.b, a.b
			})
			return list
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := edited(t, f, tc.change)
			said := func(opt Options) (list []string) {
				for _, x := range Check(g, opt).Findings {
					if x.Severity > verify.Note {
						list = append(list, strings.Join([]string{x.Severity.String(), x.Rule, string(rune('0' + x.Count))}, " "))
					}
				}
				slices.Sort(list)
				return list
			}
			short.EqualList(t, said(Options{}), tc.want)
			for _, x := range Check(g, Options{Expected: f}).Findings {
				if _, ok := verify.FindRule(x.Rule, rails.Rules); ok || x.Rule == PortDown {
					t.Errorf("with an expected topology: %s: %s", x.Rule, x.Message)
				}
			}
			for _, x := range Check(g, Options{}).Findings {
				if x.Rule == PortDown && name != "no rails" {
					t.Errorf("a second finding: %s", x.Message)
				}
			}
		})
	}
}
