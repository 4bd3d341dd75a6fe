package multistage

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

func predict(t testing.TB, n int, p Placement, load, m float64, f int) *Prediction {
	t.Helper()
	c := short.Must(CopyRates(n, f, p))(t)
	return short.Must(Predict(c, Traffic{Load: load, Multicast: m, Fanout: f}))(t)
}

func exact(t testing.TB, n int, p Placement, load, m float64, f int) *Prediction {
	t.Helper()
	return short.Must(Exact(n, Traffic{Load: load, Multicast: m, Fanout: f}, p))(t)
}

func near(a, b, most float64) bool { return math.Abs(a-b) <= most }

// stages prints values from the first stage, n-1, on.
func stages(format string, values []float64) string {
	var s []string
	for i := len(values) - 1; i >= 0; i-- {
		s = append(s, strings.TrimPrefix(fmt.Sprintf(format, values[i]), "0"))
	}
	return strings.Join(s, " ")
}

// TestCopyRates is golden G-N5: Figure 5 for seven stages, and what there is
// besides.
func TestCopyRates(t *testing.T) {
	for f, want := range map[int]string{
		2:  ".007874 .015625 .030769 .059701 .112676 .202532 .336842",
		4:  ".024000 .046875 .089552 .164384 .282353 .431193 .602564",
		8:  ".057851 .109375 .197183 .329412 .469027 .638554 .779412",
		16: ".132743 .234375 .379747 .486239 .654321 .791045 .883333",
		32: ".319588 .484375 .494737 .661972 .796610 .886792 .940000",
	} {
		c := short.Must(CopyRates(7, f, RandomStart))(t)
		short.Equal(t, stages("%.6f", c), want, "f=", f)
	}
	fractions := func(n, f int, p Placement) string {
		k := short.Must(CopyCounts(n, f, p))(t)
		var s []string
		for i := n - 1; i >= 0; i-- {
			s = append(s, big.NewRat(k[i]-k[i+1], k[i+1]).RatString())
		}
		return strings.Join(s, " ")
	}
	for _, tt := range []struct {
		n, f int
		p    Placement
		want string
	}{
		{7, 4, RandomStart, "3/125 3/64 6/67 12/73 24/85 47/109 47/78"},
		{4, 5, RandomStart, "1/3 1/2 1/2 2/3"},
		{7, 4, AlignedStart, "0 0 0 0 0 1 1"},
		{4, 5, AlignedStart, "0 1 1/2 2/3"},
	} {
		short.Equal(t, fractions(tt.n, tt.f, tt.p), tt.want, "n=", tt.n, "f=", tt.f, tt.p)
	}
	for f, want := range map[int]string{1: "0 0 0 0", 2: "1 0 0 0", 3: "1 .5 0 0", 5: "1 1 .25 0", 16: "1 1 1 1"} {
		c, err := CopyRates(4, f, EarlyCopies)
		if got := stages("%g", c); err != nil || got != strings.TrimPrefix(want, "0") && got != strings.ReplaceAll(want, "0", "") {
			t.Errorf("early, f=%d: %q, want %s", f, got, want)
		}
	}
}

// TestCopyRatesClosedForm compares the closed form with copies that are made by
// splitting the headers of every place.
func TestCopyRatesClosedForm(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for f := 1; f <= 1<<n; f++ {
			for _, p := range []Placement{RandomStart, AlignedStart} {
				k := short.Must(CopyCounts(n, f, p))(t)
				c := short.Must(CopyRates(n, f, p))(t)
				product := 1.0
				for i, got := range c {
					product *= 1 + got
					short.Equal(t, got, float64(k[i])/float64(k[i+1])-1, "n=", n, "f=", f, p, "stage", i)
				}
				if !near(product, float64(f), 1e-9*float64(f)) {
					t.Errorf("n=%d, f=%d, %v: %g copies", n, f, p, product)
				}
			}
		}
	}
}

