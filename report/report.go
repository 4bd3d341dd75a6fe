// Package report prints what verify found: as text for people, JSON for scripts, SARIF
// 2.1.0 for code scanning, JUnit XML for CI systems, Markdown for GitHub's job summaries.
// The same result gives the same bytes. It makes no promise to other modules.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/verify"
)

// Form is a way to print a verify.Result.
type Form struct {
	Name    string
	Located bool // it gives the file and line of findings
	// Write prints a result. Errors are those of w.
	Write func(w io.Writer, r *verify.Result, opt Options) error
}

// Forms lists all forms.
var Forms = []Form{
	{Name: "text", Write: Text},
	{Name: "json", Write: func(w io.Writer, r *verify.Result, opt Options) error {
		return JSON(w, document{r, opt.Shape, opt.Plan, opt.Groups, opt.Traffic})
	}},
	{Name: "sarif", Located: true, Write: SARIF},
	{Name: "junit", Write: JUnit},
	{Name: "markdown", Write: Markdown},
	{Name: "prometheus", Write: func(w io.Writer, r *verify.Result, opt Options) error {
		return metrics.Write(w, "check", document{Result: r, Groups: opt.Groups})
	}},
}

// FormByName finds a form.
func FormByName(name string) (*Form, error) {
	names := text.Each(Forms, func(f Form) string { return f.Name })
	if i := slices.Index(names, name); i >= 0 {
		return &Forms[i], nil
	}
	return nil, fmt.Errorf("format %q: want one of %s", name, strings.Join(names, ", "))
}

// Options describe the source of a result, and which findings are failures.
type Options struct {
	Version  string // of ibweave
	Topology string // name of the topology file
	Tables   string // name of the file of forwarding tables
	// Certificate is the name of the certificate that was also checked, "" for none.
	Certificate string
	// Bound is the name of the file of bounds that was also checked, "" for none.
	Bound    string
	Verbose  bool            // text lists all findings and idle channels
	Compiled bool            // the files checked are compile's output, not the switches' state
	FailOn   verify.Severity // findings this severe or worse are failures
	Never    bool            // nothing is a failure
	// Rules are the rules that were checked; nil for verify.Rules.
	Rules []verify.Rule
	// Shape is the shape of the fabric, printed by String in text and as member shape in
	// JSON; nil if it is not asked for.
	Shape fmt.Stringer
	// Plan is the difference from a cabling plan, printed by String in text and as member
	// plan in JSON; nil if it is not asked for.
	Plan fmt.Stringer
	// Groups has sums by groups of hosts, a table by String, and member host_groups in JSON
	// and metrics; nil if it is not asked for.
	Groups fmt.Stringer
	// Lines are names and texts of more lines, after those about the load.
	Lines [][2]string
	// Traffic is a judgement of the tables for jobs: member traffic in JSON, and the same
	// in words in Lines. It is nil if it is not asked for.
	Traffic any
	// Place returns the file and line of a finding, from 1. If Place is nil, or line is 0,
	// the finding is at the beginning of the tables.
	Place func(f *verify.Finding) (file string, line int)
}

// rules returns the rules that were checked.
func (o *Options) rules() []verify.Rule {
	if o.Rules == nil {
		return verify.Rules
	}
	return o.Rules
}

// subject returns the name of what was checked: the tables or, without any, the topology.
func (o *Options) subject() string {
	return cmp.Or(o.Tables, o.Topology)
}

// place returns the file and line of a finding.
func (o *Options) place(f *verify.Finding) (file string, line int) {
	if o.Place != nil {
		if file, line = o.Place(f); line > 0 {
			return file, line
		}
	}
	return o.subject(), 1
}

// fails returns true if a finding is a failure.
func (o *Options) fails(f *verify.Finding) bool {
	return !o.Never && f.Waiver == nil && f.Severity >= o.FailOn
}

// Fails returns true if a result is a failure: a finding is, or a rule is undecided.
func (o *Options) Fails(r *verify.Result) bool { return !o.Never && r.Fails(o.FailOn) }

// document is a result with the other parts of Options that were asked for.
type document struct {
	*verify.Result
	Shape  fmt.Stringer `json:"shape,omitempty"`
	Plan   fmt.Stringer `json:"plan,omitempty"`
	Groups fmt.Stringer `json:"host_groups,omitempty"`
	// Traffic is Options.Traffic.
	Traffic any `json:"traffic,omitempty"`
}

// JSON prints v, a result or a document with one, indented by two blanks.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// undecided names an undecided rule with the reason.
func undecided(u verify.Undecided) string { return "undecided: " + u.Rule + ": " + u.Reason }
