package multistage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

var trials = flag.Int("trials", 1, "a factor for how many slots and worms the tests simulate")

// halves is how far a simulation may be off, in half widths of its 95 % interval:
// by twice as much one comparison of ten thousand is, and there are a hundred.
const halves = 2

// has returns true if a value is in the interval made wider by the factor halves.
func has(e Estimate, v float64) bool { return math.Abs(v-e.Mean) <= halves*e.Half }

func simulate(t testing.TB, o SlotOptions) *SlotResult {
	t.Helper()
	return short.Must(SimulateSlots(context.Background(), o))(t)
}

// TestSlotsAndExact runs 128 nodes with real headers, and every placement: Exact has to be
// in the confidence interval.
func TestSlotsAndExact(t *testing.T) {
	for _, p := range []Placement{RandomStart, AlignedStart, EarlyCopies} {
		for _, f := range short.Part(1, []int{4, 32}) {
			for _, m := range short.Part(1, []float64{0.1, 1}) {
				o := SlotOptions{Stages: 7, Traffic: Traffic{Load: 1, Multicast: m, Fanout: f}, Placement: p, Slots: 2048 * *trials, Seed: 11}
				got, want := simulate(t, o), exact(t, 7, p, 1, m, f)
				if !has(got.Throughput, want.Throughput) {
					t.Errorf("%v, f=%d, m=%g: %v, exactly %.6f", p, f, m, got.Throughput, want.Throughput)
				}
				short.Equal(t, got.Final, got.Throughput, p, "f=", f, "m=", m, "at the destinations")
			}
		}
	}
}

// TestSlotsReference is the simulated part of golden G-N6, as bands.
func TestSlotsReference(t *testing.T) {
	for _, tt := range short.Part(2, []struct {
		f          int
		m          float64
		simulated  float64
		model      string
		difference float64 // of the model from the network, in parts
	}{
		{1, 0.5, 0.3286, "0.3271", 0.005},
		{2, 0.5, 0.2650, "0.2653", 0.005},
		{4, 0.5, 0.1888, "0.1894", 0.01},
		{4, 1, 0.1310, "0.1316", 0.01},
		{8, 0.1, 0.2455, "0.2457", 0.01},
		{32, 0.1, 0.1307, "0.1287", 0.02},
		{16, 1, 0.0364, "0.0378", 0.04},
	}) {
		got := simulate(t, SlotOptions{Stages: 7, Traffic: Traffic{Load: 1, Multicast: tt.m, Fanout: tt.f}, Slots: 8192 * *trials, Seed: 3})
		if mean := got.Throughput.Mean; !near(mean, tt.simulated, 0.015*tt.simulated) {
			t.Errorf("f=%d, m=%g: %v, the reference has %g", tt.f, tt.m, got.Throughput, tt.simulated)
		}
		model := predict(t, 7, RandomStart, 1, tt.m, tt.f).Throughput
		if fmt.Sprintf("%.4f", model) != tt.model || !near(model, got.Throughput.Mean, tt.difference*model) {
			t.Errorf("f=%d, m=%g: %v, model %.4f, want %s", tt.f, tt.m, got.Throughput, model, tt.model)
		}
	}
	const want = 0.0753
	got := simulate(t, SlotOptions{Stages: 7, Traffic: Traffic{Load: 1, Multicast: 1, Fanout: 4}, Slots: 8192 * *trials, Seed: 3})
	if !near(got.Whole.Mean, want, 0.015*want) {
		t.Errorf("%v multicast packets delivered to all, the reference has %g", got.Whole, want)
	}
}

// TestTwoPhasesAlone sends one multicast packet at a time to random destinations:
// all copies come to them in two slots, or in one when they are a region. Copies
// of EarlyCopies are not on consecutive nodes, so that Theorem 1 does not hold
// for them, and some of them block each other.
func TestTwoPhasesAlone(t *testing.T) {
	for _, p := range []Placement{RandomStart, AlignedStart, EarlyCopies} {
		lost := 0
		for n := 1; n <= 7; n++ {
			for f := 1; f <= 1<<n/2; f++ {
				if p.Check(n, f) != nil {
					continue
				}
				o := SlotOptions{Stages: n, Traffic: Traffic{Load: 0, Multicast: 1, Fanout: f}, Placement: p, Recycle: true, Seed: uint64(f)}
				s := newSimulator(&o)
				for range 20 {
					s.counts = slotCounts{}
					s.generatePackets()
					a := s.drawBelow(s.size)
					s.inject[a] = present | multicast | uint64(a)<<sourceShift | s.makeHeader(a)
					s.passStages()
					s.deliverPackets()
					if s.counts.copies != int64(f) || s.counts.whole != 1 {
						t.Fatalf("%v, n=%d, f=%d: %d copies in Phase 1", p, n, f, s.counts.copies)
					}
					for a, x := range s.returned {
						if x != 0 && int(x&address) == a {
							t.Fatalf("%v, n=%d, f=%d: node %d sends to itself", p, n, f, a)
						}
					}
					s.runSlot()
					if s.counts.copies != int64(f) || s.counts.final > int64(f) {
						t.Fatalf("%v, n=%d, f=%d: %+v", p, n, f, s.counts)
					}
					lost += f - int(s.counts.final)
				}
			}
		}
		if (lost > 0) != (p == EarlyCopies) {
			t.Errorf("%v: %d copies lost in Phase 2", p, lost)
		}
	}
}

