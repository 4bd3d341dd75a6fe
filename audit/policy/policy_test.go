package policy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/drift"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

//go:embed testdata/whole.yaml
var whole string

func TestParse(t *testing.T) {
	p := short.Must(Parse("policy.yaml", []byte(whole)))(t)
	if p.Meant == nil || p.Meant.Full.NumSwitches() != 12 || p.MayMiss != 2 || len(p.MissAt) != 3 {
		t.Errorf("topology: %+v", p)
	}
	if p.Between != (fabric.Link{Width: 4, Speed: fabric.NDR}) || p.Hosts != (fabric.Link{Width: 4, Speed: fabric.HDR}) {
		t.Errorf("links: %v, hosts %v", p.Between, p.Hosts)
	}
	if p.MaxHops != 3 || p.MaxImbalance != 1.5 || len(p.Require) != 3 || len(p.Roots) != 1 {
		t.Errorf("routing: %+v", p)
	}
	if p.Severities[cabling.PortDown] != verify.Clean || p.Severities[verify.NonMinimal] != verify.Error || len(p.Severities) != 2 {
		t.Errorf("severities: %v", p.Severities)
	}
	if len(p.Waivers) != 2 || p.Waivers[0].Reason != "RMA 4711" || p.Waivers[0].Line != 16 || p.Waivers[1].Fingerprint != "0123456789abcdef" || !p.Waivers[1].Until.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("waivers: %+v", p.Waivers)
	}
	for _, tc := range []struct {
		at         int
		guid       fabric.GUID
		name       string
		port       fabric.PortNum
		want, node bool
	}{
		{0, 1, "leaf 3", 7, true, false}, {0, 1, "leaf 3", 8, false, false}, {0, 1, "leaf 33", 7, false, false},
		{1, 0x200001, "x", 9, true, true}, {1, 0x200002, "0x200001", 9, false, false}, {2, 1, "spine 4", 1, true, true}, {2, 1, "a spine", 1, false, false},
	} {
		short.Equal(t, p.MissAt[tc.at].Has(tc.guid, tc.name, tc.port), tc.want, p.MissAt[tc.at].text, "has", tc.guid, tc.name, tc.port)
	}
}

