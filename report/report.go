// Package report prints what verify found: text for people, JSON for scripts,
// SARIF 2.1.0 for code scanning, JUnit XML for CI systems, Markdown for GitHub's job
// summaries. All forms are the same bytes for the same result. It makes no promise to other
// modules.
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
	Located bool // has the file and line of findings
	// Write prints a result. Errors are those of w.
	Write func(w io.Writer, r *verify.Result, opt Options) error
}

// Forms are all ways to print a result.
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

// Options describe where a result comes from, and which findings are failures.
type Options struct {
	Version  string // of ibweave
	Topology string // name of the topology file
	Tables   string // name of the file of forwarding tables
	// Certificate is the name of the certificate that was also checked, ""
	// for none.
	Certificate string
	// Bound is the name of the file of bounds that was also checked, "" for none.
	Bound    string
	Verbose  bool            // list in text what is idle
	Compiled bool            // what was checked are files that compile wrote, and not what switches have
	FailOn   verify.Severity // findings from here on are failures
	Never    bool            // nothing is a failure
	// Rules are the rules that were checked; nil for verify.Rules.
	Rules []verify.Rule
	// Shape is the shape of the fabric: lines of text by String, and in JSON the member
	// shape; nil if it is not asked for.
	Shape fmt.Stringer
	// Plan is the difference from a cabling plan: lines of text by String, and in JSON the member
	// plan; nil if it is not asked for.
	Plan fmt.Stringer
	// Groups is sums by groups of hosts, a table by String and in JSON and metrics the member
	// host_groups; nil when it is not asked for.
	Groups fmt.Stringer
	// Lines are names and texts of further lines, after those about the load.
	Lines [][2]string
	// Traffic is how good tables are for jobs, which Lines say in words: in JSON the member
	// traffic; nil if it is not asked for.
	Traffic any
	// Place says where in which file a finding is, 1-based; nil, or line 0, for
	// the beginning of the tables.
	Place func(f *verify.Finding) (file string, line int)
}

// rules returns the rules that were checked.
func (o *Options) rules() []verify.Rule {
	if o.Rules == nil {
		return verify.Rules
	}
	return o.Rules
}

// subject is the name of what was checked: tables, or a topology without any.
func (o *Options) subject() string {
	return cmp.Or(o.Tables, o.Topology)
}

// place is where a finding is.
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

// Fails returns true if a result is a failure: if some finding is, or something is
// undecided.
func (o *Options) Fails(r *verify.Result) bool { return !o.Never && r.Fails(o.FailOn) }

// document is a result with what else was asked for.
type document struct {
	*verify.Result
	Shape  fmt.Stringer `json:"shape,omitempty"`
	Plan   fmt.Stringer `json:"plan,omitempty"`
	Groups fmt.Stringer `json:"host_groups,omitempty"`
	// Traffic is Options.Traffic.
	Traffic any `json:"traffic,omitempty"`
}

// JSON prints v, a result or a document that holds one, with two blanks a
// level.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// undecided returns which rule is undecided, and why.
func undecided(u verify.Undecided) string { return "undecided: " + u.Rule + ": " + u.Reason }
