package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/internal/short"
)

// audited runs check on many fabrics and tables, sound ones and broken ones, and gives
// what it prints in a form.
func audited(t *testing.T, form string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ibweave := func(want int, args ...string) []byte {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(args, strings.NewReader(""), &out, &errs); got != want {
			t.Fatalf("%v: exit status %d, want %d: %s", args, got, want, &errs)
		}
		return out.Bytes()
	}
	write := func(name, text string) string {
		t.Helper()
		short.Check(t, os.WriteFile(at(name), []byte(text), 0o666))
		return at(name)
	}
	read := func(name string) string {
		t.Helper()
		data := short.Must(os.ReadFile(name))(t)
		return string(data)
	}
	ibweave(0, "gen", "fattree", "--radix", "8", "-o", at("tree"))
	ibweave(0, "gen", "fattree", "--radix", "8", "--drop-links", "3", "-o", at("worn"))
	ibweave(0, "gen", "torus", "--dims", "5x5", "-o", at("torus"))
	ibweave(0, "compile", "-t", at("worn"), "-e", "updn", "-o", at("updn"))
	ibweave(0, "compile", "-t", at("torus"), "-e", "minhop", "-o", at("loop"))
	broken := write("broken.lfts", regexp.MustCompile(`(?m)^0x0020 \d+`).ReplaceAllString(read(at("updn/opensm-lfts.dump")), "0x0020 000"))
	hostless := write("hostless", withoutNode(read(at("updn/fabric.ibnetdiscover")), 0x100000))
	slow := write("slow", strings.Replace(read(at("updn/fabric.ibnetdiscover")), "4xQDR", "1xSDR", 2))
	pol := write("policy.yaml", `topology: {expected: tree}
links: {width: 4, hosts: {speed: QDR}}
routing: {max-hops: 1, max-imbalance: 1, require: [minimal, updown, xy]}
severities: {non-minimal: warning}
waivers:
  - {rule: missing-cable, until: 2030-06-01, reason: being cabled}
  - {rule: host-on-spine, until: 2020-06-01, reason: long ago}
`)
	moved := write("plan.csv", strings.Replace(string(ibweave(0, "plan", at("tree"), "--format", "csv")), "leaf 0,Port 1\n", "leaf 0,Port 2\n", 1))
	moved = write("moved.csv", strings.NewReplacer("host 1 leaf 0,Port 1,leaf 0,Port 2", "somebody,Port 1,leaf 9,Port 3", "host 3 leaf 0,Port 1,leaf 0,Port 4\n", "").Replace(read(moved)))
	all := map[string][]byte{}
	for name, args := range map[string][]string{
		"clean":    {at("updn")},
		"loop":     {at("loop")},
		"broken":   {"-t", at("updn/fabric.ibnetdiscover"), "--lfts", broken},
		"wiring":   {"-t", slow, "--wiring"},
		"policy":   {at("updn"), "--policy", pol, "--date", "2029-01-01"},
		"plan":     {"-t", at("worn"), "--plan", moved},
		"unlooped": {at("loop"), "--wiring"},
		"cut":      {"-t", hostless, "--lfts", at("updn/opensm-lfts.dump")},
	} {
		all[name] = ibweave(0, append([]string{"check", "--fail-on", "never", "--format", form}, args...)...)
	}
	return all
}