// TestThroughput is golden G-N6: Figures 6 and 7, as far as the model goes.
func TestThroughput(t *testing.T) {
	rows := func(p Placement, table map[int]string, ms ...float64) {
		for f, want := range table {
			var got []string
			for _, m := range ms {
				got = append(got, strings.TrimPrefix(fmt.Sprintf("%.6f", predict(t, 7, p, 1, m, f).Throughput), "0"))
			}
			short.Equal(t, strings.Join(got, " "), want, p, "f=", f)
		}
	}
	rows(RandomStart, map[int]string{
		1:  ".327107 .327107 .327107 .327107",
		2:  ".327107 .312984 .265252 .221448",
		4:  ".327107 .287371 .189398 .131617",
		8:  ".327107 .245713 .119273 .072132",
		16: ".327107 .189145 .068200 .037792",
		32: ".327107 .128657 .036667 .019341",
	}, 0, 0.1, 0.5, 1)
	rows(EarlyCopies, map[int]string{
		2:  ".297370 .218071 .163553",
		4:  ".256290 .136786 .086310",
		8:  ".205743 .081984 .046729",
		16: ".152452 .047945 .025794",
		32: ".104969 .027851 .014510",
	}, 0.1, 0.5, 1)
	curve := func(want string, of func(i int) float64) {
		t.Helper()
		var got []string
		for i := range strings.Fields(want) {
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%.4f", of(i)), "0"))
		}
		short.Equal(t, strings.Join(got, " "), want, "curve")
	}
	load := func(i int) float64 { return float64(i+1) / 10 }
	curve(".0363 .0664 .0915 .1127 .1307 .1460 .1593 .1707 .1807 .1894",
		func(i int) float64 { return predict(t, 7, RandomStart, load(i), 0.5, 4).Throughput })
	curve(".0848 .1464 .1924 .2274 .2546 .2760 .2931 .3069 .3180 .3271",
		func(i int) float64 { return predict(t, 7, RandomStart, load(i), 0, 4).Throughput })
	curve(".2111 .1995 .1894 .1804 .1723 .1650",
		func(i int) float64 { return predict(t, 5+i, RandomStart, 1, 0.5, 4).Throughput })
	curve(".1689 .1510 .1368 .1251 .1153 .1070",
		func(i int) float64 { return predict(t, 5+i, EarlyCopies, 1, 0.5, 4).Throughput })

	r := predict(t, 7, RandomStart, 1, 0.5, 4)
	var got []string
	for i := 6; i >= 0; i-- {
		got = append(got, fmt.Sprintf("(%.6f,%.6f)", r.Into[i].Packets, r.Into[i].Multicast))
	}
	got = append(got, fmt.Sprintf("%.6f %.6f %.6f", r.Packets, r.Unicast, 1-r.Unicast/r.Packets))
	if s, want := strings.Join(got, " "), "(0.400000,0.500000) (0.363834,0.505929) (0.337781,0.517375) (0.322202,0.538745) "+
		"(0.319983,0.576271) (0.337443,0.635569) (0.383712,0.713959) 0.473496 0.094699 0.800000"; s != want {
		t.Errorf("trace %s, want %s", s, want)
	}
}

// TestClassicBanyan is the first claim of N16: with a fanout of one the model is
// the classic one of an unbuffered banyan network, p <- p - p^2/4, whatever part
// of the packets is called multicast, and so is the exact result.
func TestClassicBanyan(t *testing.T) {
	for n := 1; n <= 10; n++ {
		for _, load := range []float64{0.1, 0.5, 1} {
			want := load
			for range n {
				want -= want * want / 4
			}
			for _, m := range []float64{0, 0.1, 0.5, 1} {
				for p := range Placement(len(placements)) {
					if got := predict(t, n, p, load, m, 1).Throughput; !near(got, want, 1e-12) {
						t.Errorf("n=%d, load %g, m=%g, %v: %g, want %g", n, load, m, p, got, want)
					}
					if got := exact(t, n, p, load, m, 1).Throughput; !near(got, want, 1e-12) {
						t.Errorf("n=%d, load %g, m=%g, %v: exactly %g, want %g", n, load, m, p, got, want)
					}
				}
			}
		}
	}
}

// TestPlacements is the second claim of N16: copies that are made late do not
// block others before. Aligned starts make all of them as late as can be.
func TestPlacements(t *testing.T) {
	for n := 5; n <= 10; n++ {
		for _, f := range []int{2, 4, 8, 16, 32} {
			for _, m := range []float64{0.1, 0.5, 1} {
				early := exact(t, n, EarlyCopies, 1, m, f).Throughput
				random := exact(t, n, RandomStart, 1, m, f).Throughput
				aligned := exact(t, n, AlignedStart, 1, m, f).Throughput
				model := predict(t, n, RandomStart, 1, m, f).Throughput
				if f == 1<<n { // one place only, which all of them take
					if !near(early, random, 1e-12) || !near(random, aligned, 1e-12) || !near(random, model, 1e-12) {
						t.Errorf("n=%d, f=%d, m=%g: early %g, random %g, model %g, aligned %g", n, f, m, early, random, model, aligned)
					}
				} else if !(early < random && random < aligned && early < model && model < aligned) {
					t.Errorf("n=%d, f=%d, m=%g: early %g, random %g, model %g, aligned %g", n, f, m, early, random, model, aligned)
				}
			}
		}
	}
}

