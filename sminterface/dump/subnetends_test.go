package dump_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// A cable that only one end calls down is there; a width is a whole word; a line of a shell that begins
// with a brace makes no subnet list of ibnetdiscover text.
func TestSubnetListEnds(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	var list bytes.Buffer
	short.Check(t, dump.WriteSubnetList(&list, f))
	lines := strings.SplitAfter(list.String(), "\n")
	lines[2] = strings.Replace(lines[2], "LOG=ACT", "LOG=DWN", 1)
	g, _, err := topology.Parse("l.lst", []byte(strings.Join(lines, "")), topology.Options{})
	if err != nil || g.NumLinks() != f.NumLinks() {
		t.Errorf("a cable that is down at one end: %v, want %d links", err, f.NumLinks())
	}
	wide := strings.Replace(list.String(), "PHY=4x ", "PHY=4xfoo ", 1)
	if _, _, err := topology.Parse("l.lst", []byte(wide), topology.Options{}); err == nil || !strings.Contains(err.Error(), `link width "4xfoo"`) {
		t.Errorf("PHY=4xfoo: %v", err)
	}
	text := append([]byte("hello there\n{ ibnetdiscover; date; }\n"), topology.Append(nil, f)...)
	if g, _, err := topology.Parse("t", text, topology.Options{}); err != nil || g.NumLinks() != f.NumLinks() {
		t.Errorf("foreign lines with a brace: %v", err)
	}
}
