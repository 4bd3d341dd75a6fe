package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Limits of what is printed about causes without Options.Verbose.
const (
	fewCauses  = 3  // this many causes of a rule are printed singly
	shownLines = 8  // greatest number of lines of a list
	shownHops  = 12 // greatest number of hops of a witness
)

// causesOf returns the causes of r's findings. If r has none, each finding is its own
// cause.
func causesOf(r *verify.Result) []verify.Cause {
	if r.Causes != nil {
		return r.Causes
	}
	list := make([]verify.Cause, len(r.Findings))
	for i := range list {
		x := &r.Findings[i]
		list[i] = verify.Cause{Rule: x.Rule, Severity: x.Severity, Waiver: x.Waiver, Text: x.Message, Findings: []int{i}}
	}
	return list
}

// WriteFindings prints findings like Text, the gravest first. Findings with the same Cause
// are printed below its text; if the message of one of them is that text, it comes first.
func WriteFindings(w io.Writer, list []verify.Finding, opt Options) {
	r, at := &verify.Result{Findings: list}, make(map[string]int)
	for i := range list {
		x := &list[i]
		key := cmp.Or(x.Cause, x.Message)
		k, known := at[key]
		if !known {
			k, at[key] = len(r.Causes), len(r.Causes)
			r.Causes = append(r.Causes, verify.Cause{Rule: x.Rule, Severity: x.Severity, Text: key})
		}
		c := &r.Causes[k]
		if c.Findings, c.Severity = append(c.Findings, i), max(c.Severity, x.Severity); x.Message != key && !opt.Verbose {
			c.Follows = append(c.Follows, x.Message)
		}
	}
	for i := range r.Causes {
		if c := &r.Causes[i]; len(c.Follows) > fewCauses {
			c.Follows = append(c.Follows[:fewCauses], fmt.Sprintf("and %d more, which -v lists", len(c.Follows)-fewCauses))
		}
	}
	slices.SortStableFunc(r.Causes, func(a, b verify.Cause) int { return cmp.Compare(b.Severity, a.Severity) })
	writeCauses(w, r, &opt, func(*verify.Cause) bool { return true })
}

// writeCauses prints the wanted causes, the most harmful first. Many causes of one rule
// become one list; with Options.Verbose all findings are printed.
func writeCauses(w io.Writer, r *verify.Result, opt *Options, wanted func(*verify.Cause) bool) {
	type kind struct {
		rule     string
		severity verify.Severity
		waived   bool
	}
	var order []kind
	alike := make(map[kind][]*verify.Cause)
	causes := causesOf(r)
	for i := range causes {
		if c := &causes[i]; wanted(c) {
			k := kind{c.Rule, c.Severity, c.Waiver != nil}
			if alike[k] == nil {
				order = append(order, k)
			}
			alike[k] = append(alike[k], c)
		}
	}
	printed := make(map[int]bool) // by finding
	for _, k := range order {
		list := alike[k]
		if len(list) > fewCauses && !opt.Verbose {
			writeList(w, r, opt, list)
			continue
		}
		for _, c := range list {
			writeCause(w, r, opt, c, printed)
		}
	}
	for i := range r.Findings { // findings that stand for many others belong to no single cause
		x := &r.Findings[i]
		if opt.Verbose && x.IsRest() && !printed[i] && wanted(&verify.Cause{Rule: x.Rule, Severity: x.Severity, Waiver: x.Waiver}) {
			writeFinding(w, x, 0)
		}
	}
}

// writeList prints causes of one rule as a list of up to shownLines lines.
func writeList(w io.Writer, r *verify.Result, opt *Options, list []*verify.Cause) {
	count, lost := int64(0), int64(0)
	counted := make(map[int]bool) // by finding: several causes may have the same
	for _, c := range list {
		for _, n := range c.Pairs {
			lost += n
		}
		for _, k := range c.Findings {
			if r.Findings[k].Rule == c.Rule && !counted[k] {
				counted[k] = true
				count += r.Findings[k].Count
			}
		}
	}
	if lost > 0 {
		count = lost
	}
	head := text.CountGrouped(len(list), "finding", "findings")
	if len(counted) != len(list) {
		head = text.CountGrouped(len(list), "cause", "causes")
	}
	if rule, ok := verify.FindRule(list[0].Rule, opt.rules(), verify.Rules); ok {
		head = fmt.Sprintf("%s, %s %s: %s", head, text.Grouped(count), rule.Count, rule.Summary)
	}
	writeHead(w, list[0].Severity, list[0].Waiver, list[0].Rule, head)
	for i, c := range list {
		if i == shownLines {
			fmt.Fprintf(w, "    and %s more, which -v lists\n", text.Grouped(len(list)-i))
			break
		}
		fmt.Fprintf(w, "    %s\n", c.Text)
	}
}

// followsOf returns lines about the consequences of a cause, and about the switches
// concerned.
func followsOf(c *verify.Cause, opt *Options) []string {
	if len(c.Switches) == 0 {
		return c.Follows
	}
	at, rest := text.Each(c.Switches, func(s verify.SwitchRef) string { return s.Name.String() }), ", which -v lists"
	if opt.Verbose || len(at) <= shownLines {
		rest = ""
	} else {
		at = []string{text.Few(at, shownLines)}
	}
	return append(slices.Clone(c.Follows), "at "+text.List(at, "and")+rest)
}

// writeCause prints a cause and its consequences. It marks the findings that it prints in
// printed.
func writeCause(w io.Writer, r *verify.Result, opt *Options, c *verify.Cause, printed map[int]bool) {
	first := &r.Findings[c.Findings[0]]
	if c.Text == first.Message && len(c.Findings) == 1 && c.Follows == nil {
		most := shownHops
		if opt.Verbose {
			most = len(first.Witness)
		}
		printed[c.Findings[0]] = true
		writeFinding(w, first, most)
		return
	}
	writeHead(w, c.Severity, c.Waiver, c.Rule, c.Text)
	for _, line := range followsOf(c, opt) {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if opt.Verbose {
		for _, k := range c.Findings {
			if x := &r.Findings[k]; !x.IsRest() && !printed[k] && (x.Message != c.Text || len(x.Witness) > 0) {
				printed[k] = true
				writeFinding(w, x, len(x.Witness))
			}
		}
	}
}

// writeHead prints the first line of a finding or a cause, and its waiver.
func writeHead(w io.Writer, severity verify.Severity, waiver *verify.Waiver, rule, message string) {
	if waiver != nil {
		fmt.Fprintf(w, "\nwaived %s: %s: %s\n    until %s: %s\n", severity, rule, message, waiver.Until, waiver.Reason)
		return
	}
	fmt.Fprintf(w, "\n%s: %s: %s\n", severity, rule, message)
}
