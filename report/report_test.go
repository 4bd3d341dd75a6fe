package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// sample has a finding of each severity, with and without a witness.
func sample() *verify.Result {
	r := &verify.Result{
		Fabric:      verify.FabricCounts{Switches: 1620, CAPorts: 1, Links: 2, MaxLID: 7},
		Unicast:     verify.UnicastCounts{Pairs: 338142, Unreachable: 2, Loops: 100, NonMinimal: 1, HopHistogram: verify.Histogram{0, 38040, 300000}, MaxHops: 2},
		Management:  verify.ManagementCounts{Pairs: 9, CreditLoops: 1},
		CreditLoops: verify.CreditLoopCounts{Count: 1, VLs: 1, Cycles: [][]verify.Hop{}, Channels: 4, Dependencies: 1},
		Balance:     verify.BalanceCounts{MaxRoutes: 12, MeanRoutes: 3.25, MaxLink: &verify.Hop{Switch: 0x10, Name: fabric.Name{Text: "leaf <1>"}, Port: 3}},
	}
	hops := []verify.Hop{{Switch: 0x10, Name: fabric.Name{Text: "leaf <1>"}, Port: 3, LID: 5}, {Switch: 0x11, Name: fabric.Name{Text: "b"}, Port: 12}}
	r.Add(
		verify.Finding{Rule: verify.NonMinimal, Severity: verify.Note, Message: "1 pair", Count: 1},
		verify.Finding{Rule: verify.CreditLoop, Severity: verify.Error, Message: `2 channels: "leaf <1>"[3] -> "b"[12]`, Count: 2, Witness: hops},
		verify.Finding{Rule: verify.EmptyTable, Severity: verify.Warning, Message: "no entries", Switch: 0x11, Count: 1},
		verify.Finding{Rule: verify.UnicastUnreachable, Severity: verify.Error, Message: "LID 5 & more", LID: 5, Count: 2},
	)
	return r
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	short.Check(t, Text(&b, sample(), Options{Certificate: "proof"}))
	want := `fabric       1,620 switches, 1 CA port, 2 links, LIDs up to 7

error: unicast-unreachable: LID 5 & more

error: credit-loop: 2 channels
    "leaf <1>"[3]  0x0000000000000010 port 3 VL 0  to LID 5
    "b"[12]        0x0000000000000011 port 12 VL 0

warning: empty-table: no entries

unicast      338,142 pairs of a CA port and a LID: 2 unreachable, 100 looping, 1 longer than the shortest path
hops         1 switch           38,040 pairs  11.3 %
             2 switches        300,000 pairs  88.7 %
balance      12 routes on the most loaded link, "leaf <1>"[3], and 3.2 on average
credit loops 1 on 1 VL; 1 dependency between 4 channels
management   9 pairs with a switch: 0 unreachable, 0 looping, 1 credit loop with CA traffic
certificate  proof holds

note: non-minimal: 1 pair

verdict      errors (2 errors, 1 warning, 1 note)
`
	short.Diff(t, b.String(), want)
	r := sample()
	r.Add(verify.Finding{Rule: verify.CertificateRule, Severity: verify.Error, Message: "bad", Count: 1})
	b.Reset()
	short.Check(t, Text(&b, r, Options{Certificate: "proof"}))
	short.Contains(t, b.String(), "certificate  proof does not hold\n", "a certificate that does not hold", &b)
}

// The JSON form is the result, whole: it reads back as it was.
func TestJSON(t *testing.T) {
	var b, again bytes.Buffer
	short.Check(t, formOf(t, "json").Write(&b, sample(), Options{}))
	var r verify.Result
	short.Check(t, json.Unmarshal(b.Bytes(), &r))
	short.Check(t, JSON(&again, &r))
	short.Diff(t, again.String(), b.String())
}

