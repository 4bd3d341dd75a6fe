package reproduce

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sim"
)

// TestSPAM has the figures of the SPAM paper: latencies in the bands of G-S3, and
// the verdicts.
func TestSPAM(t *testing.T) {
	figures, verdicts := quick(t, &spam1998, "fig2")
	for _, tt := range []struct {
		panel     int
		curve     string
		d         float64
		want, off float64
	}{
		{0, "128 nodes", 1, 11.793, 0.3}, {0, "128 nodes", 127, 12.691, 0.4},
		{0, "256 nodes", 1, 11.907, 0.4}, {0, "256 nodes", 255, 13.283, 0.3},
		{1, "software, startups alone", 255, 80, 0}, {1, "software, startups alone", 1, 10, 0}, {1, "software, 128 nodes", 1, 11.8, 0.3},
		{2, "breadth-first tree from the centre", 255, 12.566, 0.3}, {2, "depth-first tree", 255, 18.5, 3.5},
	} {
		if got := figures["fig2"].panel(tt.panel).At(tt.curve, tt.d).Y; math.Abs(got-tt.want) > tt.off {
			t.Errorf("%s, %v destinations: %.3f us, want %.3f +- %.1f", tt.curve, tt.d, got, tt.want, tt.off)
		}
	}
	for spec, want := range map[string]Verdict{
		"S15-1": HoldsAs, "S15-2": Holds, "S15-3 deep": Fails, "S15-4": Fails, "S15-5": Holds, "S16": Holds, "S18": Fails,
		"S15-6": Holds, "S16 multicast": Holds, "S18 schemes": Holds, "S18 lock-step": Holds, "S18 buffers": Holds, "S18 root": Holds,
	} {
		got, ok := verdicts[spec]
		if !ok && testing.Short() {
			continue
		}
		if got.Verdict != want || got.Measured == "" || got.Why == "" {
			t.Errorf("%s: %+v, want %s", spec, got, want)
		}
	}
	if got := verdicts["S15-3"].Verdict; len(figures) > 1 && got != Holds && got != HoldsAs {
		t.Errorf("S15-3: %s", got)
	}
}

// TestSoftwareBound has startups of recursive doubling (E-S1).
func TestSoftwareBound(t *testing.T) {
	for d, want := range map[int]float64{1: 10, 2: 20, 3: 20, 4: 30, 127: 70, 128: 80, 255: 80, 256: 90} {
		short.Equal(t, softwareBound(d), want, d, "destinations", "us")
	}
}

// TestDoubling has every host reached once, in as many phases as the bound has.
func TestDoubling(t *testing.T) {
	r := short.Must(spamTrees[0].network(40, 3))(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []int{1, 2, 3, 7, 8, 39} {
		src := rng.IntN(40)
		at := short.Must(r.bySoftware(t.Context(), src, someOf(rng, 40, d, src)))(t)
		low := sim.Time(softwareBound(d)) * sim.Microsecond
		if at < low || at > low*5/4 {
			t.Errorf("%d destinations: %s, want a little more than %s", d, at, low)
		}
	}
}

// TestPathWorms has each destination on one path, and paths down the tree that do not branch.
func TestPathWorms(t *testing.T) {
	r := short.Must(spamTrees[0].network(64, 5))(t)
	f := r.net.Fabric()
	rng := rand.New(rand.NewPCG(2, 1))
	for range 50 {
		to := someOf(rng, 64, 1+rng.IntN(63), 0)
		worms := short.Must(r.pathWorms(to))(t)
		var got []fabric.PortID
		for _, x := range worms {
			list := x.Destinations(f)
			got = append(got, list...)
			for i := range list[1:] {
				if !r.net.IsAncestor(f.PeerSwitch(list[i]), f.PeerSwitch(list[i+1])) {
					t.Fatalf("%v is no path", list)
				}
			}
		}
		want := r.hosts(to)
		slices.Sort(got)
		slices.Sort(want)
		short.EqualList(t, got, want, "worms")
	}
}

// TestPartition has the parts of a multicast: contiguous, even, all of it.
func TestPartition(t *testing.T) {
	r := short.Must(spamTrees[1].network(40, 5))(t)
	list := make([]int, 40)
	for i := range list {
		list[i] = i
	}
	whole := short.Must(r.net.NewWorm(r.hosts(list)))(t)
	all := whole.Destinations(r.net.Fabric())
	for _, k := range []int{0, 1, 3, 7, 40, 100} {
		parts := short.Must(r.partition(list, k))(t)
		var joined []fabric.PortID
		for _, x := range parts {
			d := x.Destinations(r.net.Fabric())
			joined = append(joined, d...)
			if len(d) < 40/len(parts) || len(d) > (39+len(parts))/len(parts) {
				t.Errorf("%d parts: one of %d", k, len(d))
			}
		}
		if len(parts) != max(1, min(k, 40)) || !slices.Equal(joined, all) {
			t.Errorf("%d parts: %d worms to %v, want %v", k, len(parts), joined, all)
		}
	}
}
