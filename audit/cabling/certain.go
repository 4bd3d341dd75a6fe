package cabling

import (
	"fmt"
	"math"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// The limits of certainty. Random damage of a fabric leaves each switch most of its
// cables. A wrong guess instead gives whole switches a place that is not theirs: these
// lack most of the cables of that place, even where the fabric as a whole fits well.
const (
	leastFit     = 0.75 // what explains less is no shape at all
	fitParts     = 8    // a certain shape deviates in at most one cable in this many, and one switch in this many
	misfitCables = 3    // a switch with this many cables missing, half of its cables or more, does not fit
)

// setCertainty sets Fit and Certain from the counts of countDeviations.
func (s *Shape) setCertainty(f *fabric.Fabric) {
	s.Fit, s.Certain = 0, false
	switch {
	case s.Kind == Irregular || s.Kind == Tree:
		return // they say nothing about single cables
	case s.Cables == 0:
		s.Fit, s.Certain = 1, true
		return
	}
	// A cable in a wrong place is one missing and one extra.
	deviating := max(s.MissingCables, s.ExtraCables)
	s.Fit = max(0, 1-float64(max(deviating, s.unexplained))/float64(s.Cables))
	s.Certain = fitParts*deviating <= s.Cables && len(s.misfits) == 0 &&
		fitParts*s.MissingSwitches <= f.NumSwitches()+s.MissingSwitches
}

// certainty says in words how sure the shape is, "" when everything fits or the shape
// makes no claim about cables.
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

// condition says of findings what they rest on.
func (s *Shape) condition() string {
	if s.Kind == Tree {
		return "if the levels are right, which are a guess"
	}
	return fmt.Sprintf("if the shape is right, which is a guess that explains %s of the cables", percent(s.Fit))
}

// percent writes a share, rounded down so that only all is 100 %.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", math.Floor(1000*share)/10) }

// mergeGuesses makes of the findings that follow from an uncertain shape one note for each
// rule, which stands for all of them. from is where they begin in the list.
func (c *checker) mergeGuesses(s *Shape, from int) {
	byRule := make(map[string]*verify.Finding)
	var order []string
	for _, x := range c.findings[from:] {
		n, ok := byRule[x.Rule]
		if !ok {
			first := x
			byRule[x.Rule], order = &first, append(order, x.Rule)
			continue
		}
		n.Count += x.Count
		n.Ports = append(n.Ports, x.Ports[:min(len(x.Ports), maxPorts-len(n.Ports))]...)
	}
	c.findings = c.findings[:from]
	for _, rule := range order {
		n := byRule[rule]
		n.Severity = verify.Note
		known, _ := verify.FindRule(rule, Rules)
		n.Message = fmt.Sprintf("%s %s; the first: %s", text.Count(n.Count, singular(known.Count), known.Count), s.condition(), n.Message)
		c.findings = append(c.findings, *n)
	}
}

// singular is the singular of a rule's unit.
func singular(unit string) string {
	if unit == "switches" {
		return "switch"
	}
	return strings.TrimSuffix(unit, "s")
}
