package topology

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

var update = flag.Bool("update", false, "write testdata/*.golden from what the real ibnetdiscover prints")

var simulators atomic.Int32

// simulate starts the real ibsim with a text, and returns what runs a program, such as
// ibnetdiscover, against it.
func simulate(t *testing.T, text string) func(program string, args ...string) string {
	t.Helper()
	short.NeedPrograms(t)
	for _, program := range []string{"ibsim", "ibsim-run", "ibnetdiscover", "iblinkinfo", "ibswitches"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: this test needs ibsim and infiniband-diags (on Debian: apt-get install ibsim-utils infiniband-diags, and /usr/sbin in PATH)", err)
		}
	}
	file := filepath.Join(t.TempDir(), "net")
	short.Check(t, os.WriteFile(file, []byte(text), 0o666))
	env := append(os.Environ(), fmt.Sprintf("IBSIM_SOCKNAME=ibweave-topology-%d-%d", os.Getpid(), simulators.Add(1)))

	sim := exec.Command("ibsim", "-s", "-n", "-L", "49152", file)
	sim.Env = env
	var warnings bytes.Buffer
	sim.Stderr = &warnings
	out := short.Must(sim.StdoutPipe())(t)
	short.Check(t, sim.Start())
	ready := make(chan bool, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "Network simulator ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	t.Cleanup(func() {
		_ = sim.Process.Kill()
		<-done
		_ = sim.Wait()
	})
	if !<-ready {
		_ = sim.Wait()
		t.Fatalf("ibsim does not load this text:\n%s\n%s", warnings.String(), text)
	}
	return func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command("ibsim-run", append([]string{program, "-t", "10000"}, args...)...)
		cmd.Env, cmd.Dir = env, filepath.Dir(file) // umad2sim makes a folder where it runs
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, args, err, errs.String())
		}
		return string(out)
	}
}

// mixed is a fabric with one of each: parallel cables, a cable from a switch to
// itself, a CA with two ports on two switches, one whose second port only has a
// cable, a router, LMCs, ports without LIDs, all widths and speeds that ibsim
// knows (0.10 makes SDR of NDR), a switch of 254 ports. Port GUIDs are those
// that ibsim gives. The leaf is a SwitchX and the CA next to it a ConnectX-3,
// because ibnetdiscover asks only such devices whether they run at FDR10, and
// prints QDR for others.
func mixed(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	add := func(n fabric.Node, lid fabric.LID, lmc uint8) int {
		n.SystemGUID = n.GUID &^ 1
		i := short.Must(b.AddNode(n))(t)
		if n.Type == fabric.Switch {
			short.Check(t, b.SetPort(i, 0, 0, lid, lmc))
		}
		return i
	}
	leaf := add(fabric.Node{GUID: 0x0002c90000000001, Type: fabric.Switch, NumPorts: 12, EnhancedPort0: true, VendorID: 0x2c9, DeviceID: 0xc738, Description: `MF0;leaf 1, rack #7:MQM9700\U1`}, 1, 0)
	other := add(fabric.Node{GUID: 0x0002c90000000002, Type: fabric.Switch, NumPorts: 8, VendorID: 0x8f1, DeviceID: 0x5a06, Description: "leaf's \xe2\x84\x96 - 2"}, 8, 3)
	core := add(fabric.Node{GUID: 0xfffffffffffffff0, Type: fabric.Switch, NumPorts: 254, VendorID: 0xffffff, DeviceID: 0xffff, Description: "core"}, 0, 0)
	one := add(fabric.Node{GUID: 0x100, Type: fabric.CA, NumPorts: 1, VendorID: 0x2c9, DeviceID: 0x1021, Description: "host 1 mlx5_0"}, 0, 0)
	both := add(fabric.Node{GUID: 0x200, Type: fabric.CA, NumPorts: 2, VendorID: 0x2c9, DeviceID: 0x1003, Description: "host 2 HCA-1"}, 0, 0)
	second := add(fabric.Node{GUID: 0x300, Type: fabric.CA, NumPorts: 2, VendorID: 0x2c9, DeviceID: 0x1003, Description: "host 3 HCA-1"}, 0, 0)
	router := add(fabric.Node{GUID: 0x400, Type: fabric.Router, NumPorts: 2, VendorID: 0x2c9, DeviceID: 0xc738, Description: "router"}, 0, 0)

	short.Check(t, b.Connect(leaf, 1, core, 254, fabric.Link{Width: 4, Speed: fabric.HDR}))
	short.Check(t, b.Connect(leaf, 2, core, 253, fabric.Link{Width: 4, Speed: fabric.HDR}))
	short.Check(t, b.Connect(leaf, 3, other, 3, fabric.Link{Width: 12, Speed: fabric.QDR}))
	short.Check(t, b.Connect(leaf, 4, leaf, 12, fabric.Link{Width: 8, Speed: fabric.DDR}))
	short.Check(t, b.Connect(other, 1, core, 1, fabric.Link{Width: 2, Speed: fabric.EDR}))
	short.Check(t, b.Connect(one, 1, leaf, 5, fabric.Link{Width: 4, Speed: fabric.FDR}))
	short.Check(t, b.Connect(both, 1, leaf, 6, fabric.Link{Width: 4, Speed: fabric.FDR10}))
	short.Check(t, b.Connect(both, 2, other, 6, fabric.Link{Width: 1, Speed: fabric.SDR}))
	short.Check(t, b.Connect(second, 2, other, 7, fabric.Link{Width: 4, Speed: fabric.SDR}))
	short.Check(t, b.Connect(router, 2, leaf, 7, fabric.Link{Width: 4, Speed: fabric.SDR}))
	short.Check(t, b.SetPort(one, 1, 0, 49151, 0))
	short.Check(t, b.SetPort(both, 1, 0, 128, 7))
	short.Check(t, b.SetPort(both, 2, 0, 3, 0))
	// ibsim does not read the LIDs of routers (parse_port), so the router has
	// none.
	return short.Must(b.Build())(t)
}