// broken are texts that are no policy, with the line that is wrong and what the
// message says of it.
var broken = []struct {
	name, text string
	line       int
	say        string
}{
	{"empty", "", 0, "empty"},
	{"comment", "# nothing\n", 0, "empty"},
	{"list", "- a\n", 1, "want a mapping with kinds, links, routing, severities, topology, waivers"},
	{"unknown key", "links: {width: 4}\nlink: 4\n", 2, `unknown key "link"; want kinds, links, routing`},
	{"twice", "links: {width: 4}\nlinks: {width: 4}\n", 2, "line 1"},
	{"two documents", "links: {width: 4}\n---\nlinks: {}\n", 2, "one policy"},
	{"no YAML", "links: {width: 4\nrouting: ]\n", 0, "want YAML"},
	{"tab", "links:\n\twidth: 4\n", 2, "want YAML"},
	{"anchor", "links: &a {width: 4}\n", 1, "write the value out"},
	{"tag", "links: {width: !!str 4}\n", 1, "without it"},
	{"width", "links:\n  width: 3\n", 2, "1, 2, 4, 8 or 12"},
	{"speed", "links:\n  speed: fast\n", 2, "EDR, HDR"},
	{"both", "topology:\n  expected: a\n  generated: myrinet4\n", 3, "want one"},
	{"generator", "topology:\n  generated: fatree radix 8\n", 2, "want one of mesh, torus, hypercube, fattree, tree, director, myrinet4"},
	{"generator word", "topology:\n  generated: fattree radius 8\n", 2, "want radix, levels"},
	{"generator value", "topology:\n  generated: fattree radix\n", 2, "needs a value"},
	{"generator size", "topology:\n  generated: fattree radix 7\n", 2, "radix"},
	{"generator leaves", "topology:\n  generated: tree leaves 4,x\n", 2, "leaves \"4,x\": want numbers, with commas between them"},
	{"generator pods", "topology:\n  generated: tree pods 2 leaves 4,4,4\n", 2, "3 numbers of leaves for 2 pods: want 1"},
	{"generator value of none", "topology:\n  generated: tree rail-spines yes\n", 2, "want no value"},
	{"generator dims", "topology:\n  generated: mesh dims 4by4\n", 2, "like 16x16"},
	{"generator wrap", "topology:\n  generated: mesh dims 4x4 wrap z\n", 2, "dimensions of the 2-dimensional mesh"},
	{"missing", "topology:\n  allow-missing: {cables: -1}\n", 2, "from 0 to"},
	{"place", "topology:\n  allow-missing: {at: ['leaf[300]']}\n", 2, "want 1 to 254"},
	{"pattern", "topology:\n  allow-missing: {at: ['re:(']}\n", 2, "missing closing )"},
	{"hops", "routing: {max-hops: 0}\n", 1, "from 1 to 64"},
	{"imbalance", "routing: {max-imbalance: .nan}\n", 1, "from 1 to 1000000"},
	{"property", "routing:\n  require: [fast]\n", 2, "minimal, updown or xy"},
	{"root", "routing:\n  roots: ['leaf 0[1]']\n", 2, "want a switch"},
	{"rule", "severities:\n  creditloop: off\n", 2, "is no rule"},
	{"severity", "severities:\n  credit-loop: fatal\n", 2, "off, note, warning or error"},
	{"clean", "severities:\n  credit-loop: clean\n", 2, "off, note, warning or error"},
	{"waiver of all", "waivers:\n  - {until: 2026-01-01, reason: r}\n", 2, "want rule: or fingerprint:"},
	{"no end", "waivers:\n  - {rule: port-down, reason: r}\n", 2, "without an end"},
	{"no reason", "waivers:\n  - {rule: port-down, until: 2026-01-01}\n", 2, "without a reason"},
	{"blank reason", "waivers:\n  - {rule: port-down, until: 2026-01-01, reason: ' '}\n", 2, "want a reason"},
	{"day", "waivers:\n  - {rule: port-down, until: 2026-02-30, reason: r}\n", 2, "like 2026-12-31"},
	{"fingerprint", "waivers:\n  - {fingerprint: 12, until: 2026-02-03, reason: r}\n", 2, "16 hexadecimal digits"},
}

func TestParseErrors(t *testing.T) {
	for _, tc := range broken {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Parse("policy.yaml", []byte(tc.text))
			var at *fabric.ParseError
			if !errors.As(err, &at) || p != nil {
				t.Fatalf("%v, %v", p, err)
			}
			if at.File != "policy.yaml" || tc.line != 0 && at.Line != tc.line || !strings.Contains(err.Error(), tc.say) {
				t.Errorf("line %d, want %d and %q: %v", at.Line, tc.line, tc.say, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("kinds: [\"service=nvme*\", \"host=0x5\"]\n"))
	f.Add([]byte(whole))
	for _, tc := range broken {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "generated") {
			return // the generators have bounds of their own, which are large
		}
		p, err := Parse("f", data)
		var at *fabric.ParseError
		if err != nil && (p != nil || !errors.As(err, &at)) {
			t.Fatalf("%v, %v", p, err)
		}
	})
}

// route makes a fabric's LIDs and tables.
func route(t *testing.T, f *fabric.Fabric, e lft.Engine) (*fabric.Fabric, *lft.Tables, *verify.Result) {
	t.Helper()
	g := fabrictest.WithLIDs(t, f, 0)
	r := short.Must(e.Route(t.Context(), g, lft.Options{}))(t)
	return g, r.Tables, short.Must(verify.Check(t.Context(), &state.State{Fabric: g, Tables: r.Tables}, verify.Options{}))(t)
}

