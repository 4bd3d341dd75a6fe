package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestMistyped: a topology that lists its switches as adapters is refused with its line, also where the read
// is lenient; with one such switch among others a lenient read goes on.
func TestMistyped(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 3, Spines: 2}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	parse := func(data []byte, lenient bool) (*fabric.Fabric, error) {
		g, _, err := topology.Parse("x", data, topology.Options{Lenient: lenient})
		return g, err
	}
	guid := f.Node(0).GUID.String()[2:]
	for name, x := range map[string]struct {
		good  []byte
		which string // of a line of a switch, with $ for its GUID; what stands before the type and the type are groups
		as    string
		read  func(data []byte, lenient bool) (*fabric.Fabric, error)
	}{
		"opensm-subnet.lst": {text(t, func(w io.Writer) error { return WriteSubnetList(w, f) }), `({ )(SW)( Ports:\w+ SystemGUID:\w+ NodeGUID:$)`, "CA",
			func(data []byte, lenient bool) (*fabric.Fabric, error) {
				g, _, err := topology.Parse("x", data, topology.Options{Lenient: lenient})
				return g, err
			}},
		"ibnetdiscover -p": {portList(f), `()(SW)( +\d+ +\d+ 0x$)`, "CA", parse},
		"ibnetdiscover":    {topology.Append(nil, f), `(?m)(^)(Switch)(\s+\d+ "S-$)`, "Ca", parse},
	} {
		mistype := func(guid string) []byte {
			return regexp.MustCompile(strings.ReplaceAll(x.which, "$", guid)).ReplaceAll(x.good, []byte("${1}"+x.as+"${3}"))
		}
		for _, lenient := range []bool{false, true} {
			var at *fabric.ParseError
			if g, err := x.read(mistype(`\w{16}`), lenient); g != nil || !errors.As(err, &at) || at.Line == 0 || !strings.Contains(err.Error(), "switches are listed as another type: node 0x") {
				t.Errorf("%s, lenient %v: %v, want what is listed wrong, with its line", name, lenient, err)
			}
			one := mistype(guid)
			if bytes.Equal(one, x.good) {
				t.Fatalf("%s: nothing is changed", name)
			}
			if g, err := x.read(one, lenient); lenient == (err != nil) || lenient && g.NumSwitches() != f.NumSwitches()-1 {
				t.Errorf("%s, one switch, lenient %v: %v", name, lenient, err)
			}
		}
	}
}

// portList returns the rows of ibnetdiscover -p, each cable from both ends.
func portList(f *fabric.Fabric) (b []byte) {
	side := func(p fabric.PortID) string {
		word, end := "CA", p
		if n := f.Owner(p); f.IsSwitch(n) {
			word, end = "SW", f.PortBase(n)
		}
		return fmt.Sprintf("%s %5d %2d %s", word, f.LID(end), f.Num(p), f.PortGUID(end))
	}
	for _, c := range f.Cables() {
		for _, p := range []fabric.PortID{c.A, c.B} {
			q := f.Peer(p)
			b = fmt.Appendf(b, "%s 4x SDR - %s ( '%s' - '%s' )\n", side(p), side(q), f.Node(f.Owner(p)).Description, f.Node(f.Owner(q)).Description)
		}
	}
	return b
}
