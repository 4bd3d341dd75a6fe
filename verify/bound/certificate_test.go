package bound

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// clone copies a certificate as far as change changes it.
func clone(c *Certificate) *Certificate {
	d := *c
	d.Bound = new(big.Rat).Set(c.Bound)
	d.Sources, d.Channels, d.Order = slices.Clone(c.Sources), slices.Clone(c.Channels), slices.Clone(c.Order)
	return &d
}

// change alters a certificate as a mistake or a forger may, and says how.
func change(r *rand.Rand, c *Certificate, f *fabric.Fabric) (how string) {
	i := r.IntN(len(c.Channels))
	switch r.IntN(9) {
	case 0:
		c.Channels[i].Length += 1 + r.Int64N(5)
		return "length"
	case 1:
		c.Channels = slices.Delete(c.Channels, i, i+1)
		return "channel removed"
	case 2:
		c.Unit += 1 + r.Int64N(3)
		return "unit"
	case 3:
		c.Paths = Paths(r.IntN(3))
		return "paths"
	case 4:
		if len(c.Sources) > 0 {
			k := r.IntN(len(c.Sources))
			c.Sources = slices.Delete(c.Sources, k, k+1)
		} else {
			c.Sources = []fabric.GUID{f.Node(0).GUID}
		}
		return "sources"
	case 5:
		c.Sources = nil
		return "all sources"
	case 6:
		c.Channels[i].Port = fabric.PortNum(1 + r.IntN(40))
		return "port"
	case 7:
		if k := len(c.Order); k > 0 {
			j := r.IntN(k)
			c.Order[0], c.Order[j] = c.Order[j], c.Order[0]
		}
		return "order"
	}
	return "nothing else"
}

// Certificates that claim more than any tables can keep to are refused, whatever else is
// changed in them.
func TestRaisedBoundsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	refused := 0
	for refused < *fabrics {
		f := small{4, 4, 6}.random(t, r)
		for _, x := range find(t, f, Options{Rounds: 20, Order: order(f)}).List() {
			if refused == *fabrics {
				break
			}
			c := clone(x.Certificate)
			how := change(r, c, f)
			rank := order(f)
			if c.Order != nil {
				rank, _ = c.Ranks(f)
			}
			exact := exhaustive(f, c.Paths, rank)
			if exact == nil || exact.Sign() == 0 {
				continue
			}
			// From a quarter of a percent to many times what some tables have.
			c.Bound.Mul(exact, big.NewRat(401+r.Int64N(400), 400))
			if r.IntN(4) == 0 {
				c.Bound.Mul(c.Bound, big.NewRat(2+r.Int64N(5), 1))
			}
			if err := c.Check(f, nil); err == nil {
				t.Errorf("%s changed: a bound of %s holds, and some tables have %s", how, c.Bound, exact)
			}
			refused++
		}
	}
	t.Logf("%d refused", refused)
}

// A certificate claims what its lengths prove, no more and no less.
func TestOtherBoundsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		f := small{5, 7, 8}.random(t, r)
		for _, x := range find(t, f, Options{Rounds: 20, Order: order(f)}).List() {
			for _, factor := range []*big.Rat{big.NewRat(1_000_001, 1_000_000), big.NewRat(999_999, 1_000_000)} {
				c := clone(x.Certificate)
				c.Bound.Mul(c.Bound, factor)
				err := c.Check(f, nil)
				want := "prove less"
				if factor.Cmp(big.NewRat(1, 1)) < 0 {
					want = "prove more"
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("bound %s instead of %s: %v, want %q", c.Bound, x.Exact, err, want)
				}
			}
		}
	}
}

// crossed is two leaves with two hosts and two cables, the second slower, by names for Check to
// miss.
func crossed(t *testing.T) (*fabric.Fabric, *Certificate) {
	t.Helper()
	f := leaves(t, []int{2, 2}, []fabric.Link{{Width: 4, Speed: fabric.NDR}, {Width: 4, Speed: fabric.HDR}})
	return f, find(t, f, Options{Rounds: -1}).Any.Certificate
}

// leaves makes two switches with some hosts and cables between them.
func leaves(t *testing.T, hosts []int, cables []fabric.Link) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	for i, n := range hosts {
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(0x10 + i), NumPorts: 40, Description: string(rune('a' + i))})
		fail(err)
		_ = n
	}
	for i, l := range cables {
		fail(b.Connect(0, fabric.PortNum(1+i), 1, fabric.PortNum(1+i), l))
	}
	for i, n := range hosts {
		for k := range n {
			h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x1000*(i+1) + k*16), NumPorts: 1})
			fail(err)
			fail(b.Connect(h, 1, i, fabric.PortNum(20+k), fabric.Link{}))
		}
	}
	f, err := b.Build()
	fail(err)
	return f
}

