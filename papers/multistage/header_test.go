package multistage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/routing/banyan"
)

// printHops is a line for each stage and element: input link, element and
// input, then port, output link and header of each copy.
func printHops(n, source int, r Region) string {
	var b strings.Builder
	last := Hop[Region]{Stage: -1}
	for _, h := range Hops(n, source, r) {
		if h.Stage != last.Stage || h.In != last.In {
			if last.Stage >= 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "stage %d: link %d SE%d.%d ->", h.Stage, h.In, h.In/2, h.In%2)
		}
		fmt.Fprintf(&b, " %d: link %d [%0*b,%0*b]", h.Out%2, h.Out, n, h.Header.Min, n, h.Header.Max)
		last = h
	}
	return b.String()
}

// TestRegionExample is golden G-N2: the region of Figure 2 from processor 5.
func TestRegionExample(t *testing.T) {
	want := `
stage 3: link 10 SE5.0 -> 0: link 10 [0100,0111] 1: link 11 [1000,1000]
stage 2: link 3 SE1.1 -> 1: link 3 [0100,0111]
stage 2: link 11 SE5.1 -> 0: link 10 [1000,1000]
stage 1: link 6 SE3.0 -> 0: link 6 [0100,0101] 1: link 7 [0110,0111]
stage 1: link 10 SE5.0 -> 0: link 10 [1000,1000]
stage 0: link 5 SE2.1 -> 0: link 4 [0100,0100] 1: link 5 [0101,0101]
stage 0: link 7 SE3.1 -> 0: link 6 [0110,0110] 1: link 7 [0111,0111]
stage 0: link 9 SE4.1 -> 0: link 8 [1000,1000]`
	short.Equal(t, printHops(4, 5, Region{4, 8}), want[1:], "from 5", "want", want)
	// From processor 0, input and output links of stages 3 to 0.
	in, out := make([][]int, 4), make([][]int, 4)
	for _, h := range Hops(4, 0, Region{4, 8}) {
		if k := in[h.Stage]; len(k) == 0 || k[len(k)-1] != h.In {
			in[h.Stage] = append(k, h.In)
		}
		out[h.Stage] = append(out[h.Stage], h.Out)
	}
	short.Equal(t, fmt.Sprint(in[3], in[2], in[1], in[0]), "[0] [0 8] [4 8] [4 6 8]", "from 0: input links")
	short.Equal(t, fmt.Sprint(out[3], out[2], out[1], out[0]), "[0 1] [1 8] [4 5 8] [4 5 6 7 8]", "from 0: output links")
}

// TestRegionsExhaustively sends from every processor of 8 and 16 to every region
// (G-N1): the copies come to exactly its nodes, and enter each
// stage on the links that InLink says (N9).
func TestRegionsExhaustively(t *testing.T) {
	for n := 1; n <= 4; n++ {
		size := 1 << n
		valid := 0
		for lo := range size {
			for hi := range size {
				r := Region{lo, hi}
				if r.Check(n) != nil {
					continue
				}
				valid++
				var want []int
				for a := lo; a <= hi; a++ {
					want = append(want, a)
				}
				short.MustEqual(t, r.Size(), len(want), "N=", size, "region", r, "has size", "and", want)
				for source := range size {
					mustReach(t, n, source, r, want)
				}
			}
		}
		short.Equal(t, valid, size*(size+1)/2, "N=", size, "regions fit a header")
	}
}

// mustReach follows a packet with a header to the nodes it is for.
func mustReach[H Header[H]](t testing.TB, n, source int, h H, want []int) {
	t.Helper()
	var got []int
	for _, hop := range Hops(n, source, h) {
		if hop.Stage == 0 {
			got = append(got, hop.Out)
			switch x := any(hop.Header).(type) {
			case Region:
				short.MustEqual(t, x, (Region{hop.Out, hop.Out}), "from", source, "to", h, "header", "at", hop.Out)
			case Cube:
				short.MustEqual(t, x, (Cube{hop.Out, 0}), "from", source, "to", h, "header", "at", hop.Out)
			}
		}
		// Any destination that the copy is for: the output link has the bits of
		// it down to this stage.
		to := hop.Out &^ 1
		if hop.Stage > 0 {
			to = hop.Out >> (hop.Stage + 1) << (hop.Stage + 1)
		}
		short.MustEqual(t, InLink(hop.Stage, source, to), hop.In, "from", source, "to", h, "stage", hop.Stage, "on link")
	}
	short.EqualList(t, got, want, "from", source, "to", h, "arrived")
}

// TestCubesExhaustively does the same with every cube of up to 16 nodes, of which
// there are 3^n.
func TestCubesExhaustively(t *testing.T) {
	for n, cubes := 1, 3; n <= 4; n, cubes = n+1, cubes*3 {
		valid := 0
		for fixed := range 1 << n {
			for free := range 1 << n {
				c := Cube{fixed, free}
				if c.Check(n) != nil {
					continue
				}
				valid++
				var want []int
				for a := range 1 << n {
					if a&^c.Free == c.Fixed {
						want = append(want, a)
					}
				}
				for source := range 1 << n {
					mustReach(t, n, source, c, want)
				}
				if got, exact := CubeOf(want); got != c || !exact {
					t.Fatalf("CubeOf(%v) = %v, %v, want %v", want, got, exact, c)
				}
			}
		}
		short.Equal(t, valid, cubes, "n=", n, "cubes")
	}
}

