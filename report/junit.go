package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/verify"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// maxOutput bounds the text of a test case, bytes. GitLab takes files below 30 MB (Unit
// test reports, docs.gitlab.com), and a rule may have two texts.
const maxOutput = 200 << 10

// output is the text of a test case.
type output struct {
	strings.Builder
	left int // texts that had no room
}

func (o *output) add(text string) {
	if o.Len() >= maxOutput {
		o.left++
		return
	}
	o.WriteString(text)
}

// String is the text, which says how many findings are not in it.
func (o *output) String() string {
	s := o.Builder.String()
	if o.left > 0 {
		s += fmt.Sprintf("\nand %d more\n", o.left)
	}
	return s
}

// JUnit prints a result as JUnit XML: each rule is a test case, which fails if
// the rule has findings that Options.FailOn asks for or is undecided. Milder findings are the
// case's output, and so are those that are waived. Viewers refuse elements of many
// megabytes, so that the findings of a rule are cut after maxOutput bytes.
func JUnit(w io.Writer, r *verify.Result, opt Options) error {
	suite := junitSuite{Name: opt.subject()}
	var names []string
	for _, rule := range opt.rules() {
		names = append(names, rule.Name)
	}
	for _, u := range r.Undecided {
		if !slices.Contains(names, u.Rule) {
			names = append(names, u.Rule)
		}
	}
	for _, name := range names {
		c := junitCase{Class: "ibweave", Name: name}
		var failed, mild output
		first := ""
		add := func(fails bool, message, text string) {
			if !fails {
				mild.add(text)
				return
			}
			first = cmp.Or(first, message)
			failed.add(text)
		}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Rule == name {
				var text strings.Builder
				WriteFinding(&text, f)
				add(opt.fails(f), f.Message, text.String())
			}
		}
		for _, u := range r.Undecided {
			if u.Rule == name {
				add(!opt.Never, undecided(u), "\n"+undecided(u)+"\n")
			}
		}
		if first != "" {
			suite.Failures++
			c.Failure = &junitFailure{Message: first, Type: name, Text: failed.String()}
		}
		if mild.Len() > 0 {
			c.Output = mild.String()
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Name: "ibweave check", Tests: suite.Tests, Failures: suite.Failures, Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
