package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// Apply holds findings to the policy, and gives all of them fingerprints: allowed
// missing cables become notes, rules get the severities of the policy, and waivers
// excuse until their day has passed. today is a day, as time.Parse of a date alone
// gives it. p may be nil.
func (p *Policy) Apply(r *verify.Result, f *fabric.Fabric, today time.Time) {
	if p == nil {
		r.SetFingerprints(f)
		return
	}
	r.Edit(func(list []verify.Finding) []verify.Finding {
		list = p.allowMissing(list)
		return p.regrade(list)
	})
	r.SetFingerprints(f)
	r.Edit(func(list []verify.Finding) []verify.Finding { return p.applyWaivers(list, today) })
	r.SetFingerprints(f)
}

// allowMissing makes notes of missing cables that the policy allows.
func (p *Policy) allowMissing(list []verify.Finding) []verify.Finding {
	missing := int64(0)
	for i := range list {
		if x := &list[i]; x.Rule == cabling.MissingCable {
			if slices.ContainsFunc(p.MissAt, func(at Place) bool { return at.finding(x) }) {
				x.Severity = verify.Note
				x.Message += "; the policy allows it"
			} else {
				missing += x.Count
			}
		}
	}
	if missing == 0 || missing > int64(p.MayMiss) {
		return list
	}
	for i := range list {
		if x := &list[i]; x.Rule == cabling.MissingCable && x.Severity != verify.Note {
			x.Severity = verify.Note
			x.Message += fmt.Sprintf("; the policy allows %d", p.MayMiss)
		}
	}
	return list
}

// regrade gives findings the severities of the policy.
func (p *Policy) regrade(list []verify.Finding) []verify.Finding {
	kept := list[:0]
	for _, x := range list {
		s, ok := p.Severities[x.Rule]
		allowed := x.Rule == cabling.MissingCable && x.Severity == verify.Note
		switch {
		case ok && s == verify.Clean:
			continue
		case ok && !allowed:
			x.Severity = s
		}
		kept = append(kept, x)
	}
	return kept
}

// applyWaivers excuses findings that any waiver in force matches, until the last day of all of
// these, and adds findings about the waivers.
func (p *Policy) applyWaivers(list []verify.Finding, today time.Time) []verify.Finding {
	var about []verify.Finding
	for i := range p.Waivers {
		w := &p.Waivers[i]
		expired := today.After(w.Until)
		until := w.Until.Format(time.DateOnly)
		matched := 0
		for j := range list {
			x := &list[j]
			if !w.matches(x) {
				continue
			}
			matched++
			if !expired && (x.Waiver == nil || x.Waiver.Until < until) {
				x.Waiver = &verify.Waiver{Until: until, Reason: w.Reason}
			}
		}
		say := func(rule, format string, args ...any) {
			severity := p.severity(rule)
			if severity == verify.Clean {
				return
			}
			about = append(about, verify.Finding{
				Rule: rule, Severity: severity, Count: 1, Witness: []verify.Hop{},
				Message: fmt.Sprintf("the waiver of %s (%s) ", w.what(), w.Reason) + fmt.Sprintf(format, args...),
			})
		}
		switch {
		case expired:
			say(WaiverExpired, "expired on %s; findings that match it: %d", until, matched)
		case matched == 0:
			say(WaiverUnused, "excuses nothing")
		}
	}
	return append(list, about...)
}

// severity is that of a rule under the policy.
func (p *Policy) severity(rule string) verify.Severity {
	if s, ok := p.Severities[rule]; ok {
		return s
	}
	r, _ := RuleByName(rule)
	return r.Severity
}

// matches says whether a waiver is about a finding.
func (w *Waiver) matches(x *verify.Finding) bool {
	return (w.Rule == "" || w.Rule == x.Rule) &&
		(w.Fingerprint == "" || w.Fingerprint == x.Fingerprint) &&
		(w.At == nil || w.At.finding(x))
}

// what is the waiver in words.
func (w *Waiver) what() string {
	s := w.Rule
	if s == "" {
		s = "finding"
	}
	if w.Fingerprint != "" {
		s += " " + w.Fingerprint
	}
	if w.At != nil {
		s += fmt.Sprintf(" at %q", w.At.text)
	}
	return s
}