// TestRecycle has Phase 2 in the load: copies take links from other packets, and
// only a part of them comes to its end.
func TestRecycle(t *testing.T) {
	for _, p := range []Placement{RandomStart, AlignedStart, EarlyCopies} {
		o := SlotOptions{Stages: 7, Placement: p, Traffic: Traffic{Load: 1, Multicast: 0.5, Fanout: 4}, Slots: 2048, Seed: 5}
		one := simulate(t, o)
		o.Recycle = true
		two := simulate(t, o)
		if !(two.Throughput.Mean < one.Throughput.Mean && two.Final.Mean < two.Throughput.Mean) {
			t.Errorf("%v: one phase %v; two phases %v, %v at the end", p, one.Throughput, two.Throughput, two.Final)
		}
	}
	// Destinations that are a region need one pass: all nodes are one.
	all := simulate(t, SlotOptions{Stages: 3, Traffic: Traffic{Load: 0.5, Multicast: 1, Fanout: 8}, Recycle: true, Slots: 2048, Seed: 5})
	short.Equal(t, all.Final, all.Throughput, "to all nodes", "in one pass")
}

// TestSlotsSame has one result for one seed.
func TestSlotsSame(t *testing.T) {
	o := SlotOptions{Stages: 6, Traffic: Traffic{Load: 0.9, Multicast: 0.3, Fanout: 6}, Recycle: true, Slots: 6000, Seed: 1}
	want := simulate(t, o)
	short.Equal(t, want.Slots, 47*SlotBlock)
	short.Diff(t, simulate(t, o), want, "again")
	o.Seed++
	if other := simulate(t, o); other.Throughput == want.Throughput {
		t.Errorf("seeds 1 and 2 give %v", other.Throughput)
	}
}

// TestSlotsAllocate says that a slot needs no memory.
func TestSlotsAllocate(t *testing.T) {
	s := newSimulator(&SlotOptions{Stages: 6, Traffic: Traffic{Load: 0.9, Multicast: 0.3, Fanout: 6}, Recycle: true})
	short.Equal(t, testing.AllocsPerRun(100, s.runSlot), 0, "allocations for a slot")
}

func TestSlotsRefuse(t *testing.T) {
	good := SlotOptions{Stages: 3, Traffic: Traffic{Load: 1, Fanout: 1}, Slots: 1}
	for _, tt := range []struct {
		change func(*SlotOptions)
		want   string
	}{
		{func(o *SlotOptions) { o.Stages = 13 }, "banyan network of 13 stages: want 1 to 12"},
		{func(o *SlotOptions) { o.Traffic.Load = math.Inf(1) }, "offered load +Inf: want 0 to 1, a packet from each node"},
		{func(o *SlotOptions) { o.Placement, o.Traffic.Fanout = EarlyCopies, 3 }, "fanout 3 with early placement: want a power of two"},
		{func(o *SlotOptions) { o.Slots = 0 }, "0 slots: want at least 1"},
	} {
		o := good
		tt.change(&o)
		if r, err := SimulateSlots(context.Background(), o); r != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%+v, error %v, want %s", r, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := SimulateSlots(ctx, good); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
}

func BenchmarkSlots(b *testing.B) {
	for _, n := range []int{7, 12} {
		for _, o := range []SlotOptions{
			{Stages: n, Traffic: Traffic{Load: 1, Multicast: 0.5, Fanout: 4}},
			{Stages: n, Traffic: Traffic{Load: 1, Multicast: 0.5, Fanout: 4}, Recycle: true},
		} {
			b.Run(fmt.Sprintf("n=%d/recycle=%v", n, o.Recycle), func(b *testing.B) {
				s := newSimulator(&o)
				b.ReportAllocs()
				for b.Loop() {
					s.runSlot()
				}
			})
		}
	}
}