// The JSON document is what docs/schemas/check.schema.json says, and no member of it is
// unknown there where it says that there are no others.
func TestJSONSchema(t *testing.T) {
	s := schemaOf(t, "check")
	findings := map[string]bool{}
	for name, text := range audited(t, "json") {
		doc := short.Must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var d struct {
			Findings []struct{ Rule string }
			Verdict  string
		}
		short.Check(t, json.Unmarshal(text, &d))
		if name == "cut" && d.Verdict != "undecided" {
			t.Errorf("without a host that the tables refer to the verdict is %s", d.Verdict)
		}
		for _, f := range d.Findings {
			findings[f.Rule] = true
		}
		// The schema is not one that takes anything.
		bad := short.Must(jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(text), `"verdict": "`, `"verdict": "x`, 1))))(t)
		if s.Validate(bad) == nil {
			t.Errorf("%s: the schema takes an unknown verdict", name)
		}
	}
	for _, rule := range []string{"missing-cable", "link-degraded", "credit-loop", "unicast-unreachable", "not-xy", "hops-above-limit", "waiver-expired"} {
		if !findings[rule] {
			t.Errorf("no document has a finding of %s", rule)
		}
	}
}

// SARIF logs are valid by the schema of OASIS, and keep what GitHub's code scanning
// documents beyond it.
func TestSARIFSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s := c.MustCompile("../../report/testdata/sarif-schema-2.1.0.json")
	for name, text := range audited(t, "sarif") {
		doc := short.Must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var log struct {
			Runs []struct {
				Tool struct {
					Driver struct {
						Rules []struct {
							ID               string
							ShortDescription struct{ Text string }
							FullDescription  struct{ Text string }
							Help             struct{ Text string }
						}
					}
				}
				Results []struct {
					RuleID, Level string
					Locations     []struct {
						PhysicalLocation struct {
							ArtifactLocation struct{ URI string }
							Region           struct{ StartLine int }
						}
					}
					PartialFingerprints map[string]string
					Suppressions        []struct{ Kind string }
				}
			}
		}
		short.Check(t, json.Unmarshal(text, &log))
		rules := map[string]bool{}
		for _, r := range log.Runs[0].Tool.Driver.Rules {
			rules[r.ID] = true
			if n, m := len(r.ShortDescription.Text), len(r.FullDescription.Text); n == 0 || n > 1024 || m == 0 || m > 1024 || r.Help.Text == "" {
				t.Errorf("%s: rule %s has descriptions of %d and %d bytes, help %q", name, r.ID, n, m, r.Help.Text)
			}
		}
		seen := map[string]bool{}
		suppressed := 0
		for i, r := range log.Runs[0].Results {
			if !rules[r.RuleID] || len(r.Locations) != 1 || r.Locations[0].PhysicalLocation.Region.StartLine < 1 || r.Locations[0].PhysicalLocation.ArtifactLocation.URI == "" {
				t.Errorf("%s: result %d is %+v", name, i, r)
			}
			hash := r.PartialFingerprints["primaryLocationLineHash"]
			if hash != r.PartialFingerprints["finding/v2"]+":1" || seen[hash] {
				t.Errorf("%s: result %d has fingerprints %v", name, i, r.PartialFingerprints)
			}
			seen[hash] = true
			if len(r.Suppressions) > 0 {
				suppressed++
			}
		}
		if name == "policy" && suppressed == 0 {
			t.Error("nothing is waived in the log of the policy")
		}
	}
}

