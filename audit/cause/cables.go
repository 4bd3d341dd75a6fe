package cause

import "github.com/ibweave/ibweave/fabric"

// How much is looked at to find the two ends of a cable.
const (
	maxEnds  = 100 // ports without a cable
	maxPaths = 64  // LIDs of each
)

// pairCables finds which ports without a cable were the two ends of one. Of such a pair each switch delivers what
// is lost at the other, or loses it elsewhere; the ends of a cable are those of which each delivers more for the
// other than for any third.
func (g *grouper) pairCables(w *walker) {
	var ends []*loss
	for _, x := range g.losses {
		if x.fate == noCable {
			ends = append(ends, x)
		}
	}
	if len(ends) > maxEnds {
		return
	}
	type match struct {
		to    *loss // nil for several
		score int
	}
	best := make(map[*loss]match)
	for i, a := range ends {
		for _, b := range ends[:i] {
			there, back := w.delivered(a, b), w.delivered(b, a)
			if a.s == b.s || there < 0 || back < 0 {
				continue
			}
			for x, to := range map[*loss]*loss{a: b, b: a} {
				switch m := best[x]; {
				case there+back > m.score:
					best[x] = match{to, there + back}
				case there+back == m.score:
					best[x] = match{nil, m.score}
				}
			}
		}
	}
	for _, a := range ends {
		if b := best[a].to; b != nil && best[b].to == a && g.joint[a] == nil {
			g.joint[a] = []*loss{a, b}
			g.joint[b] = g.joint[a]
		}
	}
}

// delivered counts the first LIDs lost at b that the switch of a delivers; -1 if it sends any to a or to the switch
// of b, or loses it otherwise than for want of a cable.
func (w *walker) delivered(a, b *loss) (n int) {
	for _, lid := range b.lids[:min(len(b.lids), maxPaths)] {
		to := w.f.LIDPort(lid)
		s := a.s
		for range w.end {
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
				n++
			}
			break
		}
	}
	return n
}
