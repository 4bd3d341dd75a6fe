package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// Apply applies the policy to findings, and gives them fingerprints. Allowed
// missing cables become notes, rules get the policy's severities, and waivers
// excuse findings until their day has passed. today is a day, as time.Parse
// returns it for a date alone. p may be nil.
func (p *Policy) Apply(r *verify.Result, f *fabric.Fabric, today time.Time) {
	if p == nil {
		r.SetFingerprints(f)
		return
	}
	r.Edit(p.regrade)
	r.SetFingerprints(f)
	r.Edit(func(list []verify.Finding) []verify.Finding { return p.applyWaivers(list, today) })
	r.SetFingerprints(f)
}

// regrade makes notes of missing cables that the policy allows, and gives other findings the
// policy's severities.
func (p *Policy) regrade(list []verify.Finding) []verify.Finding {
	allowed := func(x *verify.Finding) bool {
		return slices.ContainsFunc(p.MissAt, func(at Place) bool { return at.finding(x) })
	}
	missing := int64(0)
	for i := range list {
		if x := &list[i]; x.Rule == cabling.MissingCable && !allowed(x) {
			missing += x.Count
		}
	}
	kept := list[:0]
	for _, x := range list {
		cable := x.Rule == cabling.MissingCable
		s, ok := p.Severities[x.Rule]
		switch {
		case ok && s == verify.Clean:
			continue
		case cable && allowed(&x):
			x.Severity = verify.Note
			x.Message += "; the policy allows it"
		case cable && missing <= int64(p.MayMiss):
			x.Severity = verify.Note
			x.Message += fmt.Sprintf("; the policy allows %d", p.MayMiss)
		case ok:
			x.Severity = s
		}
		kept = append(kept, x)
	}
	return kept
}

// applyWaivers excuses findings that a waiver in force matches, by the one with the latest day. It
// adds findings about the waivers.
func (p *Policy) applyWaivers(list []verify.Finding, today time.Time) []verify.Finding {
	var about []verify.Finding
	for i := range p.Waivers {
		w := &p.Waivers[i]
		expired := today.After(w.Until)
		until := w.Until.Format(time.DateOnly)
		matched := 0
		for j := range list {
			x := &list[j]
			if w.Rule != "" && w.Rule != x.Rule || w.Fingerprint != "" && w.Fingerprint != x.Fingerprint || w.At != nil && !w.At[0].finding(x) {
				continue
			}
			matched++
			if !expired && (x.Waiver == nil || x.Waiver.Until < until) {
				x.Waiver = &verify.Waiver{Until: until, Reason: w.Reason}
			}
		}
		switch {
		case expired:
			about = append(about, p.finding(WaiverExpired, 1, "the waiver of %s (%s) expired on %s; findings that match it: %d", w.what(), w.Reason, until, matched))
		case matched == 0:
			about = append(about, p.finding(WaiverUnused, 1, "the waiver of %s (%s) excuses nothing", w.what(), w.Reason))
		}
	}
	return append(list, p.regrade(about)...)
}

// what returns the waiver in words.
func (w *Waiver) what() string {
	s := cmp.Or(w.Rule, "finding")
	if w.Fingerprint != "" {
		s += " " + w.Fingerprint
	}
	if w.At != nil {
		s += fmt.Sprintf(" at %q", w.At[0].text)
	}
	return s
}