// JUnit suites have each rule that was checked, once.
func TestJUnitCases(t *testing.T) {
	for name, text := range audited(t, "junit") {
		var s struct {
			Tests int `xml:"tests,attr"`
			Suite struct {
				Cases []struct {
					Name string `xml:"name,attr"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		short.Check(t, xml.Unmarshal(text, &s))
		seen := map[string]bool{}
		for _, c := range s.Suite.Cases {
			if _, ok := policy.RuleByName(c.Name); !ok || seen[c.Name] {
				t.Errorf("%s: case %q is no rule, or comes twice", name, c.Name)
			}
			seen[c.Name] = true
		}
		if s.Tests != len(seen) || seen["credit-loop"] == (name == "wiring" || name == "plan") || seen["missing-cable"] == (name == "clean" || name == "loop" || name == "broken" || name == "cut") || seen["waiver-expired"] != (name == "policy") {
			t.Errorf("%s: %d cases: %v", name, s.Tests, seen)
		}
	}
}

// Every rule of every check explains itself.
func TestExplain(t *testing.T) {
	for _, r := range policy.AllRules() {
		var out, errs bytes.Buffer
		if got := run([]string{"check", "--explain", r.Name}, strings.NewReader(""), &out, &errs); got != exitClean {
			t.Fatalf("--explain %s: exit status %d, %s", r.Name, got, &errs)
		}
		if text := out.String(); !strings.HasPrefix(text, r.Name+" ("+r.Severity.String()+"): "+r.Summary) || len(r.Explain) < 50 || !strings.Contains(text, r.Explain[:50]) {
			t.Errorf("--explain %s:\n%s", r.Name, text)
		}
	}
}

// TestGroupSchema has every list of groups in every document that has some.
func TestGroupSchema(t *testing.T) {
	short.NeedPrograms(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const fabric = "../../examples/drain/fabric.ibnetdiscover"
	racks := at("racks.yaml")
	short.Check(t, os.WriteFile(racks, []byte("rack: {r1: 'node[0001-0012]', r2: 'node[0013-0024,0099]'}\nrow: re:^node00(\\d)\n"), 0o666))
	for name, args := range map[string][]string{"old": nil, "new": {"--without", "spine00", "--without", "node0013"}} {
		if out, err := exec.Command(program, append([]string{"compile", "-t", fabric, "-e", "updn", "-o", at(name)}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	states, losses := schemaOf(t, "host-groups"), schemaOf(t, "host-groups#/$defs/losses")
	for name, args := range map[string][]string{
		"check":   {"check", "-t", at("new/fabric.ibnetdiscover"), "--lfts", at("old/opensm-lfts.dump"), "--fail-on", "never"},
		"wiring":  {"check", "-t", at("new/fabric.ibnetdiscover"), "--wiring"},
		"compare": {"compare", "-t", fabric, "-e", "updn,minhop", "--bisections", "0"},
		"diff":    {"diff", at("old"), at("new"), "--fail-on", "never"},
		"drain":   {"drain", at("old"), "--host-group", "r1"},
		"whatif":  {"whatif", "-t", fabric, "-e", "updn", "--fail", "switches"},
	} {
		out, err := exec.Command(program, append(args, "--host-groups", racks, "--format", "json")...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		doc := short.Must(jsonschema.UnmarshalJSON(bytes.NewReader(out)))(t)
		found := 0
		var find func(v any, of *jsonschema.Schema)
		find = func(v any, of *jsonschema.Schema) {
			switch v := v.(type) {
			case map[string]any:
				for key, x := range v {
					switch {
					case key == "host_groups":
						found++
						if err := of.Validate(x); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					case key == "cases":
						find(x, losses)
					default:
						find(x, of)
					}
				}
			case []any:
				for _, x := range v {
					find(x, of)
				}
			}
		}
		find(doc, states)
		if want := map[string]int{"check": 1, "wiring": 1, "compare": 2, "diff": 2, "drain": 2, "whatif": 10}[name]; found != want {
			t.Errorf("%s has %d lists of groups, want %d", name, found, want)
		}
	}
}

// TestListProblems: few lines are all printed, many are cut, and none where
// input was left out.
func TestListProblems(t *testing.T) {
	for _, test := range []struct {
		n     int
		all   bool
		lines int
		last  string
	}{
		{0, false, 0, ""},
		{11, false, 11, "problem 10"},
		{12, false, 11, "and 2 more of these"},
		{12, true, 12, "problem 11"},
	} {
		var out bytes.Buffer
		a := &app{stderr: &out}
		a.listProblems(test.n, test.all, func(i int) string { return fmt.Sprint("problem ", i) })
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		if len(lines) != test.lines || test.lines > 0 && lines[len(lines)-1] != test.last {
			t.Errorf("%d problems, all %t: %q; want %d lines, the last %q", test.n, test.all, lines, test.lines, test.last)
		}
	}
}