// What SARIF 2.1.0 wants of a log: references that resolve, levels and rule
// indices that agree, URIs that are escaped.
func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	r := sample()
	short.Check(t, SARIF(&b, r, Options{Version: "1.2.3", Topology: "a b.txt", Tables: "/var/log/lfts"}))
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct{ ID string }
				}
			}
			Artifacts []struct{ Location struct{ URI string } }
			Results   []struct {
				RuleID, Level string
				RuleIndex     int
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
					LogicalLocations []struct{ FullyQualifiedName string }
				}
				CodeFlows []struct {
					ThreadFlows []struct {
						Locations []struct {
							Location struct{ Message struct{ Text string } }
						}
					}
				}
				PartialFingerprints map[string]string
			}
		}
	}
	short.Check(t, json.Unmarshal(b.Bytes(), &log))
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-2.1.0.json") || len(log.Runs) != 1 {
		t.Fatalf("version %q, schema %q, %d runs", log.Version, log.Schema, len(log.Runs))
	}
	run := log.Runs[0]
	if d := run.Tool.Driver; d.Name != "ibweave" || d.Version != "1.2.3" || len(d.Rules) != len(verify.Rules) {
		t.Errorf("driver %q %q with %d rules", d.Name, d.Version, len(d.Rules))
	}
	short.Equal(t, run.Artifacts[0].Location.URI, "a%20b.txt", "the topology's URI")
	seen := map[string]bool{}
	for i, result := range run.Results {
		f := r.Findings[i]
		if result.RuleID != f.Rule || run.Tool.Driver.Rules[result.RuleIndex].ID != f.Rule || result.Level != f.Severity.String() || result.Message.Text != f.Message {
			t.Errorf("result %d is %+v, of finding %+v", i, result, f)
		}
		short.Equal(t, result.Locations[0].PhysicalLocation.ArtifactLocation.URI, "file:///var/log/lfts", "result", i, "is located")
		if logical := result.Locations[0].LogicalLocations; (f.Switch != 0) != (len(logical) == 1 && logical[0].FullyQualifiedName == f.Switch.String()) {
			t.Errorf("result %d has logical locations %v, the finding switch %s", i, logical, f.Switch)
		}
		if (len(f.Witness) > 0) != (len(result.CodeFlows) == 1) {
			t.Fatalf("result %d has %d code flows, the witness %d channels", i, len(result.CodeFlows), len(f.Witness))
		}
		if len(f.Witness) > 0 {
			steps := result.CodeFlows[0].ThreadFlows[0].Locations
			if len(steps) != len(f.Witness) || steps[0].Location.Message.Text != `"leaf <1>"[3] port 3 VL 0, to LID 5` {
				t.Errorf("result %d has steps %+v", i, steps)
			}
		}
		fingerprint := result.PartialFingerprints["finding/v1"]
		if len(fingerprint) != 16 || seen[fingerprint] {
			t.Errorf("result %d has fingerprint %q", i, fingerprint)
		}
		seen[fingerprint] = true
	}
	short.Equal(t, len(run.Results), len(r.Findings), "results")
}

func TestJUnit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		opt      Options
		failures int
	}{
		{"errors", Options{FailOn: verify.Error}, 2},
		{"warnings", Options{FailOn: verify.Warning}, 3},
		{"notes", Options{FailOn: verify.Note}, 4},
		{"never", Options{Never: true}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			tc.opt.Tables = "lfts"
			short.Check(t, JUnit(&b, sample(), tc.opt))
			var s junitSuites
			short.Check(t, xml.Unmarshal(b.Bytes(), &s))
			if s.Failures != tc.failures || s.Tests != len(verify.Rules) || len(s.Suites) != 1 || s.Suites[0].Name != "lfts" {
				t.Errorf("%d failures of %d in %d suites, want %d of %d", s.Failures, s.Tests, len(s.Suites), tc.failures, len(verify.Rules))
			}
			failed, mild := 0, 0
			for _, c := range s.Suites[0].Cases {
				if c.Failure != nil {
					failed++
				}
				if c.Output != "" {
					mild++
				}
			}
			if failed != tc.failures || failed+mild != 4 {
				t.Errorf("%d cases failed and %d have output, want %d and %d", failed, mild, tc.failures, 4-tc.failures)
			}
		})
	}
}

