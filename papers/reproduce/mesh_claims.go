package reproduce

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/report/chart"
)

// meshNoise is the share of a time below which differences do not count:
// another order of events at one moment makes differences as large.
const meshNoise = 0.005

// Words of several claims.
const (
	largerBetter = "the larger the message, the better the speedup (remark 2)"
	moreUnicast  = "with more virtual lanes better performance: unicast (remark 3)"
	moreUnicast2 = "with more virtual lanes unicast performs better (remark 3)"
	moreMulti    = "with more virtual lanes better performance: multicast (remark 3)"
	untied       = "with as many virtual lanes, better not to tie ports to lanes: clearly at small sizes (cases 1 and 2, remark 3)"
	untied2      = "with as many virtual lanes, better not to tie ports to lanes (cases 1 and 2, remark 3)"
	unclearLarge = "this is not clear when the data size is large (cases 1 and 2)"
	notSaid      = "-"
)

// meshClaims returns the claims X22 about cases, in the words
// of the journal version or of the conference's.
func meshClaims(cases []meshCase, conference bool) []Claim {
	type judge func(f Figures, cases []meshCase) Finding
	pick := func(keep func(sources int) bool) []meshCase {
		return slices.DeleteFunc(slices.Clone(cases), func(c meshCase) bool { return !keep(c.sources) })
	}
	one := pick(func(sources int) bool { return sources == 1 })
	many := pick(func(sources int) bool { return sources > 1 })
	several := pick(func(sources int) bool { return sources > 1 && sources < meshHosts })
	everybody := pick(func(sources int) bool { return sources == meshHosts })
	by := func(j func(f Figures, cases []meshCase, unicast bool) Finding, unicast bool) judge {
		return func(f Figures, cases []meshCase) Finding { return j(f, cases, unicast) }
	}
	late := func(j func(f Figures, several, everybody []meshCase) Finding) judge {
		return func(f Figures, _ []meshCase) Finding { return j(f, several, everybody) }
	}
	var list []Claim
	for _, c := range []struct {
		spec, journal string
		conference    string // "" if its words are the same
		over          []meshCase
		judge         judge
	}{
		{"X22-1", "multicast outperforms unicast in all cases (remark 1)", "", cases, judgeWins},
		{"X22-2a one source", largerBetter, "", one, judgeSize},
		{"X22-2a more sources", largerBetter, "", many, judgeSize},
		{"X22-2b", "the more sources, the better the speedup (remark 2)", "", cases, judgeSources},
		{"X22-2c", "the larger the group, the better the speedup (remark 2)", "", cases, judgeGroup},
		{"X22-3a unicast, one source", moreUnicast, moreUnicast2, one, by(judgeLanes, true)},
		{"X22-3a unicast, more sources", moreUnicast, moreUnicast2, many, by(judgeLanes, true)},
		{"X22-3a multicast, one source", moreMulti, notSaid, one, by(judgeLanes, false)},
		{"X22-3a multicast, more sources", moreMulti, notSaid, many, by(judgeLanes, false)},
		{"X22-3a most", "more virtual lanes help especially unicast (remark 3)", notSaid, cases, judgeMost},
		{"X22-3b unicast", untied, untied2, cases, by(judgeShared, true)},
		{"X22-3b multicast, one source", untied, untied2, one, by(judgeShared, false)},
		{"X22-3b multicast, more sources", untied, untied2, many, by(judgeShared, false)},
		// One source's multicast is a packet that waits for no other: lanes do not matter to it.
		{"X22-3b large unicast, one source", unclearLarge, "", one, by(judgeSharedLarge, true)},
		{"X22-3b large unicast, more sources", unclearLarge, "", many, by(judgeSharedLarge, true)},
		{"X22-3b large multicast, more sources", unclearLarge, "", many, by(judgeSharedLarge, false)},
		{"X17", "ports tied to lanes are configurations of 2 and of 4 virtual lanes (section 3.2)", "", cases, judgeDedicated},
		{"X22-4 slower", "all sources take longer than several (case 3)", "all sources take more time than several (case 3)", many, late(judgeSlower)},
		{"X22-4 similar", "results of all sources are similar to those of several (case 3)", "", many, late(judgeSimilar)},
	} {
		text := c.journal
		if conference {
			text = cmp.Or(c.conference, text)
		}
		if text != notSaid {
			list = append(list, Claim{c.spec, text, figuresOf(c.over...), func(f Figures) Finding { return c.judge(f, c.over) }})
		}
	}
	return list
}

