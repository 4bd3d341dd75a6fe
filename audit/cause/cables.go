package cause

import (
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Bounds of the search for the two ends of a cable.
const (
	maxEnds  = 100 // ports without a cable
	maxPaths = 64  // LIDs lost at each
)

// pairCables finds pairs of ports without a cable that were most likely the
// ends of one. From the switch of the other end, packets lost at one must
// arrive, or be lost at a third port, without passing the first switch. Each
// end must be the nearest such partner of the other.
func (g *grouper) pairCables(w *walker) {
	ends := text.Where(g.losses, func(x *loss) bool { return x.fate == noCable })
	if len(ends) > maxEnds {
		return
	}
	far := make(map[[2]*loss]float64) // by possible pair: the sum of its hops
	for _, a := range ends {
		for _, b := range ends {
			there, back := w.hops(a, b), w.hops(b, a)
			if a.s != b.s && there >= 0 && back >= 0 {
				far[[2]*loss{a, b}] = there + back
			}
		}
	}
	// best returns the nearest end to a that has no partner yet; nil for none, or if two are
	// equally near.
	best := func(a *loss) (to *loss) {
		least := math.Inf(1)
		for _, b := range ends {
			switch n, can := far[[2]*loss{a, b}]; {
			case !can || g.joint[b] != nil || n > least:
			case n < least:
				to, least = b, n
			default:
				to = nil
			}
		}
		return to
	}
	for again := true; again; {
		again = false
		for _, a := range ends {
			if b := best(a); g.joint[a] == nil && b != nil && best(b) == a {
				g.joint[a] = []*loss{a, b}
				g.joint[b] = g.joint[a]
				again = true
			}
		}
	}
}

// hops returns the mean number of switches that packets for the first LIDs
// lost at b pass after the switch of a. It is -1 if a delivers no packet, or
// sends one out of its own lost port, through the switch of b, or to where it
// is lost, other than at a port without a cable.
func (w *walker) hops(a, b *loss) float64 {
	passed, delivered := 0, 0
	for _, lid := range b.lids[:min(len(b.lids), maxPaths)] {
		to := w.f.LIDPort(lid)
		s := a.s
		for n := range min(len(w.end), 64) { // no directed route has more (IBA 14.2.2)
			next, lost, how := w.step(s, lid, to)
			if next != fabric.NoNode {
				if s = next; s == b.s && w.f.Owner(w.f.Attachment(to)) != b.s {
					return -1
				}
				continue
			}
			if lost && (how != noCable || s == a.s && w.entry(s, lid) == a.port) {
				return -1
			}
			if !lost {
				passed, delivered = passed+n, delivered+1
			}
			break
		}
	}
	if delivered == 0 {
		return -1
	}
	return float64(passed) / float64(delivered)
}