// formOf finds a form.
func formOf(t *testing.T, name string) *Form {
	t.Helper()
	f, err := FormByName(name)
	if err != nil || f.Name != name {
		t.Fatalf("form %s: %v, %v", name, f, err)
	}
	return f
}

func TestForms(t *testing.T) {
	if _, err := FormByName("html"); err == nil || err.Error() != `format "html": want one of text, json, sarif, junit, markdown, prometheus` {
		t.Errorf("got %v", err)
	}
}

// In Markdown what a fabric says is text: it becomes no table, link, mention or HTML,
// and the document stays within its size.
func TestMarkdown(t *testing.T) {
	r := &verify.Result{Verdict: "errors"}
	bad := "a|b `c` <img src=x> [d](http://e) @f\n## g ```"
	for range 3000 {
		r.Findings = append(r.Findings, verify.Finding{Rule: verify.CreditLoop, Severity: verify.Error, Message: strings.Repeat("\xc3\xa9", 600) + bad})
	}
	r.Findings[0].Message = bad
	r.Findings[1].Waiver = &verify.Waiver{Until: "2030-01-01", Reason: "known | so"}
	var b strings.Builder
	short.Check(t, Markdown(&b, r, Options{Tables: "x```y", FailOn: verify.Error}))
	text := b.String()
	if len(text) > 600<<10 || !utf8.ValidString(text) {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{
		"fails\n", "3,000 findings, of which 2,999 fail and 1 waived.",
		"| error | `credit-loop` | a&#124;b &#96;c&#96; &lt;img src=x&gt; &#91;d&#93;(http://e) &#64;f &#35;&#35; g &#96;&#96;&#96; |\n",
		"| waived error | ", "known &#124; so", " causes are left out", " ... |\n",
	} {
		short.Contains(t, text, want, "no")
	}
	short.Equal(t, strings.Count(text, "```"), 2)
}

// Every form says what is undecided, and fails unless nothing is to fail. The verdict is
// the worst of findings and what is undecided.
func TestUndecided(t *testing.T) {
	r := &verify.Result{}
	r.Add(verify.Finding{Rule: verify.EmptyTable, Severity: verify.Warning, Message: "no entries", Count: 1})
	if r.Verdict != verify.VerdictWarnings || r.Undecided == nil || r.Fails(verify.Error) {
		t.Errorf("without anything undecided: %+v", r)
	}
	rows := verify.Undecided{Rule: verify.CreditLoop, Reason: "rows | are missing"}
	r.Leave(verify.Undecided{Rule: "of-elsewhere", Reason: "a file is cut short"}, rows, rows)
	if want := []verify.Undecided{rows, {Rule: "of-elsewhere", Reason: "a file is cut short"}}; !slices.Equal(r.Undecided, want) || r.Verdict != verify.VerdictUndecided {
		t.Errorf("%q, %+v, want %+v", r.Verdict, r.Undecided, want)
	}
	for _, tc := range []struct {
		form         string
		fails, never string // what comes with --fail-on error, and with never
	}{
		{"text", "\nundecided: rows | are missing\n    credit-loop\n\nundecided: a file is cut short\n    of-elsewhere\n\nunicast  ", "verdict      undecided (1 warning, 2 undecided)\n"},
		{"json", `"reason": "rows | are missing"`, `"verdict": "undecided"`},
		{"sarif", `"kind": "open",
          "level": "none",`, `"associatedRule": {
                "id": "of-elsewhere"`},
		{"junit", `failures="2"`, `failures="0"`},
		{"markdown", "lfts is undecided, and so fails\n", "| undecided | `credit-loop` | rows &#124; are missing |"},
	} {
		for _, opt := range []Options{{FailOn: verify.Error}, {Never: true}} {
			opt.Tables = "lfts"
			if opt.Fails(r) == opt.Never {
				t.Errorf("%+v: fails: %v", opt, !opt.Never)
			}
			want := tc.fails
			if opt.Never {
				want = tc.never
			}
			var b strings.Builder
			short.Check(t, formOf(t, tc.form).Write(&b, r, opt))
			if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "of-elsewhere") {
				t.Errorf("form %s, %+v: no %q in\n%s", tc.form, opt, want, &b)
			}
		}
	}
	r.Add(verify.Finding{Rule: verify.CreditLoop, Severity: verify.Error, Message: "a cycle", Count: 2})
	short.Equal(t, r.Verdict, verify.VerdictErrors, "with an error")
}

