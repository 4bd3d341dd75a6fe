package topology

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// awkward is a fabric whose names look like parts of the forms: quotes, brackets, marks of
// links and notes, a tab, a name that two nodes have. It has LMCs, a router, ports that are
// down, a cable from a switch to itself, parallel cables and several widths and speeds.
// ibsim takes quotes in descriptions that have none around them.
//
//go:embed testdata/awkward.ibnetdiscover
var awkward string

// Every form that the real programs print on ibsim is the fabric of ibnetdiscover's own
// text, as far as the form has it; and what ibweave writes has the lines of the programs.
func TestIbsimForms(t *testing.T) {
	run := simulate(t, awkward)
	f, problems, err := Parse("plain", []byte(run("ibnetdiscover")), Options{})
	if err != nil || len(withoutZero(problems)) > 0 {
		t.Fatal(err, problems)
	}
	want := tell(listed(t, f))
	state := regexp.MustCompile(`Initialize/`)
	notes := regexp.MustCompile(`" \([^"]*\)$`)
	down := regexp.MustCompile(`4x SDR {10,}`)
	for _, form := range []struct {
		name    string
		program string
		args    []string
		want    string
		form    Form
		written []byte
	}{
		{"awkward-ports", "ibnetdiscover", []string{"-p"}, want, PortList, AppendPortList(nil, f)},
		{"awkward-info", "iblinkinfo", nil, want, LinkInfo, AppendLinkInfo(nil, f, false)},
		{"awkward-settings", "iblinkinfo", []string{"-p"}, want, LinkInfo, nil},
		{"awkward-lines", "iblinkinfo", []string{"-l"}, strings.ReplaceAll(want, "Router", "Channel Adapter"), LinkInfo, AppendLinkInfo(nil, f, true)},
	} {
		t.Run(form.name, func(t *testing.T) {
			printed := run(form.program, form.args...)
			golden(t, form.name, strings.Join(append([]string{form.program}, form.args...), " ")+" of infiniband-diags 44 on ibsim 0.10, which simulates the fabric of forms_test.go", printed)
			short.Equal(t, Recognize([]byte(printed)), form.form, "form")
			got, problems, err := Parse("printed", []byte(printed), Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if problems = withoutZero(problems); len(problems) != 0 {
				t.Error(list(problems))
			}
			short.Diff(t, tell(got), form.want)
			if form.written == nil {
				return
			}
			var lines []string
			for line := range strings.Lines(printed) {
				line = strings.TrimSuffix(line, "\n")
				if form.form == LinkInfo {
					line = notes.ReplaceAllString(state.ReplaceAllString(line, "Active/"), `" ( )`)
				}
				lines = append(lines, down.ReplaceAllStringFunc(line, func(s string) string { return "4x ???" + s[6:] }))
			}
			own := strings.Split(strings.TrimSuffix(string(form.written), "\n"), "\n")
			slices.Sort(lines)
			slices.Sort(own)
			short.Diff(t, own, lines, "(-printed +written)")
		})
	}
	for program, kind := range map[string]fabric.NodeType{"ibswitches": fabric.Switch, "ibhosts": fabric.CA, "ibrouters": fabric.Router, "ibnodes": 0} {
		t.Run(program, func(t *testing.T) {
			printed := run(program)
			golden(t, "awkward-"+program, program+" of infiniband-diags 44 on ibsim 0.10, which simulates the fabric of forms_test.go", printed)
			names, problems, err := ParseNames("printed", []byte(printed))
			if err != nil || len(problems) > 0 {
				t.Fatal(err, list(problems))
			}
			want := map[fabric.GUID]string{}
			for n := range fabric.NodeID(f.NumNodes()) {
				if x := f.Node(n); x.Type == kind || kind == 0 && x.Type != fabric.Router {
					want[x.GUID] = x.Description
				}
			}
			short.Diff(t, names, want)
			if _, _, err := Parse("printed", []byte(printed), Options{Lenient: true}); err == nil || !strings.Contains(err.Error(), "--node-name-map") {
				t.Errorf("as a topology: %v", err)
			}
		})
	}
}
