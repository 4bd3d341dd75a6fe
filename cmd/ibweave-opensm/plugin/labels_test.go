package plugin

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// labelled is a topology text with labels on some ports of "leaf 3" and "spine 3" of a fat
// tree of radix 8, and on one port that the switch does not have.
const labelled = `vendid=0x2c9
devid=0xd2f2
switchguid=LEAF(LEAF)
Switch	9 "S-LEAF"		# "leaf 3" enhanced port 0 lid 1 lmc 0
[8](1/4/2)	"S-SPINE"[4]		# "spine 3" lid 2 4xNDR
[9](1/5/1)	"S-SPINE"[8]		# "spine 3" lid 2 4xNDR

vendid=0x2c9
devid=0xd2f2
switchguid=SPINE(SPINE)
Switch	8 "S-SPINE"		# "spine 3" enhanced port 0 lid 2 lmc 0
[4](1/2/2)	"S-LEAF"[8]		# "leaf 3" lid 1 4xNDR
[8]	"S-LEAF"[9]		# "leaf 3" lid 1 4xNDR
`

// Lines of both logs name ports by number and label where the configuration has a file
// with labels: those of findings about cables, and those of cables that OpenSM does not use.
func TestLabels(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f = withLIDs(t, f, err)
	s := snapshotOf(f, rand.New(rand.NewPCG(1, 1)))
	at := func(name string, num int) (*Port, string) {
		i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Description == name })
		return &s.Ports[int(s.Nodes[i].First)+num], strings.TrimPrefix(s.Nodes[i].GUID.String(), "0x")
	}
	leaf, leafGUID := at("leaf 3", 8)
	spine, spineGUID := at("spine 3", 4)
	leaf.Speed, spine.Speed = 1, 1
	file := filepath.Join(t.TempDir(), "fabric.ibnetdiscover")
	writeFile(t, file, []byte(strings.NewReplacer("=LEAF(LEAF)", "=0x"+leafGUID+"("+leafGUID+")", "=SPINE(SPINE)", "=0x"+spineGUID+"("+spineGUID+")",
		"LEAF", leafGUID, "SPINE", spineGUID).Replace(labelled)))
	o := open(t, "labels: "+file)
	tables := short.Must(o.Route(o.engine("updn"), copied(s)))(t)
	o.Written(tables)
	leaf.Sick = true
	short.Must(o.Route(o.engine("updn"), s))(t)
	const slow = `slow cable: "leaf 3"[8](1/4/2) to "spine 3"[4](1/2/2) is `
	if lines := strings.Join(o.lines, "\n"); !strings.Contains(lines, slow) || strings.Contains(lines, "ERR") {
		t.Errorf("OpenSM's log:\n%s", lines)
	}
	sick := ` port 8(1/4/2) of 0x` + leafGUID + ` "leaf 3"`
	if log := o.ownLog(t); !strings.Contains(log, slow) || !strings.Contains(log, sick) {
		t.Errorf("our log lacks %q or %q:\n%s", slow, sick, log)
	}
}

// A file of labels that cannot be read is one line of OpenSM's log, and stops no routing.
func TestLabelsThatCannotBeRead(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	cases := map[string]func(name string) error{}
	wants := map[string]string{}
	for name, kind := range kinds {
		cases[name], wants[name] = kind.make, kind.want
	}
	cases["text"] = func(name string) error { writeFile(t, name, []byte("[1](1/1/1)\n")); return nil }
	wants["text"] = ":1:"
	for name, makeFile := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "fabric.ibnetdiscover")
			short.Check(t, makeFile(file))
			o := open(t, "labels: "+file)
			if len(o.lines) != 1 || !strings.HasPrefix(o.lines[0], "1 ERR IBW1: labels: ") || !strings.Contains(o.lines[0], wants[name]) {
				t.Errorf("OpenSM's log has %q, want one line with %q", o.lines, wants[name])
			}
			if _, err := o.Route(o.engine("updn"), snapshotOf(f, rand.New(rand.NewPCG(1, 1)))); err != nil {
				t.Error(err)
			}
		})
	}
}