// enumerateElements computes what a network delivers under the assumptions of
// the model by going through all that can happen at an element, in rational
// numbers: an input has no packet, a unicast one for either port, or a multicast
// one for either port or both; a coin decides conflicts. The elements on the
// paths to one output are a tree, so what is on the inputs of each is
// independent, and nothing is left out.
func enumerateElements(c []*big.Rat, rate, m *big.Rat) (packets, unicast *big.Rat) {
	one, half := big.NewRat(1, 1), big.NewRat(1, 2)
	mul := func(xs ...*big.Rat) *big.Rat {
		r := big.NewRat(1, 1)
		for _, x := range xs {
			r.Mul(r, x)
		}
		return r
	}
	not := func(x *big.Rat) *big.Rat { return new(big.Rat).Sub(one, x) }
	uni, multi := mul(rate, not(m)), mul(rate, m)
	for i := len(c) - 1; i >= 0; i-- {
		type event struct {
			wants int // ports, a bit each
			multi bool
			p     *big.Rat
		}
		events := []event{
			{0, false, not(new(big.Rat).Add(uni, multi))},
			{1, false, mul(uni, half)}, {2, false, mul(uni, half)},
			{1, true, mul(multi, not(c[i]), half)}, {2, true, mul(multi, not(c[i]), half)},
			{3, true, mul(multi, c[i])},
		}
		nextUni, nextMulti := new(big.Rat), new(big.Rat)
		for _, a := range events {
			for _, b := range events {
				for coin := range 2 {
					p := mul(a.p, b.p, half)
					winner := event{}
					switch {
					case a.wants&1 != 0 && b.wants&1 != 0:
						winner = []event{a, b}[coin]
					case a.wants&1 != 0:
						winner = a
					case b.wants&1 != 0:
						winner = b
					default:
						continue
					}
					if winner.multi {
						nextMulti.Add(nextMulti, p)
					} else {
						nextUni.Add(nextUni, p)
					}
				}
			}
		}
		uni, multi = nextUni, nextMulti
	}
	return new(big.Rat).Add(uni, multi), uni
}

// TestPredictIsEnumeration holds the equations against enumerateElements for
// networks of up to 16 nodes, every fanout and placement.
func TestPredictIsEnumeration(t *testing.T) {
	float := func(r *big.Rat) float64 { f, _ := r.Float64(); return f }
	for n := 1; n <= short.Of(4, 3); n++ {
		for f := 1; f <= 1<<n; f++ {
			for p := range Placement(len(placements)) {
				if p.Check(n, f) != nil {
					continue
				}
				rates := short.Must(CopyRates(n, f, p))(t)
				c := make([]*big.Rat, n)
				for i := range c {
					c[i] = new(big.Rat).SetFloat64(rates[i])
				}
				for _, m := range []*big.Rat{new(big.Rat), big.NewRat(1, 8), big.NewRat(1, 2), big.NewRat(1, 1)} {
					for _, rate := range []*big.Rat{big.NewRat(1, 4), big.NewRat(1, 1)} {
						tr := Traffic{Multicast: float(m), Fanout: f}
						tr.Load = float(rate) * tr.meanCopies()
						got := short.Must(Predict(rates, tr))(t)
						packets, unicast := enumerateElements(c, rate, m)
						if !near(got.Packets, float(packets), 1e-14) || !near(got.Unicast, float(unicast), 1e-14) {
							t.Errorf("n=%d, f=%d, %v, m=%v, rate %v: %g and %g, want %g and %g",
								n, f, p, m, rate, got.Packets, got.Unicast, float(packets), float(unicast))
						}
					}
				}
			}
		}
	}
}