func TestCheckErrors(t *testing.T) {
	f, good := crossed(t)
	other := leaves(t, []int{2, 3}, []fabric.Link{{Width: 4, Speed: fabric.NDR}, {Width: 4, Speed: fabric.HDR}})
	slower := leaves(t, []int{2, 2}, []fabric.Link{{Width: 4, Speed: fabric.NDR}, {Width: 4, Speed: fabric.NDR}})
	for _, g := range []*fabric.Fabric{other, slower} {
		if err := good.Check(g, nil); err == nil || !strings.Contains(err.Error(), "other cables, rates, hosts") {
			t.Errorf("another fabric: %v", err)
		}
	}
	for _, test := range []struct {
		change func(c *Certificate)
		want   string
	}{
		{func(c *Certificate) { c.Channels[0].Switch = 5 }, "no port 1 of a switch 0x0000000000000005"},
		{func(c *Certificate) { c.Channels[0].Port = 41 }, "no port 41"},
		{func(c *Certificate) { c.Channels[0].Port = 20 }, "no cable to another switch"},
		{func(c *Certificate) { c.Channels[0].Port = 15 }, "no cable to another switch"},
		{func(c *Certificate) { c.Channels[1] = c.Channels[0] }, "want 1 to 1073741824, once"},
		{func(c *Certificate) { c.Channels[0].Length = -1 }, "want 1 to"},
		{func(c *Certificate) { c.Sources = []fabric.GUID{0x1000} }, "want a switch with hosts"},
		{func(c *Certificate) { c.Sources = []fabric.GUID{0x10, 0x10} }, "want a switch with hosts, once"},
		{func(c *Certificate) { c.Paths = LegalPaths }, "the order has 0 of 2 switches"},
		{func(c *Certificate) { c.Paths, c.Order = LegalPaths, []fabric.GUID{0x10, 0x10} }, "a switch twice"},
		{func(c *Certificate) { c.Paths, c.Order = LegalPaths, []fabric.GUID{0x10, 0x1000} }, "want a switch"},
		{func(c *Certificate) { c.Unit = 3 }, "prove less"},
	} {
		c := clone(good)
		test.change(c)
		if err := c.Check(f, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	_, c := crossed(t)
	text := string(c.Append(nil))
	if list, err := Read("x", []byte(text+text)); err != nil || len(list) != 2 || string(list[1].Append(nil)) != text {
		t.Errorf("two certificates: %v, %d", err, len(list))
	}
	lines := strings.SplitAfter(text, "\n")
	for _, test := range []struct {
		old, new string
		line     int
		want     string
	}{
		{text, "", 1, `want a line that begins with "ibweave bound 1"`},
		{text, "garbage\n", 1, "no bound that can be read"},
		{"bound 1 ", "bound 2 ", 1, "no bound that can be read"},
		{"paths any", "paths all", 1, `paths "all": want any, shortest, legal`},
		{"unit ", "unit 0", 1, "unit"},
		{"unit ", "unit -", 1, "unit"},
		{"/", "/0", 1, "in lowest terms"},
		{"bound 1 paths any unit 2 bound 4/1", "bound 1 paths any unit 2 bound 0/1", 1, "a fraction above 0"},
		{"bound 4/1", "bound 8/2", 1, "in lowest terms"},
		{"bound 4/1", "bound 4", 1, "in lowest terms"},
		{"bound 4/1", "bound 1e9/1", 1, "in lowest terms"},
		{"bound 4/1", "bound " + strings.Repeat("9", 100) + "/1", 1, "in lowest terms"},
		{"sources 1", "sources 0", 1, "want 1 to 2147483647, or all or gate"},
		{"sources 1", "sources none", 1, "or all"},
		{"sources 1", "sources 2147483647", 3, "GUID"},
		{"channels 2", "channels 0", 1, "channels"},
		{"channels 2", "channels 3", 5, "the file ends: want 3 channels"},
		{"channels 2", "channels 1", 4, "no bound that can be read"},
		{"sha256:", "sha1:", 1, "64 hexadecimal digits"},
		{"paths any", "paths legal", 1, "with order N before fabric where P is legal"},
		{" fabric", " order 2 fabric", 1, "with order N before fabric where P is legal"},
		{"fabric", "farbic", 1, "want \"ibweave bound 1 paths P"},
		{lines[1], "0x10\n", 2, "0x and 16 hexadecimal digits"},
		{lines[1], "0x0000000000000000\n", 2, "not all 0"},
		{lines[2] + lines[3], lines[3] + lines[2], 4, "channels must ascend"},
		{lines[2], "0x0000000000000010 1\n", 3, "want a GUID, a port and a length"},
		{lines[2], "0x0000000000000010 0 1\n", 3, `port "0": want 1 to 254`},
		{lines[2], "0x0000000000000010 1 0\n", 3, `length "0": want 1 to 1073741824`},
		{lines[2], "0x0000000000000010 1 01\n", 3, "length"},
		{lines[3], strings.TrimSuffix(lines[3], "\n"), 4, "the file was cut off"},
	} {
		changed := strings.Replace(text, test.old, test.new, 1)
		list, err := Read("x", []byte(changed))
		var at *fabric.ParseError
		if list != nil || !errors.As(err, &at) || at.Line != test.line || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q for %q: %v, want line %d and %q", test.new, test.old, err, test.line, test.want)
		}
	}
}

// The order of legal ports is part of a certificate.
func TestReadOrder(t *testing.T) {
	_, c := crossed(t)
	c.Paths, c.Order = LegalPaths, []fabric.GUID{0x11, 0x10}
	text := string(c.Append(nil))
	list, err := Read("x", []byte(text))
	if err != nil || !slices.Equal(list[0].Order, c.Order) || string(list[0].Append(nil)) != text {
		t.Fatalf("%v: %s", err, text)
	}
	for _, cut := range []int{1, 20, 40} {
		if _, err := Read("x", []byte(text[:len(text)-cut])); err == nil {
			t.Errorf("%d bytes fewer: no error", cut)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("ibweave bound 1 paths any unit 2 bound 4/1 sources 1 channels 1 fabric sha256:" + strings.Repeat("0", 64) + "\n0x0000000000000010\n0x0000000000000010 1 1\n"))
	f.Add([]byte("ibweave bound 1 paths shortest unit 0 bound 9/2 sources all channels 1 fabric sha256:" + strings.Repeat("a", 64) + "\n0x0000000000000010 1 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Read("x", data)
		if err != nil {
			if list != nil {
				t.Error("certificates beside an error")
			}
			return
		}
		var again []byte
		for _, c := range list {
			again = c.Append(again)
		}
		if !bytes.Equal(again, data) {
			t.Errorf("%q is written as %q", data, again)
		}
	})
}
