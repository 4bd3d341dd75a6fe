package report

import (
	"encoding/xml"
	"fmt"
	"io"
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
		Output  *junitOutput  `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitOutput struct {
		Text string `xml:",chardata"`
	}
)

// JUnit prints a result as JUnit XML: each rule is a test case, which fails if
// the rule has findings that Options.FailOn asks for. Milder findings are the
// case's output.
func JUnit(w io.Writer, r *verify.Result, opt Options) error {
	suite := junitSuite{Name: opt.Tables}
	for _, rule := range verify.Rules {
		c := junitCase{Class: "ibweave", Name: rule.Name}
		var failed, mild strings.Builder
		first := ""
		for i := range r.Findings {
			f := &r.Findings[i]
			switch {
			case f.Rule != rule.Name:
			case opt.fails(f.Severity):
				if first == "" {
					first = f.Message
				}
				WriteFinding(&failed, f)
			default:
				WriteFinding(&mild, f)
			}
		}
		if first != "" {
			suite.Failures++
			c.Failure = &junitFailure{Message: first, Type: rule.Name, Text: failed.String()}
		}
		if mild.Len() > 0 {
			c.Output = &junitOutput{mild.String()}
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