// Tables have the properties that their engines give them, and lack those that the
// fabric rules out.
func TestProperties(t *testing.T) {
	must := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		short.Check(t, err)
		return f
	}
	grid := must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))
	ring := must(mesh.Generate(mesh.Spec{Dims: []int{7}, Wrap: []bool{true}, Hosts: 1}))
	tree := must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	for _, tc := range []struct {
		name   string
		f      *fabric.Fabric
		e      lft.Engine
		roots  string
		broken []string // rules
	}{
		{"xy on a mesh", grid, mesh.XY{}, "", []string{NotUpDown}},
		{"updn on a mesh", grid, updown.Engine{}, "", []string{NotXY}},
		{"updn on a ring", ring, updown.Engine{}, "", []string{NotMinimal}},
		{"minhop on a ring", ring, lft.Minhop{}, "", []string{NotUpDown}},
		{"minhop on a tree", tree, lft.Minhop{}, "", []string{NotXY}},
		{"updn on a tree, from elsewhere", tree, updown.Engine{}, "spine 0", []string{NotUpDown, NotXY}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, tables, r := route(t, tc.f, tc.e)
			p := &Policy{Require: []string{Minimal, UpDown, XY}}
			if tc.roots != "" {
				p.Roots = []Place{{name: tc.roots, text: tc.roots}}
			}
			list := short.Must(p.Routing(context.Background(), f, tables, r))(t)
			var rules []string
			for _, x := range list {
				rules = append(rules, x.Rule)
				if x.Count > 0 && len(x.Witness) < 2 {
					t.Errorf("%s has the witness %v", x.Rule, x.Witness)
				}
			}
			short.Equal(t, strings.Join(rules, " "), strings.Join(tc.broken, " "), rules, "want", tc.broken, list)
		})
	}
	f, tables, r := route(t, tree, updown.Engine{})
	_, err := (&Policy{Require: []string{UpDown}, Roots: []Place{{name: "nosuch", text: "nosuch"}}}).Routing(context.Background(), f, tables, r)
	var root *RootError
	if !errors.As(err, &root) {
		t.Errorf("a root that is not there: %v", err)
	}
}

func TestLimits(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	f, tables, r := route(t, f, mesh.XY{})
	ratio := float64(r.Balance.MaxRoutes) / r.Balance.MeanRoutes
	for _, tc := range []struct {
		p    Policy
		want string
	}{
		{Policy{MaxHops: 7, MaxImbalance: ratio + 0.01}, ""},
		{Policy{MaxHops: 6}, HopsAboveLimit},
		{Policy{MaxImbalance: ratio - 0.01}, ImbalanceAboveLimit},
	} {
		list := short.Must(tc.p.Routing(context.Background(), f, tables, r))(t)
		switch {
		case len(list) == 0 && tc.want == "":
		case len(list) != 1 || list[0].Rule != tc.want:
			t.Errorf("%+v: %+v", tc.p, list)
		case tc.want == HopsAboveLimit && list[0].Count != r.Unicast.HopHistogram[7]:
			t.Errorf("%d pairs are too long, want %d", list[0].Count, r.Unicast.HopHistogram[7])
		}
	}
	list, err := (&Policy{MaxHops: 1, Require: []string{XY}}).Routing(context.Background(), f, nil, r)
	if err != nil || len(list) != 1 || list[0].Rule != RoutingUnchecked || list[0].Count != 2 {
		t.Errorf("without tables: %+v, %v", list, err)
	}
}

