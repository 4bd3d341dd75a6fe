package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
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

// maxOutput bounds a text of a test case in bytes. GitLab takes files below 30 MB (Unit
// test reports, docs.gitlab.com), and a rule may have two texts.
const maxOutput = 200 << 10

// caseText joins texts up to maxOutput, and adds how many are left out.
func caseText(texts []string) string {
	var b strings.Builder
	for i, text := range texts {
		if b.Len() >= maxOutput {
			fmt.Fprintf(&b, "\nand %d more\n", len(texts)-i)
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// JUnit prints a result as JUnit XML: each rule is a test case. It fails if the rule is
// undecided or has findings of Options.FailOn or worse; milder and waived findings are the
// output of the case. Viewers refuse elements of many megabytes, so each text is cut after
// maxOutput bytes.
func JUnit(w io.Writer, r *verify.Result, opt Options) error {
	suite := junitSuite{Name: opt.subject()}
	names := text.Each(opt.rules(), func(rule verify.Rule) string { return rule.Name })
	for _, u := range r.Undecided {
		if !slices.Contains(names, u.Rule) {
			names = append(names, u.Rule)
		}
	}
	for _, name := range names {
		c := junitCase{Class: "ibweave", Name: name}
		var failed, mild []string
		first := ""
		add := func(fails bool, message, text string) {
			if fails {
				first, failed = cmp.Or(first, message), append(failed, text)
			} else {
				mild = append(mild, text)
			}
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
			c.Failure = &junitFailure{Message: first, Type: name, Text: caseText(failed)}
		}
		c.Output = caseText(mild)
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