// listed is what a port list can tell of a fabric.
func listed(t *testing.T, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for n := fabric.NodeID(0); int(n) < f.NumNodes(); n++ {
		m := f.Node(n)
		ports := m.NumPorts
		for ports > 1 && m.Type != fabric.Switch && f.Peer(f.Port(n, ports)) == fabric.NoPort {
			ports--
		}
		i := short.Must(b.AddNode(fabric.Node{GUID: m.GUID, Type: m.Type, NumPorts: ports, Description: m.Description}))(t)
		for p := fabric.PortNum(0); p <= ports; p++ {
			at := f.Port(n, p)
			if (p == 0) == (m.Type == fabric.Switch) && (p == 0 || f.Peer(at) != fabric.NoPort) {
				short.Check(t, b.SetPort(i, p, f.PortGUID(at), f.LID(at), 0))
			}
		}
	}
	for n := fabric.NodeID(0); int(n) < f.NumNodes(); n++ {
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			at := f.Port(n, p)
			if peer := f.Peer(at); peer > at {
				short.Check(t, b.Connect(int(n), p, int(f.Owner(peer)), f.Num(peer), f.Link(at)))
			}
		}
	}
	return short.Must(b.Build())(t)
}

// dated is the line of ibnetdiscover's output that differs from run to run.
var dated = regexp.MustCompile(`generated on .*\n`)

// golden compares what a real program printed with testdata/name.golden, whose
// first line says where it is from.
func golden(t *testing.T, name, source, printed string) {
	t.Helper()
	want := "# " + source + "\n" + dated.ReplaceAllString(printed, "generated on a day\n")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		short.Check(t, os.WriteFile(file, []byte(want), 0o666))
	}
	got := short.Must(os.ReadFile(file))(t)
	short.Diff(t, string(got), want, file, "is not what the program prints (-printed +file)")
}

