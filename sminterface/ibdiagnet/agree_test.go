package ibdiagnet

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// All files of a run, as they are written, agree.
func TestFilesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		var lst bytes.Buffer
		short.Check(t, dump.WriteSubnetList(&lst, f))
		fabrics := map[string]*fabric.Fabric{"db_csv": f}
		if f.NumLinks() > 0 {
			g, _ := short.Must2(topology.Parse("lst", lst.Bytes(), topology.Options{}))(t)
			fabrics["lst"] = g
		}
		g, _ := short.Must2(topology.Parse("ibnetdiscover", topology.Append(nil, f), topology.Options{}))(t)
		fabrics["ibnetdiscover"] = g
		for a, f := range fabrics {
			for b, g := range fabrics {
				for _, d := range Disagreements(f, g, a, b) {
					t.Fatalf("%s", d.Message)
				}
			}
		}
	})
}

// One difference of each kind is found, from both sides.
func TestDisagreements(t *testing.T) {
	parse := func(change ...string) *fabric.Fabric {
		text := `Switch	3 "S-0000000000000010"	# "s" base port 0 lid 1 lmc 0
[1]	"H-0000000000000020"[1](21)	# "h" lid 2 4xNDR
[2]	"H-0000000000000030"[1](31)	# "k" lid 3 4xNDR

Ca	2 "H-0000000000000020"	# "h"
[1](21)	"S-0000000000000010"[1]	# lid 2 lmc 0 "s" lid 1 4xNDR

Ca	2 "H-0000000000000030"	# "k"
[1](31)	"S-0000000000000010"[2]	# lid 3 lmc 0 "s" lid 1 4xNDR
`
		f, _ := short.Must2(topology.Parse("x", []byte(strings.NewReplacer(change...).Replace(text)), topology.Options{Lenient: true}))(t)
		return f
	}
	f := parse()
	for _, c := range []struct {
		what   string
		change []string
		want   []string
		swap   []string // the other way round
	}{
		{"nothing", nil, nil, nil},
		{"names", []string{`"h"`, `"other"`}, nil, nil},
		{"LID", []string{"lid 2", "lid 9"}, []string{`LID of "h"[1] is 2 in one, and 9 in two`}, nil},
		{"LID of a switch", []string{"lid 1", "lid 9"}, []string{`LID of "s"[0] is 1 in one, and 9 in two`}, nil},
		{"speed", []string{"lid 2 4xNDR", "lid 2 4xHDR", "lid 2 lmc 0 \"s\" lid 1 4xNDR", "lid 2 lmc 0 \"s\" lid 1 4xHDR"}, []string{"is 4xNDR in one, and 4xHDR in two"}, nil},
		{"speed that one does not know", []string{"4xNDR", ""}, nil, nil},
		{"cable", []string{"[2]\t", "#", `[1](31)`, "#"}, []string{`one has a cable from "s"[2] to "k"[1] and two does not`, ""}, []string{"two has a cable"}},
		{"end", []string{`0030"[1](31)`, `0030"[2](32)`, "[1](31)", "[2](32)"}, []string{"leads to \"k\"[1] in one, and to \"k\"[2] in two", ""}, nil},
		{"node", []string{"0030", "0040"}, []string{"one has node", "two has node", "the cable of"}, nil},
		{"ports", []string{`Switch	3`, `Switch	5`}, []string{"with 3 ports in one, and a Switch with 5 ports in two"}, nil},
	} {
		g := parse(c.change...)
		list := Disagreements(f, g, "one", "two")
		if (len(c.want) == 0) != (len(list) == 0) {
			t.Errorf("%s: %v", c.what, list)
		}
		for i, want := range c.want {
			found := want == "" && len(list) >= i
			for _, d := range list {
				found = found || strings.Contains(d.Message, want)
			}
			if !found {
				t.Errorf("%s: no %q in %v", c.what, want, list)
			}
		}
		back := Disagreements(g, f, "one", "two")
		for _, want := range c.swap {
			if len(back) == 0 || !strings.Contains(back[len(back)-1].Message, want) {
				t.Errorf("%s, the other way round: %v", c.what, back)
			}
		}
	}
}
