package cabling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// Slow links among peers are found, generations side by side are not, though all switches
// are of one model.
func TestSlowLinks(t *testing.T) {
	w := &network{}
	w.tree(16, 8, 8, 2) // s0 to s15 are leaves, s16 to s23 spines
	tree := w.fabric(t)
	two := &network{}
	two.tree(6, 8, 6, 3) // s0 to s5, s6 to s11: the old one
	two.tree(16, 8, 8, 2)
	old := two.fabric(t)
	ndr, edr, narrow := fabric.Link{Width: 4, Speed: fabric.NDR}, fabric.Link{Width: 4, Speed: fabric.EDR}, fabric.Link{Width: 1, Speed: fabric.NDR}
	number := func(name string) int {
		n := 0
		for _, c := range name[1:] {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
		return n
	}
	// slow says by the names of both ends, and the number of parallel ones before it,
	// whether a cable is.
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		slow func(a, b string, k int) (fabric.Link, bool)
		want string
	}{
		{"none", tree, func(a, b string, k int) (fabric.Link, bool) { return ndr, false }, ""},
		{"unknown", tree, func(a, b string, k int) (fabric.Link, bool) { return fabric.Link{}, true }, ""},
		{"one cable", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, a == "s3" && b == "s18" && k == 1 },
			`link-degraded: "s3"[14] to "s18"[8] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"one cable, others unknown", tree, func(a, b string, k int) (fabric.Link, bool) {
			if number(a) > 4 {
				return fabric.Link{}, true
			}
			return narrow, a == "s3" && b == "s18" && k == 1
		}, `link-degraded: "s3"[14] to "s18"[8] is 1xNDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"a host", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, b == "h3-2" },
			`link-degraded: "s3"[3] to "h3-2"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"eight cables", tree, func(a, b string, k int) (fabric.Link, bool) {
			return edr, b == "s18" && number(a) < 2 || a == "s0" && b[0] == 's' && number(b) < 18
		},
			`link-degraded: "s0"[10] to "s16"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[11] to "s17"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[12] to "s17"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[13] to "s18"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[14] to "s18"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[9] to "s16"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s1"[13] to "s18"[3] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s1"[14] to "s18"[4] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"half of the leaves", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, number(a) < 8 }, ""},
		{"half of the spines", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, b[0] == 's' && number(b) < 20 }, ""},
		{"hosts of two generations", tree, func(a, b string, k int) (fabric.Link, bool) {
			return edr, b[0] == 'h' && strings.ContainsAny(b[len(b)-1:], "0246")
		}, ""},
		{"an old island", old, func(a, b string, k int) (fabric.Link, bool) { return edr, number(a) < 12 }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cables := cablesOf(tc.f)
			parallel := make(map[string]int)
			for i := range cables {
				c := &cables[i]
				a, b := tc.f.Node(tc.f.Owner(c.a)).Description, tc.f.Node(tc.f.Owner(c.b)).Description
				c.link = ndr
				if link, slow := tc.slow(a, b, parallel[a+b]); slow {
					c.link = link
				}
				parallel[a+b]++
			}
			f := rewire(t, tc.f, cables, rand.New(rand.NewPCG(1, 1)))
			for _, x := range SlowLinks(f) {
				want := verify.Error
				if strings.Contains(x.Message, "to \"h") {
					want = verify.Warning
				}
				short.Equal(t, x.Severity, want, x.Message, "severity")
			}
			short.Equal(t, sortedMessages(SlowLinks(f)), tc.want)
		})
	}
}

func sortedMessages(list []verify.Finding) string {
	m := messages(list)
	slices.Sort(m)
	return strings.Join(m, "\n")
}

// A plan of another fabric is one finding, and so is a policy that most links are below.
func TestFitsNothing(t *testing.T) {
	w := &network{}
	w.tree(16, 8, 8, 2)
	f := w.fabric(t)
	w.tree(4, 2, 3, 1)
	both, own := w.fabric(t), make(map[fabric.GUID]bool)
	for n := range fabric.NodeID(f.NumNodes()) {
		own[f.Node(n).GUID] = true
	}
	var others []fabric.NodeID
	for n := range fabric.NodeID(both.NumNodes()) {
		if !own[both.Node(n).GUID] {
			others = append(others, n)
		}
	}
	other := short.Must(both.Part(others))(t)
	cables := cablesOf(f)
	for i := range cables {
		cables[i].link = fabric.Link{Width: 4, Speed: fabric.NDR}
	}
	f = rewire(t, f, cables, rand.New(rand.NewPCG(1, 1)))
	var messages []string
	for _, opt := range []Options{{Expected: other}, {Between: fabric.Link{Speed: fabric.XDR}}, {Hosts: fabric.Link{Width: 8}}} {
		for _, x := range Check(f, opt).Findings {
			if x.Severity == verify.Error {
				messages = append(messages, fmt.Sprintf("%s %d %s", x.Rule, x.Count, x.Message))
			}
		}
	}
	want := []string{
		"missing-node 20 none of the 15 nodes of the expected topology is in the fabric: it is of another fabric, or --node-name-map has other names",
		`link-below-required 256 256 of 256 links between switches are below what the policy wants; the first: "s0"[9] to "s16"[1] is 4xNDR, the policy wants XDR`,
		`link-below-required 128 128 of 128 links of hosts are below what the policy wants; the first: "s0"[1] to "h0-0"[1] is 4xNDR, the policy wants 8x`,
	}
	short.EqualList(t, messages, want)
}
