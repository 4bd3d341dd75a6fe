package banyan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// TestInterconnection has the tables that follow from Definition 1 of the
// paper for 8 and 16 processors.
func TestInterconnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   func(a int) int
		want string
	}{
		{"shuffle of 8", func(a int) int { return Shuffle(3, a) }, "0 2 4 6 1 3 5 7"},
		{"IC_2 of 8", func(a int) int { return Butterfly(2, a) }, "0 4 2 6 1 5 3 7"},
		{"IC_1 of 8", func(a int) int { return Butterfly(1, a) }, "0 2 1 3 4 6 5 7"},
		{"shuffle of 16", func(a int) int { return Shuffle(4, a) }, "0 2 4 6 8 10 12 14 1 3 5 7 9 11 13 15"},
		{"IC_3 of 16", func(a int) int { return Butterfly(3, a) }, "0 8 2 10 4 12 6 14 1 9 3 11 5 13 7 15"},
		{"IC_2 of 16", func(a int) int { return Butterfly(2, a) }, "0 4 2 6 1 5 3 7 8 12 10 14 9 13 11 15"},
		{"IC_1 of 16", func(a int) int { return Butterfly(1, a) }, "0 2 1 3 4 6 5 7 8 10 9 11 12 14 13 15"},
		{"IC_0 of 16", func(a int) int { return Butterfly(0, a) }, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"},
	} {
		var got []string
		for a := range strings.Fields(tt.want) {
			got = append(got, fmt.Sprint(tt.of(a)))
		}
		short.Equal(t, strings.Join(got, " "), tt.want, tt.name, got)
	}
}

// TestBanyanCables has every cable of the 8-processor network, by the tables
// of TestInterconnection.
func TestBanyanCables(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		f := short.Must(Banyan(3, wrap))(t)
		want := `
"stage 2 element 0"[1] "source 0"[1]
"stage 2 element 0"[2] "source 4"[1]
"stage 2 element 0"[3] "stage 1 element 0"[1]
"stage 2 element 0"[4] "stage 1 element 2"[1]
"stage 2 element 1"[1] "source 1"[1]
"stage 2 element 1"[2] "source 5"[1]
"stage 2 element 1"[3] "stage 1 element 1"[1]
"stage 2 element 1"[4] "stage 1 element 3"[1]
"stage 2 element 2"[1] "source 2"[1]
"stage 2 element 2"[2] "source 6"[1]
"stage 2 element 2"[3] "stage 1 element 0"[2]
"stage 2 element 2"[4] "stage 1 element 2"[2]
"stage 2 element 3"[1] "source 3"[1]
"stage 2 element 3"[2] "source 7"[1]
"stage 2 element 3"[3] "stage 1 element 1"[2]
"stage 2 element 3"[4] "stage 1 element 3"[2]
"stage 1 element 0"[3] "stage 0 element 0"[1]
"stage 1 element 0"[4] "stage 0 element 1"[1]
"stage 1 element 1"[3] "stage 0 element 0"[2]
"stage 1 element 1"[4] "stage 0 element 1"[2]
"stage 1 element 2"[3] "stage 0 element 2"[1]
"stage 1 element 2"[4] "stage 0 element 3"[1]
"stage 1 element 3"[3] "stage 0 element 2"[2]
"stage 1 element 3"[4] "stage 0 element 3"[2]
"stage 0 element 0"[3] "sink 0"[1]
"stage 0 element 0"[4] "sink 1"[1]
"stage 0 element 1"[3] "sink 2"[1]
"stage 0 element 1"[4] "sink 3"[1]
"stage 0 element 2"[3] "sink 4"[1]
"stage 0 element 2"[4] "sink 5"[1]
"stage 0 element 3"[3] "sink 6"[1]
"stage 0 element 3"[4] "sink 7"[1]`
		if wrap {
			for a := range 8 {
				want = strings.Replace(want, fmt.Sprintf(`"source %d"[1]`, a), fmt.Sprintf(`"host %d"[1]`, a), 1)
				want = strings.Replace(want, fmt.Sprintf(`"sink %d"[1]`, a), fmt.Sprintf(`"host %d"[2]`, a), 1)
			}
		}
		var got []string
		for p := range fabric.PortID(f.NumPorts()) {
			if peer := f.Peer(p); peer > p {
				got = append(got, f.PortName(p)+" "+f.PortName(peer))
			}
		}
		short.Diff(t, got, strings.Split(want[1:], "\n"), "wrap-around", wrap, "cables")
	}
}

// TestBanyanRoutesItself checks the property that the network is built for: a
// packet that leaves the element of stage i at the output that bit i of the
// destination says arrives there, from every processor, and enters stage i on
// the link that Theorem 2 of the paper gives: the bits of the destination
// above i, then those of the source below i, then bit i of the source.
func TestBanyanRoutesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "stages")
		wrap := rapid.Bool().Draw(t, "wrap-around")
		f := short.Must(Banyan(n, wrap))(t)
		src := rapid.IntRange(0, 1<<n-1).Draw(t, "source")
		dst := rapid.IntRange(0, 1<<n-1).Draw(t, "destination")
		from, to := fmt.Sprintf(`"source %d"[1]`, src), fmt.Sprintf(`"sink %d"[1]`, dst)
		if wrap {
			from, to = fmt.Sprintf(`"host %d"[1]`, src), fmt.Sprintf(`"host %d"[2]`, dst)
		}
		var at fabric.PortID = fabric.NoPort
		for _, p := range f.CAPorts() {
			if f.PortName(p) == from {
				at = f.Peer(p)
			}
		}
		for i := n - 1; i >= 0; i-- {
			low := src & (1<<i - 1)
			link := dst>>(i+1)<<(i+1) | low<<1 | src>>i&1
			want := fmt.Sprintf(`"stage %d element %d"[%d]`, i, link/2, 1+link%2)
			short.MustEqual(t, f.PortName(at), want, "from", src, "to", dst)
			at = f.Peer(f.Port(f.Owner(at), fabric.PortNum(3+dst>>i&1)))
		}
		short.MustEqual(t, f.PortName(at), to, "from", src, "to", dst, "arrived")
	})
}
