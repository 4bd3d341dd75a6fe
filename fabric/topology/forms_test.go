package topology

import (
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
const awkward = `vendid=0x2c9
devid=0xc738
sysimgguid=0x2c90000000000
switchguid=0x2c90000000001(2c90000000001)
Switch	12 "S-0002c90000000001"		# "MF0;leaf 1, rack #7:MQM9700\U1" enhanced port 0 lid 1 lmc 0
[1]	"S-0002c90000000002"[1]		# "x" lid 8 4xHDR
[2]	"S-0002c90000000002"[2]		# "x" lid 8 4xEDR
[3]	"S-0002c90000000001"[4]
[4]	"S-0002c90000000001"[3]
[5]	"H-0000000000000100"[1](101) 	# "h" lid 4 4xFDR
[6]	"H-0000000000000200"[1](201)
[7]	"R-0000000000000400"[2](402)
[8]	"H-0000000000000300"[2](302)  w=1
[12]	"S-0002c90000000003"[1]		w=8 s=4

vendid=0x8f1
devid=0x5a06
switchguid=0x2c90000000002(2c90000000002)
Switch	8 "S-0002c90000000002" # sw [2] (Could be " x' _ 'y lid 8 lmc 3
[1]	"S-0002c90000000001"[1]		# "x" lid 8 4xHDR
[2]	"S-0002c90000000001"[2]		# "x" lid 8 4xEDR
[8]	"H-0000000000000200"[2](202)

vendid=0x8f1
devid=0x5a06
switchguid=0x2c90000000003(2c90000000003)
Switch	3 "S-0002c90000000003" # twin" 5 1[  ] ==( down:	tab lid 16 lmc 0
[1]	"S-0002c90000000001"[12] w=8 s=4
[2]	"H-0000000000000500"[1](501)
[3]	"H-0000000000000600"[1](601)

caguid=0x100
Ca	1 "H-0000000000000100"		# "host 1 mlx5_0"
[1](101) 	"S-0002c90000000001"[5]		# lid 4 lmc 0 "leaf 1" lid 1 4xFDR

caguid=0x200
Ca	2 "H-0000000000000200"		# "host 2 ==> HCA-1"
[1](201) 	"S-0002c90000000001"[6]		# lid 128 lmc 7 "leaf 1" lid 1 4xQDR
[2](202) 	"S-0002c90000000002"[8]		# lid 40 lmc 2 "leaf 1" lid 1 4xQDR

caguid=0x300
Ca	2 "H-0000000000000300"		# host "3" (b) lid 3
[2](302) 	"S-0002c90000000001"[8]		# lid 5 lmc 0 "leaf 1" lid 1 4xQDR

caguid=0x500
Ca	1 "H-0000000000000500"		# "twin"
[1](501) 	"S-0002c90000000003"[2]		# lid 6 lmc 0 "leaf 1" lid 1 4xQDR

caguid=0x600
Ca	1 "H-0000000000000600"		# "twin"
[1](601) 	"S-0002c90000000003"[3]		# lid 7 lmc 0 "leaf 1" lid 1 4xQDR

devid=0xc738
rtguid=0x400
Rt	2 "R-0000000000000400"		# "router"
[2](402) 	"S-0002c90000000001"[7]		# lid 0 lmc 0 "leaf 1" lid 1 4xSDR
`

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