// What Append writes loads into ibsim, and ibnetdiscover prints the same bytes
// in another order of nodes; every form that it prints is read back.
func TestIbsim(t *testing.T) {
	f := mixed(t)
	written := string(Append(nil, f))
	discover := simulate(t, written)
	// ibnetdiscover prints bytes beyond ASCII as blanks (clean_nodedesc).
	ascii := strings.NewReplacer("\xe2\x84\x96", "   ")

	for _, form := range []struct {
		name string
		args []string
		want string
	}{
		{"plain", nil, tell(f)},
		{"full", []string{"-f"}, tell(f)},
		{"grouped", []string{"-g"}, tell(f)},
		{"ports", []string{"-p"}, tell(listed(t, f))},
	} {
		t.Run(form.name, func(t *testing.T) {
			printed := discover("ibnetdiscover", form.args...)
			golden(t, form.name, strings.TrimSpace("ibnetdiscover "+strings.Join(form.args, " "))+" of infiniband-diags 44 on ibsim 0.10, which simulates the fabric of ibsim_test.go", printed)
			got, problems, err := Parse("printed", []byte(printed), Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if problems = withoutZero(problems); len(problems) != 0 {
				t.Error(list(problems))
			}
			short.Diff(t, tell(got), ascii.Replace(form.want))
			if Recognize([]byte(printed)) == NoForm {
				t.Error("not recognized")
			}
			if form.name == "plain" {
				// Without the comments on top.
				want := stanzas(ascii.Replace(written))[1:]
				got := stanzas(printed)[1:]
				slices.Sort(want)
				slices.Sort(got)
				short.Diff(t, got, want, "stanzas (-written +printed)")
			}
		})
	}
}

// The GUIDs, descriptions and links of the short form are those that ibsim
// gives.
func TestIbsimShortForm(t *testing.T) {
	text := string(short.Must(os.ReadFile("testdata/short-form.ibsim"))(t))
	f, problems := short.Must2(Parse("short", []byte(text), Options{}))(t)
	// ibsim negotiates, and runs this cable at what both ends have.
	short.Diff(t, list(problems), "line 15: \"right\"[4] is 12xQDR here, but \"left\"[4] is 12xDDR in line 8: taken as 12xDDR\n")
	printed := simulate(t, text)("ibnetdiscover")
	golden(t, "short", "ibnetdiscover of infiniband-diags 44 on ibsim 0.10, of the short form in ibsim_test.go", printed)
	g, problems, err := Parse("printed", []byte(printed), Options{})
	if err != nil || len(withoutZero(problems)) != 0 {
		t.Fatal(err, problems)
	}
	// ibsim takes the node GUID for the system image GUID where none is said.
	want := regexp.MustCompile(`(?m)^(\S.*? )([0-9a-f]+)( ".*" ports \d+)`).ReplaceAllString(tell(f), "${1}${2}${3} system ${2} vendor 0 device 0")
	short.Diff(t, tell(g), want, "(-short form +ibsim)")
}

// ibsim only warns of widths and speeds that it does not know, and cuts a
// description at its first quote.
func TestIbsimLoadsUnknownLinks(t *testing.T) {
	var b fabric.Builder
	for i, description := range []string{`a "quoted" name`, ""} {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 4, Description: description}))(t)
	}
	for i, link := range []fabric.Link{{}, {Width: 4}, {Speed: fabric.NDR}, {Width: 4, Speed: fabric.XDR}} {
		short.Check(t, b.Connect(0, fabric.PortNum(i+1), 1, fabric.PortNum(4-i), link))
	}
	f := short.Must(b.Build())(t)
	printed := simulate(t, string(Append(nil, f)))("ibnetdiscover")
	g, problems, err := Parse("printed", []byte(printed), Options{})
	if err != nil || len(problems) != 0 {
		t.Fatal(err, problems)
	}
	want := regexp.MustCompile(` (4x|0x)\w*`).ReplaceAllString(tell(f), "")
	want = strings.NewReplacer(`"a \"quoted\" name" ports 4`, `"a " ports 4 system 1 vendor 0 device 0`, `"" ports 4`, `"S-0000000000000002" ports 4 system 2 vendor 0 device 0`).Replace(want)
	short.Diff(t, strings.ReplaceAll(tell(g), " 4xSDR", ""), want, "(-written +ibsim)")
}