// TestExactIsEnumeration sends every combination of packets through the network,
// and compares what comes out with Exact: all of them for 2 and 4 nodes, and for
// 8 nodes that send multicast packets only.
func TestExactIsEnumeration(t *testing.T) {
	for _, tt := range []struct {
		n, f int
		p    Placement
		m    float64
	}{
		{1, 1, RandomStart, 0.5}, {1, 2, RandomStart, 0.5},
		{2, 1, RandomStart, 0.25}, {2, 2, RandomStart, 0.25}, {2, 3, RandomStart, 0.5}, {2, 4, RandomStart, 0.5},
		{2, 2, AlignedStart, 0.5}, {2, 2, EarlyCopies, 0.5},
		{3, 6, RandomStart, 1}, {3, 7, RandomStart, 1}, {3, 4, AlignedStart, 1}, {3, 4, EarlyCopies, 1},
	} {
		for _, side := range []uint64{0, math.MaxUint64} { // the upper or the lower input always wins
			const rate = 0.75
			tr := Traffic{Multicast: tt.m, Fanout: tt.f}
			tr.Load = rate * tr.meanCopies()
			want := short.Must(Exact(tt.n, tr, tt.p))(t)
			s := newSimulator(&SlotOptions{Stages: tt.n, Traffic: tr, Placement: tt.p})
			s.coin = func() uint64 { return side }
			// The packets that a node may send, and their probabilities.
			words, odds := []uint64{0}, []float64{1 - rate}
			if tt.m < 1 {
				for d := range uint64(s.size) {
					words = append(words, present|d|d<<highShift)
					odds = append(odds, rate*(1-tt.m)/float64(s.size))
				}
			}
			for k := range s.places {
				words = append(words, present|multicast|s.placeHeader(k))
				odds = append(odds, rate*tt.m/float64(s.places))
			}
			packets, unicast := 0.0, 0.0
			var send func(a int, p float64)
			send = func(a int, p float64) {
				if a < s.size {
					for i, w := range words {
						s.inject[a] = w
						send(a+1, p*odds[i])
					}
					return
				}
				s.passStages()
				for _, x := range s.links {
					if x != 0 {
						packets += p
						if x&multicast == 0 {
							unicast += p
						}
					}
				}
			}
			send(0, 1)
			packets /= float64(s.size)
			unicast /= float64(s.size)
			if !near(packets, want.Packets, 1e-11) || !near(unicast, want.Unicast, 1e-11) {
				t.Errorf("%+v, coins %x: %g and %g, enumerated %g and %g", tt, side, want.Packets, want.Unicast, packets, unicast)
			}
		}
	}
}

// TestExactAndModel says how far the model is from the network: nothing where
// all copies are split at the same stages, and with other starts 3 % at most for
// loads up to 1 and fanouts up to an eighth of the nodes. Beyond it is more (E-N4).
func TestExactAndModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "stages")
		p := rapid.SampledFrom([]Placement{RandomStart, AlignedStart, EarlyCopies}).Draw(t, "placement")
		same := p == AlignedStart || p == EarlyCopies
		most := n
		if !same {
			most = max(0, n-3)
		}
		f := 1 << rapid.IntRange(0, most).Draw(t, "log2 of the fanout")
		tr := Traffic{Multicast: rapid.Float64Range(0, 1).Draw(t, "multicast"), Fanout: f}
		tr.Load = rapid.Float64Range(0, 1).Draw(t, "load")
		if same {
			tr.Load *= tr.meanCopies()
		}
		c := short.Must(CopyRates(n, f, p))(t)
		a := short.Must(Predict(c, tr))(t)
		b := short.Must(Exact(n, tr, p))(t)
		apart := 1e-12
		if !same {
			apart += 0.03 * b.Throughput
		}
		if !near(a.Throughput, b.Throughput, apart) {
			t.Fatalf("model %g, exactly %g", a.Throughput, b.Throughput)
		}
	})
}

func TestModelRefuses(t *testing.T) {
	rates := func(n, f int, p Placement) error { _, err := CopyRates(n, f, p); return err }
	counts := func(n, f int, p Placement) error { _, err := CopyCounts(n, f, p); return err }
	model := func(c []float64, tr Traffic) error { _, err := Predict(c, tr); return err }
	true3 := []float64{0, 0, 0}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{rates(3, 9, RandomStart), "fanout 9: want 1 to the 8 nodes of the network"},
		{rates(13, 2, RandomStart), "banyan network of 13 stages: want 1 to 12"},
		{rates(3, 0, EarlyCopies), "fanout 0: want 1 to the 8 nodes of the network"},
		{rates(3, 1, 9), "placement 9: want one of [random aligned early]"},
		{counts(3, 3, EarlyCopies), "fanout 3 with early placement: want a power of two"},
		{counts(3, 2, EarlyCopies), "early placement has no regions"},
		{model(true3, Traffic{1, 0.5, 9}), "fanout 9: want 1 to 8"},
		{model(true3, Traffic{1, 1.5, 2}), "a part 1.5 of packets that are multicast: want 0 to 1"},
		{model(true3, Traffic{1, math.NaN(), 2}), "a part NaN of packets that are multicast: want 0 to 1"},
		{model(true3, Traffic{2, 0.5, 2}), "offered load 2: want 0 to 1.5, a packet from each node"},
		{model(true3, Traffic{-1, 0.5, 2}), "offered load -1: want 0 to 1.5, a packet from each node"},
		{model([]float64{0, 2, 0}, Traffic{1, 0.5, 2}), "copy rate 2 at stage 1: want 0 to 1"},
		{model(nil, Traffic{1, 0.5, 1}), "banyan network of 0 stages: want 1 to 12"},
	} {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("error %v, want %s", tt.err, tt.want)
		}
	}
}