// Figures of which a rule is undecided are at least so; of a compiled directory a clean verdict is about files; a hop
// without an entry has no port.
func TestWhatFiguresMean(t *testing.T) {
	text := func(r *verify.Result, opt Options) string {
		var b bytes.Buffer
		short.Check(t, Text(&b, r, opt))
		return b.String()
	}
	const least, files = "; at least, as a rule is undecided\n", "\nfiles        judged as they are; ibweave drift tells what switches have\n"
	rows := map[string]string{verify.Misdelivered: "unicast", verify.CreditLoop: "credit loops", verify.ManagementLoop: "management", verify.MulticastMissing: "multicast"}
	for rule, row := range rows {
		r := sample()
		r.Multicast.Groups = 1
		r.Leave(verify.Undecided{Rule: rule, Reason: "gone"})
		for line := range strings.Lines(text(r, Options{})) {
			head, _, _ := strings.Cut(line, "  ")
			if strings.HasPrefix(line, row) != strings.HasSuffix(line, least) && head != "" {
				t.Errorf("%s undecided: %q", rule, line)
			}
		}
	}
	for _, compiled := range []bool{false, true} {
		clean := &verify.Result{Verdict: verify.VerdictClean}
		if strings.Contains(text(clean, Options{Compiled: compiled}), files) != compiled || strings.Contains(text(sample(), Options{Compiled: compiled}), files) {
			t.Errorf("compiled %v:\n%s", compiled, text(clean, Options{Compiled: compiled}))
		}
	}
	var b bytes.Buffer
	WriteFinding(&b, &verify.Finding{Rule: verify.UnicastUnreachable, Severity: verify.Error, Message: "lost", Witness: []verify.Hop{{Switch: 1, Name: fabric.Name{Text: "leaf"}, Port: fabric.NoPath, LID: 5}}})
	short.Equal(t, b.String(), "\nerror: unicast-unreachable: lost\n    \"leaf\", no port  0x0000000000000001  to LID 5\n")
}

// Text and Markdown name the first switches of a cause and say how many more there are, and with Verbose all of them; so does JSON.
func TestSwitchesOfCauses(t *testing.T) {
	r := sample()
	var all []verify.SwitchRef
	for i := range 10 {
		all = append(all, verify.SwitchRef{Switch: fabric.GUID(i + 1), Name: fabric.Name{Text: string(rune('a' + i))}})
	}
	r.Causes = []verify.Cause{{Rule: verify.UnicastUnreachable, Severity: verify.Error, Text: "10 switches", Findings: []int{0}, Switches: all}}
	for verbose, want := range map[bool]string{
		false: `at "a", "b", "c", "d", "e", "f", "g", "h" and 2 more, which -v lists`,
		true:  `at "a", "b", "c", "d", "e", "f", "g", "h", "i" and "j"`,
	} {
		for _, write := range []func(io.Writer, *verify.Result, Options) error{Text, Markdown} {
			var b bytes.Buffer
			short.Check(t, write(&b, r, Options{Verbose: verbose}))
			short.Contains(t, b.String(), want, "verbose", verbose)
		}
	}
}