// span keeps the least and the greatest of values, and where they are.
type span struct {
	low, high     float64
	atLow, atHigh string
	n             int
}

func (s *span) add(v float64, format string, args ...any) {
	if s.n == 0 || v < s.low {
		s.low, s.atLow = v, fmt.Sprintf(format, args...)
	}
	if s.n == 0 || v > s.high {
		s.high, s.atHigh = v, fmt.Sprintf(format, args...)
	}
	s.n++
}

// short names a case: "102 sources to 256".
func (c *meshCase) short() string {
	if c.sources == 1 {
		return fmt.Sprintf("1 source to %d", c.group)
	}
	return fmt.Sprintf("%d sources to %d", c.sources, c.group)
}

// allLanes are all configurations.
var allLanes = []lanes{oneVL, twoBySL, twoByDir, fourBySL, fourByDir}

// bySL are the configurations, by number of VLs, in which a port may use all VLs.
var bySL = []lanes{oneVL, twoBySL, fourBySL}

func judgeWins(f Figures, cases []meshCase) Finding {
	var t tally
	for c, b := range measured(f, cases) {
		for _, l := range allLanes {
			speedup := c.speedup(f, l, b)
			t.add(beyond(speedup, 1), speedup.Y, "%s, %v bytes, %s", c.short(), b, l.label)
		}
	}
	return decided(t.how(), "a multicast crosses each link of its tree once, repeated unicast once for each destination behind it",
		"unicast takes %.1f (%s) to %.0f times as long (%s), in %d cases", t.low, t.atLow, t.high, t.atHigh, t.n)
}

// change counts times that get better or worse by more than meshNoise; open: within the error.
type change struct{ better, worse, equal, open int }

// add counts a time by gain, the share of it that is saved.
func (c *change) add(gain chart.Point) {
	switch {
	case beyond(gain, meshNoise) > 0:
		c.better++
	case beyond(gain, -meshNoise) < 0:
		c.worse++
	case within(gain, -meshNoise, meshNoise) > 0:
		c.equal++
	default:
		c.open++
	}
}

func (c *change) n() int { return c.better + c.worse + c.equal + c.open }

// String puts the counts into words.
func (c *change) String() string {
	s := fmt.Sprintf("%d of %d are better, %d worse, %d equal", c.better, c.n(), c.worse, c.equal)
	if c.open > 0 {
		s += fmt.Sprintf(", %d within the error", c.open)
	}
	return s
}

// judgeSize compares the speedups at the smallest and the largest size.
func judgeSize(f Figures, cases []meshCase) Finding {
	var says []string
	var grows change
	for _, c := range cases {
		sizes := c.sizesOf(f)
		first, last := sizes[0], sizes[len(sizes)-1]
		small, large := c.speedup(f, oneVL, first), c.speedup(f, oneVL, last)
		says = append(says, fmt.Sprintf("%s: %.1f at %v bytes, %.1f at %v", c.short(), small.Y, first, large.Y, last))
		grows.add(saving(small, large))
	}
	out := Finding{Measured: "speedup on 1 VL: " + strings.Join(says, "; ")}
	switch {
	case grows.better == len(cases):
		out.Verdict = Holds
		out.Why = "delays on the way count less the larger the message, and the ratio tends to the size of the group"
	case grows.worse == len(cases):
		out.Verdict = Fails
		out.Why = "delays of switches, wires and credits count less the larger the message, and they weigh more on repeated " +
			"unicast than on multicast; without them all times would grow as the size, and the ratio not at all"
	case grows.open > 0:
		out.decide(0)
	default:
		out.Verdict = NotDecidable
		out.Why = fmt.Sprintf("the speedup grows in %d cases and falls in %d", grows.better, grows.worse)
	}
	return out
}