// phaseOne is a group for each place that Phase 1 may put f copies in, "region 4-8" for
// the processors 4 to 8: by the MLID of one any processor can begin a two-phase multicast
// to f destinations, and the second phase takes unicast tables only.
func phaseOne(w *banyan.Network, f int, p Placement) []mft.Group {
	count, step := p.Places(w.Stages, f)
	groups := make([]mft.Group, count)
	addresses := make([]int, f)
	for k := range groups {
		name := fmt.Sprintf("region %d-%d", k*step, (k*step+f-1)&(w.Size()-1))
		for l := range addresses {
			addresses[l] = (k*step + l) & (w.Size() - 1)
			if p == EarlyCopies {
				addresses[l] = k + l*(w.Size()/f)
				name = fmt.Sprintf("every %d from %d", w.Size()/f, k)
			}
		}
		groups[k] = w.Group(name, addresses...)
	}
	return groups
}

// TestPhaseOneInTables has the groups that a two-phase multicast of any node begins with as
// trees, which verify finds exact, and the second phase by unicast tables on links of its own.
func TestPhaseOneInTables(t *testing.T) {
	f := short.Must(banyan.Banyan(4, true))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(banyan.Engine{}.Route(t.Context(), f, lft.Options{}))(t)
	w := short.Must(banyan.Detect(r.Fabric))(t)
	for _, tt := range []struct {
		copies int
		p      Placement
		count  int
		name   string // of the last
	}{
		{5, RandomStart, 12, "region 11-15"}, {5, AlignedStart, 2, "region 8-12"},
		{4, EarlyCopies, 4, "every 4 from 3"},
	} {
		groups := phaseOne(w, tt.copies, tt.p)
		if len(groups) != tt.count || groups[len(groups)-1].Name != tt.name {
			t.Fatalf("%v: %d groups, the last %q, want %d and %q", tt.p, len(groups), groups[len(groups)-1].Name, tt.count, tt.name)
		}
		p := short.Must(banyan.RegionTree{}.Build(t.Context(), r, groups, mft.Options{}))(t)
		v := short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: &mft.Plan{Tables: p.Tables, Trees: p.Trees}}, verify.Options{}))(t)
		if m := v.Multicast; m.Missing+m.Duplicates+m.Loops+m.Stray+m.CreditLoops != 0 || v.Verdict == verify.VerdictErrors {
			t.Fatalf("%v: %+v, %+v", tt.p, m, v.Findings)
		}
		if tt.p == EarlyCopies {
			continue // TwoPhase has regions
		}
		_, step := tt.p.Places(4, tt.copies)
		for _, x := range p.Trees {
			s := short.Must(TwoPhase(4, 5, []int{0, 3, 6, 11, 13}, x.Group*step))(t)
			checkApart(t, w, r, s)
		}
	}
}

// checkApart holds that the packets of Phase 2 share no link in the tables.
func checkApart(t *testing.T, w *banyan.Network, r *lft.Routing, s *Schedule) {
	t.Helper()
	f := r.Fabric
	taken := map[fabric.PortID]bool{}
	for _, send := range s.Sends {
		lid := f.LID(w.Inputs[send.To])
		for at := f.Peer(w.Outputs[send.From]); at != w.Inputs[send.To]; {
			out := f.Port(f.Owner(at), r.Tables.Row(f.Owner(at))[lid])
			if taken[out] {
				t.Fatalf("%v has a link twice, %s", s, f.PortName(out))
			}
			taken[out] = true
			at = f.Peer(out)
		}
	}
}