// TestAnyWaiverInForce excuses a finding that several waivers match, in any order of these, if
// one of them is in force, until the last day of those.
func TestAnyWaiverInForce(t *testing.T) {
	days := []string{"0001-01-01", "2025-12-31", "2026-01-01", "2026-06-01", "9999-12-31"}
	today := short.Must(time.Parse(time.DateOnly, "2026-01-01"))(t)
	f := fabrictest.FatTree(t, 6, 2)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		text := "waivers:\n"
		last := map[string]string{} // of those in force, by rule
		expired := 0
		for range 1 + r.IntN(5) {
			rule, day := []string{"missing-cable", "port-down"}[r.IntN(2)], days[r.IntN(len(days))]
			text += fmt.Sprintf("  - {rule: %s, until: %s, reason: r}\n", rule, day)
			if day < "2026-01-01" {
				expired++
			} else {
				last[rule] = max(last[rule], day)
			}
		}
		p := short.Must(Parse("p", []byte(text)))(t)
		result := &verify.Result{}
		for _, rule := range []string{"missing-cable", "port-down", "missing-cable"} {
			result.Findings = append(result.Findings, verify.Finding{Rule: rule, Severity: verify.Error, Count: 1})
		}
		p.Apply(result, f, today)
		for _, x := range result.Findings {
			until := ""
			if x.Waiver != nil {
				until = x.Waiver.Until
			}
			if x.Rule == WaiverExpired {
				expired--
			} else if until != last[x.Rule] {
				t.Errorf("seed %d: %s is excused until %q, want %q by\n%s", seed, x.Rule, until, last[x.Rule], text)
			}
		}
		short.Equal(t, expired, 0, "seed", seed, "more waivers expired than told in", text)
	}
}

// Apply: what is allowed, regraded, waived, and what the waivers themselves are.
func TestApply(t *testing.T) {
	f := fabrictest.FatTree(t, 6, 2)
	result := func() *verify.Result {
		r := verify.Unverified(f)
		leaf := func(port fabric.PortNum) []verify.Endpoint {
			return []verify.Endpoint{{Node: 0x200003, Name: fabric.Name{Text: "leaf 3"}, Port: port}}
		}
		r.Add(
			verify.Finding{Rule: cabling.MissingCable, Severity: verify.Error, Message: "a", Count: 2, Ports: leaf(7)},
			verify.Finding{Rule: cabling.MissingCable, Severity: verify.Error, Message: "b", Count: 1, Ports: leaf(8)},
			verify.Finding{Rule: cabling.PortDown, Severity: verify.Note, Message: "c", Count: 1, Ports: leaf(1)},
		)
		return r
	}
	day := func(s string) time.Time {
		return short.Must(time.Parse(time.DateOnly, s))(t)
	}
	own := result()
	(*Policy)(nil).Apply(own, f, day("2026-01-01"))
	var prints []string
	for _, x := range own.Findings {
		prints = append(prints, x.Fingerprint)
	}
	for _, tc := range []struct {
		name, policy, day, want, verdict string
	}{
		{"nothing", "links: {}", "2026-01-01", "error:a error:b note:c", verify.VerdictErrors},
		{"as many", "topology: {allow-missing: {cables: 3}}", "2026-01-01", "note:a note:b note:c", verify.VerdictClean},
		{"too many", "topology: {allow-missing: {cables: 2}}", "2026-01-01", "error:a error:b note:c", verify.VerdictErrors},
		{"one by name", "topology: {allow-missing: {cables: 1, at: ['leaf 3[7]']}}", "2026-01-01", "note:a note:b note:c", verify.VerdictClean},
		{"severities", "severities: {missing-cable: warning, port-down: off}", "2026-01-01", "warning:a warning:b", verify.VerdictWarnings},
		{"off and allowed", "topology: {allow-missing: {cables: 3}}\nseverities: {missing-cable: error}", "2026-01-01", "note:a note:b note:c", verify.VerdictClean},
		{"waived on its last day", "waivers: [{rule: missing-cable, until: 2026-01-01, reason: r}]", "2026-01-01", "note:c waived:a waived:b", verify.VerdictClean},
		{"expired", "waivers: [{rule: missing-cable, at: '0x200003[7]', until: 2026-01-01, reason: r}]", "2026-01-02", "error:a error:b warning:waiver-expired note:c", verify.VerdictErrors},
		{"expired on the first day of all", "waivers: [{rule: missing-cable, until: 0001-01-01, reason: r}]", "2026-01-02", "error:a error:b warning:waiver-expired note:c", verify.VerdictErrors},
		{"unused", "waivers: [{rule: moved-cable, until: 2026-01-01, reason: r}]", "2026-01-01", "error:a error:b note:c note:waiver-unused", verify.VerdictErrors},
		{"by place", "waivers: [{rule: missing-cable, at: 'leaf 3[8]', until: 2026-01-01, reason: r}]", "2026-01-01", "error:a note:c waived:b", verify.VerdictErrors},
		{"by fingerprint", "waivers: [{fingerprint: " + prints[0] + ", until: 2026-01-01, reason: r}]", "2026-01-01", "error:b note:c waived:a", verify.VerdictErrors},
		{"expired as an error", "severities: {waiver-expired: error, missing-cable: off}\nwaivers: [{rule: moved-cable, until: 2025-01-01, reason: r}]", "2026-01-01", "error:waiver-expired note:c", verify.VerdictErrors},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := short.Must(Parse("p", []byte(tc.policy)))(t)
			r := result()
			p.Apply(r, f, day(tc.day))
			var got []string
			for _, x := range r.Findings {
				s := x.Severity.String()
				if x.Waiver != nil {
					s = "waived"
				}
				name, _, _ := strings.Cut(x.Message, ";")
				if len(name) > 1 {
					name = x.Rule
				}
				got = append(got, s+":"+name)
				short.Equal(t, len(x.Fingerprint), 16, x.Message, "has fingerprint", x.Fingerprint)
			}
			if strings.Join(got, " ") != tc.want || r.Verdict != tc.verdict {
				t.Errorf("%s, %v, want %s, %s", r.Verdict, got, tc.verdict, tc.want)
			}
		})
	}
}

