package myrinet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

func hexBytes(t testing.TB, s string) []byte {
	t.Helper()
	return short.Must(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

// TestTreeHeader is golden G-M1, at every switch.
func TestTreeHeader(t *testing.T) {
	tree := TreeRoute{
		{1, TreeRoute{{2, nil}, {4, nil}}},
		{3, TreeRoute{{5, TreeRoute{{1, nil}, {2, nil}}}}},
		{6, nil},
	}
	headers := map[string]string{
		"A":     "01 05 02 01 04 01 03 07 05 05 01 01 02 01 06 01 ff",
		"A.1":   "02 01 04 01 ff",
		"A.1.2": "ff", "A.1.4": "ff",
		"A.3":     "05 05 01 01 02 01 ff",
		"A.3.5":   "01 01 02 01 ff",
		"A.3.5.1": "ff", "A.3.5.2": "ff",
		"A.6": "ff",
	}
	b := short.Must(AppendTree(nil, tree))(t)
	seen := 0
	var visit func(name string, header []byte)
	visit = func(name string, header []byte) {
		seen++
		short.EqualList(t, header, hexBytes(t, headers[name]), "at", name)
		stamps, rest, err := Split(append(header, 0xaa))
		if err != nil || !bytes.Equal(rest, []byte{0xaa}) {
			t.Fatalf("at %s: % x %v", name, rest, err)
		}
		for _, s := range stamps {
			visit(name+"."+string('0'+rune(s.Port)), s.Header)
		}
	}
	visit("A", b)
	short.Equal(t, seen, len(headers), "headers")
	short.EqualList(t, short.Must(AppendTree(nil, Route{3, 5, 1}.Tree()))(t), hexBytes(t, "03 05 05 03 01 01 ff"), "unicast 3,5,1")
	joined, err := TreeOf([]Route{{1, 2}, {1, 4}, {3, 5, 1}, {3, 5, 2}, {6}})
	if err != nil || !reflect.DeepEqual(joined, tree) {
		t.Errorf("joined %v, %v", joined, err)
	}
	if _, err := TreeOf([]Route{{1}, {1, 2}}); err == nil {
		t.Error("a path that ends where another goes on")
	}
}

// TestTreeHeaderErrors has what writers and readers refuse.
func TestTreeHeaderErrors(t *testing.T) {
	wide := TreeRoute{}
	for p := range 128 {
		wide = append(wide, Branch{Port: fabric.PortNum(p)})
	}
	for name, tree := range map[string]TreeRoute{
		"port 255":        {{255, nil}},
		"a port twice":    {{1, nil}, {1, nil}},
		"twice below":     {{1, TreeRoute{{2, nil}, {2, nil}}}},
		"256 bytes below": {{1, wide}},
	} {
		if b, err := AppendTree(nil, tree); err == nil || b != nil {
			t.Errorf("%s: % x", name, b)
		}
	}
	if _, err := AppendTree(nil, TreeRoute{{1, wide[:127]}}); err != nil {
		t.Errorf("254 bytes below: %v", err)
	}
	for _, tt := range []struct {
		name, header string
		at           int
		port         string // by which a switch sends on what is wrong; none at the first one
	}{
		{"nothing", "", 0, ""},
		{"no end", "01 01", 1, ""},
		{"no pointer", "01", 1, ""},
		{"pointer 0", "01 00 ff", 1, ""},
		{"pointer beyond the end", "01 05 ff", 1, ""},
		{"a port twice", "01 01 01 01 ff", 2, ""},
		{"pointer 0 below", "01 03 02 00 ff", 1, "1"},
		{"pointer out of the subtree", "01 03 02 02 ff", 1, "1"},
		{"a port twice below", "01 05 02 01 02 01 ff", 2, "1"},
		{"half a branch below", "01 02 02 ff", 1, "1"},
	} {
		header := hexBytes(t, tt.header)
		if tt.port != "" {
			stamps, _, err := Split(header)
			if err != nil || len(stamps) != 1 {
				t.Fatalf("%s: split %v, %v", tt.name, stamps, err)
			}
			header = stamps[0].Header
		}
		stamps, rest, err := Split(header)
		var e *HeaderError
		if !errors.As(err, &e) || e.At != tt.at || stamps != nil || rest != nil {
			t.Errorf("%s: split %v, %v, want an error at byte %d", tt.name, stamps, err, tt.at)
		}
	}
}

// randomTree is a tree of at most n channels, as high as it comes.
func randomTree(rng *rand.Rand, n int) TreeRoute {
	var t TreeRoute
	for _, p := range rng.Perm(int(EndOfRoute)) {
		if n == 0 || len(t) == 8 {
			break
		}
		below := rng.IntN(n)
		t = append(t, Branch{fabric.PortNum(p), randomTree(rng, below)})
		n -= below + 1
	}
	return t
}

// TestRandomTrees splits the headers of 2,000 trees (G-M1): each header has two bytes
// for a channel and one more, the pieces that switches make are the headers of the
// subtrees, and every host gets the empty one.
func TestRandomTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range short.Of(2000, 300) {
		tree := randomTree(rng, rng.IntN(120))
		b := short.Must(AppendTree(nil, tree))(t)
		if n := channels(tree); len(b) != 2*n+1 {
			t.Fatalf("%d bytes for %d channels", len(b), n)
		}
		var visit func(TreeRoute, []byte)
		visit = func(tree TreeRoute, header []byte) {
			stamps, rest, err := Split(header)
			if err != nil || len(rest) != 0 || len(stamps) != len(tree) {
				t.Fatalf("% x: %v %v", header, stamps, err)
			}
			for i, s := range stamps {
				short.MustEqual(t, s.Port, tree[i].Port, header, "port")
				visit(tree[i].Below, s.Header)
			}
		}
		visit(tree, b)
	}
}

func channels(t TreeRoute) int {
	n := len(t)
	for _, b := range t {
		n += channels(b.Below)
	}
	return n
}

// TestStrip sends a worm over every path of a torus byte by byte as the switches
// do, and damages it on the way.
func TestStrip(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	data := []byte("what the host sends")
	for _, a := range f.CAPorts()[:8] {
		for _, b := range f.CAPorts() {
			if a == b {
				continue
			}
			r := short.Must(SourceRoute(f, tables, a, f.LID(b)))(t)
			worm, err := AppendWorm(nil, r, data)
			if err != nil || len(worm) != len(r)+len(data)+1 {
				t.Fatal(len(worm), err)
			}
			at := f.Peer(a)
			for f.IsSwitch(f.Owner(at)) {
				damaged := bytes.Clone(worm)
				damaged[len(damaged)/2] ^= 4
				if _, _, err := Strip(damaged); !errors.Is(err, ErrChecksum) {
					t.Fatalf("a damaged worm: %v", err)
				}
				var port fabric.PortNum
				if port, worm, err = Strip(worm); err != nil {
					t.Fatal(err)
				}
				at = f.Peer(f.Port(f.Owner(at), port))
			}
			got, err := Open(worm)
			if err != nil || at != b || !bytes.Equal(got, data) {
				t.Fatalf("%q arrived at %s, %v", got, f.PortName(at), err)
			}
		}
	}
	if _, err := AppendWorm(nil, Route{1, 255}, nil); err == nil {
		t.Error("port 255 in a route")
	}
	for _, worm := range []string{"", "00", "ff f3"} {
		if port, next, err := Strip(hexBytes(t, worm)); err == nil {
			t.Errorf("stripped %q: %d % x", worm, port, next)
		}
	}
	// CRC-8 of "123456789" in the catalogues of CRCs.
	short.Equal(t, checksum([]byte("123456789")), 0xf4, "checksum")
}

// FuzzSplit: the pieces that switches make are in the header as they are, and an
// error has no result.
func FuzzSplit(f *testing.F) {
	f.Add(hexBytes(f, "01 05 02 01 04 01 03 07 05 05 01 01 02 01 06 01 ff"))
	f.Add(hexBytes(f, "03 05 05 03 01 01 ff 00"))
	f.Add(hexBytes(f, "01 03 02 00 ff"))
	f.Fuzz(func(t *testing.T, header []byte) {
		stamps, rest, err := Split(header)
		if err != nil {
			if stamps != nil || rest != nil {
				t.Fatalf("%v, and a result", err)
			}
			return
		}
		var again []byte
		for _, s := range stamps {
			again = append(append(again, byte(s.Port), byte(len(s.Header))), s.Header[:len(s.Header)-1]...)
		}
		again = append(append(again, EndOfRoute), rest...)
		short.EqualList(t, again, header, "became")
	})
}
