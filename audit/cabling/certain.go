package cabling

import (
	"fmt"
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// The limits of certainty. After random damage each switch still has most of its cables. A wrong
// guess gives some switches a wrong place: they lack most of the cables of that place, even if the
// fabric as a whole fits well.
const (
	leastFit     = 0.75 // a shape that explains less is dropped
	fitParts     = 8    // a certain shape deviates in at most one cable in this many, and one switch in this many
	misfitCables = 3    // a switch that lacks this many cables, and half of its own, does not fit
)

// setCertainty sets Fit and Certain from the counts of countDeviations.
func (s *Shape) setCertainty(f *fabric.Fabric) {
	s.Fit, s.Certain = 0, false
	switch {
	case s.Kind == Irregular || s.Kind == Tree:
		return // these shapes predict no single cable
	case s.Cables == 0:
		s.Fit, s.Certain = 1, true
		return
	}
	// A cable in a wrong place counts as one missing and one extra.
	deviating := max(s.MissingCables, s.ExtraCables)
	s.Fit = max(0, 1-float64(max(deviating, s.unexplained))/float64(s.Cables))
	s.Certain = fitParts*deviating <= s.Cables && len(s.misfits) == 0 &&
		fitParts*s.MissingSwitches <= f.NumSwitches()+s.MissingSwitches
}

// certainty says how sure the shape is; "" if everything fits, or it predicts no cables.
func (s *Shape) certainty() string {
	switch {
	case s.Kind == Tree:
		words := "a guess: the cables between the levels follow no regular pattern"
		if s.LevelFit < 1 {
			words += ", and " + percent(s.LevelFit) + " of all cables are between neighbouring levels"
		}
		return words
	case s.Kind == Irregular, s.Certain && s.Fit == 1 && s.MissingSwitches == 0:
		return ""
	}
	certain, share := "certain", "all cables"
	if !s.Certain {
		certain = "a guess"
	}
	if s.Fit < 1 {
		share = percent(s.Fit) + " of the cables"
	}
	words := certain + ": it explains " + share
	if n := len(s.misfits); n > 0 {
		words += fmt.Sprintf(", and %s half or more of the cables that it would have, %s", text.Count(n, "switch lacks", "switches lack"), s.misfits[0])
		if n > 1 {
			words += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return words
}

// percent writes a share, rounded down: only a share of 1 is 100 %.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", math.Floor(1000*share)/10) }