// TestEncodings has sets of addresses that one of the encodings can say, or both,
// or none.
func TestEncodings(t *testing.T) {
	for _, tt := range []struct {
		addresses []int
		region    bool
		cube      Cube
		exact     bool
	}{
		{[]int{}, false, Cube{}, false},
		{[]int{5}, true, Cube{5, 0}, true},
		{[]int{4, 5, 6, 7}, true, Cube{4, 3}, true},
		{[]int{3, 4}, true, Cube{0, 7}, false},
		{[]int{1, 5, 9, 13}, false, Cube{1, 12}, true},
		{[]int{0, 3, 6, 11, 13}, false, Cube{0, 15}, false},
	} {
		if _, ok := RegionOf(tt.addresses); ok != tt.region {
			t.Errorf("%v: region %v, want %v", tt.addresses, ok, tt.region)
		}
		if c, ok := CubeOf(tt.addresses); c != tt.cube || ok != tt.exact {
			t.Errorf("%v: cube %v %v, want %v %v", tt.addresses, c, ok, tt.cube, tt.exact)
		}
	}
}

func TestHeaderCheck(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{Region{0, 16}.Check(4), "region 0-16: want addresses from 0 to 15, the lower one first"},
		{Region{-1, 3}.Check(4), "region -1-3: want addresses from 0 to 15, the lower one first"},
		{Region{12, 9}.Check(4), "region 12-9: want addresses from 0 to 15, the lower one first"},
		{Cube{1, 1}.Check(4), "cube with fixed bits 0b1, free bits 0b1: want different ones of 4 bits"},
		{Cube{16, 1}.Check(4), "cube with fixed bits 0b10000, free bits 0b1: want different ones of 4 bits"},
	} {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("error %v, want %s", tt.err, tt.want)
		}
	}
}

// TestOutLink compares destination tags with headers for one address.
func TestOutLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, banyan.MaxStages).Draw(t, "stages")
		source := rapid.IntRange(0, 1<<n-1).Draw(t, "source")
		to := rapid.IntRange(0, 1<<n-1).Draw(t, "destination")
		hops := Hops(n, source, Region{to, to})
		short.MustEqual(t, len(hops), n)
		for _, h := range hops {
			if in, out := InLink(h.Stage, source, to), OutLink(h.Stage, source, to); in != h.In || out != h.Out {
				t.Fatalf("stage %d: links %d and %d, want %d and %d", h.Stage, in, out, h.In, h.Out)
			}
		}
	})
}

// TestRegionHeaders has the headers and links of all regions of networks of 8 and 16 by another
// program, which works on addresses as words of bits as the paper prints them (section 2.2) and
// shares no code with the one that it is compared with.
func TestRegionHeaders(t *testing.T) {
	type copyAt struct{ link, low, high string }
	number := func(word string) (n int) {
		for _, bit := range word {
			n = 2*n + int(bit-'0')
		}
		return n
	}
	for n := 3; n <= 4; n++ {
		word := func(a int) string { return fmt.Sprintf("%0*b", n, a) }
		for k := range 1 << (3 * n) {
			source, low, high := k>>(2*n), k>>n&(1<<n-1), k&(1<<n-1)
			if low > high {
				continue
			}
			var want []Hop[Region]
			s := word(source)
			now := []copyAt{{s[1:] + s[:1], word(low), word(high)}} // perfect shuffle
			for stage := n - 1; stage >= 0; stage-- {
				at := n - 1 - stage // where bit i of a word is
				var next []copyAt
				for _, c := range now {
					for _, port := range "01" {
						to := copyAt{c.link[:n-1] + string(port), c.low, c.high}
						switch m, M := c.low[at], c.high[at]; {
						case m == M && rune(m) != port:
							continue
						case m != M && port == '0':
							to.high = c.high[:at] + "0" + strings.Repeat("1", stage)
						case m != M:
							to.low = c.low[:at] + "1" + strings.Repeat("0", stage)
						}
						want = append(want, Hop[Region]{Stage: stage, In: number(c.link), Out: number(to.link), Header: Region{number(to.low), number(to.high)}})
						// Butterfly: bit i and the last one change places.
						b := []byte(to.link)
						b[at], b[n-1] = b[n-1], b[at]
						to.link = string(b)
						next = append(next, to)
					}
				}
				slices.SortFunc(next, func(a, b copyAt) int { return strings.Compare(a.link, b.link) })
				now = next
			}
			short.EqualList(t, Hops(n, source, Region{low, high}), want, source, "to", low, "-", high)
		}
	}
}