// judgeSources compares cases with equal groups and different
// sources: speedups, and the time that multicast saves.
func judgeSources(f Figures, cases []meshCase) Finding {
	var speedups, saved compared
	var says []string
	for i, a := range cases {
		for _, b := range cases[i+1:] {
			if a.group != b.group || a.sources >= b.sources {
				continue
			}
			sizes := a.sizesOf(f)
			for _, size := range sizes {
				save := func(c *meshCase) chart.Point {
					return minus(c.result(f, true, oneVL, size), c.result(f, false, oneVL, size))
				}
				speedups.add(b.speedup(f, oneVL, size), a.speedup(f, oneVL, size))
				saved.add(save(&b), save(&a))
				if size == sizes[len(sizes)-1] {
					says = append(says, fmt.Sprintf("%s and %s, %v bytes: speedup %.1f and %.1f, saved %.3g and %.3g µs",
						a.short(), b.short(), size, a.speedup(f, oneVL, size).Y, b.speedup(f, oneVL, size).Y, save(&a).Y, save(&b).Y))
				}
			}
		}
	}
	out := Finding{Measured: strings.Join(says, "; ")}
	out.Why = "one source's repeated unicast waits for its own link, k packets to 1, and no ratio can be greater; several sources share " +
		"the hottest links and the receivers' own, which multicast has to fill too (E-X11)"
	switch {
	case speedups.above == speedups.n:
		out.Verdict, out.Why = Holds, ""
	case saved.above == saved.n:
		out.Verdict, out.As = HoldsAs, "time saved, not as a ratio"
	case speedups.below > 0:
		out.Verdict = Fails
	default:
		out.decide(0)
	}
	return out
}

// judgeGroup compares cases with equal sources and different groups.
func judgeGroup(f Figures, cases []meshCase) Finding {
	var says []string
	var c compared
	for i, a := range cases {
		for _, b := range cases[i+1:] {
			// The conference version has the smaller group only with 40 % of the hosts
			// as sources, and compares it with the larger group and all sources.
			if a.group >= b.group || a.sources != b.sources && !(len(cases) == 3 && a.sources > 1) {
				continue
			}
			sizes := a.sizesOf(f)
			for _, size := range sizes {
				c.add(b.speedup(f, oneVL, size), a.speedup(f, oneVL, size))
			}
			last := sizes[len(sizes)-1]
			says = append(says, fmt.Sprintf("%s and %s: speedup %.1f and %.1f at %v bytes, %.1f and %.1f at %v", a.short(), b.short(),
				a.speedup(f, oneVL, sizes[0]).Y, b.speedup(f, oneVL, sizes[0]).Y, sizes[0],
				a.speedup(f, oneVL, last).Y, b.speedup(f, oneVL, last).Y, last))
		}
	}
	out := Finding{Verdict: Holds, Measured: strings.Join(says, "; "), Why: "unicast's packets grow with the group, multicast's do not"}
	switch {
	case c.below > 0:
		out.Verdict, out.Why = Fails, fmt.Sprintf("not in %d of %d comparisons", c.below, c.n)
	case c.above < c.n:
		out.decide(0)
	}
	return out
}

// judgeLanes compares 1, 2 and 4 VLs by SL. At a size, more VLs are better if
// they clearly lengthen no time, and clearly shorten more than half of the times.
func judgeLanes(f Figures, cases []meshCase, unicast bool) Finding {
	var s span
	var steps change
	bySize := map[float64]*change{}
	for c, b := range measured(f, cases) {
		if bySize[b] == nil {
			bySize[b] = &change{}
		}
		for i, l := range bySL[1:] {
			gain := c.gain(f, unicast, l, bySL[i], b)
			s.add(gain.Y, "%s, %v bytes, %d to %d VLs", c.short(), b, bySL[i].vls, l.vls)
			steps.add(gain)
			bySize[b].add(gain)
		}
	}
	upTo := newUpTo(f, cases)
	for b, c := range bySize {
		if c.worse > 0 || 2*c.better <= c.n() {
			upTo.fails(b)
		}
	}
	out := Finding{Measured: fmt.Sprintf("times fall by %s (%s) to %s (%s); of the steps to more VLs %s",
		percent(s.low), s.atLow, percent(s.high), s.atHigh, &steps)}
	switch {
	case steps.equal == steps.n():
		out.Verdict = Fails
		out.Why = "a single packet waits for no other, so no lane can help it"
	case unicast && cases[0].sources == 1 && steps.equal > 0 && steps.better > 0 && steps.worse+steps.open == 0:
		out.Verdict, out.As = HoldsAs, "from 1 VL to 2, with buffers of one packet"
		out.Why = "no packets of several sources meet: the second lane only hides the time until a buffer's credit is back, which " +
			"matters at small sizes, and a second packet of buffer would do as well (E-X12)"
	default:
		out.Verdict, out.As = upTo.verdict()
		switch {
		case out.Verdict == Fails && steps.worse == 0 && steps.open > 0:
			out.decide(0)
		case out.Verdict != Holds:
			out.Why = "lanes part the buffers and not the link: where the links are busy all the time, they change the order only"
		}
	}
	return out
}