// Each line of gen's kinds makes a fabric.
func TestGenerate(t *testing.T) {
	for text, switches := range map[string]int{
		"fattree radix 8 levels 2": 12, "fattree --radix=4 --levels 3": 20, "mesh dims 4x5": 20, "mesh dims 4x5 wrap x hosts 2": 20,
		"mesh dims 3x3 wrap": 9, "torus dims 3x4x5": 60, "hypercube dim 4": 16, "shufflenet": 24, "shufflenet p 2 k 2": 8,
		"myrinet4": 4, "lattice switches 20 seed 7": 20, "banyan stages 3": 12, "banyan stages 3 wrap-around": 12,
		"irregular switches 10 degree 3 hosts 10": 10,
		"tree": 18, "tree pods 3 leaves 2,2,1 hosts 3 spines 2 cores 2 ports 8 groups 1": 13,
		"tree --pods=2 --leaves 2 --rails 4 --rail-spines --hosts 3 --spines 2 --cores 1 --ports 8": 34,
		"director line-chips 0 leaves 7 spine-chips 4 hosts 2 ports 8":                              11,
		"director directors 2 pods 3 leaves 4 line-chips 2 spine-chips 3 hosts 5 ports 12":          30,
	} {
		f := short.Must(Generate(text))(t)
		short.Equal(t, f.NumSwitches(), switches, text)
	}
	want := short.Must(gen.Lattice(20, 7))(t)
	for text, same := range map[string]bool{"lattice switches 20 seed 7": true, "lattice switches 20": false} {
		short.Equal(t, fabric.SameTopology(short.Must(Generate(text))(t), want), same, text, "or not of its seed")
	}
}

// What ParseRules has read of all rooms is whole: nothing is misspelt, lost or taken for another part.
func TestRules(t *testing.T) {
	name, head := regexp.MustCompile(`^[a-z0-9-]+$`), regexp.MustCompile(`(?m)^[a-z0-9-]+: \w+, [\w -]+$`)
	seen := map[string]bool{}
	for _, r := range append(AllRules(), drift.Rules...) {
		if !name.MatchString(r.Name) || seen[r.Name] || r.Severity < verify.Note || r.Severity > verify.Error || r.Count == "" || r.Summary == "" || r.Explain == "" || head.MatchString(r.Explain) {
			t.Errorf("rule %+v", r)
		}
		seen[r.Name] = true
	}
}
