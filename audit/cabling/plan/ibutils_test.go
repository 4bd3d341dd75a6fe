package plan

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// The real ibutils read the .topo files that we write, and we read those that they write.
// ibdmsh reads a plan of each fabric with the library of ibtopodiff and writes it again:
// read back it differs from the fabric in nothing; without one of its cables, in just that.
func TestIbutilsTopo(t *testing.T) {
	for name, f := range fabrics(t) {
		t.Run(name, func(t *testing.T) {
			var ours bytes.Buffer
			short.Check(t, Write(&ours, f, Topo))
			theirs := copyByIbutils(t, ours.Bytes())
			v, r := judge(t, f, theirs)
			if n := bytes.Count(ours.Bytes(), []byte("->")); v.AsPlanned != n || v.Planned != n || len(r.Recabled) > 0 {
				t.Fatalf("%d cables in the plan, and ibdmsh writes another one: %s", n, v)
			}
			if !bytes.Contains(theirs, []byte("by IBDM")) {
				t.Fatalf("not of ibutils:\n%s", theirs)
			}
			lines := strings.SplitAfter(ours.String(), "\n")
			at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "->") })
			v, _ = judge(t, f, copyByIbutils(t, []byte(strings.Join(slices.Delete(lines, at, at+1), ""))))
			if len(v.MissingInPlan) != 1 || v.AsPlanned != v.Planned {
				t.Fatalf("a cable less in the plan: %s", v)
			}
		})
	}
}

// ibtopodiff reads a plan of ours and OpenSM's list of the fabric and finds the same
// systems in both. What Debian's build of it does after that is in docs/dev/plan.md.
func TestIbtopodiffReadsTopo(t *testing.T) {
	f := fabrics(t)["tree"]
	var topo, list bytes.Buffer
	short.Check(t, Write(&topo, f, Topo))
	short.Check(t, dump.WriteSubnetList(&list, f))
	dir := ibutilsFolder(t, topo.Bytes())
	short.Check(t, os.WriteFile(filepath.Join(dir, "subnet.lst"), list.Bytes(), 0o666))
	out, err := ibutils(t, dir, "", "ibtopodiff", "-t", "ours.topo", "-d", "subnet.lst", "-e")
	want := fmt.Sprintf("-I- Defined %d/%d systems/nodes", f.NumNodes(), f.NumNodes())
	if strings.Count(out, want) != 2 || strings.Contains(out, "-E-") {
		t.Errorf("want %q of both files: %v\n%s", want, err, out)
	}
}

// ibutils runs a program of the package ibutils in a folder made by ibutilsFolder.
func ibutils(t *testing.T, dir, input, program string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed: apt-get install ibutils", program)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "IBDM_IBNL_PATH="+dir)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copyByIbutils has ibdmsh read a .topo file and write what it understood.
func copyByIbutils(t *testing.T, topo []byte) []byte {
	t.Helper()
	dir := ibutilsFolder(t, topo)
	script := "set f [new_IBFabric]\nIBFabric_parseTopology $f ours.topo\nIBFabric_dumpTopology $f theirs.topo .\nexit\n"
	out, err := ibutils(t, dir, script, "ibdmsh")
	if err != nil || strings.Contains(out, "-E-") {
		t.Fatalf("ibdmsh: %v\n%s\n%s", err, out, topo)
	}
	theirs, err := os.ReadFile(filepath.Join(dir, "theirs.topo"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return theirs
}

// ibutilsFolder is a folder with a .topo file and what ibutils want beside it: a file for
// each type of system that names its ports. Each type is one chip here.
func ibutilsFolder(t *testing.T, topo []byte) string {
	t.Helper()
	dir := t.TempDir()
	short.Check(t, os.WriteFile(filepath.Join(dir, "ours.topo"), topo, 0o666))
	ports := map[string][]string{} // by type
	add := func(typ, port string) {
		if !slices.Contains(ports[typ], port) {
			ports[typ] = append(ports[typ], port)
		}
	}
	typ := ""
	for line := range strings.Lines(string(topo)) {
		switch words := strings.Fields(line); len(words) {
		case 2:
			typ = words[0]
		case 5:
			add(typ, words[0])
			add(words[2], words[4])
		}
	}
	for typ, names := range ports {
		kind := "SW"
		if strings.HasPrefix(typ, "HCA") {
			kind = "CA"
		}
		text := fmt.Sprintf("TOPSYSTEM %s\n\nNODE %s %d CHIP U1\n", typ, kind, len(names))
		for i, name := range names {
			text += fmt.Sprintf("   %d -> %s\n", i+1, name)
		}
		short.Check(t, os.WriteFile(filepath.Join(dir, typ+".ibnl"), []byte(text), 0o666))
	}
	return dir
}