// upTo finds the size up to which a claim holds in all cases.
type upTo struct {
	sizes []float64
	first float64 // the smallest size at which it fails
}

func newUpTo(f Figures, cases []meshCase) *upTo {
	sizes := cases[0].sizesOf(f)
	return &upTo{sizes, math.Inf(1)}
}

func (u *upTo) fails(bytes float64) { u.first = min(u.first, bytes) }

func (u *upTo) verdict() (v Verdict, as string) {
	i, _ := slices.BinarySearch(u.sizes, u.first)
	switch i {
	case 0:
		return Fails, ""
	case len(u.sizes):
		return Holds, ""
	}
	return HoldsAs, fmt.Sprintf("up to %v bytes", u.sizes[i-1])
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// judgeMost compares what 4 VLs gain for unicast and for multicast.
func judgeMost(f Figures, cases []meshCase) Finding {
	most := 0
	var uni tally
	var multi span
	for c, b := range measured(f, cases) {
		u, m := c.gain(f, true, fourBySL, oneVL, b), c.gain(f, false, fourBySL, oneVL, b)
		more := beyond(minus(u, m), -meshNoise)
		uni.add(more, u.Y, "%s, %v bytes", c.short(), b)
		multi.add(m.Y, "%s, %v bytes", c.short(), b)
		if more > 0 {
			most++
		}
	}
	return decided(uni.how(), "", "4 VLs against 1: unicast gains %s to %s, multicast %s to %s; unicast as much or more in %d of %d cases",
		percent(uni.low), percent(uni.high), percent(multi.low), percent(multi.high), most, uni.n)
}

// sharing has pairs of configurations with equal numbers of VLs: by SL, and dedicated to ports.
var sharing = [][2]lanes{{twoBySL, twoByDir}, {fourBySL, fourByDir}}

// judgeShared compares the pairs of sharing at small sizes.
func judgeShared(f Figures, cases []meshCase, unicast bool) Finding {
	var s span
	var pairs change
	upTo := newUpTo(f, cases)
	for c, b := range measured(f, cases) {
		if b > mostSmall {
			continue
		}
		for _, pair := range sharing {
			gain := c.gain(f, unicast, pair[0], pair[1], b)
			s.add(gain.Y, "%s, %v bytes, %d VLs", c.short(), b, pair[0].vls)
			was := pairs.better
			if pairs.add(gain); pairs.better == was {
				upTo.fails(b)
			}
		}
	}
	out := Finding{Measured: fmt.Sprintf("up to %v bytes: %s (%s) to %s (%s) faster; %s",
		mostSmall, percent(s.low), s.atLow, percent(s.high), s.atHigh, &pairs)}
	out.Why = "a lane by the port of exit gives each cable packets of one lane only, as with 1 VL, to the picosecond (X17)"
	switch {
	case pairs.better == pairs.n():
		out.Verdict = Holds
	case pairs.equal == pairs.n():
		out.Verdict = Fails
		out.Why = "a single packet waits for no other, so no lane can help it"
	default:
		if out.Verdict, out.As = upTo.verdict(); out.Verdict == Fails && pairs.worse+pairs.equal == 0 {
			out.decide(0)
		}
	}
	return out
}

// meshUnclear is the share of a time below which it is unclear which lanes are faster.
const meshUnclear = 0.05

// judgeSharedLarge compares the pairs of sharing at the largest size.
func judgeSharedLarge(f Figures, cases []meshCase, unicast bool) Finding {
	var s span
	var bytes float64
	var pairs change
	// small is 1 if all gains are small, large is true if one is not.
	small, large := 1, false
	for i := range cases {
		c := &cases[i]
		sizes := c.sizesOf(f)
		bytes = sizes[len(sizes)-1]
		for _, pair := range sharing {
			gain := c.gain(f, unicast, pair[0], pair[1], bytes)
			s.add(gain.Y, "%s, %d VLs", c.short(), pair[0].vls)
			pairs.add(gain)
			how := within(gain, -meshUnclear, meshUnclear)
			small, large = min(small, how), large || how < 0
		}
	}
	out := Finding{
		Measured: fmt.Sprintf("at %v bytes lanes by SL are %s (%s) to %s (%s) faster; %s",
			bytes, percent(s.low), s.atLow, percent(s.high), s.atHigh, &pairs),
		Why: "taken as: at most 5 %, or faster in some cases and slower in others",
	}
	switch {
	case small > 0 || pairs.better > 0 && pairs.worse > 0:
		out.Verdict = Holds
	case large && pairs.open == 0:
		out.Verdict = Fails
		out.Why = "a packet that waits holds up those behind it on its lane, at any size; taken as: at most 5 %, or faster in some cases and slower in others"
	default:
		out.decide(0)
	}
	return out
}

// judgeDedicated compares dedicated lanes with one VL.
func judgeDedicated(f Figures, cases []meshCase) Finding {
	n, equal := 0, 0
	var others change
	for c, b := range measured(f, cases) {
		for _, unicast := range []bool{true, false} {
			one := c.result(f, unicast, oneVL, b)
			for _, l := range []lanes{twoByDir, fourByDir} {
				n++
				if at := c.result(f, unicast, l, b); at.Y == one.Y && slices.Equal(at.Draws, one.Draws) {
					equal++
				}
				others.add(c.gain(f, unicast, l, oneVL, b))
			}
		}
	}
	out := Finding{Measured: fmt.Sprintf("times are those of 1 VL, to the picosecond, in %d of %d cases", equal, n)}
	switch {
	case equal == n:
		out.Verdict, out.As = HoldsAs, "configurations of one virtual lane"
		out.Why = "a lane by the port of exit gives each cable packets of one lane only (X17); by the port of entry, or by SL, it would not"
	case others.worse > 0:
		out.Verdict, out.Why = Fails, fmt.Sprintf("slower than 1 VL in %d cases", others.worse)
	case others.open > 0:
		out.decide(0)
	default:
		out.Verdict = Holds
	}
	return out
}

// pairs yields each case of several sources with those of all sources
// (everybody) for the same group, or with all if several has one
// case, as in the conference version.
func pairs(several, everybody []meshCase) iter.Seq2[*meshCase, *meshCase] {
	return func(yield func(a, b *meshCase) bool) {
		for i := range several {
			for k := range everybody {
				a, b := &several[i], &everybody[k]
				if (a.group == b.group || len(several) == 1) && !yield(a, b) {
					return
				}
			}
		}
	}
}

func judgeSlower(f Figures, several, everybody []meshCase) Finding {
	var t tally
	for a, b := range pairs(several, everybody) {
		for _, size := range a.sizesOf(f) {
			for _, unicast := range []bool{true, false} {
				for _, l := range allLanes {
					r := ratio(b.result(f, unicast, l, size), a.result(f, unicast, l, size))
					t.add(beyond(r, 1), r.Y, "%s, %v bytes, %s", b.short(), size, curveOf(unicast, l))
				}
			}
		}
	}
	return decided(t.how(), "links and receivers have more packets to carry and to take in",
		"%.2f (%s) to %.2f (%s) times as long, in %d comparisons", t.low, t.atLow, t.high, t.atHigh, t.n)
}

func judgeSimilar(f Figures, several, everybody []meshCase) Finding {
	const similar = 1.5
	var t tally
	for a, b := range pairs(several, everybody) {
		for _, size := range a.sizesOf(f) {
			for _, l := range bySL {
				r := ratio(b.speedup(f, l, size), a.speedup(f, l, size))
				t.add(within(r, 1/similar, similar), r.Y, "%d receivers, %v bytes, %s", b.group, size, l.label)
			}
		}
	}
	out := decided(t.how(), "taken as: speedups within a factor of 1.5; the paper does not say what similar is",
		"speedups with all sources are %.2f (%s) to %.2f (%s) times those with several", t.low, t.atLow, t.high, t.atHigh)
	if out.Verdict == Fails && several[0].group != everybody[0].group && len(several) == 1 {
		out.Verdict = NotDecidable
		out.Why = "the paper does not say what similar is, and the group grows with the sources, and the speedup with the group"
	}
	return out
}
